"""The measurement design to check: Q-matrix, names, levels, effects and families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.item_types import aliases
from hidag.data.q_matrix import QSpec
from hidag.data.table import frame_labels, open_frame, read_table, refuse_duplicates
from hidag.exceptions import DataError, SettingError

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_ITEM_COLUMN = "item"


@dataclass(frozen=True, eq=False)
class MeasurementDesign:
    """A measurement design whose identifiability is design for.

    Attributes
    ----------
    q : ndarray of bool, shape (J, K)
        Whether an item loads on a latent. A latent without items is allowed here: the check says
        what is wrong with it.
    item_names, latent_names : tuple of str
    levels : tuple of int, length K
        Number of values of each latent.
    order : int
        Highest order of effects that some item has room for: 1 are main effects. Never more than
        the largest number of latents of one item, as there is nothing beyond.
    requested_order : int or None
        The order that was design for; None for all effects.
    families : tuple of str, length J, or None
    conjunctive : bool
        Whether items answer to all of their latents together only (DINA), or to the absence of all
        (DINO).
    ruled_out : ndarray of bool, shape (S,), or None
        Joint states that were said not to occur, numbered as in `hidag.latent.StateSpace`; None
        where nothing was said.
    """

    q: Bools
    item_names: tuple[str, ...]
    latent_names: tuple[str, ...]
    levels: tuple[int, ...]
    order: int
    requested_order: int | None
    families: tuple[str, ...] | None
    conjunctive: bool = False
    ruled_out: Bools | None = None

    @classmethod
    def about(
        cls,
        q: Bools,
        item_names: tuple[str, ...],
        latent_names: tuple[str, ...],
        levels: tuple[int, ...],
        requested_order: int | None,
        families: tuple[str, ...] | None,
        *,
        conjunctive: bool = False,
        ruled_out: Bools | None = None,
    ) -> MeasurementDesign:
        """Return the question with the order that this Q has room for."""
        widest = int(q.sum(axis=1).max(initial=0))
        order = widest if requested_order is None else min(widest, requested_order)
        return cls(
            q,
            item_names,
            latent_names,
            levels,
            order,
            requested_order,
            families,
            conjunctive,
            ruled_out,
        )

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return int(self.q.shape[0])

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return int(self.q.shape[1])

    @property
    def binary(self) -> bool:
        """Whether every latent has two levels."""
        return set(self.levels) == {2}

    @property
    def main_effects(self) -> bool:
        """Whether no item has room for an interaction."""
        return self.order <= 1

    @property
    def truncated(self) -> bool:
        """Whether the order leaves out interactions that some item would have room for."""
        return self.order < int(self.q.sum(axis=1).max(initial=0))

    def items(self, numbers: Sequence[int] | NDArray[np.integer]) -> list[str]:
        """Return names of items."""
        return [self.item_names[j] for j in numbers]

    def latents(self, numbers: Sequence[int] | NDArray[np.integer]) -> list[str]:
        """Return names of latents."""
        return [self.latent_names[k] for k in numbers]


def read_design(
    q_matrix: Any,
    *,
    effects: str | int = "main",
    levels: int | Sequence[int] = 2,
    families: str | Sequence[str] | Mapping[str, str] | None = None,
) -> MeasurementDesign:
    """Return the design that was design about, after checking it.

    Parameters
    ----------
    q_matrix : array-like or data frame, shape (J, K), or MeasurementDesign
        Ones and zeros; a question is taken as it is. A data frame names the latents by its
        columns; a first column called 'item', or a pandas index of text, names the items.
    effects : {"main", "all", "acdm", "gdina", "dina", "dino"} or int
        Highest order of interactions, or the name of a model.
    levels : int or sequence of int, length K
    families : str, sequence of str (length J), mapping from item to family, or None
    """
    if isinstance(q_matrix, MeasurementDesign):
        return q_matrix
    q, items, latents = _read_q(q_matrix)
    design = _read_effects(effects)
    return MeasurementDesign.about(
        q,
        items,
        latents,
        _read_levels(levels, latents),
        design,
        _read_families(families, items),
        conjunctive=isinstance(effects, str) and effects.strip().lower() in ("dina", "dino"),
    )


def _read_q(q_matrix: Any) -> tuple[Bools, tuple[str, ...], tuple[str, ...]]:
    if isinstance(q_matrix, QSpec):
        return _check_q(q_matrix.entries.astype(np.float64), None, q_matrix.latent_names)
    labels = frame_labels(q_matrix)
    items: tuple[str, ...] | None = None
    cells, names = q_matrix, None
    if labels is not None:
        words = tuple(str(label) for label in labels)
        refuse_duplicates(words)
        if words and words[0].strip().lower() == _ITEM_COLUMN:
            frame = open_frame(q_matrix)
            items = tuple(str(cell) for cell in frame[frame.columns[0]].to_list())
            cells, names = frame.select(frame.columns[1:]).to_native(), words[1:]
        elif list(labels) != list(range(len(labels))):
            names = words
        index = getattr(q_matrix, "index", None)
        if items is None and index is not None and len(index):
            # A pandas index of whole numbers only counts rows; an index of text names the items.
            items = tuple(index) if all(isinstance(label, str) for label in index) else None
    try:
        table = read_table(cells, names=names, allow_empty_items=True)
    except DataError as error:
        raise DataError(f"in the Q-matrix, whose columns are read like items: {error}") from error
    latents = table.names if names else tuple(f"latent_{k}" for k in range(table.n_items))
    return _check_q(table.values, items, latents)


def _check_q(
    values: NDArray[np.float64], items: tuple[str, ...] | None, latents: tuple[str, ...]
) -> tuple[Bools, tuple[str, ...], tuple[str, ...]]:
    if items is None:
        items = tuple(f"item_{j}" for j in range(len(values)))
    _refuse_repeated(items)
    _refuse_other_entries(values, items, latents)
    q = values == 1.0
    q.setflags(write=False)
    return q, items, latents


def _refuse_repeated(items: tuple[str, ...]) -> None:
    if len(set(items)) == len(items):
        return
    first = next(name for name in items if items.count(name) > 1)
    raise DataError(
        f"each item must have one row in the Q-matrix, but item {first!r} has "
        f"{items.count(first)}; drop the others or rename them"
    )


def _refuse_other_entries(
    values: NDArray[np.float64], items: tuple[str, ...], latents: tuple[str, ...]
) -> None:
    other = ~np.isin(values, (0.0, 1.0))
    if not other.any():
        return
    row, column = (int(i) for i in np.argwhere(other)[0])
    found = values[row, column]
    open_entry = bool(np.isnan(found) or found == -1)
    what = "is still to be estimated" if open_entry else f"is {found:g}"
    advice = (
        "decide every entry, or check the Q-matrix of a fit"
        if open_entry
        else "write 1 where the latent drives the item and 0 where it does not"
    )
    raise DataError(
        f"identifiability is checked for a Q-matrix of ones and zeros, but the entry of item "
        f"{items[row]!r} for latent {latents[column]!r} {what} "
        f"({np.count_nonzero(other)} of {values.size} entries); {advice}"
    )


def _read_effects(effects: str | int) -> int | None:
    if isinstance(effects, str):
        word = effects.strip().lower()
        if word in ("main", "acdm"):
            return 1
        if word in ("all", "gdina", "dina", "dino"):
            return None
        if word.isdigit() and int(word) >= 1:
            return int(word)
    elif isinstance(effects, int | np.integer) and not isinstance(effects, bool) and effects >= 1:
        return int(effects)
    raise SettingError(
        "effects must be 'main', 'all' or the highest order of interactions (1, 2, ...), got "
        f"{effects!r}"
    )


def _read_levels(levels: int | Sequence[int], latents: tuple[str, ...]) -> tuple[int, ...]:
    sentence = (
        f"levels must be one whole number from 2 up, or one for each of the {len(latents)} "
        f"latents, got {levels!r}"
    )
    if isinstance(levels, str | bytes):
        raise SettingError(sentence)
    given = list(levels) if isinstance(levels, Sequence | np.ndarray) else [levels] * len(latents)
    whole = all(isinstance(m, int | np.integer) and not isinstance(m, bool) for m in given)
    if not whole or len(given) != len(latents) or min(given) < 2:
        raise SettingError(sentence)
    return tuple(int(m) for m in given)


def _read_families(
    families: str | Sequence[str] | Mapping[str, str] | None, items: tuple[str, ...]
) -> tuple[str, ...] | None:
    if families is None:
        return None
    if isinstance(families, str):
        return (_family(families),) * len(items)
    if isinstance(families, Mapping):
        absent = [name for name in items if name not in families]
        if absent:
            raise SettingError(
                f"families must name a family for every item, but item {absent[0]!r} has none "
                f"({len(absent)} of {len(items)} items)"
            )
        return tuple(_family(str(families[name])) for name in items)
    given = tuple(families)
    if len(given) != len(items) or not all(isinstance(name, str) for name in given):
        raise SettingError(
            f"families must be one name, or one for each of the {len(items)} items, got "
            f"{len(given)}"
            + ("" if all(isinstance(name, str) for name in given) else ", not all of them text")
        )
    return tuple(_family(name) for name in given)


def _family(word: str) -> str:
    name = word.strip().lower()
    return aliases().get(name, name)
