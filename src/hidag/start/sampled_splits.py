"""Latents that were found as one, where joint states are too many to list.

The spectral start may miss a latent whose causes and effects are close to it: its items go to
those, and a factor made of noise is left over. Sampling does not find the way back. What shows it
are the items' correlations, as in :mod:`hidag.start.two_in_one`; what a fit says of them is known
from draws of the latents, so that it does not matter how well the law is known yet. The idlest
latent then begins again as one half of the latent that stands for two, or, where two latents have
the same items, these are dealt out among both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.column_sums import mean_and_spread
from hidag.estimate.loading_costs import at_a_cost
from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters
from hidag.start.crossing import with_loadings
from hidag.start.support_criterion import support_criterion
from hidag.start.two_in_one import Split, halved_loadings, idlest_and_splits

Array = NDArray[np.float64]

#: Rows at the most that correlations are taken from.
MOST_ROWS = 5000
#: What m items of one latent have in common beyond the fit has to be this share of 2 sqrt(m / N),
#: which chance reaches before anything is fitted, and no less than this: many rows show any trifle.
BEYOND_CHANCE, SMALLEST_EXCESS = 0.7, 0.1
#: Places at the most to begin again from one fit.
MOST_PLACES = 2
#: Two latents with more than this share of their items in common are mixtures of one another.
TWINS_SHARE = 0.5
#: Variances of standardised columns below this are none.
SMALLEST_SPREAD = 1e-9


@dataclass(frozen=True)
class Agreement:
    """How items' correlations agree with a fit.

    Attributes
    ----------
    criterion : float
        Of the support, smaller being better; see :mod:`hidag.start.support_criterion`.
    places : tuple of MeasurementParameters
        Where to begin with a latent apart that seems to stand for two, the clearest first.
    """

    criterion: float
    places: tuple[MeasurementParameters, ...]


class Witness:
    """Items' correlations, which fits are held against.

    Items of any family have a part: each has a number per response in which latents act about
    linearly.

    Parameters
    ----------
    data : WorkingData
    """

    def __init__(self, data: WorkingData) -> None:
        self.data = data.first_rows(MOST_ROWS)
        shape = (self.data.n_samples, self.data.n_items)
        observed = self.data.observed
        self.seen = np.ones(shape, dtype=bool) if observed is None else observed == 1
        self.looks = np.zeros(shape)
        for j in range(shape[1]):
            seen = self.seen[:, j]
            cells = self.data.look(j)[seen]
            if len(cells):
                counts = None if self.data.weights is None else self.data.weights[seen]
                mean, spread = mean_and_spread(cells, counts)
                self.looks[seen, j] = (cells - mean) / max(spread, 1e-12)
        self.correlations, self.rows = _pairwise(self.looks, self.seen, self.data.row_weights)

    def slopes(self, states: Array, law: Array, support: NDArray[np.bool_]) -> Array:
        """Return how items go with the latents that they have, by least squares, shape (J, K).

        Parameters
        ----------
        states : ndarray, shape (R N, K)
            Draws of the latents, one after another, less their means.
        law : ndarray, shape (R N,)
            What each counts for; adds up to one.
        support : ndarray of bool, shape (J, K)
        """
        n_draws = len(states) // len(self.looks)
        out = np.zeros(support.shape)
        for j in np.flatnonzero(support.any(axis=1)):
            seen = np.tile(self.seen[:, j], n_draws)
            own = np.flatnonzero(support[j])
            z = states[np.ix_(seen, own)]
            weighted = z * law[seen, None]
            look = np.tile(self.looks[self.seen[:, j], j], n_draws)
            out[j, own] = np.linalg.pinv(weighted.T @ z) @ (weighted.T @ look)
        return out

    def agreement(
        self, items: MeasurementParameters, draws: NDArray[np.uint8], allowed: NDArray[np.uint8]
    ) -> Agreement:
        """Return how a fit with binary latents agrees, and where to begin with latents apart.

        Parameters
        ----------
        items : MeasurementParameters
            Of the fit.
        draws : ndarray of uint8, shape (R, N, K)
            Of the latents, given the data.
        allowed : ndarray of uint8, shape (J, 1 + K)
            Which coefficients may be there, and at a cost.
        """
        states = draws[:, : len(self.looks)].reshape(-1, draws.shape[-1]).astype(np.float64)
        law = np.tile(self.data.row_weights, len(draws))
        law /= law.sum()
        means = law @ states
        states -= means
        support = items.loadings != 0
        slopes = self.slopes(states, law, support)
        among = (states * law[:, None]).T @ states
        residual = np.where(self.rows > 0, self.correlations - slopes @ among @ slopes.T, 0.0)
        free: NDArray[np.bool_] = np.asarray(at_a_cost(allowed[:, 1:]).all(axis=0))
        idle, splits = idlest_and_splits(items, self.data, residual, free)
        clear = [one for one in splits if one.excess > self._by_chance(support, one)]
        places = []
        for split in clear[:MOST_PLACES]:
            other = _twin(support, split.latent, free)
            if other is None:
                loadings, other = halved_loadings(items.loadings, split, idle), idle
            else:
                loadings = self._told_apart(items.loadings, split.latent, other)
            after = means.copy()
            after[other] = means[split.latent]
            places.append(with_loadings(items, loadings, means, after))
        spread = np.sqrt(np.maximum(np.diag(among), 1e-12))
        # Items without a latent are judged with the one they go with most: otherwise an item more
        # or less that the penalty has not let in yet would decide.
        goes_with = np.tile(self.looks, (len(draws), 1)).T @ (states * law[:, None]) / spread
        alone = np.flatnonzero(~support.any(axis=1))
        support[alone, np.argmax(np.abs(goes_with[alone]), axis=1)] = True
        slopes = self.slopes(states, law, support)
        criterion = support_criterion(
            self.correlations,
            self.rows,
            np.where(support, slopes * spread, 0.0),
            among / np.outer(spread, spread),
            float(np.log(self.data.n_counted)),
        )
        return Agreement(criterion, tuple(places))

    def _by_chance(self, support: NDArray[np.bool_], split: Split) -> float:
        """Return what the items of a latent may have in common beyond the fit."""
        n_items = int(support[:, split.latent].sum())
        chance = 2.0 * float(np.sqrt(n_items / self.data.n_counted))
        return max(BEYOND_CHANCE * chance, SMALLEST_EXCESS)

    def _told_apart(self, loadings: Array, one: int, other: int) -> Array:
        """Return loadings (J, K) in which two latents with the same items have different ones.

        Their items' correlations have two large directions; signs in the second tell the sides.
        """
        inside = np.flatnonzero((loadings[:, [one, other]] != 0).any(axis=1))
        side = np.linalg.eigh(self.correlations[np.ix_(inside, inside)])[1][:, -2]
        out = loadings.copy()
        out[inside, one] = out[inside, other] = 0.0
        total = loadings[:, [one, other]].sum(axis=1)
        # An eigenvector's sign is arbitrary: the first item stays.
        leaving = side * side[0] < 0
        for latent, own in ((one, inside[~leaving]), (other, inside[leaving])):
            out[own, latent] = total[own]
        return out


def _pairwise(x: Array, seen: NDArray[np.bool_], weights: Array) -> tuple[Array, Array]:
    """Return correlations of columns (N, J), zeros where not seen, and the rows they are from.

    Columns one of which is constant where both are seen, as answers are that are asked for only
    after another, have none: zero rows, like the diagonal.
    """
    counted, known = weights[:, None], seen.astype(np.float64)
    rows = (counted * known).T @ known
    safe = np.maximum(rows, 1e-12)
    mean = (counted * x).T @ known / safe
    spread = (counted * x * x).T @ known / safe - mean**2
    together = (counted * x).T @ x / safe - mean * mean.T
    useful = (spread > SMALLEST_SPREAD) & (spread.T > SMALLEST_SPREAD)
    np.fill_diagonal(useful, False)
    scale = np.sqrt(np.where(useful, spread * spread.T, 1.0))
    return np.where(useful, together / scale, 0.0), np.where(useful, rows, 0.0)


def _twin(support: NDArray[np.bool_], latent: int, free: NDArray[np.bool_]) -> int | None:
    """Return the latent that has most of its items in common with this one, if there is one."""
    own = support[:, [latent]]
    alike = (support & own).sum(axis=0) / np.maximum((support | own).sum(axis=0), 1)
    alike[~free] = alike[latent] = 0.0
    best = int(np.argmax(alike))
    return best if alike[best] > TWINS_SHARE else None
