"""Score test of overdispersion: do counts vary more, given the latents, than Poisson items?

A negative binomial with variance ``mu + a mu^2`` is Poisson at ``a = 0``, where the score of a
count is ``s = ((x - mu)^2 - x) / 2``. Given the latents and under the Poisson model it has mean
zero, variance ``mu^2 / 2`` and third moment ``mu^3 + mu^2 / 2``. Its expectation given the whole
row varies less, and less still with fitted parameters: a test by these moments is conservative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearson3

from hidag.config import CONFIG
from hidag.em.posterior import state_posteriors
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.families import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.network_em.posterior import sampled_states

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CountDispersion:
    """Variation of Poisson items given the latents."""

    items: NDArray[np.intp]  # (n,)
    # (n,): mean of ``(x - mu)^2`` over the mean of ``mu``: about 1 for a Poisson item, NaN
    # without observed cells
    ratio: Array
    p_value: Array  # (n,): one-sided p-value of the score test


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
    """Return dispersion ratios and score tests of all Poisson items, in a table (N, J).

    With ``sampled`` latents are drawn from the posterior, once per row, instead of summed out; by
    default if there are many joint states. This needs a network.
    """
    items = np.flatnonzero(
        [family_named(f).overdispersed_alternative is not None for f in parameters.families]
    )
    if not len(items):
        return CountDispersion(items, np.zeros(0), np.zeros(0))
    counts = np.ones(len(values)) if weights is None else weights
    if sampled is None:
        sampled = law.space.n_states > CONFIG.network_em.max_summed_states
    if sampled and isinstance(law, NetworkLaw):
        states = sampled_states(parameters, law, values, seed=seed, n_threads=n_threads)
        blocks = _sampled_powers(parameters, states, items)
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
        # A Pearson III distribution: the score is skewed when a few counts are large.
        p_value = pearson3.sf(score / np.sqrt(variance), skewness)
        return CountDispersion(items, squares / first, np.where(variance > 0, p_value, np.nan))


def _expected_powers(
    parameters: MeasurementParameters, law: LatentLaw, values: Array, items: NDArray[np.intp]
) -> Iterator[tuple[slice, Array]]:
    """Yield row ranges and posterior means of the first three powers of mu, (3, rows, n)."""
    means = parameters.response_means(law.space.states())[:, items]
    powers = np.hstack([means, means**2, means**3])
    for rows, posterior in state_posteriors(parameters, law, values):
        expected = (posterior @ powers).reshape(len(posterior), 3, len(items))
        yield rows, np.moveaxis(expected, 1, 0)


def _sampled_powers(
    parameters: MeasurementParameters, states: NDArray[np.integer], items: NDArray[np.intp]
) -> Iterator[tuple[slice, Array]]:
    """Yield row ranges and the first three powers of mu in the sampled states, (3, rows, n)."""
    n_rows = CONFIG.network_em.dispersion_block_rows
    for start in range(0, len(states), n_rows):
        rows = slice(start, min(start + n_rows, len(states)))
        means = parameters.response_means(states[rows])[:, items]
        yield rows, np.stack([means, means**2, means**3])
