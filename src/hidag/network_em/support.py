"""Support selection by the observed-data likelihood when states are sampled, not listed.

As :mod:`hidag.em.support`, with averages over draws and screened candidates for each item.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.layout import ItemLayout
from hidag.em.support import adapt_penalty, group_moves, loading_z_scores, select_subset
from hidag.kernels import sufficient_statistics
from hidag.kernels.coordinate_descent import PENALISED, ZERO
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import Penalty
from hidag.network_em.gibbs import run_lanes

Array = NDArray[np.float64]
Bytes = NDArray[np.uint8]


def screen_loadings(
    parameters: MeasurementParameters, draws: Bytes, data: WorkingData, layout: ItemLayout
) -> Array:
    """Return approximate |z| of adding each latent to each item, (J, K), to rank latents."""
    n_draws, n_rows, n_latents = draws.shape
    block_rows = CONFIG.network_em.residual_block_rows
    derivatives = layout.tables(parameters, derivatives=True)
    constant = ((data.extended, *data.observed_mask), layout.table_arrays, derivatives)
    gradient = np.zeros((data.n_items, n_latents))
    squares = np.zeros(data.n_items)
    residual = np.empty((block_rows, data.columns.n_columns))
    half = n_draws // 2
    mean = draws.mean(axis=(0, 1))
    explained = np.zeros(n_latents)
    for start in range(0, n_rows, block_rows):
        stop = min(start + block_rows, n_rows)
        average = np.zeros((2, stop - start, n_latents))
        for r in range(n_draws):
            part = residual[: stop - start]
            sufficient_statistics.residuals(draws[r], start, stop, *constant, part)
            part = data.columns.add_up(part, axis=1)
            centred = draws[r, start:stop] - mean
            weighted = part if data.weights is None else part * data.weights[start:stop, None]
            gradient += weighted.T @ centred / n_draws
            squares += np.einsum("ij,ij->j", weighted, part) / n_draws
            average[int(r >= half)] += centred / (half if r < half else n_draws - half)
        # The product of two independent averages has no Monte Carlo bias.
        explained += np.einsum("ik,ik->k", average[0], average[1])
    share = np.maximum(explained / n_rows, CONFIG.network_em.min_explained_share)
    spread = np.sqrt(np.maximum(squares, 1e-12)[:, None] * share[None, :])
    return np.asarray(np.abs(gradient) / spread)


@dataclass(frozen=True)
class ItemScores:
    """Observed-data scores and information of the items' coefficients, averaged over draws.

    Products over the two halves of the draws (R, N, K) have no Monte Carlo bias.
    """

    draws: Bytes
    data: WorkingData
    layout: ItemLayout
    derivatives: tuple[Array, Array]
    n_threads: int = 1

    def of_item(
        self, item: int, latents: NDArray[np.int64], levels: NDArray[np.int64]
    ) -> tuple[Array, Array]:
        """Return score and information of the intercept and C terms ``1{Z_k >= u}`` of an item."""
        data, size, n_lanes = self.data, 1 + len(latents), CONFIG.e_step.n_lanes
        weights = data.row_weights
        gradient = np.zeros((n_lanes, size))
        information = np.zeros((n_lanes, size, size))
        first, last = data.columns.starts[item], data.columns.starts[item + 1]
        cells, items = (data.extended, *data.observed_mask), self.layout.table_arrays
        constant = (first, last, cells, items, self.derivatives, (latents, levels), weights)

        def work(lane: int, start: int, stop: int) -> None:
            own = gradient[lane], information[lane]
            sufficient_statistics.item_scores(self.draws, start, stop, *constant, *own)

        run_lanes(work, data.n_samples, self.n_threads)
        return gradient.sum(axis=0), information.sum(axis=0)


def _make_definite(information: Array) -> Array:
    """Return the matrix with its scaled eigenvalues bounded away from zero."""
    root = np.sqrt(np.maximum(np.diag(information), 1e-9))
    values, vectors = np.linalg.eigh(information / np.outer(root, root))
    values = np.maximum(values, CONFIG.network_em.min_eigenvalue_share * values[-1])
    return np.asarray((vectors * values) @ vectors.T * np.outer(root, root))


@dataclass(frozen=True)
class CandidateLoadings:
    """Quadratic model of the observed-data likelihood in one item's loadings and candidates."""

    # (C,): main terms, as columns of the loadings, and their latents
    columns: NDArray[np.int64]
    latents: NDArray[np.int64]
    # (1 + C,): coefficients, the intercept first, and their scores
    beta: Array
    gradient: Array
    information: Array  # (1 + C, 1 + C)


def score_loadings(
    parameters: MeasurementParameters,
    draws: Bytes,
    data: WorkingData,
    allowed: Bytes,
    *,
    n_threads: int = 1,
) -> list[CandidateLoadings]:
    """Return each item's quadratic model from posterior draws (R, N, K); ``allowed`` (J, 1 + T)."""
    layout, terms = ItemLayout.of(parameters), parameters.terms
    screened = screen_loadings(parameters, draws, data, layout)
    excluded = terms.latents_of((allowed[:, 1:] != ZERO).astype(np.float64)) == 0
    screened[layout.support | excluded] = 0.0
    derivatives = layout.tables(parameters, derivatives=True)
    scores = ItemScores(draws, data, layout, derivatives, n_threads)
    out = []
    for j in range(data.n_items):
        order = np.argsort(-screened[j], kind="stable")[: CONFIG.network_em.max_candidates]
        more = order[screened[j, order] > CONFIG.network_em.min_screening_z]
        wanted = np.union1d(np.flatnonzero(layout.support[j]), more)
        columns = np.flatnonzero(np.isin(terms.main_latents, wanted))
        latents = terms.main_latents[columns].astype(np.int64)
        levels = terms.main_levels[columns].astype(np.int64)
        gradient, information = scores.of_item(j, latents, levels)
        beta = np.concatenate([[parameters.intercept[j]], parameters.loadings[j, columns]])
        definite = _make_definite(information)
        out.append(CandidateLoadings(columns, latents, beta, gradient, definite))
    return out


def adapt_network_penalty(
    candidates: list[CandidateLoadings], n_terms: int, n_samples: float, penalty: Penalty
) -> Penalty:
    """Return the penalty with the strength of `adapt_penalty`, at least log(N T)/2 (EBIC)."""
    z = np.zeros((len(candidates), n_terms))
    included = np.zeros(z.shape, dtype=bool)
    for j, item in enumerate(candidates):
        model = item.beta, item.gradient, item.information
        z[j, item.columns] = loading_z_scores(*(part[None] for part in model))[0]
        included[j, item.columns] = item.beta[1:] != 0
    return adapt_penalty(z, included, penalty, n_samples * n_terms)


def select_loadings(
    parameters: MeasurementParameters,
    candidates: list[CandidateLoadings],
    allowed: Bytes,
    penalty: Penalty,
    scale: Array,
) -> MeasurementParameters:
    """Return parameters with each item's loadings selected on its quadratic model.

    Items whose support does not change keep their coefficients; ``scale`` (J,) limits the others.
    """
    intercept, loadings = parameters.intercept.copy(), parameters.loadings.copy()
    for j, item in enumerate(candidates):
        linear = item.gradient + item.information @ item.beta
        start = item.beta[1:] != 0
        own = allowed[j, 1 + item.columns]
        moves = group_moves(item.latents)
        found = select_subset(linear, item.information, own, start, penalty.strength, moves)
        found = _limit_latents(found, item, own)
        if np.array_equal(found[1:] != 0, start):
            continue
        # A step is unbounded where the information vanishes.
        bound = CONFIG.network_em.max_step * scale[j]
        intercept[j] = np.clip(found[0], intercept[j] - bound, intercept[j] + bound)
        loadings[j] = 0.0
        loadings[j, item.columns] = np.clip(found[1:], -bound, bound)
    proposal = replace(parameters, intercept=intercept, loadings=loadings)
    outside = ~proposal.in_range()
    if outside.any():
        floors = np.array([family_named(f).lowest_predictor for f in parameters.families])
        intercept[outside] += floors[outside] - proposal.lowest_predictors()[outside]
    return replace(proposal, intercept=intercept)


def _limit_latents(beta: Array, item: CandidateLoadings, allowed: Bytes) -> Array:
    """Return the coefficients without the weakest loadings beyond the largest number."""
    largest = CONFIG.network_em.max_item_latents
    inside = np.flatnonzero(beta[1:] != 0)
    if len(inside) <= largest:
        return beta
    weight = np.abs(beta[1:]) * np.sqrt(np.diag(item.information)[1:])
    weight[allowed != PENALISED] = np.inf
    out = beta.copy()
    out[1 + inside[np.argsort(-weight[inside])[largest:]]] = 0.0
    return out
