"""Means and category probabilities of items in each state of their latents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.causal.probability_queries import ConditionedLaw
from hidag.exceptions import DataError
from hidag.latent.junction_tree import Factor
from hidag.measurement.families import item_type
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters, category_label
from hidag.results import FitResult

Array = NDArray[np.float64]
States = NDArray[np.int64]

MEAN = "mean"
#: Draws for standard deviations, which are then accurate to a few per cent; they only order rows.
_N_DRAWS = 4000
_SEED = 0


@dataclass(frozen=True)
class Outcome:
    """The mean of an item, or the probability of one category, as a function of its latents.

    Attributes
    ----------
    item : str
    what : str
        "mean", or "P(=2)" for the probability of category 2. The mean of a censored time is that
        of the shorter of time and limit.
    latents : tuple of int
        The latents that the item depends on.
    table : ndarray, one axis per latent
        Its value in each state of these latents.
    """

    item: str
    what: str
    latents: tuple[int, ...]
    table: Array

    @property
    def label(self) -> str:
        """Name of the outcome in tables of effects."""
        return self.item if self.what == MEAN else f"{self.item} {self.what}"


def item_states(result: FitResult, item: int) -> tuple[tuple[int, ...], States]:
    """Return an item's latents and their joint states with the other latents at 0, (n, K)."""
    rows = result.parameters.support[result.responses.item == item]
    latents = tuple(np.flatnonzero(rows.any(axis=0)).tolist())
    shape = tuple(result.law.space.levels[k] for k in latents)
    states = np.zeros((int(np.prod(shape)), result.law.space.n_latents), dtype=np.int64)
    if latents:
        states[:, list(latents)] = np.indices(shape).reshape(len(latents), -1).T
    return latents, states


def log_density(result: FitResult, item: int, x: float, states: States) -> Array:
    """Return the log density of an item at a value in latent states (n, K), shape (n,)."""
    values = np.full((1, len(result.item_names)), np.nan)
    values[0, item] = x
    responses = result.responses.expand(values)[0]
    out = np.zeros(len(states))
    for row in np.flatnonzero(result.responses.item == item):
        if not np.isnan(responses[row]):
            out += _response_log_density(result.parameters, int(row), float(responses[row]), states)
    return out


def _response_log_density(
    parameters: MeasurementParameters, row: int, x: float, states: States
) -> Array:
    family = family_named(parameters.families[row])
    where = np.array([row])
    eta = parameters.reordered(items=where).predictors(states)[0]
    aux = parameters.auxiliary(family, where)[0]
    own = aux[None] if family.n_cutpoints else aux
    value = np.array([x])
    theta, partition = family.natural(eta, own)
    columns = family.to_working(value)
    if family.n_columns == 1:
        columns, theta = columns[None], theta[None]
    linear = np.einsum("dn,ds->ns", columns, theta)[0]
    return np.asarray(linear - partition + family.base(value, own)[0])


def item_likelihood(result: FitResult, item: int, x: float) -> Factor:
    """Return the likelihood of a value of an item in its latents' states, scaled to maximum 1.

    Raises
    ------
    DataError
        If the item cannot take the value.
    """
    name, family = result.item_names[item], result.families[item]
    known = item_type(family)
    if not np.isfinite(x) or known.find_invalid(np.array([x])) is not None:
        raise DataError(
            "invalid-evidence",
            "{item}={value:g} cannot be given: the item ({family}) takes {expected}",
            item=name,
            value=x,
            family=family,
            expected=known.allowed_values,
        )
    latents, states = item_states(result, item)
    # Extreme values overflow on the way to a density of zero.
    with np.errstate(over="ignore", invalid="ignore"):
        log = log_density(result, item, x, states)
    if not np.isfinite(log).any():
        raise DataError(
            "impossible-evidence",
            "{item}={value:g} cannot be given: it is so far from the fitted distribution of the "
            "item that its density is zero in every latent state",
            item=name,
            value=x,
        )
    shape = [result.law.space.levels[k] for k in latents]
    return Factor(latents, np.exp(log - log.max()).reshape(shape))


def tabulate_outcomes(result: FitResult, items: Sequence[int] | None = None) -> list[Outcome]:
    """Return the mean of each item and, for several categories, the probability of each.

    Unordered categories have no mean; a binary item has only its mean, the probability of 1.

    Parameters
    ----------
    result : FitResult
    items : sequence of int, optional
        All by default.
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
    """Return the standard deviation of an item's values under the fit, by item and outcome.

    That of the indicator for the probability of a category. Draws have a fixed seed and do not
    depend on the other items.

    Returns
    -------
    dict from (item, what) to float
    """
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
        row = result.responses.starts[[item]]
        own = result.parameters.reordered(items=row)
        drawn = own.sample(states, np.random.default_rng(_SEED))[:, 0]
        out[outcome.item, outcome.what] = float(drawn.std())
    return out


def standardise_change(change: float, deviation: float) -> float:
    """Return a change in standard deviations; unchanged where the outcome does not vary."""
    return change / deviation if deviation > 0 and np.isfinite(deviation) else change


def effect_sizes(rows: Sequence[Mapping[str, Any]], result: FitResult) -> list[float]:
    """Return absolute effect sizes: in levels for latents, in standard deviations for items.

    Parameters
    ----------
    rows : sequence of mappings
        From `AverageEffects.rows`.
    result : FitResult
    """
    deviations = {
        item if what == MEAN else f"{item} {what}": deviation
        for (item, what), deviation in outcome_standard_deviations(result).items()
    }
    sizes = []
    for row in rows:
        size = float(max(abs(row["low"]), abs(row["high"])))
        own = deviations.get(row["effect"], 0.0) if row["kind"] == "item" else 0.0
        sizes.append(standardise_change(size, own))
    return sizes
