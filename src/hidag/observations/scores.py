"""Scores, shares in percent and ages told from counts: whole numbers that fill a range.

Both are whole numbers from 0 up, and a mixture of enough Poisson laws comes close to any law. But
a few numbers describe counts: a mean for each way in which the latents can stand, or the long tail
of a negative binomial law. Scores end where the scale ends, are hardly ever 0, and lie around one
middle or a few, equally far from each, or all over their range. So laws of both kinds are fitted to
the column, and the BIC says which kind describes it better::

    counts   mixtures of 1 to 4 Poisson laws; negative binomial
    scores   mixtures of 1 to 4 normal laws with one variance; beta, stretched over the range

To take scores for counts does harm: they vary more than Poisson laws do, and loadings are found
that only make up for it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

Array = NDArray[np.float64]
#: Chances of the values, shape (d, parts), from the means, shape (parts,), and the deviation.
Laws = Callable[[Array, float], Array]

MOST_ZEROS = 0.05
"""Counts often are 0; even scores that fill a scale of 20 steps are so in no larger share."""
_MOST_PARTS = 4
"""Two binary latents give four means; those of more lie so close that fewer describe them."""
_STEPS = 200
#: EM ends when a step gains less: BICs that differ by so little leave the question open anyway.
_GAIN = 0.01
_SMALLEST_CHANCE = 1e-200
#: Between a law that is nearly all at 0 and one that is Poisson in all but name.
_LOG_SIZES = (-5.0, 15.0)


def evidence_for_scores(values: Array) -> float:
    """Return by how much the BIC of scores is better than that of counts; below 0, it is worse.

    Parameters
    ----------
    values : ndarray of whole numbers from 0 up, shape (n,)
    """
    if np.mean(values == 0) > MOST_ZEROS:
        return -np.inf
    points, often = np.unique(values, return_counts=True)
    observed = often.astype(np.float64)
    return _best_count_law(points, observed) - _best_score_law(points, observed)


def _best_count_law(points: Array, observed: Array) -> float:
    """Return the smallest BIC of a law of counts.

    Parameters
    ----------
    points : ndarray, shape (d,)
        The different values, ascending.
    observed : ndarray, shape (d,)
        How often each comes up.
    """
    factorials = special.gammaln(points + 1)[:, None]

    def poisson(means: Array, spread: float) -> Array:
        means = np.maximum(means, _SMALLEST_CHANCE)
        return np.asarray(np.exp(points[:, None] * np.log(means) - means - factorials))

    tail = _bic(_negative_binomial(points, observed), observed, 2)
    return min(tail, _best_mixture(points, observed, poisson, n_shared=0))


def _best_score_law(points: Array, observed: Array) -> float:
    """Return the smallest BIC of a law of scores."""

    def normal(means: Array, spread: float) -> Array:
        # Rounding puts all between two halves on a number.
        below = special.ndtr((points[:, None] - 0.5 - means) / spread)
        return np.asarray(special.ndtr((points[:, None] + 0.5 - means) / spread) - below)

    # The ends of the range are taken from the column, too.
    filled = _bic(_stretched_beta(points, observed), observed, 4)
    return min(filled, _best_mixture(points, observed, normal, n_shared=1))


def _bic(law: Array, observed: Array, n_parameters: int) -> float:
    """Return the BIC of the chances of the values, shape (d,)."""
    log_likelihood = float(observed @ np.log(np.maximum(law, _SMALLEST_CHANCE)))
    return n_parameters * float(np.log(observed.sum())) - 2 * log_likelihood


def _moments(points: Array, observed: Array) -> tuple[float, float]:
    """Return mean and standard deviation."""
    mean = float(np.average(points, weights=observed))
    return mean, float(np.sqrt(np.average((points - mean) ** 2, weights=observed)))


def _best_mixture(points: Array, observed: Array, laws: Laws, *, n_shared: int) -> float:
    """Return the smallest BIC of mixtures of laws that have `n_shared` parameters in common."""
    best = np.inf
    for n_parts in range(1, _MOST_PARTS + 1):
        law = _mixture(points, observed, n_parts, laws)
        found = _bic(law, observed, 2 * n_parts - 1 + n_shared)
        if found > best:
            break
        best = found
    return best


def _mixture(points: Array, observed: Array, n_parts: int, laws: Laws) -> Array:
    """Return the chances of the values, shape (d,), under the best mixture of a few laws, by EM."""
    n_cells = observed.sum()
    # As many cells to each part at the beginning.
    places = (np.arange(n_parts) + 0.5) / n_parts
    means = points[np.searchsorted(np.cumsum(observed) / n_cells, places)]
    weights = np.full(n_parts, 1 / n_parts)
    spread = _moments(points, observed)[1] / n_parts**0.5
    law, last = np.empty(0), -np.inf
    for _ in range(_STEPS):
        parts = weights * laws(means, spread)
        law = np.maximum(parts.sum(axis=1), _SMALLEST_CHANCE)
        fit = float(observed @ np.log(law))
        if fit - last < _GAIN:
            break
        last = fit
        shares = parts * (observed / law)[:, None]
        totals = np.maximum(shares.sum(axis=0), _SMALLEST_CHANCE)
        means, weights = points @ shares / totals, totals / n_cells
        away = (points[:, None] - means) ** 2
        # A part on a single number would be narrower than rounding lets anything be.
        spread = max(float(np.sqrt((shares * away).sum() / n_cells)), 0.5)
    return law


def _negative_binomial(points: Array, observed: Array) -> Array:
    """Return the chances of the values under the best negative binomial law."""
    mean = _moments(points, observed)[0]
    factorials = special.gammaln(points + 1)

    def chances(log_size: float) -> Array:
        size = np.exp(log_size)
        ways = special.gammaln(points + size) - special.gammaln(size) - factorials
        powers = points * np.log(mean / (size + mean)) - size * np.log1p(mean / size)
        return np.asarray(np.exp(ways + powers))

    best = optimize.minimize_scalar(
        lambda log_size: _bic(chances(log_size), observed, 0), bounds=_LOG_SIZES, method="bounded"
    )
    return chances(float(best.x))


def _stretched_beta(points: Array, observed: Array) -> Array:
    """Return the chances of the values under the beta law of their moments, over their range."""
    width = points[-1] - points[0] + 1
    # In the middle of its step, a density is near the average over the step.
    places = (points - points[0] + 0.5) / width
    mean, deviation = _moments(places, observed)
    total = mean * (1 - mean) / deviation**2 - 1
    a, b = mean * total, (1 - mean) * total
    logs = (a - 1) * np.log(places) + (b - 1) * np.log1p(-places)
    return np.asarray(np.exp(logs - special.betaln(a, b)) / width)
