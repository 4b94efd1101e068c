"""What items show in each state of their latents: means, and probabilities of categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError
from hidag.explain.inference import Beliefs
from hidag.latent.factors import Factor
from hidag.measurement import MeasurementParameters, categorical_named, family_named
from hidag.measurement.families.ordinal import Ordinal
from hidag.measurement.responses import worded
from hidag.result import FitResult

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
