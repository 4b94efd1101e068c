"""EM with a network as the latents' law and exact expectations, by sums over small tables.

Sampling finds supports and parent sets for any number of latents, but its last steps still shake:
estimates end a standard error or two from the maximum. Where latents hang together little, their
posterior is had from small tables instead (:mod:`hidag.estimate.tree_posterior`), and a few steps
of EM go the rest of the way. Nothing here lists joint states.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.loading_costs import coefficient_scales
from hidag.estimate.loop import largest_move, to_come
from hidag.estimate.network_gibbs import NetworkStatistics
from hidag.estimate.network_layout import FamilyLayout, ItemLayout
from hidag.estimate.network_loop import LAW_MASS, NetworkEstimate
from hidag.estimate.network_maximise import maximise_tables
from hidag.estimate.tree_posterior import TreePosterior
from hidag.estimate.working import WorkingData
from hidag.latent import NetworkLaw
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

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
