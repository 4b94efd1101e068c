"""Which loadings to keep, judged by the observed data, when states are sampled and not listed.

The same judgement as for few latents: scores of coefficients with the latents averaged out row by
row, their second moments as information, a stepwise choice on that scale. Here the average is over
retained draws, and an item looks only at the latents that the scores say could matter to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.network_layout import ItemLayout
from hidag.estimate.network_scores import ItemScores, definite, screened_scores
from hidag.estimate.subsets import best_subset, together
from hidag.estimate.support import adapted_strength, loading_z_scores
from hidag.estimate.working import WorkingData
from hidag.kernels.item_regression import PENALISED, ZERO
from hidag.measurement import MeasurementParameters, Penalty, family_named

Array = NDArray[np.float64]

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
