"""EM with a network as the latents' law and exact expectations, by sums over small tables.

Sampling finds supports and parent sets for any number of latents, but its last steps still shake:
estimates end a standard error or two from the maximum. Where latents hang together little, their
posterior is had from small tables instead (:mod:`hidag.network_em.junction_tree`), and a few steps
of EM go the rest of the way. Nothing here lists joint states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.em.em import largest_move, to_come
from hidag.em.layout import FamilyLayout, ItemLayout
from hidag.em.m_step import ITEM_MASS, coefficient_scales, maximise
from hidag.em.saem import DRIFT_STEPS
from hidag.em.statistics import Statistics
from hidag.kernels.coordinate_descent import FREE
from hidag.latent.laws import NetworkLaw, Parents
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.network_em.gibbs import NetworkSampler, NetworkStatistics
from hidag.network_em.junction_tree import TreePosterior

# --- The M-step on tables of sub-states: every item's regression on its own few latents

Array = NDArray[np.float64]


def _sums_of(data: WorkingData, items: NDArray[np.intp]) -> WorkingData:
    """Return the per-item sums of some items; every item counts as one with counts of its own."""
    n_items = len(items)
    columns, _, _ = data.columns.listed(items)
    return WorkingData(
        extended=np.zeros((0, len(columns) + n_items + 1)),
        families=tuple(data.families[j] for j in items),
        observed=None,
        gappy=np.arange(n_items),
        n_observed=data.n_observed[items],
        mean=data.mean[columns],
        variance=data.variance[columns],
        sum_squares=data.sum_squares[columns],
        constant=data.constant[items],
        shift=data.shift[items],
        scale=data.scale[items],
        summaries=tuple(data.summaries[j] for j in items),
    )


def maximise_tables(
    parameters: MeasurementParameters,
    statistics: NetworkStatistics,
    data: WorkingData,
    layout: ItemLayout,
    *,
    n_newton: int = 1,
) -> MeasurementParameters:
    """Return parameters on the layout's support with at least as high an expected likelihood.

    Parameters
    ----------
    parameters : MeasurementParameters
        Where the Newton steps start; loadings outside the support are dropped.
    statistics : NetworkStatistics
    data : WorkingData
        Only its per-item sums are used, never its rows.
    layout : ItemLayout
    n_newton : int
    """
    intercept = parameters.intercept.copy()
    loadings = np.zeros_like(parameters.loadings)
    dispersion, cutpoints = parameters.dispersion.copy(), parameters.cutpoints.copy()
    for local in layout.alike:
        items, here = local.items, local.cells
        n_states, width = local.features.shape
        spread = ITEM_MASS / n_states
        # Tables of an item's further columns follow that of the first.
        columns, places, within = data.columns.listed(items)
        of_columns = here[places] + n_states * within[:, None]
        moved = maximise(
            MeasurementParameters(
                tuple(parameters.families[j] for j in items),
                parameters.intercept[items],
                parameters.loadings[items[:, None], local.columns],
                parameters.dispersion[items],
                cutpoints=parameters.cutpoints[items],
            ),
            Statistics(
                np.zeros(n_states),
                statistics.sum_x[of_columns] + spread * data.mean[columns, None],
                statistics.count[here] + spread,
            ),
            _sums_of(data, items),
            local.basis,
            np.full((len(items), 1 + width), FREE, dtype=np.uint8),
            NO_SPARSITY,
            n_newton=n_newton,
        )
        intercept[items] = moved.intercept
        dispersion[items] = moved.dispersion
        cutpoints[items] = moved.cutpoints
        loadings[items[:, None], local.columns] = moved.loadings
    return replace(
        parameters,
        intercept=intercept,
        loadings=loadings,
        dispersion=dispersion,
        cutpoints=cutpoints,
    )


# --- Gibbs-SAEM with a network as the latents' law: supports and parent sets stay as they are

#: Rows' worth of even mass in each latent's table: no configuration becomes impossible.
LAW_MASS = 1.0
#: SAEM has settled when over 20 averaged steps coefficients drift by at most so many 1/sqrt(N).
LARGEST_DRIFT = 4.0


@dataclass(frozen=True)
class NetworkEstimate:
    """Where a run of SAEM steps ended.

    Attributes
    ----------
    parameters : MeasurementParameters
    law : NetworkLaw
    moves : ndarray, shape (n_steps,)
        Largest move of a coefficient in each step, in units of its item's scale.
    converged : bool
        Whether coefficients had stopped drifting.
    """

    parameters: MeasurementParameters
    law: NetworkLaw
    moves: Array
    converged: bool


def law_of_draws(
    parents: Parents,
    draws: NDArray[np.uint8],
    levels: tuple[int, ...],
    *,
    weights: Array | None = None,
    mass: float = LAW_MASS,
) -> NetworkLaw:
    """Return the network with these parent sets and the frequencies of the draws, (R, N, K).

    ``mass`` rows are spread evenly over each latent's table; every draw counts for 1/R rows, or for
    that share of its row's weight (N,).
    """
    often = None if weights is None else np.tile(weights, len(draws))
    families = FamilyLayout.of(parents, levels)
    counts = np.zeros(families.size)
    states = draws.reshape(-1, draws.shape[-1])
    for k, pa in enumerate(parents):
        code = states[:, k].astype(np.int64)
        strides = families.parent_strides[families.parent_ptr[k] : families.parent_ptr[k + 1]]
        for a, stride in zip(pa, strides, strict=True):
            code += states[:, a].astype(np.int64) * stride
        begin, end = families.table_ptr[k], families.table_ptr[k + 1]
        counts[begin:end] = np.bincount(code, often, minlength=end - begin) / len(draws)
    return families.law_from(counts, mass)


def run_steps(
    parameters: MeasurementParameters,
    law: NetworkLaw,
    sampler: NetworkSampler,
    *,
    n_steps: int,
    burn_in: int,
    decay: float = 0.7,
    n_sweeps: int = 1,
    observer: Callable[[], None] | None = None,
) -> NetworkEstimate:
    """Return the estimate after SAEM steps on the given support and parent sets (Algorithm S.2).

    Steps end early when, over 20 averaged ones, no coefficient drifts by more than 4/sqrt(N) of its
    scale: well inside its statistical error.

    Parameters
    ----------
    parameters, law : MeasurementParameters, NetworkLaw
        Where to begin; loadings that are zero stay zero.
    sampler : NetworkSampler
        Its states go on from where they are.
    n_steps, burn_in : int
        Steps at the most, the first ``burn_in`` of size 1.
    decay : float
        Step ``t`` after the burn-in has size ``t ** -decay``.
    n_sweeps : int
        Gibbs sweeps per step, the paper's C.
    observer : callable or None
        Called after every step.
    """
    data = sampler.data
    items, families = ItemLayout.of(parameters), FamilyLayout.of_law(law)
    scale = coefficient_scales(data)
    averaged: NetworkStatistics | None = None
    moves = []
    anchor, converged = parameters, False
    for t in range(n_steps):
        sampler.draw(parameters, law, items, families, n_sweeps=n_sweeps)
        fresh = sampler.statistics(items, families)
        step = 1.0 if averaged is None or t < burn_in else (t - burn_in + 1.0) ** -decay
        averaged = fresh if averaged is None else averaged.blend(fresh, step)
        moved = maximise_tables(parameters, averaged, data, items)
        moves.append(largest_move(parameters, moved, scale))
        parameters = moved
        law = families.law_from(averaged.families, LAW_MASS)
        if observer is not None:
            observer()
        after = t - burn_in + 1
        if after >= 0 and after % DRIFT_STEPS == 0:
            drift = largest_move(anchor, parameters, scale)
            anchor = parameters
            converged = after > 0 and drift < LARGEST_DRIFT * data.n_counted**-0.5
            if converged:
                break
    return NetworkEstimate(parameters, law, np.array(moves), converged)


# ---

#: Steps end when those to come would gain less log-likelihood than this together: half a standard
#: error, in all parameters at once.
LEAST_TO_COME = 0.1
#: Steps at the most.
MOST_STEPS = 60
#: Cells of a row's tables that all steps together may visit for each loading: about what sampling
#: costs before.
CELLS_FOR_A_LOADING = 1000


def steps_in_budget(tree: TreePosterior) -> int:
    """Return how many steps of EM a fit can afford."""
    n_loadings = sum(len(scope) for scope in tree.items)
    return min(MOST_STEPS, CELLS_FOR_A_LOADING * n_loadings // tree.n_cells)


def expect_tables(
    tree: TreePosterior,
    data: WorkingData,
    parameters: MeasurementParameters,
    items: ItemLayout,
    families: FamilyLayout,
) -> tuple[NetworkStatistics, float]:
    """Return expected sums by sub-state and configuration, and the rows' log-likelihood.

    Parameters
    ----------
    tree : TreePosterior
        Of the parameters' supports and the law.
    data : WorkingData
    parameters : MeasurementParameters
        On the working scale.
    items, families : ItemLayout, FamilyLayout
        Of the supports and the law's parent sets.
    """
    count, sum_x = np.zeros(items.size), np.zeros(items.size)
    by_family = np.zeros(families.size)
    weights = data.row_weights
    total = data.base(parameters.dispersion)
    for rows, groups in tree.groups(data, parameters):
        counted = weights[rows]
        total += float(counted @ groups.log_density)
        x = data.x[rows]
        for scope, own in tree.alike:
            # In an item's table the first of its latents changes fastest.
            share = groups.by_state(scope[::-1]) * counted
            columns, _, _ = data.columns.listed(own)
            inside = np.arange(len(share))
            sum_x[items.table_ptr[columns][:, None] + inside] += (share @ x[:, columns]).T
            first = items.table_ptr[data.columns.starts[own]][:, None] + inside
            if data.observed is None:
                count[first] += share.sum(axis=1)
            else:
                count[first] += (share @ data.observed[rows][:, own]).T
        for k, parents in enumerate(families.parents_of):
            begin, end = families.table_ptr[k : k + 2]
            by_family[begin:end] += groups.by_state((*parents, k)) @ counted
    return NetworkStatistics(count, sum_x, by_family), total


def run_exact_steps(
    parameters: MeasurementParameters,
    law: NetworkLaw,
    data: WorkingData,
    *,
    q_matrix: NDArray[np.integer] | None = None,
    hold_items: bool = False,
    most_steps: int | None = None,
    least_to_come: float = LEAST_TO_COME,
    observer: Callable[[], None] | None = None,
) -> NetworkEstimate | None:
    """Return the estimate after steps of EM on the given support and parent sets.

    None where latents hang together too closely for small tables, or steps would cost too much.

    Parameters
    ----------
    parameters, law : MeasurementParameters, NetworkLaw
        Where to begin, on the working scale.
    data : WorkingData
    q_matrix : ndarray, shape (R, K), optional
        Which latents responses may have; by default those they do, so that loadings that are zero
        stay zero.
    hold_items : bool
        Whether the law alone moves.
    most_steps : int, optional
        By default as many as are worth their cost.
    least_to_come : float
        Log-likelihood: steps end when those to come would gain less together.
    observer : callable or None
        Called after every step.
    """
    may = parameters.q_matrix if q_matrix is None else q_matrix
    tree = TreePosterior.of(parameters, law, may)
    if tree is None:
        return None
    n_steps = steps_in_budget(tree) if most_steps is None else most_steps
    if n_steps < 1:
        return None
    items = ItemLayout.over(may != 0, parameters.terms, parameters.families)
    families = FamilyLayout.of_law(law)
    scale = coefficient_scales(data)
    values: list[float] = []
    moves, converged = [], False
    for _ in range(n_steps):
        expected, value = expect_tables(tree, data, parameters, items, families)
        values.append(value)
        if nearly_there(values, least_to_come):
            converged = True
            break
        moved = parameters
        if not hold_items:
            moved = maximise_tables(parameters, expected, data, items)
        moves.append(largest_move(parameters, moved, scale))
        parameters, law = moved, families.law_from(expected.families, LAW_MASS)
        tree = tree.with_law(law)
        if observer is not None:
            observer()
    return NetworkEstimate(parameters, law, np.array(moves), converged)


def nearly_there(values: list[float], least: float = LEAST_TO_COME) -> bool:
    """Return whether EM's next steps would gain less than this together.

    Gains fall by about the same factor from step to step, so that the last two of them tell what
    is to come.
    """
    if len(values) < 3:
        return False
    before, last = np.diff(values[-3:])
    return bool(last <= 0.0 or (before > 0.0 and to_come(before, last) < least))
