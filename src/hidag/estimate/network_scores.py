"""Scores of loadings on the observed data's scale, averaged over sampled states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.network_gibbs import N_LANES, observed_mask, run_lanes
from hidag.estimate.network_layout import ItemLayout
from hidag.estimate.working import WorkingData
from hidag.kernels import network_tallies
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

#: Rows whose residuals are held at once.
BLOCK_ROWS = 4096
#: Directions with less than this share of the largest information count as unknown.
LEAST_INFORMATION = 1e-4


def screened_scores(
    parameters: MeasurementParameters,
    draws: NDArray[np.uint8],
    data: WorkingData,
    layout: ItemLayout,
) -> Array:
    """Return approximate |z| of adding each latent to each item, shape (J, K).

    The gradient is that of the observed data, averaged over draws (R, N, K); its spread is taken as
    that of the item's residual times what is known of the latent. Good enough to rank latents.
    """
    n_draws, n_rows, n_latents = draws.shape
    observed, has_gaps = observed_mask(data)
    dtheta, dpartition = layout.slope_tables(parameters)
    gradient = np.zeros((data.n_items, n_latents))
    squares = np.zeros(data.n_items)
    residual = np.empty((BLOCK_ROWS, data.columns.n_columns))
    half = n_draws // 2
    mean = draws.mean(axis=(0, 1))
    known = np.zeros(n_latents)
    for start in range(0, n_rows, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, n_rows)
        average = np.zeros((2, stop - start, n_latents))
        for r in range(n_draws):
            part = residual[: stop - start]
            network_tallies.residuals(
                draws[r],
                start,
                stop,
                data.extended,
                observed,
                has_gaps,
                layout.item_ptr,
                layout.item_parents,
                layout.item_strides,
                layout.table_ptr,
                dtheta,
                dpartition,
                part,
            )
            part = data.columns.add_up(part, axis=1)
            centred = draws[r, start:stop] - mean
            counted = part if data.weights is None else part * data.weights[start:stop, None]
            gradient += counted.T @ centred / n_draws
            squares += np.einsum("ij,ij->j", counted, part) / n_draws
            average[int(r >= half)] += centred / (half if r < half else n_draws - half)
        known += np.einsum("ik,ik->k", average[0], average[1])
    share = np.maximum(known / n_rows, 1e-3)
    spread = np.sqrt(np.maximum(squares, 1e-12)[:, None] * share[None, :])
    return np.asarray(np.abs(gradient) / spread)


@dataclass(frozen=True)
class ItemScores:
    """Scores and information of items' coefficients, latents averaged out over draws.

    Attributes
    ----------
    draws : ndarray of uint8, shape (R, N, K)
        The products of the first half's average scores with the second half's estimate the
        information without the Monte-Carlo noise of either.
    data : WorkingData
    layout : ItemLayout
    slopes : tuple of ndarray
        Slopes of natural parameters and of log partitions, as the layout has them.
    n_threads : int
    """

    draws: NDArray[np.uint8]
    data: WorkingData
    layout: ItemLayout
    slopes: tuple[Array, Array]
    n_threads: int = 1

    @classmethod
    def of(
        cls,
        parameters: MeasurementParameters,
        draws: NDArray[np.uint8],
        data: WorkingData,
        layout: ItemLayout,
        *,
        n_threads: int = 1,
    ) -> ItemScores:
        """Return the scores under the parameters that the draws were made under."""
        return cls(draws, data, layout, layout.slope_tables(parameters), n_threads)

    def of_item(
        self, item: int, latents: NDArray[np.int64], levels: NDArray[np.int64]
    ) -> tuple[Array, Array]:
        """Return the observed-data score (1 + C,) and information (1 + C, 1 + C) of one item.

        Parameters
        ----------
        item : int
        latents, levels : ndarray of int64, shape (C,)
            Terms ``1{Z_k >= u}`` whose coefficients are looked at, after the intercept's.
        """
        data, layout = self.data, self.layout
        observed, has_gaps = observed_mask(data)
        size = 1 + len(latents)
        gradient = np.zeros((N_LANES, size))
        information = np.zeros((N_LANES, size, size))
        weights = data.row_weights

        def work(lane: int, start: int, stop: int) -> None:
            network_tallies.item_scores(
                self.draws,
                start,
                stop,
                data.columns.starts[item],
                data.columns.starts[item + 1],
                data.extended,
                observed,
                has_gaps,
                layout.item_ptr,
                layout.item_parents,
                layout.item_strides,
                layout.table_ptr,
                *self.slopes,
                latents,
                levels,
                weights,
                gradient[lane],
                information[lane],
            )

        run_lanes(work, data.n_samples, self.n_threads)
        return gradient.sum(axis=0), information.sum(axis=0)


def definite(information: Array) -> Array:
    """Return the matrix with no direction below a share of the largest: noise can make it so."""
    root = np.sqrt(np.maximum(np.diag(information), 1e-9))
    values, vectors = np.linalg.eigh(information / np.outer(root, root))
    values = np.maximum(values, LEAST_INFORMATION * values[-1])
    return np.asarray((vectors * values) @ vectors.T * np.outer(root, root))
