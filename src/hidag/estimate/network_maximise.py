"""The M-step on tables of sub-states: every item's regression on its own few latents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.dispersion_floor import ITEM_MASS
from hidag.estimate.maximise import maximise
from hidag.estimate.network_gibbs import NetworkStatistics
from hidag.estimate.network_layout import ItemLayout
from hidag.estimate.statistics import Statistics
from hidag.estimate.working import WorkingData
from hidag.kernels.item_regression import FREE
from hidag.measurement import NO_SPARSITY, MeasurementParameters

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
