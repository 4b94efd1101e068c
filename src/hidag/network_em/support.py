"""Which loadings to keep, judged by the observed data, when states are sampled and not listed.

The same judgement as for few latents: scores of coefficients with the latents averaged out row by
row, their second moments as information, a stepwise choice on that scale. Here the average is over
retained draws, and an item looks only at the latents that the scores say could matter to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.em.layout import ItemLayout
from hidag.em.support import adapted_strength, best_subset, loading_z_scores, together
from hidag.kernels import sufficient_statistics
from hidag.kernels.coordinate_descent import PENALISED, ZERO
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import Penalty
from hidag.network_em.gibbs import N_LANES, observed_mask, run_lanes

# --- Scores of loadings on the observed data's scale, averaged over sampled states

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
            sufficient_statistics.residuals(
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
            sufficient_statistics.item_scores(
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


# ---

#: Candidates besides the loadings that are in, the most promising first.
MOST_CANDIDATES = 8
#: Screened |z| below this cannot become a loading at any strength that is used.
LEAST_SCREENED = 2.0
#: An item never takes more latents than this on its own choice: its table has 2^parents entries.
MOST_CHOSEN_PARENTS = 10
#: Largest coefficient, in units of its item's scale, that a choice may begin with.
LARGEST_PROPOSAL = 4.0


@dataclass(frozen=True)
class JudgedItem:
    """What the observed data say about one item's possible loadings.

    Attributes
    ----------
    columns, latents : ndarray of int64, shape (C,)
        Main terms, as columns of the loadings, and the latents that they belong to.
    beta, gradient : ndarray, shape (1 + C,)
        Coefficients, the intercept first, and their observed-data scores.
    information : ndarray, shape (1 + C, 1 + C)
    """

    columns: NDArray[np.int64]
    latents: NDArray[np.int64]
    beta: Array
    gradient: Array
    information: Array

    def z_scores(self) -> Array:
        """Return |z| of each loading, shape (C,)."""
        z = loading_z_scores(self.beta[None], self.gradient[None], self.information[None])
        return np.asarray(z[0])


def judge_loadings(
    parameters: MeasurementParameters,
    draws: NDArray[np.uint8],
    data: WorkingData,
    allowed: NDArray[np.uint8],
    *,
    n_threads: int = 1,
) -> list[JudgedItem]:
    """Return what the observed data say about every item's loadings, those in and those that may.

    Parameters
    ----------
    parameters : MeasurementParameters
        Those under which the draws were made.
    draws : ndarray of uint8, shape (R, N, K)
    allowed : ndarray of uint8, shape (J, 1 + T)
        ZERO, PENALISED or FREE for each coefficient.
    """
    layout, terms = ItemLayout.of(parameters), parameters.terms
    screened = screened_scores(parameters, draws, data, layout)
    shut = terms.latents_of((allowed[:, 1:] != ZERO).astype(np.float64)) == 0
    screened[layout.support | shut] = 0.0
    scores = ItemScores.of(parameters, draws, data, layout, n_threads=n_threads)
    out = []
    for j in range(data.n_items):
        order = np.argsort(-screened[j], kind="stable")[:MOST_CANDIDATES]
        more = order[screened[j, order] > LEAST_SCREENED]
        wanted = np.union1d(np.flatnonzero(layout.support[j]), more)
        columns = np.flatnonzero(np.isin(terms.main_latents, wanted))
        latents = terms.main_latents[columns].astype(np.int64)
        levels = terms.main_levels[columns].astype(np.int64)
        gradient, information = scores.of_item(j, latents, levels)
        beta = np.concatenate([[parameters.intercept[j]], parameters.loadings[j, columns]])
        out.append(JudgedItem(columns, latents, beta, gradient, definite(information)))
    return out


def adapt_to_table(
    judged: list[JudgedItem], n_terms: int, n_samples: float, penalty: Penalty
) -> Penalty:
    """Return the penalty with its strength learned from the loadings of this table.

    It stays between what the extended Bayesian information criterion asks of one of T candidates,
    log(N T)/2, and four times log(T) more.
    """
    z = np.zeros((len(judged), n_terms))
    included = np.zeros(z.shape, dtype=bool)
    for j, item in enumerate(judged):
        z[j, item.columns] = item.z_scores()
        included[j, item.columns] = item.beta[1:] != 0
    least = 0.5 * np.log(n_samples * n_terms)
    most = least + 4.0 * np.log(max(2, n_terms))
    return replace(penalty, strength=adapted_strength(z, included, penalty, (least, most)))


def choose_loadings(
    parameters: MeasurementParameters,
    judged: list[JudgedItem],
    allowed: NDArray[np.uint8],
    penalty: Penalty,
    scale: Array,
) -> MeasurementParameters:
    """Return parameters with each item's loadings chosen on the observed data's scale.

    Items whose support stays as it was keep their coefficients.

    Parameters
    ----------
    parameters : MeasurementParameters
    judged : list of JudgedItem, length J
    allowed : ndarray of uint8, shape (J, 1 + K)
    penalty : Penalty
        Its strength is what a loading costs.
    scale : ndarray, shape (J,)
        Size of a typical coefficient of each item.
    """
    intercept, loadings = parameters.intercept.copy(), parameters.loadings.copy()
    for j, item in enumerate(judged):
        linear = item.gradient + item.information @ item.beta
        begin = item.beta[1:] != 0
        here = allowed[j, 1 + item.columns]
        found = best_subset(
            linear, item.information, here, begin, penalty.strength, together(item.latents)
        )
        found = _trimmed(found, item, here)
        if np.array_equal(found[1:] != 0, begin):
            continue
        # A step on next to no information can be of any length.
        bound = LARGEST_PROPOSAL * scale[j]
        intercept[j] = np.clip(found[0], intercept[j] - bound, intercept[j] + bound)
        loadings[j] = 0.0
        loadings[j, item.columns] = np.clip(found[1:], -bound, bound)
    proposal = replace(parameters, intercept=intercept, loadings=loadings)
    outside = ~proposal.in_range()
    if outside.any():
        floors = np.array([family_named(f).lowest_predictor for f in parameters.families])
        intercept[outside] += floors[outside] - proposal.lowest_predictors()[outside]
    return replace(proposal, intercept=intercept)


def _trimmed(beta: Array, item: JudgedItem, allowed: NDArray[np.uint8]) -> Array:
    """Return the coefficients without the weakest loadings that a table has no room for."""
    inside = np.flatnonzero(beta[1:] != 0)
    if len(inside) <= MOST_CHOSEN_PARENTS:
        return beta
    weight = np.abs(beta[1:]) * np.sqrt(np.diag(item.information)[1:])
    weight[allowed != PENALISED] = np.inf
    out = beta.copy()
    out[1 + inside[np.argsort(-weight[inside])[MOST_CHOSEN_PARENTS:]]] = 0.0
    return out
