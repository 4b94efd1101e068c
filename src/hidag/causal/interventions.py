"""Predictions for latents and items after an intervention, or given observed values.

Conditioning (``given``) selects the people with the given values; an intervention (``do``) sets a
latent in the whole population and cuts it off from its causes. The result of an intervention
depends on the directions of the edges. Where the data leave some undirected, there is one answer
for each set of parents that the directions allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from hidag.causal import probability_queries as queries
from hidag.causal.possible_parents import MAX_PARENT_SETS, enumerate_parent_sets
from hidag.exceptions import Advice, DataError, Message, Setting, SettingError
from hidag.fitting.information_criteria import states_known
from hidag.fitting.settings import checked_count
from hidag.formatting import first_names, join_names
from hidag.latent.junction_tree import Factor, indicator
from hidag.latent.laws import NetworkLaw
from hidag.results import AnyFit, as_result
from hidag.structure.graphs import CPDAG, DAG
from hidag.views import View

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
#: Reason in tables for a missing value.
NOT_IDENTIFIED = "not identified: depends on states that prerequisites rule out"
_ROUNDING = 1e-9  # Smaller shares of the population are rounding errors


@dataclass(frozen=True, repr=False)
class WhatIfResult(View, title="do {0.do}, given {0.given}", frames={"rows": "rows"}):
    """Predictions for latents and items before and after an intervention.

    Attributes
    ----------
    latent_names : tuple of str
    do, given : mapping from name to value
    outcomes : tuple of Outcome, quantities of the items, in the order of the columns below
    latents_before : tuple of K arrays (M_k,)
        Probabilities of each latent's levels given the evidence, without the intervention: from the
        fitted law, or with an intervention from its factorisation over the graph.
    latents_after : tuple of K arrays (C, M_k)
        After the intervention, one row for each possible set of parents of the targets.
    items_before, items_after : arrays (O,) and (C, O)
    complete : bool, whether the rows cover all possible sets of parents
    exact : bool, False where the graph is so dense that probabilities come from a sample
    ruled_out : tuple of float, length C
        Share of the population that the intervention moves into states ruled out by prerequisites.
        Values that depend on these people are not identified and NaN: see
        :meth:`InterventionModel.find_unidentified`.
    """

    latent_names: tuple[str, ...]
    do: Mapping[str, int]
    given: Mapping[str, float]
    outcomes: tuple[queries.Outcome, ...]
    latents_before: tuple[Array, ...]
    latents_after: tuple[Array, ...]
    items_before: Array
    items_after: Array
    complete: bool
    exact: bool
    ruled_out: tuple[float, ...]

    @property
    def n_parent_sets(self) -> int:
        """Number of different answers that the graph allows, C."""
        return len(self.items_after)

    @property
    def determined(self) -> bool:
        """Whether the graph allows a single answer."""
        return self.complete and self.n_parent_sets == 1

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Latents and items without a value after the intervention."""
        return tuple(dict.fromkeys(row["name"] for row in self.rows() if "reason" in row))

    def unidentified_note(self) -> Message | None:
        """Return which predictions are not identified and why; None if all are."""
        names = self.unidentified
        if not names:
            return None
        low, high = f"{min(self.ruled_out):.1%}", f"{max(self.ruled_out):.1%}"
        return Message(
            "unidentified-prediction",
            "the intervention moves {share} of the population into states that prerequisites rule "
            "out; the data do not identify outcomes in these states, so there is no value for "
            "{names}",
            {"share": low if low == high else f"{low} to {high}", "names": join_names(names)},
        )

    def latent(self, name: str) -> tuple[Array, Array, Array]:
        """Return a latent's level probabilities before, and the bounds after, shape (M_k,)."""
        if name not in self.latent_names:
            raise _unknown_latent(name, self.latent_names)
        k = self.latent_names.index(name)
        after = self.latents_after[k]
        return self.latents_before[k], after.min(axis=0), after.max(axis=0)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per quantity: kind, name, what, before, low, high.

        ``low`` and ``high`` bound the value after the intervention and are equal if it is
        determined; where they are NaN there is a ``reason`` too. Items in ``given`` are left out.
        """
        out: list[dict[str, Any]] = []
        for name in self.latent_names:
            before, low, high = self.latent(name)
            levels = range(1 if len(before) == 2 else 0, len(before))
            out += [_row("latent", name, f"P(={v})", before[v], low[v], high[v]) for v in levels]
        low, high = self.items_after.min(axis=0), self.items_after.max(axis=0)
        for o, outcome in enumerate(self.outcomes):
            if outcome.item not in self.given:
                values = self.items_before[o], low[o], high[o]
                out.append(_row("item", outcome.item, outcome.what, *values))
        return out


def _row(kind: str, name: str, what: str, before: float, low: float, high: float) -> dict[str, Any]:
    values = {"before": float(before), "low": float(low), "high": float(high)}
    reason = {"reason": NOT_IDENTIFIED} if np.isnan(low) else {}
    return {"kind": kind, "name": name, "what": what, **values, **reason}


class InterventionModel:
    """A fit with a causal graph, prepared for many queries.

    Parameters
    ----------
    result : FitResult or DCRL
    graph : CPDAG or DAG, optional, over the latents; the fitted graph by default
    limit : int, largest number of sets of parents of the targets
    """

    def __init__(
        self, result: AnyFit, *, graph: CPDAG | DAG | None = None, limit: int = MAX_PARENT_SETS
    ) -> None:
        self.result = fitted = as_result(result)
        self.limit = checked_count("limit", limit)
        chosen = fitted.graph if graph is None else graph
        if not isinstance(chosen, (CPDAG, DAG)):
            raise _wrong_type("graph", "a CPDAG or a DAG", chosen)
        if chosen.names != fitted.latent_names:
            reason = "{setting} must be over the latents {expected} in this order, got {names}"
            names = {"expected": ", ".join(fitted.latent_names), "names": ", ".join(chosen.names)}
            raise SettingError("wrong-latents", reason, names, setting=Setting("graph"))
        self.graph = CPDAG(chosen.adjacency, chosen.names)
        self._laws: dict[DAG, NetworkLaw] = {}

    @cached_property
    def observed(self) -> queries.ConditionedLaw:
        """The fitted law without evidence or intervention."""
        return queries.condition_law(self.result.law)

    @cached_property
    def outcomes(self) -> tuple[queries.Outcome, ...]:
        """Quantities of the items."""
        return tuple(queries.tabulate_outcomes(self.result))

    @cached_property
    def _unknown_states(self) -> dict[str, Mask]:
        """States (S,) in which an item's distribution is not determined by states that occur."""
        known, result = states_known(self.result), self.result
        return {
            name: np.asarray(~known[:, result.responses.item == j].all(axis=1))
            for j, name in enumerate(result.item_names)
        }

    def _law_over(self, dag: DAG) -> NetworkLaw:
        if dag not in self._laws:
            self._laws[dag] = queries.factorise_over_dag(self.result.law, dag, self.observed)
        return self._laws[dag]

    def after(
        self, dag: DAG, do: Mapping[int, int], likelihoods: Sequence[Factor] = ()
    ) -> queries.ConditionedLaw:
        """Return the law after ``do``, given ``likelihoods`` of latents, if ``dag`` is causal."""
        return queries.condition_after_intervention(self._law_over(dag), do, likelihoods)

    def find_unidentified(
        self, dag: DAG, do: Mapping[int, int], given: Mapping[Any, Any] | None = None
    ) -> tuple[float, Mask, Mask]:
        """Return the latents (K,) and outcomes (O,) that an intervention leaves unidentified.

        Setting a skill to 1 in the whole population also sets it in people without its
        prerequisites, of whom none was observed (a violation of positivity). The data do not
        identify their latents and items, except latents that do not descend from the intervention
        (in ``dag``) and items whose coefficients are determined by states that do occur. Values
        ``given`` restrict the people that count. The share of people without their prerequisites
        comes first.
        """
        levels, ruled_out = self.result.law.space.levels, self.result.ruled_out
        latents, outcomes = (np.zeros(n, dtype=bool) for n in (len(levels), len(self.outcomes)))
        if ruled_out is None or not do:
            return 0.0, latents, outcomes
        after, given = queries.intervene(self._law_over(dag), do), given or {}
        share = float(np.asarray(after.probabilities)[ruled_out].sum())
        shares = queries.JointTable.of(
            [*queries.law_factors(after), *self.parse_given(given)], levels
        ).table
        graph = nx.from_numpy_array(dag.adjacency, create_using=nx.DiGraph)
        for k in set(range(len(levels))) - set(do):
            # All ancestors: where others than the parents never vary, data cannot show that they
            # are irrelevant.
            ancestors = nx.ancestors(graph, k)
            others = tuple(a for a in range(len(levels)) if a not in ancestors)
            never = ruled_out.reshape(levels).all(axis=others)
            latents[k] = shares.sum(axis=others)[never].sum() > _ROUNDING
        mass = shares.ravel()
        unknown = {item: mass[own].sum() > _ROUNDING for item, own in self._unknown_states.items()}
        of_items = {one.item: list(one.latents) for one in self.outcomes}
        evidence = [(name, self._given_latent(name)) for name in given]
        if any(
            unknown[name] or latents[of_items[name]].any() if k is None else latents[k]
            for name, k in evidence
        ):
            # The likelihood of this evidence is itself not identified, nor is what follows from it.
            latents[:] = [k not in do for k in range(len(levels))]
            latents[[k for _, k in evidence if k is not None]] = False
        outcomes[:] = [unknown[o.item] or latents[list(o.latents)].any() for o in self.outcomes]
        return share, latents, outcomes

    def parse_do(self, do: Mapping[Any, Any]) -> dict[int, int]:
        """Return the intervention ``do`` by the indices of the latents."""
        names = self.result.latent_names
        out: dict[int, int] = {}
        _check_mapping(do, "do")
        for name, level in do.items():
            if name in self.result.item_names and name not in names:
                raise SettingError(
                    "intervention-on-item",
                    "{item} is an item and cannot be set: items are effects, and an intervention "
                    "on one changes no latent",
                    {"item": name, "latents": ", ".join(names)},
                    advice="set one of the latents {latents}",
                )
            k = _latent_index(name, names)
            if k in out:
                reason = "{latent} is set twice, by name and by index"
                raise SettingError("repeated-latent", reason, advice="set it once", latent=names[k])
            out[k] = _parse_level(names[k], level, self.result.law.space.levels[k])
        return out

    def parse_given(self, given: Mapping[Any, Any]) -> list[Factor]:
        """Return the likelihood of each given value, as factors over the latents."""
        names, items = self.result.latent_names, self.result.item_names
        _check_mapping(given, "given")
        out = []
        for name, value in given.items():
            k = self._given_latent(name)
            if k is None:
                number = _parse_number(name, value)
                out.append(queries.item_likelihood(self.result, items.index(name), number))
            else:
                n_levels = self.result.law.space.levels[k]
                out.append(indicator(k, _parse_level(names[k], value, n_levels), n_levels))
        return out

    def _given_latent(self, name: Any) -> int | None:
        """Return the index of a given latent, None for an item."""
        names, items = self.result.latent_names, self.result.item_names
        if isinstance(name, str) and name not in names and name in items:
            return None
        return _latent_index(name, names, items)

    def query(
        self, do: Mapping[Any, Any] | None = None, given: Mapping[Any, Any] | None = None
    ) -> WhatIfResult:
        """Return predictions for ``do`` and ``given`` as :func:`what_if` does."""
        given = {} if given is None else given
        targets, evidence = self.parse_do({} if do is None else do), self.parse_given(given)
        names, levels = self.result.latent_names, self.result.law.space.levels
        # A value of a target is observed only after the intervention; values of its items may have
        # been observed before it too.
        before_evidence = []
        for (name, value), factor in zip(given.items(), evidence, strict=True):
            k = self._given_latent(name)
            if k is None or k not in targets:
                before_evidence.append(factor)
            elif float(value) != targets[k]:
                reason = "{latent} is set to {level} but given as {value}"
                params = {"latent": names[k], "level": targets[k], "value": value}
                advice = Advice("", "leave it out of {setting}", {"setting": Setting("given")})
                raise SettingError("contradictory-query", reason, params, advice=advice)
        found = enumerate_parent_sets(self.graph, list(targets), limit=self.limit)
        before = queries.condition_law(self.result.law, before_evidence)
        after = [before]
        if targets:
            # Both sides from the factorisation over the graph, which a saturated law may not equal.
            before = self.after(found.dags[0], {}, before_evidence)
            after = [self.after(dag, targets, evidence) for dag in found.dags]
        unidentified = (self.find_unidentified(dag, targets, given) for dag in found.dags)
        ruled_out, no_latent, no_item = zip(*unidentified, strict=True)
        sets = range(len(after))
        items_after = [queries.expected_outcomes(self.outcomes, law) for law in after]
        return WhatIfResult(
            latent_names=names,
            do={names[k]: level for k, level in targets.items()},
            given={str(name): value for name, value in given.items()},
            outcomes=self.outcomes,
            latents_before=tuple(before.marginal((k,)) for k in range(len(levels))),
            latents_after=tuple(
                np.stack([np.where(no_latent[c][k], np.nan, after[c].marginal((k,))) for c in sets])
                for k in range(len(levels))
            ),
            items_before=queries.expected_outcomes(self.outcomes, before),
            items_after=np.where(no_item, np.nan, items_after),
            complete=found.complete if targets else True,
            exact=not any(isinstance(law, queries.WeightedSample) for law in [before, *after]),
            ruled_out=ruled_out,
        ).like(self.result)


def what_if(
    result: AnyFit,
    do: Mapping[Any, Any] | None = None,
    given: Mapping[Any, Any] | None = None,
    *,
    graph: CPDAG | DAG | None = None,
    limit: int = MAX_PARENT_SETS,
) -> WhatIfResult:
    """Return predictions after an intervention (``do``), given observed values (``given``).

    Where the graph leaves directions open there is one answer for each set of parents that the
    targets have in the equivalence class (IDA); ``rows()`` gives the bounds over them. For example,
    ``what_if(result, do={"Z1": 1}).latent("Z2")``.

    Parameters
    ----------
    result : FitResult or DCRL
    do : mapping from latent, by name or index, to level, optional
    given : mapping from latent or item to value, optional
        Observed after the intervention, if there is one.
    graph : CPDAG or DAG, optional, causal graph; the fitted one by default
    limit : int, largest number of sets of parents

    Returns
    -------
    WhatIfResult
        Probabilities of the latents' levels and means of the items, without and with the query.

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> found = hidag.what_if(model, do={"Z1": 1})
    >>> before, low, high = found.latent("Z3")
    >>> bool(low[1] <= high[1])
    True
    """
    return InterventionModel(result, graph=graph, limit=limit).query(do, given)


def _wrong_type(setting: str, expected: str, value: Any) -> SettingError:
    params = {"setting": Setting(setting), "expected": expected, "kind": type(value).__name__}
    return SettingError("wrong-type", "{setting} must be {expected}, got {kind}", params)


def _check_mapping(query: Any, setting: str) -> None:
    if not isinstance(query, Mapping):
        raise _wrong_type(setting, "a mapping such as {'Z1': 1}", query)


def _unknown_latent(name: Any, latents: Sequence[str], items: Sequence[str] = ()) -> SettingError:
    return SettingError(
        "unknown-latent",
        "{name!r} is not a latent{nor_item}; the latents are {latents}",
        {"name": name, "latents": first_names(latents, 8)},
        nor_item=f", nor one of the {len(items)} items" if items else "",
    )


def _latent_index(name: Any, latents: Sequence[str], items: Sequence[str] = ()) -> int:
    if isinstance(name, str) and name in latents:
        return list(latents).index(name)
    if isinstance(name, (int, np.integer)) and 0 <= int(name) < len(latents):
        return int(name)
    raise _unknown_latent(name, latents, items)


def _parse_number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        reason = "{name}={value!r} must be a number"
        raise DataError("not-a-number", reason, name=name, value=value) from None


def _parse_level(name: str, value: Any, n_levels: int) -> int:
    number = _parse_number(name, value)
    if not (number.is_integer() and 0 <= number < n_levels):
        reason = "{latent}={value} is not a level of {latent}: its levels are 0 to {highest}"
        raise SettingError("invalid-level", reason, latent=name, value=value, highest=n_levels - 1)
    return int(number)
