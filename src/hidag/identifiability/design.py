"""The measurement design to check, and findings: the status of one condition each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hidag.data.q_matrix import QSpec, read_q_entries
from hidag.exceptions import DataError, Setting, SettingError, invalid_setting, not_fitted
from hidag.formatting import join_names, plural
from hidag.latent.laws import LatentLaw
from hidag.measurement.families.base import canonical_name
from hidag.measurement.terms import Effects

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Numbers = Sequence[int] | NDArray[np.integer]
Status = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True, eq=False)
class MeasurementDesign:
    """A measurement design whose identifiability is to be checked."""

    q: Bools  # (J, K): whether an item loads on a latent. A latent without items is allowed.
    item_names: tuple[str, ...]
    latent_names: tuple[str, ...]
    levels: tuple[int, ...]  # length K: number of levels of each latent
    effects: Effects
    families: tuple[str, ...] | None  # length J
    # (S,): joint states that a hierarchy excludes, numbered as in `hidag.latent.StateSpace`
    ruled_out: Bools | None = None

    @property
    def _largest_width(self) -> int:
        return int(self.q.sum(axis=1).max(initial=0))

    @property
    def order(self) -> int:
        """Highest order of effects that an item can have, given its number of latents."""
        return min(self._largest_width, self.effects.highest)

    @property
    def binary(self) -> bool:
        """Whether every latent has two levels."""
        return set(self.levels) == {2}

    @property
    def main_effects(self) -> bool:
        """Whether no item can have an interaction."""
        return self.order <= 1

    @property
    def truncated(self) -> bool:
        """Whether the model omits interactions that an item could have."""
        return self.order < self._largest_width

    def items(self, numbers: Numbers) -> list[str]:
        """Return names of items."""
        return [self.item_names[j] for j in numbers]

    def latents(self, numbers: Numbers) -> list[str]:
        """Return names of latents."""
        return [self.latent_names[k] for k in numbers]

    def possible(self) -> NDArray[np.intp]:
        """Return the numbers of the joint states that a hierarchy allows."""
        if self.ruled_out is None:
            return np.arange(prod(self.levels))
        return np.flatnonzero(~self.ruled_out)

    def state_names(self, numbers: Numbers) -> list[str]:
        """Return joint states by the digits of their levels, in the order of the latents."""
        states = np.stack(np.unravel_index(np.asarray(numbers, dtype=np.intp), self.levels), axis=1)
        return ["".join(map(str, state)) for state in states.tolist()]


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Fitted predictors and latent distribution."""

    # linear predictor of each item, one axis for each of its latents; NaN where the possible
    # states do not determine it
    tables: tuple[Array, ...]
    law: LatentLaw
    eta: Array | None = None  # (J, S): predictors in joint states; None if there are too many
    dispersion: Array | None = None  # (J,)
    cutpoints: Array | None = None  # (J, C)


def read_design(
    q_matrix: Any,
    *,
    effects: str | int = "main",
    levels: int | Sequence[int] = 2,
    families: str | Sequence[str] | Mapping[str, str] | None = None,
) -> MeasurementDesign:
    """Return the checked design (a design as it is); parameters as in `check_identifiability`."""
    if isinstance(q_matrix, MeasurementDesign):
        return q_matrix
    q, items, latents = _read_q(q_matrix)
    word = effects.strip().lower() if isinstance(effects, str) else effects
    kind = Effects.of(int(word) if isinstance(word, str) and word.isdigit() else word)
    return MeasurementDesign(
        q, items, latents, _read_levels(levels, len(latents)), kind, _read_families(families, items)
    )


def _read_q(q_matrix: Any) -> tuple[Bools, tuple[str, ...], tuple[str, ...]]:
    if isinstance(q_matrix, QSpec):
        return _check_q(q_matrix.entries.astype(np.float64), None, q_matrix.latent_names)
    if hasattr(q_matrix, "get_params"):
        raise not_fitted(q_matrix)
    items, entries, latents, _ = read_q_entries(q_matrix)
    return _check_q(entries, items, latents)


def _check_q(
    values: NDArray[np.float64], items: tuple[str, ...] | None, latents: tuple[str, ...]
) -> tuple[Bools, tuple[str, ...], tuple[str, ...]]:
    if items is None:
        items = tuple(f"item_{j}" for j in range(len(values)))
    repeated = next((name for name in items if items.count(name) > 1), None)
    if repeated is not None:
        raise DataError(
            "duplicate-item",
            "each item must have one row in the Q-matrix, but item {item!r} has {count}",
            {"item": repeated, "count": items.count(repeated)},
            advice="drop or rename the others",
        )
    invalid = ~np.isin(values, (0.0, 1.0))
    if invalid.any():
        row, column = (int(i) for i in np.argwhere(invalid)[0])
        value = values[row, column]
        free = bool(np.isnan(value) or value == -1)
        advice = "use 1 if the item loads on the latent and 0 otherwise"
        advice = "decide every entry, or check the Q-matrix of a fit" if free else advice
        entry = {"item": items[row], "latent": latents[column], "total": values.size}
        raise DataError(
            "free-q-entry" if free else "invalid-q-entry",
            "identifiability is checked for a Q-matrix of ones and zeros, but the entry of item "
            "{item!r} for latent {latent!r} is {value} ({count} of {total} entries)",
            {**entry, "value": "to be estimated" if free else f"{value:g}", "count": invalid.sum()},
            advice=advice,
        )
    q = values == 1.0
    q.setflags(write=False)
    return q, items, latents


def _read_levels(levels: int | Sequence[int], n_latents: int) -> tuple[int, ...]:
    several = isinstance(levels, Sequence | np.ndarray) and not isinstance(levels, str | bytes)
    given: list[Any] = list(levels) if several else [levels] * n_latents  # type: ignore[arg-type]
    whole = all(isinstance(m, int | np.integer) and not isinstance(m, bool) for m in given)
    if not whole or len(given) != n_latents or min(given) < 2:
        expected = f"an integer of at least 2, or one for each of the {n_latents} latents"
        raise invalid_setting("levels", expected, levels)
    return tuple(int(m) for m in given)


def _read_families(
    families: str | Sequence[str] | Mapping[str, str] | None, items: tuple[str, ...]
) -> tuple[str, ...] | None:
    if families is None:
        return None
    if isinstance(families, str):
        return (canonical_name(families),) * len(items)
    if isinstance(families, Mapping):
        missing = [name for name in items if name not in families]
        if missing:
            raise SettingError(
                "missing-family",
                "{setting} must name a family for every item, but item {item!r} has none "
                "({count} of {total} items)",
                {"setting": Setting("families"), "count": len(missing), "total": len(items)},
                item=missing[0],
            )
        families = [str(families[name]) for name in items]
    given = tuple(families)
    if len(given) != len(items) or not all(isinstance(name, str) for name in given):
        expected = f"one name, or a list of one name for each of the {len(items)} items"
        raise invalid_setting("families", expected, families)
    return tuple(canonical_name(name) for name in given)


@dataclass(frozen=True)
class Finding:
    """The status of one condition of the paper.

    Attributes
    ----------
    name : str, such as "blocks"; unique within a certificate
    source : str, theorem or assumption that states it
    status : {"holds", "fails", "undecided"}
        "undecided" if it depends on arguments that were not given.
    sentence : str, explanation without a full stop
    witness : mapping, items and latents that prove it
    advice : str, recommended change; empty if none is needed
    required : bool, whether a theorem that applies to the design requires it
    provably_bad : bool, whether failure proves that other parameters give the same distribution
    """

    name: str
    source: str
    status: Status
    sentence: str
    witness: Mapping[str, Any] = field(default_factory=dict)
    advice: str = ""
    required: bool = True
    provably_bad: bool = False

    @property
    def holds(self) -> bool | None:
        """True, False, or None if undecided."""
        return {"holds": True, "fails": False, "undecided": None}[self.status]


@dataclass(frozen=True)
class Condition:
    """A condition to be checked; its methods return the finding (attributes as there)."""

    name: str
    source: str
    required: bool = True

    def found(self, status: Status, sentence: str, witness: Any = None, **more: Any) -> Finding:
        """Return a finding with a status."""
        return Finding(
            self.name, self.source, status, sentence, witness or {}, required=self.required, **more
        )

    def holds(self, sentence: str, witness: Any = None) -> Finding:
        """Return that the condition holds."""
        return self.found("holds", sentence, witness)

    def undecided(self, sentence: str, witness: Any = None, advice: str = "") -> Finding:
        """Return that the condition is undecided."""
        return self.found("undecided", sentence, witness, advice=advice)

    def fails(
        self, sentence: str, witness: Any = None, advice: str = "", *, provably_bad: bool = False
    ) -> Finding:
        """Return that the condition fails."""
        return self.found("fails", sentence, witness, advice=advice, provably_bad=provably_bad)


def describe_additions(loads: Sequence[Sequence[str]]) -> str:
    """Return the advice to add items, each given by the latents it should load on."""
    kinds = Counter(tuple(names) for names in loads)
    parts = [f"{plural(count, 'item')} on {join_names(names)}" for names, count in kinds.items()]
    return f"add {plural(len(loads), 'item')}: {join_names(parts)}"
