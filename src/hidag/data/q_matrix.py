"""Which latent may influence which item: the Q-matrix, known, partly known or to be estimated."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.table import frame_labels, open_frame, read_table, refuse_duplicates
from hidag.exceptions import DataError

UNKNOWN = -1
"""The entry that asks for the estimate; NaN and empty cells mean the same."""

_ITEM_COLUMN = "item"


@dataclass(frozen=True, eq=False)
class QSpec:
    """What is known about the Q-matrix before the fit.

    Attributes
    ----------
    entries : ndarray of int8, shape (J, K)
        1 the latent influences the item, 0 it does not, -1 to be estimated. Read-only. A row of
        zeros is allowed: that item then measures nothing and stays out of the latents.
    latent_names : tuple of str, length K
    named : bool
        True if the names came from the user's table, False if they were made up.
    """

    entries: NDArray[np.int8]
    latent_names: tuple[str, ...]
    named: bool

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return int(self.entries.shape[0])

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return int(self.entries.shape[1])

    @property
    def fully_known(self) -> bool:
        """Whether no entry is left to be estimated."""
        return not bool((self.entries == UNKNOWN).any())


def read_q_matrix(q: Any, item_names: Sequence[str], n_latents: int | None = None) -> QSpec:
    """Return the Q-matrix in the order of the items, after checking it.

    Parameters
    ----------
    q : array-like or data frame, shape (J, K)
        Entries 1, 0, and -1 or missing for "estimate this". The rows of an array are in the order
        of the items. A data frame whose first column is called 'item', or a pandas frame whose
        index holds names, is matched to the items by name, in any order; its other columns are
        the latents.
    item_names : sequence of str, length J
    n_latents : int, optional
        Checked against the number of columns if given.

    Returns
    -------
    QSpec
        An item whose row holds only zeros is kept; it measures nothing.

    Raises
    ------
    DataError
        If the shape is wrong, a latent has no item, an item is missing, unknown or given twice,
        or an entry is something else than 1, 0, -1 or missing.
    """
    items = tuple(item_names)
    row_names, cells, latent_names, named = _split(q)
    try:
        rows = read_table(cells, names=latent_names if named else None, allow_empty_items=True)
    except DataError as error:
        sentence = f"in the Q-matrix, whose columns are read like items: {error}"
        raise DataError(sentence) from error
    entries = rows.values
    if row_names is not None:
        entries = entries[_match_rows(row_names, items)]
    _refuse_wrong_shape(entries.shape, len(items), n_latents)
    names = rows.names if named else tuple(f"latent_{k}" for k in range(entries.shape[1]))
    filled = np.where(np.isnan(entries), UNKNOWN, entries)
    _refuse_other_entries(filled, items, names)
    empty = np.flatnonzero((filled == 0).all(axis=0))
    if len(empty):
        raise DataError(
            f"each latent needs at least one item, but latent {names[int(empty[0])]!r} has only "
            f"zeros in the Q-matrix ({len(empty)} of {len(names)} latents); drop the column or "
            "mark the entries to be estimated with -1"
        )
    result = np.ascontiguousarray(filled, dtype=np.int8)
    result.setflags(write=False)
    return QSpec(entries=result, latent_names=names, named=named)


def _split(q: Any) -> tuple[tuple[str, ...] | None, Any, tuple[str, ...], bool]:
    """Return row names (None when rows come in the items' order), cells, latent names, named."""
    labels = frame_labels(q)
    if labels is None:
        return None, q, (), False
    names = tuple(str(label) for label in labels)
    refuse_duplicates(names)
    frame = open_frame(q)
    if names and names[0].strip().lower() == _ITEM_COLUMN:
        row_names = tuple(str(cell) for cell in frame[frame.columns[0]].to_list())
        return row_names, frame.select(frame.columns[1:]).to_native(), names[1:], True
    named = list(labels) != list(range(len(labels)))
    index = getattr(q, "index", None)
    # A pandas index of whole numbers is only a row count; an index of text names the items.
    if index is not None and len(index) and all(isinstance(label, str) for label in index):
        return tuple(index), q, names, named
    return None, q, names, named


def _match_rows(row_names: tuple[str, ...], items: tuple[str, ...]) -> list[int]:
    """Return, for each item, the position of its row in the Q-matrix."""
    position: dict[str, int] = {}
    for row, name in enumerate(row_names):
        if name in position:
            count = row_names.count(name)
            raise DataError(
                f"each item must have one row in the Q-matrix, but item {name!r} has {count}; "
                "drop the others"
            )
        position[name] = row
    unknown = [name for name in row_names if name not in set(items)]
    if unknown:
        near = difflib.get_close_matches(unknown[0], items, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "drop the row or rename the item"
        raise DataError(
            f"the rows of the Q-matrix must be items of the table, but {unknown[0]!r} is none "
            f"({len(unknown)} of {len(row_names)} rows); {hint}"
        )
    absent = [name for name in items if name not in position]
    if absent:
        raise DataError(
            f"each item must have a row in the Q-matrix, but item {absent[0]!r} has none "
            f"({len(absent)} of {len(items)} items); add a row, with -1 where you do not know"
        )
    return [position[name] for name in items]


def _refuse_wrong_shape(shape: tuple[int, ...], n_items: int, n_latents: int | None) -> None:
    if shape[0] == n_items and n_latents in (None, shape[1]):
        return
    expected = f"({n_items}, {'K' if n_latents is None else n_latents})"
    turned = ""
    if shape[1] == n_items and n_latents in (None, shape[0]):
        turned = "; it seems to be turned round, use its transpose"
    raise DataError(
        f"the Q-matrix must have shape {expected}, one row per item and one column per latent, "
        f"but it has shape {shape}{turned}"
    )


def _refuse_other_entries(
    entries: NDArray[np.float64], items: tuple[str, ...], names: tuple[str, ...]
) -> None:
    other = ~np.isin(entries, (0.0, 1.0, float(UNKNOWN)))
    if other.any():
        row, column = (int(index) for index in np.argwhere(other)[0])
        raise DataError(
            "the entries of the Q-matrix must be 1, 0 or -1 (estimate), but item "
            f"{items[row]!r} has {entries[row, column]:g} for latent {names[column]!r} "
            f"({np.count_nonzero(other)} of {entries.size} entries)"
        )
