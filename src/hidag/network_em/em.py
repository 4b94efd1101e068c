"""EM and Gibbs-SAEM with a network as latent distribution, without listing joint states.

SAEM selects supports and parent sets for any number of latents, but Monte Carlo noise leaves its
estimates a standard error or two from the maximum. If the treewidth is small, posteriors are exact
(:mod:`hidag.network_em.junction_tree`), and a few iterations of EM reach the maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.e_step import Statistics
from hidag.em.em import Schedule, largest_change, remaining_gain
from hidag.em.layout import ItemLayout, NetworkLayout
from hidag.em.m_step import coefficient_scales, run_m_step
from hidag.em.saem import DriftCriterion, robbins_monro_step
from hidag.kernels.coordinate_descent import FREE
from hidag.latent.laws import NetworkLaw, Parents
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.network_em.gibbs import NetworkModel, NetworkSampler, NetworkStatistics
from hidag.network_em.junction_tree import TreePosterior

Array = NDArray[np.float64]


def _item_sums(data: WorkingData, items: NDArray[np.intp]) -> WorkingData:
    """Return the sums of some items, all treated as incomplete: each has counts of its own."""
    columns, _, _ = data.columns.listed(items)
    families = tuple(data.families[j] for j in items)
    empty, numbers = np.zeros((0, len(columns) + len(items) + 1)), np.arange(len(items))
    moments = data.mean[columns], data.variance[columns], data.sum_squares[columns]
    constants = data.constant[items], data.shift[items], data.scale[items]
    own = *moments, *constants, tuple(data.summaries[j] for j in items)
    return WorkingData(empty, families, None, numbers, data.n_observed[items], *own)


def run_network_m_step(
    parameters: MeasurementParameters,
    statistics: NetworkStatistics,
    data: WorkingData,
    layout: ItemLayout,
    *,
    n_newton: int = 1,
) -> MeasurementParameters:
    """Return parameters on the layout's support, no less likely; only sums per item are used."""
    by_item = ("intercept", "dispersion", "cutpoints")
    new: dict[str, Any] = {name: np.array(getattr(parameters, name)) for name in by_item}
    loadings = np.zeros_like(parameters.loadings)
    for group in layout.groups:
        items, cells = group.items, group.cells
        n_states, width = group.features.shape
        mass = CONFIG.m_step.item_mass / n_states
        # Tables of an item's further columns follow that of the first.
        columns, places, within = data.columns.listed(items)
        of_columns = cells[places] + n_states * within[:, None]
        own = MeasurementParameters(
            tuple(parameters.families[j] for j in items),
            parameters.intercept[items],
            parameters.loadings[items[:, None], group.columns],
            parameters.dispersion[items],
            cutpoints=parameters.cutpoints[items],
        )
        sum_x = statistics.sum_x[of_columns] + mass * data.mean[columns, None]
        sums = Statistics(np.zeros(n_states), sum_x, statistics.count[cells] + mass)
        free, basis = np.full((len(items), 1 + width), FREE, dtype=np.uint8), group.basis
        rows = _item_sums(data, items)
        updated = run_m_step(own, sums, rows, basis, free, NO_SPARSITY, n_newton=n_newton)
        for name in by_item:
            new[name][items] = getattr(updated, name)
        loadings[items[:, None], group.columns] = updated.loadings
    return replace(parameters, loadings=loadings, **new)


@dataclass(frozen=True)
class NetworkEstimate:
    """Result of a run of network EM or SAEM."""

    parameters: MeasurementParameters
    law: NetworkLaw
    # (n_iter,): largest change of a coefficient per iteration, in units of its item's scale
    changes: Array
    converged: bool


def law_from_draws(
    parents: Parents,
    draws: NDArray[np.uint8],
    levels: tuple[int, ...],
    *,
    weights: Array | None = None,
    mass: float | None = None,
) -> NetworkLaw:
    """Return the network of draws (R, N, K) with weights (N,) and prior ``mass`` per table."""
    repeated = None if weights is None else np.tile(weights, len(draws))
    network = NetworkLayout.of(parents, levels)
    counts = np.zeros(network.size)
    states = draws.reshape(-1, draws.shape[-1])
    for k, pa in enumerate(parents):
        code = states[:, k].astype(np.int64)
        strides = network.parent_strides[network.parent_ptr[k] : network.parent_ptr[k + 1]]
        for a, stride in zip(pa, strides, strict=True):
            code += states[:, a].astype(np.int64) * stride
        begin, end = network.table_ptr[k], network.table_ptr[k + 1]
        counts[begin:end] = np.bincount(code, repeated, minlength=end - begin) / len(draws)
    return network.law_from(counts, CONFIG.network_em.law_mass if mass is None else mass)


def run_network_saem(
    parameters: MeasurementParameters,
    law: NetworkLaw,
    sampler: NetworkSampler,
    schedule: Schedule,
    *,
    observer: Callable[[], None] | None = None,
) -> NetworkEstimate:
    """Return the estimate of Gibbs-SAEM on this support and these parents (Algorithm S.2)."""
    data, model = sampler.data, NetworkModel.of(parameters, law)
    criterion = DriftCriterion(parameters, data, CONFIG.network_em.max_drift)
    averaged: NetworkStatistics | None = None
    changes, converged = [], False
    for t in range(schedule.max_iter):
        sampler.draw(model, n_sweeps=schedule.n_sweeps)
        fresh = sampler.statistics(model)
        step = robbins_monro_step(schedule, t)
        averaged = fresh if averaged is None else averaged.blend(fresh, step)
        updated = run_network_m_step(model.parameters, averaged, data, model.items)
        changes.append(largest_change(model.parameters, updated, criterion.scale))
        law = model.network.law_from(averaged.families, CONFIG.network_em.law_mass)
        model = replace(model, parameters=updated, law=law)
        if observer is not None:
            observer()
        converged = criterion.is_met(t - schedule.burn_in + 1, updated)
        if converged:
            break
    return NetworkEstimate(model.parameters, model.law, np.array(changes), converged)


def run_network_e_step(
    tree: TreePosterior, data: WorkingData, model: NetworkModel
) -> tuple[NetworkStatistics, float]:
    """Return expected statistics and the log-likelihood, by the junction tree of the model."""
    items, network = model.items, model.network
    count, sum_x = np.zeros(items.size), np.zeros(items.size)
    families = np.zeros(network.size)
    weights = data.row_weights
    total = data.base(model.parameters.dispersion)
    for rows, marginals in tree.iterate_marginals(data, model.parameters):
        own_weights = weights[rows]
        total += float(own_weights @ marginals.log_density)
        x = data.x[rows]
        for scope, own in tree.items_by_scope:
            # In an item's table the first of its latents changes fastest.
            share = marginals.by_state(scope[::-1]) * own_weights
            columns, _, _ = data.columns.listed(own)
            inside = np.arange(len(share))
            sum_x[items.table_ptr[columns][:, None] + inside] += (share @ x[:, columns]).T
            first = items.table_ptr[data.columns.starts[own]][:, None] + inside
            if data.observed is None:
                count[first] += share.sum(axis=1)
            else:
                count[first] += (share @ data.observed[rows][:, own]).T
        for k, parents in enumerate(network.parents_of):
            begin, end = network.table_ptr[k : k + 2]
            families[begin:end] += marginals.by_state((*parents, k)) @ own_weights
    return NetworkStatistics(count, sum_x, families), total


def run_network_em(
    parameters: MeasurementParameters,
    law: NetworkLaw,
    data: WorkingData,
    *,
    q_matrix: NDArray[np.integer] | None = None,
    fix_items: bool = False,
    max_iter: int | None = None,
    tolerance: float | None = None,
    observer: Callable[[], None] | None = None,
) -> NetworkEstimate | None:
    """Return the estimate after EM on given support and parents, from working-scale values.

    None if the treewidth is too large or EM would cost too much. ``fix_items``: only the network.
    By default there are as many iterations as are affordable.
    """
    support = parameters.q_matrix if q_matrix is None else q_matrix
    tree = TreePosterior.of(parameters, law, support)
    if tree is None:
        return None
    n_iter = max_iter
    if n_iter is None:
        # As many as cost about as much as SAEM before.
        n_loadings = sum(len(scope) for scope in tree.items)
        affordable = CONFIG.network_em.cells_per_loading * n_loadings // tree.n_cells
        n_iter = min(CONFIG.network_em.max_iter, affordable)
    if n_iter < 1:
        return None
    least = CONFIG.network_em.remaining_gain if tolerance is None else tolerance
    items = ItemLayout.over(support != 0, parameters.terms, parameters.families)
    model = NetworkModel(parameters, law, items, NetworkLayout.of_law(law))
    scale = coefficient_scales(data)
    values: list[float] = []
    changes, converged = [], False
    for _ in range(n_iter):
        expected, value = run_network_e_step(tree, data, model)
        values.append(value)
        converged = remaining_gain(values) < least
        if converged:
            break
        updated = model.parameters
        if not fix_items:
            updated = run_network_m_step(updated, expected, data, items)
        changes.append(largest_change(model.parameters, updated, scale))
        law = model.network.law_from(expected.families, CONFIG.network_em.law_mass)
        model = replace(model, parameters=updated, law=law)
        tree = replace(tree, law=law)
        if observer is not None:
            observer()
    return NetworkEstimate(model.parameters, model.law, np.array(changes), converged)
