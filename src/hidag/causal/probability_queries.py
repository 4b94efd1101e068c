"""Marginal distributions of the latents under conditioning and intervention.

Marginals are exact while the tables of the computation stay small. For denser graphs they are
estimated from a weighted sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import DataError
from hidag.information import item_derivatives
from hidag.latent.junction_tree import (
    Factor,
    JunctionTree,
    elimination_order,
    indicator,
    max_clique_size,
)
from hidag.latent.laws import NEGLIGIBLE_COUNT, LatentLaw, NetworkLaw
from hidag.measurement.families import item_type
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import category_label
from hidag.results import AnyFit, FitResult, as_result
from hidag.structure.graphs import CPDAG, DAG

Array = NDArray[np.float64]
#: Up to this many joint states, one joint table is faster than a junction tree.
MAX_ENUMERATED_STATES = 1 << 11
MAX_TABLE_CELLS = 1 << 21  # Junction trees with a larger table are replaced by a weighted sample
N_DRAWS = 200_000
States = NDArray[np.int64]
MEAN = "mean"
#: Draws for standard deviations, which are then accurate to a few per cent; they only order rows.
_N_DRAWS = 4000
_SEED = 0


class ConditionedLaw(Protocol):
    """Joint distribution of the latents given the evidence."""

    def marginal(self, variables: Sequence[int]) -> Array:
        """Return the joint distribution of some latents, one axis each in the given order."""
        ...


@dataclass(frozen=True)
class JointTable:
    """Probabilities of all joint states, one axis per latent."""

    table: Array

    @classmethod
    def of(cls, factors: Sequence[Factor], levels: tuple[int, ...]) -> JointTable:
        """Return the normalised product of factors."""
        table = np.ones(levels)
        for factor in factors:
            order = sorted(range(len(factor.variables)), key=factor.variables.__getitem__)
            shape = [1] * len(levels)
            for v in factor.variables:
                shape[v] = levels[v]
            table *= factor.table.transpose(order).reshape(shape)
        total = float(table.sum())
        if not total > 0:
            reason = "the given values have probability zero under the fitted latent distribution"
            raise DataError("impossible-evidence", reason)
        return cls(table / total)

    def marginal(self, variables: Sequence[int]) -> Array:
        """Return the joint distribution of some latents, one axis each in the given order."""
        wanted = tuple(variables)
        summed = self.table.sum(axis=tuple(v for v in range(self.table.ndim) if v not in wanted))
        if len(wanted) < 2:
            return np.asarray(summed)
        return np.asarray(np.transpose(summed, np.argsort(np.argsort(wanted))))


@dataclass(frozen=True)
class WeightedSample:
    """Weighted draws of all latents."""

    states: NDArray[np.uint8]  # (n, K)
    weights: Array  # (n,), sum to 1
    levels: tuple[int, ...]

    @classmethod
    def of(cls, law: NetworkLaw, likelihoods: Sequence[Factor], seed: int = 0) -> WeightedSample:
        """Return draws from a law, weighted by the likelihood of the evidence."""
        states = law.sample(N_DRAWS, np.random.default_rng(seed))
        weights = np.ones(len(states))
        for factor in likelihoods:
            weights *= factor.table[tuple(states[:, v] for v in factor.variables)]
        total = float(weights.sum())
        if not total > 0:
            reason = (
                "the given values have probability zero in all {n:,} draws from the fitted latent "
                "distribution"
            )
            raise DataError("impossible-evidence", reason, n=len(states))
        return cls(states, weights / total, law.space.levels)

    def marginal(self, variables: Sequence[int]) -> Array:
        """Return the joint distribution of some latents, one axis each in the given order."""
        shape = tuple(self.levels[v] for v in variables)
        if not shape:
            return np.array(1.0)
        index = np.ravel_multi_index(tuple(self.states[:, v] for v in variables), shape)
        shares = np.bincount(index, self.weights, minlength=int(np.prod(shape)))
        return np.asarray(shares, dtype=np.float64).reshape(shape)


def law_factors(law: LatentLaw) -> list[Factor]:
    """Return factors whose product is the law: its conditional tables, or its joint table."""
    if isinstance(law, NetworkLaw):
        pairs = zip(law.parents, law.tables, strict=True)
        return [Factor((*causes, k), table) for k, (causes, table) in enumerate(pairs)]
    everyone = tuple(range(law.space.n_latents))
    return [Factor(everyone, np.asarray(law.probabilities).reshape(law.space.levels))]


def condition_law(law: LatentLaw, likelihoods: Sequence[Factor] = ()) -> ConditionedLaw:
    """Return the law of the latents given likelihoods of evidence, ready for any marginal.

    Exact unless a junction tree needs too large a table; then a :class:`WeightedSample`.
    """
    factors = [*law_factors(law), *likelihoods]
    if law.space.n_states <= MAX_ENUMERATED_STATES:
        return JointTable.of(factors, law.space.levels)
    steps = elimination_order(law.space.n_latents, [f.variables for f in factors])
    if max_clique_size(steps, law.space.levels) > MAX_TABLE_CELLS and isinstance(law, NetworkLaw):
        return WeightedSample.of(law, likelihoods)
    return JunctionTree.of(factors, steps)


def factorise_over_dag(
    law: LatentLaw, dag: DAG, conditioned: ConditionedLaw | None = None
) -> NetworkLaw:
    """Return the law, or the closest one in Kullback-Leibler divergence, as tables over a DAG."""
    parents = dag.parents
    if isinstance(law, NetworkLaw) and parents == law.parents:
        return law
    joint_law = condition_law(law) if conditioned is None else conditioned
    tables = []
    for k, causes in enumerate(parents):
        if isinstance(law, NetworkLaw) and set(causes) == set(law.parents[k]):
            order = [law.parents[k].index(a) for a in causes]
            tables.append(np.transpose(law.tables[k], (*order, len(causes))))
            continue
        joint = joint_law.marginal((*causes, k))
        total = joint.sum(axis=-1, keepdims=True)
        # A configuration of the parents with probability zero leaves its child uniform.
        occurs = total > NEGLIGIBLE_COUNT
        uniform = 1.0 / joint.shape[-1]
        tables.append(np.where(occurs, joint / np.where(occurs, total, 1.0), uniform))
    return NetworkLaw(law.space, parents, tuple(tables))


def intervene(law: NetworkLaw, do: Mapping[int, int]) -> NetworkLaw:
    """Return the law after an intervention (truncated factorisation, Pearl 2009, section 1.3)."""
    parents = tuple(() if k in do else causes for k, causes in enumerate(law.parents))
    tables = tuple(
        np.eye(law.space.levels[k])[do[k]] if k in do else table
        for k, table in enumerate(law.tables)
    )
    return NetworkLaw(law.space, parents, tables)


def condition_after_intervention(
    law: NetworkLaw, do: Mapping[int, int], likelihoods: Sequence[Factor] = ()
) -> ConditionedLaw:
    """Return the law after an intervention, given evidence observed afterwards."""
    levels = law.space.levels
    if law.space.n_states > MAX_ENUMERATED_STATES:
        return condition_law(intervene(law, do), likelihoods)
    # The same distribution without building and validating another NetworkLaw.
    unchanged = [factor for k, factor in enumerate(law_factors(law)) if k not in do]
    fixed = [indicator(k, level, levels[k]) for k, level in do.items()]
    return JointTable.of([*unchanged, *fixed, *likelihoods], levels)


def edge_strengths(result: AnyFit, graph: CPDAG | None = None) -> dict[tuple[str, str], float]:
    """Return the absolute correlation of the levels of each pair of adjacent latents.

    The keys are pairs of names; ``result`` is a FitResult or a fitted DCRL, whose best graph is the
    default ``graph``.
    """
    fitted = as_result(result)
    law = condition_law(fitted.law)
    names = fitted.latent_names
    out = {}
    for i, j in np.argwhere(np.triu((graph or fitted.graph).skeleton)).tolist():
        table = law.marginal((i, j))
        levels = np.indices(table.shape).reshape(2, -1)
        (one, both), (_, other) = np.cov(levels, ddof=0, aweights=table.ravel()).tolist()
        out[names[i], names[j]] = abs(both) / sqrt(one * other) if one * other > 1e-12 else 0.0
    return out


@dataclass(frozen=True)
class Outcome:
    """The mean of an item, or the probability of one category, as a function of its latents.

    The mean of a censored time is that of the shorter of time and limit.
    """

    item: str
    what: str  # "mean", or "P(=2)" for the probability of category 2
    latents: tuple[int, ...]  # that the item depends on
    table: Array  # its value in each state of these latents, one axis per latent

    @property
    def label(self) -> str:
        """Name of the outcome in tables of effects."""
        return self.item if self.what == MEAN else f"{self.item} {self.what}"


def item_states(result: FitResult, item: int) -> tuple[tuple[int, ...], States]:
    """Return an item's latents and their joint states with the other latents at 0, (n, K)."""
    rows = result.parameters.support[result.responses.item == item]
    latents = np.flatnonzero(rows.any(axis=0))
    return tuple(latents.tolist()), result.terms.states_of(latents)


def log_density(result: FitResult, item: int, x: float, states: States) -> Array:
    """Return the log density of an item at a value in latent states (n, K), shape (n,).

    That of a time is the density of its logarithm, which differs by a constant.
    """
    values = np.full((1, len(result.item_names)), np.nan)
    values[0, item] = x
    parameters, responses = result.parameters, result.responses.expand(values)[0]
    out = np.zeros(len(states))
    for row in np.flatnonzero((result.responses.item == item) & ~np.isnan(responses)).tolist():
        eta = parameters.reordered(items=np.array([row])).predictors(states)[0]
        own = item_derivatives.response_auxiliary(parameters, row)
        family, value = family_named(parameters.families[row]), np.full(len(states), responses[row])
        out += item_derivatives.log_density(family, own, value, eta)
    return out


def item_likelihood(result: FitResult, item: int, x: float) -> Factor:
    """Return the likelihood of a value of an item in its latents' states, scaled to maximum 1."""
    name, family = result.item_names[item], result.families[item]
    known = item_type(family)
    if not np.isfinite(x) or known.find_invalid(np.array([x])) is not None:
        reason = "{item}={value:g} cannot be given: the item ({family}) takes {expected}"
        params = {"item": name, "value": x, "family": family, "expected": known.allowed_values}
        raise DataError("invalid-evidence", reason, params)
    latents, states = item_states(result, item)
    # Extreme values overflow on the way to a density of zero.
    with np.errstate(over="ignore", invalid="ignore"):
        log = log_density(result, item, x, states)
    if not np.isfinite(log).any():
        reason = (
            "{item}={value:g} cannot be given: it is so far from the fitted distribution of the "
            "item that its density is zero in every latent state"
        )
        raise DataError("impossible-evidence", reason, item=name, value=x)
    shape = [result.law.space.levels[k] for k in latents]
    return Factor(latents, np.exp(log - log.max()).reshape(shape))


def tabulate_outcomes(result: FitResult, items: Sequence[int] | None = None) -> list[Outcome]:
    """Return the mean of each item and, for several categories, the probability of each.

    Unordered categories have no mean; a binary item has only its mean, the probability of 1.
    """
    out = []
    for j in range(len(result.item_names)) if items is None else items:
        name, family = result.item_names[j], result.families[j]
        latents, states = item_states(result, j)
        shape = [result.law.space.levels[k] for k in latents]
        kind = item_type(family)
        if not kind.is_nominal:
            row = result.responses.starts[[j]]
            means = result.parameters.reordered(items=row).response_means(states)[:, 0]
            out.append(Outcome(name, MEAN, latents, means.reshape(shape)))
        for c in () if kind.is_binary else kind.categories or ():
            shares = np.exp(log_density(result, j, c, states)).reshape(shape)
            what = f"P(={category_label(c, result.answer_words.get(name))})"
            out.append(Outcome(name, what, latents, shares))
    return out


def expected_responses(result: AnyFit) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return what each item does when a latent that drives it is absent or present.

    One row for each item, latent and quantity (mean, probability of 1 or of a category), with its
    expectation in the rows of each level of the latent under the fitted model.

    Parameters
    ----------
    result : FitResult or DCRL

    Returns
    -------
    columns : tuple of str
        item, latent, what, absent, present; or level 0, level 1, ... if a latent has more levels.
    rows : list of tuple
    """
    fitted = as_result(result)
    law, levels = condition_law(fitted.law), fitted.law.space.levels
    binary = max(levels) == 2
    states = ("absent", "present") if binary else [f"level {u}" for u in range(max(levels))]
    rows: list[tuple[Any, ...]] = []
    margins: dict[tuple[int, ...], Array] = {}
    for one in tabulate_outcomes(fitted):
        joint = margins.setdefault(one.latents, law.marginal(one.latents))
        is_binary = item_type(fitted.families[fitted.item_names.index(one.item)]).is_binary
        yes = category_label(1, fitted.answer_words.get(one.item))
        what = (
            f"P({'=' if yes == '1' else ''}{yes})" if one.what == MEAN and is_binary else one.what
        )
        for axis, k in enumerate(one.latents):
            others = tuple(a for a in range(joint.ndim) if a != axis)
            share = joint.sum(axis=others)
            with np.errstate(invalid="ignore", divide="ignore"):
                means = (one.table * joint).sum(axis=others) / share
            rest = [np.nan] * (len(states) - len(means))
            rows.append((one.item, fitted.latent_names[k], what, *means.tolist(), *rest))
    return ("item", "latent", "what", *states), rows


def expected_outcomes(outcomes: Sequence[Outcome], law: ConditionedLaw) -> Array:
    """Return the expectation of each outcome under a law of the latents, shape (O,)."""
    marginals: dict[tuple[int, ...], Array] = {}
    out = np.empty(len(outcomes))
    for o, outcome in enumerate(outcomes):
        if outcome.latents not in marginals:
            marginals[outcome.latents] = law.marginal(outcome.latents)
        out[o] = float((outcome.table * marginals[outcome.latents]).sum())
    return out


def outcome_standard_deviations(result: FitResult) -> dict[tuple[str, str], float]:
    """Return the standard deviation of values or of indicators under the fit, by (item, what)."""
    states = result.law.sample(_N_DRAWS, np.random.default_rng(_SEED))
    out = {}
    for outcome in tabulate_outcomes(result):
        at = tuple(states[:, k] for k in outcome.latents)
        means = outcome.table[at] if at else np.full(_N_DRAWS, float(outcome.table))
        item = result.item_names.index(outcome.item)
        if outcome.what != MEAN or item_type(result.families[item]).is_binary:
            share = float(means.mean())
            out[outcome.item, outcome.what] = float(np.sqrt(share * (1.0 - share)))
            continue
        own = result.parameters.reordered(items=result.responses.starts[[item]])
        drawn = own.sample(states, np.random.default_rng(_SEED))[:, 0]
        out[outcome.item, outcome.what] = float(drawn.std())
    return out


def standardise_change(change: float, deviation: float) -> float:
    """Return a change in standard deviations; unchanged where the outcome does not vary."""
    return change / deviation if deviation > 0 and np.isfinite(deviation) else change


def effect_sizes(rows: Sequence[Mapping[str, Any]], result: FitResult) -> list[float]:
    """Return absolute sizes of `AverageEffects.rows`: levels, or an item's standard deviations."""
    deviations = {
        item if what == MEAN else f"{item} {what}": deviation
        for (item, what), deviation in outcome_standard_deviations(result).items()
    }
    own = (deviations.get(row["effect"], 0.0) if row["kind"] == "item" else 0.0 for row in rows)
    sizes = (float(max(abs(row["low"]), abs(row["high"]))) for row in rows)
    return list(map(standardise_change, sizes, own))
