"""Whether counts vary more, given the latents, than their Poisson families let them.

A negative binomial with variance ``mu + a mu^2`` is Poisson at ``a = 0``, and the derivative of a
count's log density there is ``s = ((x - mu)^2 - x) / 2``, of mean zero. Given the latents it has
variance ``mu^2 / 2`` and third moment ``mu^3 + mu^2 / 2`` if the count is Poisson. What is expected
of it given a whole row varies less, and less still where parameters were fitted to the rows: a test
by those moments errs on the side of Poisson.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearson3

from hidag.em.posterior import state_posteriors
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.families import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.network_em.posterior import sampled_states

Array = NDArray[np.float64]

#: With more joint states than this latents are drawn, where the law is over a graph: a draw tells
#: nearly as much, and summing would take as long as many EM steps.
MOST_SUMMED_STATES = 256
#: Rows of sampled latents whose means are worked out in one go.
_BLOCK_ROWS = 8192


@dataclass(frozen=True)
class CountDispersion:
    """How counts vary given the latents.

    Attributes
    ----------
    items : ndarray of int, shape (n,)
        The Poisson items.
    ratio : ndarray, shape (n,)
        Mean square of ``x - mu`` over the mean of ``mu``: about one if the item is Poisson, NaN
        where no cell was observed.
    p_value : ndarray, shape (n,)
        Chance of more variation than this in a Poisson item, or of a larger number.
    """

    items: NDArray[np.intp]
    ratio: Array
    p_value: Array


def count_dispersion(
    parameters: MeasurementParameters,
    law: LatentLaw,
    values: Array,
    weights: Array | None = None,
    *,
    sampled: bool | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> CountDispersion:
    """Return how Poisson items vary given the latents, in one pass over the rows.

    Parameters
    ----------
    parameters : MeasurementParameters
        In the user's units.
    law : LatentLaw
    values : ndarray, shape (N, J)
        NaN cells are missing.
    weights : ndarray, shape (N,), optional
        How many rows each row counts for.
    sampled : bool, optional
        Whether latents are drawn given the rows, once each, instead of summed out; by default where
        joint states are many. Needs a law over a graph.
    seed, n_threads : int
        Of the draws.
    """
    items = np.flatnonzero(
        [family_named(f).overdispersed_alternative is not None for f in parameters.families]
    )
    if not len(items):
        return CountDispersion(items, np.zeros(0), np.zeros(0))
    counts = np.ones(len(values)) if weights is None else weights
    if sampled is None:
        sampled = law.space.n_states > MOST_SUMMED_STATES
    if sampled and isinstance(law, NetworkLaw):
        states = sampled_states(parameters, law, values, seed=seed, n_threads=n_threads)
        blocks = _drawn_powers(parameters, states, items)
    else:
        blocks = _expected_powers(parameters, law, values, items)
    squares, score, sums = np.zeros(len(items)), np.zeros(len(items)), np.zeros((3, len(items)))
    for rows, powers in blocks:
        x = values[rows][:, items]
        seen = ~np.isnan(x)
        w = seen * counts[rows, None]
        x = np.where(seen, x, 0.0)
        spread = x**2 - 2.0 * x * powers[0] + powers[1]
        squares += (w * spread).sum(axis=0)
        score += (w * (spread - x)).sum(axis=0) / 2.0
        sums += (w * powers).sum(axis=1)
    first, second, third = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = second / 2.0
        skewness = (third + second / 2.0) / variance**1.5
        # A shifted gamma: few large counts among many small ones are far from normal in the tail.
        chance = pearson3.sf(score / np.sqrt(variance), skewness)
        return CountDispersion(items, squares / first, np.where(variance > 0, chance, np.nan))


def _expected_powers(
    parameters: MeasurementParameters, law: LatentLaw, values: Array, items: NDArray[np.intp]
) -> Iterator[tuple[slice, Array]]:
    """Yield row ranges and the first three powers of the means given them, (3, rows, n)."""
    means = parameters.response_means(law.space.states())[:, items]
    powers = np.hstack([means, means**2, means**3])
    for rows, posterior in state_posteriors(parameters, law, values):
        expected = (posterior @ powers).reshape(len(posterior), 3, len(items))
        yield rows, np.moveaxis(expected, 1, 0)


def _drawn_powers(
    parameters: MeasurementParameters, states: NDArray[np.integer], items: NDArray[np.intp]
) -> Iterator[tuple[slice, Array]]:
    """Yield row ranges and the first three powers of the means in rows' states, (3, rows, n)."""
    for start in range(0, len(states), _BLOCK_ROWS):
        rows = slice(start, min(start + _BLOCK_ROWS, len(states)))
        means = parameters.response_means(states[rows])[:, items]
        yield rows, np.stack([means, means**2, means**3])
