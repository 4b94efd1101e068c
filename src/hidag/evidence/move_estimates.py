"""What single changes of a graph would do to the observed data's likelihood, before any is fitted.

One pass over rows under the best law over a graph gives the observed scores of that law's numbers
and of an edge between every two latents that have none, with their information: second moments over
rows. An edge that is not there gains about what its score test says, one that is there loses about
what its Wald test says. Both are good enough to tell which changes are worth a fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.estimate.expectation import expect_states
from hidag.estimate.posterior import ROWS_FOR_AVERAGES
from hidag.estimate.posterior_blocks import PosteriorBlocks
from hidag.evidence.observed import ObservedFit
from hidag.evidence.single_changes import Pair
from hidag.latent import Parents, StateSpace
from hidag.latent.factorise import possible_cells

Array = NDArray[np.float64]

#: Conditional probabilities nearer to 0 or 1 than this are taken for this.
NEAR_CERTAIN = 1e-3
#: What keeps information invertible where rows say nothing.
LEAST_INFORMATION = 1e-6


@dataclass(frozen=True)
class MoveEstimates:
    """About what log-likelihood changes by.

    Attributes
    ----------
    gains : dict from pair to float
        Of joining two latents that are not joined, the smaller number first.
    losses : dict from (cause, effect) to float
        Of taking an edge out.
    parents : tuple of tuples of int
        The graph that both are about.
    expected : ndarray, shape (2,) * K
        Rows of each state, were latents seen.
    """

    gains: dict[Pair, float]
    losses: dict[Pair, float]
    parents: Parents
    expected: Array

    def loss(self, parents: Parents, cause: int, effect: int) -> float:
        """Return about what it costs to take an edge out of a graph with the same laws.

        Where the edge stands as in ``parents`` that was estimated. Elsewhere it is what seen
        latents would lose, times the share of such losses that the observed data show.
        """
        if parents[effect] == self.parents[effect]:
            return self.losses[cause, effect]
        return self._seen(parents, cause, effect) * self._share

    @cached_property
    def _share(self) -> float:
        """The share of what seen latents would lose that the observed data do, on average."""
        seen = sum(self._seen(self.parents, *edge) for edge in self.losses)
        return sum(self.losses.values()) / seen if seen > 0 else 0.0

    def _seen(self, parents: Parents, cause: int, effect: int) -> float:
        """Return what the likelihood of seen latents would lose without an edge."""
        others = tuple(a for a in parents[effect] if a != cause)
        keep = {cause, effect, *others}
        away = tuple(a for a in range(self.expected.ndim) if a not in keep)
        joint = self.expected.sum(axis=away, keepdims=True)

        def entropy(counts: Array) -> float:
            return float(-xlogy(counts, counts).sum())

        without_cause = joint.sum(axis=cause, keepdims=True)
        without_effect = joint.sum(axis=effect, keepdims=True)
        neither = without_cause.sum(axis=effect, keepdims=True)
        return entropy(without_cause) + entropy(without_effect) - entropy(joint) - entropy(neither)


def move_estimates(observed: ObservedFit, parents: Parents, law: Array) -> MoveEstimates:
    """Return what adding or taking out an edge would do, for binary latents.

    Parameters
    ----------
    observed : ObservedFit
    parents : tuple of tuples of int
    law : ndarray, shape (S,)
        The best one over the graph.
    """
    tables = _Tables.of(parents, law, observed.space.states(), observed.possible)
    joined = {frozenset((a, k)) for k, causes in enumerate(parents) for a in causes}
    n_latents = len(parents)
    apart = [
        (a, b)
        for a in range(n_latents)
        for b in range(a + 1, n_latents)
        if frozenset((a, b)) not in joined
    ]
    together = [tables.residuals[:, a] * tables.residuals[:, b] for a, b in apart]
    columns = np.column_stack([tables.scores, *together])
    total, information = _observed(observed, law, columns)
    n_own = tables.scores.shape[1]
    own = information[:n_own, :n_own] + LEAST_INFORMATION * np.eye(n_own)
    free = np.ix_(tables.free, tables.free)
    # A probability that prerequisites settle is known: it has no variance.
    inverse = np.zeros((n_own, n_own))
    inverse[free] = np.linalg.inv(own[free])
    cross = information[:n_own, n_own:]
    left = np.diag(information)[n_own:] - (cross * (inverse @ cross)).sum(axis=0)
    score = total[n_own:] - cross.T @ (inverse @ total[:n_own])
    gain = 0.5 * score**2 / np.maximum(left, LEAST_INFORMATION)
    return MoveEstimates(
        dict(zip(apart, gain.tolist(), strict=True)),
        tables.losses(parents, inverse),
        parents,
        (law * observed.data.n_counted).reshape(observed.space.levels),
    )


@dataclass(frozen=True)
class _Tables:
    """The conditional tables of a law as free numbers.

    Attributes
    ----------
    probabilities : ndarray, shape (F,)
        P(latent = 1) in each configuration of its parents: latent by latent, the last parent
        changing fastest.
    first : list of int
        Where each latent's begin.
    scores : ndarray, shape (S, F)
        Derivative of the law's logarithm in each of them, by state.
    residuals : ndarray, shape (S, K)
        What each latent is above its conditional mean, by state.
    occurs, free : ndarray of bool, shape (F,)
        Whether prerequisites leave the configuration possible, and both of the latent's levels.
    """

    probabilities: Array
    first: list[int]
    scores: Array
    residuals: Array
    occurs: NDArray[np.bool_]
    free: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        parents: Parents,
        law: Array,
        states: NDArray[np.integer],
        possible: NDArray[np.bool_] | None = None,
    ) -> _Tables:
        z = states.astype(np.float64)
        space = StateSpace.binary(len(parents))
        may_be: list[NDArray[np.bool_]] = []
        first: list[int] = []
        probabilities: list[float] = []
        scores: list[Array] = []
        means = np.empty(z.shape)
        for k, causes in enumerate(parents):
            first.append(len(probabilities))
            place = np.zeros(len(z), dtype=np.intp)
            for a in causes:
                place = 2 * place + states[:, a]
            size = 2 ** len(causes)
            occurs = np.bincount(place, law, size)
            upper = np.bincount(place, law * z[:, k], size)
            share = np.where(occurs > 0, upper / np.where(occurs > 0, occurs, 1.0), 0.5)
            share = np.clip(share, NEAR_CERTAIN, 1.0 - NEAR_CERTAIN)
            if possible is not None:
                cells = possible_cells(possible, space, k, causes)
                may_be.append(cells)
                share = np.where(cells.all(axis=1), share, cells[:, 1])
            means[:, k] = share[place]
            spread = means[:, k] * (1.0 - means[:, k])
            slope = (z[:, k] - means[:, k]) / np.where(spread > 0, spread, 1.0)
            scores += [np.where(place == c, slope, 0.0) for c in range(size)]
            probabilities += share.tolist()
        cells = np.vstack(may_be) if may_be else np.ones((len(probabilities), 2), dtype=bool)
        return cls(
            np.array(probabilities),
            first,
            np.column_stack(scores),
            z - means,
            np.asarray(cells.any(axis=1)),
            np.asarray(cells.all(axis=1)),
        )

    def losses(self, parents: Parents, inverse: Array) -> dict[Pair, float]:
        """Return half the Wald statistic of each edge: that its cause makes no difference."""
        out = {}
        for k, causes in enumerate(parents):
            for place, cause in enumerate(causes):
                bit = 1 << (len(causes) - 1 - place)
                low = np.array([c for c in range(2 ** len(causes)) if not c & bit])
                low += self.first[k]
                # Where one of two does not occur, or both are settled, nothing can differ.
                both = self.occurs[low] & self.occurs[low + bit]
                low = low[both & (self.free[low] | self.free[low + bit])]
                contrast = np.zeros((len(low), len(self.probabilities)))
                rows = np.arange(len(low))
                contrast[rows, low] = -1.0
                contrast[rows, low + bit] = 1.0
                difference = contrast @ self.probabilities
                spread = contrast @ inverse @ contrast.T
                out[cause, k] = float(0.5 * difference @ np.linalg.solve(spread, difference))
        return out


def _observed(observed: ObservedFit, law: Array, columns: Array) -> tuple[Array, Array]:
    """Return sums over rows of expected functions of the state, and sums of their products.

    The sums are over all rows; products are taken from some thousands. ``columns`` has the
    functions' values, shape (S, q); their mean under the law is zero.
    """
    data, items = observed.data, observed.parameters
    features = np.ascontiguousarray(items.terms.features(observed.space.states()))
    counts, _ = expect_states(items, law, data, features, n_threads=observed.n_threads)
    some = data.first_rows(ROWS_FOR_AVERAGES)
    products = np.zeros((columns.shape[1],) * 2)
    for rows, means in PosteriorBlocks.of(items, law, features, some).means(columns):
        weighed = means if some.weights is None else means * some.weights[rows][:, None]
        products += means.T @ weighed
    return counts @ columns, products * (data.n_counted / some.n_counted)
