"""Labels of latents and levels: the order of latents and the polarity of their levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData, weighted_mean_and_sd
from hidag.em.em import Estimate
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters, order_levels
from hidag.strategy.problem import StageOne
from hidag.structure.graphs import CPDAG, DAG

Array = NDArray[np.float64]
#: From some latents, in ascending order, to the shares of their joint levels, one axis each.
Shares = Callable[[tuple[int, ...]], Array]


def shares_of_law(cube: Array) -> Shares:
    """Return the shares under a law over all latents, one axis for each."""
    total = cube.sum()

    def shares(latents: tuple[int, ...]) -> Array:
        others = tuple(a for a in range(cube.ndim) if a not in latents)
        return np.asarray(cube.sum(axis=others) / total)

    return shares


def shares_of_draws(
    draws: NDArray[np.uint8], levels: tuple[int, ...], weights: Array | None
) -> Shares:
    """Return the shares among draws, shape (R, N, K), of rows with weights, shape (N,)."""
    some = draws[: max(1, CONFIG.saem_network.most_rows_for_labels // draws.shape[1])]
    rows = some.reshape(-1, some.shape[-1])
    counted = None if weights is None else np.tile(weights, len(some))

    def shares(latents: tuple[int, ...]) -> Array:
        shape = [levels[k] for k in latents]
        place = np.zeros(len(rows), dtype=np.int64)
        for k, m in zip(latents, shape, strict=True):
            place = place * m + rows[:, k]
        often = np.bincount(place, counted, minlength=prod(shape)).astype(np.float64)
        return np.asarray(often / often.sum()).reshape(shape)

    return shares


def measure_rises(working: MeasurementParameters, data: WorkingData, shares: Shares) -> Array:
    """Return how much higher each item is at level 1 of each of its binary latents, shape (J, K).

    Zero for latents that an item does not have or that have more levels than two.

    Parameters
    ----------
    working : MeasurementParameters
        On the working scale of ``data``.
    shares : callable
        Shares of joint levels under the law that belongs to the parameters.
    """
    levels = working.terms.levels
    out = np.zeros((working.n_items, working.n_latents))
    spread = _spreads(data)
    for latents, items in _items_by_latents(working).items():
        shape = [levels[k] for k in latents]
        states = np.zeros((prod(shape), working.n_latents), dtype=np.int64)
        states[:, latents] = np.indices(shape).reshape(len(shape), -1).T
        means = (_expected(working, states)[:, items] / spread[items]).reshape(*shape, -1)
        share = shares(latents)
        for axis, k in enumerate(latents):
            if levels[k] == 2:
                low, high = np.moveaxis(share, axis, 0)
                both = low + high
                # Without rows at both levels there is no comparison.
                weight = low * high / np.where(both > 0, both, 1.0)
                rise = np.diff(np.moveaxis(means, axis, 0), axis=0)[0]
                out[items, k] = weight.ravel() @ rise.reshape(weight.size, -1)
    return out


def _items_by_latents(working: MeasurementParameters) -> dict[tuple[int, ...], list[int]]:
    """Return items grouped by their latents; items without latents are omitted."""
    out: dict[tuple[int, ...], list[int]] = {}
    for item, row in enumerate(working.support):
        if row.any():
            out.setdefault(tuple(np.flatnonzero(row).tolist()), []).append(item)
    return out


def _expected(working: MeasurementParameters, states: NDArray[np.int64]) -> Array:
    """Return expected responses in latent states, shape (n, J), of logarithms for lognormal items.

    The mean of a lognormal response is dominated by its largest values.
    """
    straight = np.array([family_named(name).is_location_scale for name in working.families])
    return np.where(straight, working.predictors(states).T, working.response_means(states))


def _spreads(data: WorkingData) -> Array:
    """Return standard deviations of the responses, of logarithms for lognormal items, (J,)."""
    out = np.ones(data.n_items)
    for item, name in enumerate(data.families):
        family = family_named(name)
        columns = slice(data.columns.starts[item], data.columns.starts[item + 1])
        if family.n_columns == 1:
            out[item] = np.sqrt(data.variance[columns][0]) or 1.0
            continue
        seen = slice(None) if data.observed is None else data.observed[:, item] == 1
        answers = family.from_working(data.x[seen, columns].T)
        weights = None if data.weights is None else data.weights[seen]
        if len(answers):
            out[item] = weighted_mean_and_sd(answers, weights)[1]
    return out


#: For each latent, the old number of its new level v.
LevelOrders = tuple[NDArray[np.intp], ...]


def canonicalise_labels(
    working: MeasurementParameters,
    data: WorkingData,
    shares: Shares,
    *,
    reorder: bool,
    relevel: bool = True,
    n_nuisances: int = 0,
) -> tuple[MeasurementParameters, LevelOrders, NDArray[np.intp]]:
    """Return parameters with levels and latents in canonical order, and the two orders.

    Parameters
    ----------
    working : MeasurementParameters
        On the working scale of ``data``.
    shares : callable
        From some latents to the shares of their joint levels under the fitted law.
    reorder : bool
        Whether latents are sorted by falling strength.
    relevel : bool
        Whether levels are sorted.
    n_nuisances : int
        Number of nuisances, the last latents, which keep their places and levels.

    Returns
    -------
    parameters : MeasurementParameters
        Latent ``order[k]`` in position k; its items rise on average with its levels.
    levels : tuple of ndarray of int
        For each latent, in the old order, the old number of its new level v.
    order : ndarray of int, shape (K,)
    """
    levels = tuple(np.arange(m) for m in working.terms.levels)
    n_latents = working.n_latents - n_nuisances
    if relevel:
        rises = measure_rises(working, data, shares).sum(axis=0) >= 0
        levels = (
            tuple(
                order_levels(working, k) if m > 2 else np.array([0, 1] if rises[k] else [1, 0])
                for k, m in enumerate(working.terms.levels[:n_latents])
            )
            + levels[n_latents:]
        )
    turned = working.relevelled(levels)
    order = np.arange(working.n_latents)
    if reorder:
        order = order_by_strength(turned.reordered(latents=order[:n_latents]))
        order = np.concatenate([order, np.arange(n_latents, working.n_latents)])
    return turned.reordered(latents=order), levels, order


def order_by_strength(parameters: MeasurementParameters) -> NDArray[np.intp]:
    """Return latents by falling strength within each number of levels, shape (K,).

    The order does not depend on the order of the table's columns.
    """
    strength = np.abs(parameters.strengths).sum(axis=0)
    levels = np.array(parameters.terms.levels)
    order = np.arange(len(levels))
    for m in set(parameters.terms.levels):
        group = np.flatnonzero(levels == m)
        order[group] = group[np.argsort(-strength[group], kind="stable")]
    return order


def same_class(graph: CPDAG, law: NetworkLaw) -> bool:
    """Return whether the graph of a law is a member of a Markov equivalence class."""
    return graph.contains(DAG.from_parents(law.parents, graph.names))


def orient_levels(stage_one: StageOne, data: WorkingData, space: StateSpace) -> StageOne:
    """Return the same estimate with levels such that items rise with them on average."""
    now = stage_one.estimate
    shares = shares_of_law(now.probabilities.reshape(space.levels))
    _, orders, _ = canonicalise_labels(now.parameters, data, shares, reorder=False)
    return relabel_levels(stage_one, space, orders)


def reverse_levels(stage_one: StageOne, space: StateSpace) -> StageOne:
    """Return the same estimate with the levels of all latents reversed."""
    return relabel_levels(stage_one, space, [np.arange(m)[::-1] for m in space.levels])


def relabel_levels(
    stage_one: StageOne, space: StateSpace, orders: Sequence[NDArray[np.intp]]
) -> StageOne:
    """Return the same estimate with level ``orders[k][v]`` of latent k renamed to v."""

    def law(probabilities: Array) -> Array:
        cube = probabilities.reshape(space.levels)[np.ix_(*orders)]
        return np.ascontiguousarray(cube.ravel())

    def both(estimate: Estimate) -> Estimate:
        return replace(
            estimate,
            parameters=estimate.parameters.relevelled(orders),
            probabilities=law(estimate.probabilities),
        )

    network = stage_one.network
    if network is not None:
        network = replace(
            network,
            estimate=both(network.estimate),
            unconstrained=law(network.unconstrained),
        )
    return replace(stage_one, best=both(stage_one.best), network=network)
