"""What if: a latent is set to a state, or something is known; what follows for latents and items.

Seeing and setting differ. ``given`` selects the people in whom something is so; ``do`` makes it so
in everybody, whatever usually causes it. What follows from setting depends on the directions of the
edges, and a graph from data leaves some open: then there is one answer for each possibility.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.causal.item_outcomes import Outcome, expected_outcomes, item_outcomes, likelihood
from hidag.causal.possible_parents import MOST_CHOICES, parent_choices
from hidag.causal.probability_queries import Beliefs, DrawnLaw, beliefs, beliefs_after, law_over
from hidag.causal.unidentified_effects import REASON, Prerequisites, Untold
from hidag.exceptions import DataError, SettingError
from hidag.fitting.settings import checked_count
from hidag.identifiability.findings import join_names
from hidag.latent.junction_tree import Factor, indicator
from hidag.latent.laws import NetworkLaw
from hidag.results import FitResult, as_result
from hidag.structure.graphs import CPDAG, DAG

if TYPE_CHECKING:
    from hidag.estimator import DCRL


# --- The answer to a question what if: numbers before and after, with the least and the most

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WhatIf:
    """What follows, before and after, for latents and items.

    Attributes
    ----------
    latent_names : tuple of str
    do, given : mapping from name to value
    outcomes : tuple of Outcome
        The numbers about items, in the order of the columns below.
    latents_before : tuple of K arrays, shape (M_k,)
        Probabilities of each latent's levels given what is known, with nothing set: of the fitted
        law, and where something is set of the law over the graph that is nearest to it.
    latents_after : tuple of K arrays, shape (C, M_k)
        After setting, one row for each choice of the parents of what is set; one row if the
        graph leaves no choice.
    items_before : ndarray, shape (O,)
    items_after : ndarray, shape (C, O)
    shares : tuple of float, length C, or None
        Share of the graph's members behind each row; None where they are too many to count.
    complete : bool
        Whether the rows are all there are.
    exact : bool
        False where the graph is so dense that the law was drawn from.
    ruled_out : tuple of float, length C
        Share of everybody whom setting puts into states that prerequisites rule out. Numbers after
        that depend on what these people would do are NaN: see
        :mod:`hidag.causal.unidentified_effects`.
    """

    latent_names: tuple[str, ...]
    do: Mapping[str, int]
    given: Mapping[str, float]
    outcomes: tuple[Outcome, ...]
    latents_before: tuple[Array, ...]
    latents_after: tuple[Array, ...]
    items_before: Array
    items_after: Array
    shares: tuple[float, ...] | None
    complete: bool
    exact: bool
    ruled_out: tuple[float, ...]

    @property
    def n_choices(self) -> int:
        """How many different answers the graph allows, C."""
        return len(self.items_after)

    @property
    def determined(self) -> bool:
        """Whether the graph leaves one answer only."""
        return self.complete and self.n_choices == 1

    @property
    def untold(self) -> tuple[str, ...]:
        """Latents and items that have no number after, because no data tell it."""
        names = [row["name"] for row in self.rows() if "reason" in row]
        return tuple(dict.fromkeys(names))

    def about_untold(self) -> str | None:
        """Return what has no number and why, in a sentence; None if everything has one."""
        names = self.untold
        if not names:
            return None
        low, high = f"{min(self.ruled_out):.1%}", f"{max(self.ruled_out):.1%}"
        share = low if low == high else f"{low} to {high}"
        return (
            f"this puts {share} of all people into states that prerequisites rule out; no data "
            f"tell what follows there, and what depends on it has no number: {join_names(names)}"
        )

    def latent(self, name: str) -> tuple[Array, Array, Array]:
        """Return a latent's level probabilities before, and the least and most after, (M_k,)."""
        if name not in self.latent_names:
            raise SettingError(
                f"there is no latent {name!r}; the latents are {', '.join(self.latent_names)}"
            )
        k = self.latent_names.index(name)
        after = self.latents_after[k]
        return self.latents_before[k], after.min(axis=0), after.max(axis=0)

    def rows(self) -> list[dict[str, Any]]:
        """Return all numbers as rows: name, what, before, low, high (equal if determined).

        Items that are given are left out. Where low and high are NaN there is a reason too.
        """
        out: list[dict[str, Any]] = []
        for name in self.latent_names:
            before, low, high = self.latent(name)
            first = 1 if len(before) == 2 else 0
            out += [
                _row("latent", name, f"P(={v})", before[v], low[v], high[v])
                for v in range(first, len(before))
            ]
        low, high = self.items_after.min(axis=0), self.items_after.max(axis=0)
        for o, outcome in enumerate(self.outcomes):
            if outcome.item in self.given:
                continue
            numbers = self.items_before[o], low[o], high[o]
            out.append(_row("item", outcome.item, outcome.what, *numbers))
        return out


def _row(kind: str, name: str, what: str, before: float, low: float, high: float) -> dict[str, Any]:
    numbers = {"before": float(before), "low": float(low), "high": float(high)}
    reason = {"reason": REASON} if np.isnan(low) else {}
    return {"kind": kind, "name": name, "what": what, **numbers, **reason}


# ---


class Questions:
    """A fit that can be asked many questions: what one needs and the next can use is kept.

    Parameters
    ----------
    result : FitResult
    graph : CPDAG or DAG, optional
        Directions to believe in, over the latents of the fit; the fit's own graph unless given. A
        DAG, or a graph with more directions, gives fewer possibilities.
    limit : int
        Choices of parents looked at, at the most.
    """

    def __init__(
        self,
        result: FitResult,
        *,
        graph: CPDAG | DAG | None = None,
        limit: int = MOST_CHOICES,
    ) -> None:
        self.result = result
        self.limit = checked_count("limit", limit)
        chosen = result.graph if graph is None else graph
        if not isinstance(chosen, (CPDAG, DAG)):
            raise SettingError(f"graph must be a CPDAG or a DAG, got {type(chosen).__name__}")
        if chosen.names != result.latent_names:
            raise SettingError(
                f"the graph must be over the latents {', '.join(result.latent_names)} in this "
                f"order, got {', '.join(chosen.names)}"
            )
        self.graph = CPDAG(chosen.adjacency, chosen.names)
        self._laws: dict[DAG, NetworkLaw] = {}

    @cached_property
    def observed(self) -> Beliefs:
        """The fitted law, with nothing known and nothing set."""
        return beliefs(self.result.law)

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The numbers about items."""
        return tuple(item_outcomes(self.result))

    def after(self, dag: DAG, do: Mapping[int, int], likelihoods: Sequence[Factor] = ()) -> Beliefs:
        """Return the law after setting latents, if a DAG has the directions right."""
        return beliefs_after(self._law_over(dag), do, likelihoods)

    def untold(
        self, dag: DAG, do: Mapping[int, int], given: Mapping[Any, Any] | None = None
    ) -> Untold:
        """Return what no data tell after setting latents, because prerequisites rule it out."""
        known = given or {}
        latents = [self._given_latent(name) for name in known]
        return self._prerequisites.untold(
            self._law_over(dag),
            do,
            self.read_given(known),
            [name if k is None else k for name, k in zip(known, latents, strict=True)],
        )

    @cached_property
    def _prerequisites(self) -> Prerequisites:
        return Prerequisites(self.result, self.outcomes)

    def _law_over(self, dag: DAG) -> NetworkLaw:
        if dag not in self._laws:
            self._laws[dag] = law_over(self.result.law, dag, self.observed)
        return self._laws[dag]

    def read_do(self, do: Mapping[Any, Any]) -> dict[int, int]:
        """Return what is set by the numbers of the latents."""
        names = self.result.latent_names
        out: dict[int, int] = {}
        for name, level in _asked(do, "do"):
            if name in self.result.item_names and name not in names:
                raise SettingError(
                    f"{name} is an item and cannot be set: items are effects, setting one changes "
                    f"no latent; set one of the latents {', '.join(names)}"
                )
            k = _position(name, names)
            if k in out:
                raise SettingError(f"{names[k]} is set twice, by name and by number; set it once")
            out[k] = _level(names[k], level, self.result.law.space.levels[k])
        return out

    def read_given(self, given: Mapping[Any, Any]) -> list[Factor]:
        """Return how probable what is known is, for latents and items: a factor for each."""
        names, items = self.result.latent_names, self.result.item_names
        out = []
        for name, value in _asked(given, "given"):
            k = self._given_latent(name)
            if k is None:
                out.append(likelihood(self.result, items.index(name), _number(name, value)))
                continue
            n_levels = self.result.law.space.levels[k]
            out.append(indicator(k, _level(names[k], value, n_levels), n_levels))
        return out

    def _given_latent(self, name: Any) -> int | None:
        """Return the number of a latent that something is known of, None if it is an item."""
        names, items = self.result.latent_names, self.result.item_names
        if isinstance(name, str) and name not in names and name in items:
            return None
        return _position(name, names, items)

    def ask(
        self, do: Mapping[Any, Any] | None = None, given: Mapping[Any, Any] | None = None
    ) -> WhatIf:
        """Return what follows from setting latents and from knowing latents or items.

        Parameters
        ----------
        do : mapping from latent to level, optional
        given : mapping from latent or item to value, optional
            Known of those in whom ``do`` has been carried out: with both, first set, then seen.
        """
        setting, known = self.read_do(do or {}), self.read_given(given or {})
        levels = self.result.law.space.levels
        seen = []
        for (name, value), factor in zip((given or {}).items(), known, strict=True):
            k = self._given_latent(name)
            if k is None or k not in setting:
                seen.append(factor)
            elif float(value) != setting[k]:
                raise SettingError(
                    f"{self.result.latent_names[k]} is set to {setting[k]} and given as {value}: "
                    "it cannot be both"
                )
            # Nothing is set before, and what is set later is not seen then. Items always are,
            # those of a latent that is set too.
        found = parent_choices(self.graph, list(setting), limit=self.limit)
        before = beliefs(self.result.law, seen)
        if setting:
            # Like with like: over the graph, where a saturated law is another one after setting.
            before = self.after(found.choices[0].dag, {}, seen)
        after = (
            [self.after(choice.dag, setting, known) for choice in found.choices]
            if setting
            else [before]
        )
        untold = [self.untold(choice.dag, setting, given) for choice in found.choices]
        return WhatIf(
            latent_names=self.result.latent_names,
            do={self.result.latent_names[k]: level for k, level in setting.items()},
            given={str(name): value for name, value in (given or {}).items()},
            outcomes=self.outcomes,
            latents_before=tuple(before.marginal((k,)) for k in range(len(levels))),
            latents_after=tuple(
                np.stack(
                    [
                        np.where(none.latents[k], np.nan, law.marginal((k,)))
                        for law, none in zip(after, untold, strict=True)
                    ]
                )
                for k in range(len(levels))
            ),
            items_before=expected_outcomes(self.outcomes, before),
            items_after=np.array(
                [
                    np.where(none.outcomes, np.nan, expected_outcomes(self.outcomes, law))
                    for law, none in zip(after, untold, strict=True)
                ]
            ),
            shares=found.shares if setting else (1.0,),
            complete=found.complete if setting else True,
            exact=not any(isinstance(law, DrawnLaw) for law in [before, *after]),
            ruled_out=tuple(none.share for none in untold),
        )


def what_if(
    result: FitResult | DCRL,
    do: Mapping[Any, Any] | None = None,
    given: Mapping[Any, Any] | None = None,
    *,
    graph: CPDAG | DAG | None = None,
    limit: int = MOST_CHOICES,
) -> WhatIf:
    """Return what follows from setting latents (``do``) and from knowing latents or items.

    Where the graph leaves directions open there is one answer for each set of parents that the
    latents may have among its members (IDA); ``rows()`` gives the least and the most of them.

    Parameters
    ----------
    result : FitResult or DCRL
    do : mapping from latent to level, optional
        Latents by name or number.
    given : mapping from latent or item to value, optional
        With ``do``: known of those in whom it has been carried out.
    graph : CPDAG or DAG, optional
        Directions to believe in; the fit's own graph unless given.
    limit : int
        Choices of parents looked at, at the most.

    Examples
    --------
    ``what_if(result, do={"Z1": 1}).latent("Z2")``

    ``what_if(result, given={"Z2": 0, "item_3": 1}).rows()``
    """
    fitted = as_result(result)
    return Questions(fitted, graph=graph, limit=limit).ask(do, given)


def _asked(question: Any, what: str) -> Iterable[tuple[Any, Any]]:
    if not isinstance(question, Mapping):
        raise SettingError(
            f"{what} must be a mapping such as {{'Z1': 1}}, got {type(question).__name__}"
        )
    return question.items()


def _position(name: Any, names: Sequence[str], items: Sequence[str] = ()) -> int:
    if isinstance(name, str) and name in names:
        return list(names).index(name)
    if isinstance(name, (int, np.integer)) and 0 <= int(name) < len(names):
        return int(name)
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    also = f", nor an item of the {len(items)} items" if items else ""
    raise SettingError(f"{name!r} is not a latent{also}; the latents are {shown}")


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(f"{name}={value!r} must be a number") from None


def _level(name: str, value: Any, n_levels: int) -> int:
    number = _number(name, value)
    if not (number.is_integer() and 0 <= number < n_levels):
        raise SettingError(
            f"{name}={value} is no level of {name}: its levels are 0 to {n_levels - 1}"
        )
    return int(number)
