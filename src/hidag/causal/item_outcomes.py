"""What items show in each state of their latents: means, and probabilities of categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.causal.probability_queries import Beliefs
from hidag.exceptions import DataError
from hidag.latent.junction_tree import Factor
from hidag.measurement.families.ordinal import Ordinal
from hidag.measurement.families.registry import family_named
from hidag.measurement.nominal import categorical_named, worded
from hidag.measurement.parameters import MeasurementParameters
from hidag.results import FitResult

Array = NDArray[np.float64]

MEAN = "mean"


@dataclass(frozen=True)
class Outcome:
    """One number about an item as a function of its latents.

    Attributes
    ----------
    item : str
    what : str
        "mean", or "P(=2)" for the probability of a category. The mean of times that end at a limit
        is that of the shorter one of time and limit.
    latents : tuple of int
        The latents that drive the item.
    table : ndarray, one axis per latent
        Its value in each of their states.
    """

    item: str
    what: str
    latents: tuple[int, ...]
    table: Array


def categories_of(family: str) -> tuple[float, ...] | None:
    """Return the values that an item of a family can take, None where they are not a short list."""
    nominal = categorical_named(family)
    if nominal is not None:
        return tuple(sorted(nominal.categories))
    known = family_named(family)
    if isinstance(known, Ordinal):
        return tuple(float(known.lowest + c) for c in range(known.n_grades))
    return (0.0, 1.0) if family.startswith("bernoulli") else None


def has_mean(family: str) -> bool:
    """Return whether the average of an item means something: not for unordered categories."""
    return categorical_named(family) is None


def item_states(result: FitResult, item: int) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """Return an item's latents, and all their joint states with the other latents at 0, (n, K)."""
    rows = result.parameters.support[result.responses.item == item]
    latents = tuple(np.flatnonzero(rows.any(axis=0)).tolist())
    shape = tuple(result.law.space.levels[k] for k in latents)
    states = np.zeros((int(np.prod(shape)), result.law.space.n_latents), dtype=np.int64)
    if latents:
        states[:, list(latents)] = np.indices(shape).reshape(len(latents), -1).T
    return latents, states


def _log_density(
    parameters: MeasurementParameters, row: int, x: float, states: NDArray[np.int64]
) -> Array:
    """Return the log density of one response at a value in latent states given by rows, (n,)."""
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


def log_density(result: FitResult, item: int, x: float, states: NDArray[np.int64]) -> Array:
    """Return the log density of an item at a value in latent states given by rows, shape (n,)."""
    values = np.full((1, len(result.item_names)), np.nan)
    values[0, item] = x
    responses = result.responses.expand(values)[0]
    out = np.zeros(len(states))
    for row in np.flatnonzero(result.responses.item == item):
        if not np.isnan(responses[row]):
            out += _log_density(result.parameters, int(row), float(responses[row]), states)
    return out


def likelihood(result: FitResult, item: int, x: float) -> Factor:
    """Return how probable a value of an item is in its latents' states, the largest scaled to 1.

    Raises
    ------
    DataError
        If the item cannot take the value.
    """
    family = result.families[item]
    finding = (categorical_named(family) or family_named(family)).finding(np.array([x]))
    if not np.isfinite(x) or finding is not None:
        need = (categorical_named(family) or family_named(family)).need
        raise DataError(
            f"{result.item_names[item]}={x:g} cannot be given: the item ({family}) takes {need}"
        )
    latents, states = item_states(result, item)
    # A number that no state makes thinkable overflows on the way to a density of zero.
    with np.errstate(over="ignore", invalid="ignore"):
        log = log_density(result, item, x, states)
    if not np.isfinite(log).any():
        raise DataError(
            f"{result.item_names[item]}={x:g} cannot be given: it is so far outside of what the "
            "fit expects of the item that its probability is zero in every state"
        )
    shape = [result.law.space.levels[k] for k in latents]
    return Factor(latents, np.exp(log - log.max()).reshape(shape))


def item_outcomes(result: FitResult, items: Sequence[int] | None = None) -> list[Outcome]:
    """Return what there is to know of items: their mean, and for categories each one's probability.

    A yes/no item has its mean only: that is the probability of a yes.

    Parameters
    ----------
    result : FitResult
    items : sequence of int, optional
        All unless given.
    """
    out = []
    for j in range(len(result.item_names)) if items is None else items:
        name, family = result.item_names[j], result.families[j]
        latents, states = item_states(result, j)
        shape = [result.law.space.levels[k] for k in latents]
        categories = categories_of(family)
        if has_mean(family):
            row = result.responses.starts[[j]]
            means = result.parameters.reordered(items=row).response_means(states)[:, 0]
            out.append(Outcome(name, MEAN, latents, means.reshape(shape)))
        if categories is not None and (len(categories) > 2 or not has_mean(family)):
            words = result.answer_words.get(name)
            for c in categories:
                shares = np.exp(log_density(result, j, c, states)).reshape(shape)
                out.append(Outcome(name, f"P(={worded(c, words)})", latents, shares))
    return out


def expected_outcomes(outcomes: Sequence[Outcome], law: Beliefs) -> Array:
    """Return the expectation of each outcome when the latents follow a law, shape (O,)."""
    known: dict[tuple[int, ...], Array] = {}
    out = np.empty(len(outcomes))
    for o, outcome in enumerate(outcomes):
        if outcome.latents not in known:
            known[outcome.latents] = law.marginal(outcome.latents)
        out[o] = float((outcome.table * known[outcome.latents]).sum())
    return out


# --- How much items vary under a fit: the unit in which changes of different items can be

#: The standard deviation of so many draws is within a few per cent, enough for an order.
_N_DRAWS = 4000
_SEED = 0


def outcome_spreads(result: FitResult) -> dict[tuple[str, str], float]:
    """Return the standard deviation of what each outcome is the mean of, by item and what it is.

    The same draws whenever it is asked, and for each item whatever the others are.

    Parameters
    ----------
    result : FitResult

    Returns
    -------
    dict from (item, what) to float
        In the item's own unit; for the probability of a category that of a yes or no.
    """
    states = result.law.sample(_N_DRAWS, np.random.default_rng(_SEED))
    out = {}
    for outcome in item_outcomes(result):
        at = tuple(states[:, k] for k in outcome.latents)
        means = outcome.table[at] if at else np.full(_N_DRAWS, float(outcome.table))
        item = result.item_names.index(outcome.item)
        if outcome.what != MEAN or result.families[item].startswith("bernoulli"):
            share = float(means.mean())
            out[outcome.item, outcome.what] = float(np.sqrt(share * (1.0 - share)))
            continue
        row = result.responses.starts[[item]]
        own = result.parameters.reordered(items=row)
        drawn = own.sample(states, np.random.default_rng(_SEED))[:, 0]
        out[outcome.item, outcome.what] = float(drawn.std())
    return out


def in_spreads(change: float, spread: float) -> float:
    """Return a change in standard deviations; as it is where nothing varies."""
    return change / spread if spread > 0 and np.isfinite(spread) else change


def effect_sizes(rows: Sequence[Mapping[str, Any]], result: FitResult) -> list[float]:
    """Return how large average effects are: of levels, and of items in standard deviations.

    Parameters
    ----------
    rows : sequence of mappings
        As `AverageEffects.rows` gives them.
    result : FitResult
        That the effects are of.
    """
    spreads = {
        item if what == MEAN else f"{item} {what}": spread
        for (item, what), spread in outcome_spreads(result).items()
    }
    sizes = []
    for row in rows:
        size = float(max(abs(row["low"]), abs(row["high"])))
        own = spreads.get(row["effect"], 0.0) if row["kind"] == "item" else 0.0
        sizes.append(in_spreads(size, own))
    return sizes
