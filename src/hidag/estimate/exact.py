"""The exact E-step: all latent states listed, rows in blocks, posteriors never kept."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.statistics import Statistics
from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

#: Rows are summed in this many lanes, always, so that sums have the same bits for any threads.
N_LANES = 4
#: A block's posterior has about this many numbers: it stays in the processor's cache.
BLOCK_CELLS = 1 << 17
#: Rows whose largest exponent is in this range need no shift before exponentials are taken.
SAFE_EXPONENTS = (-300.0, 600.0)
#: A state without mass keeps this log probability, so that sums stay finite.
LOG_OF_NOTHING = -1e4


def log_probabilities(probabilities: Array) -> Array:
    """Return logarithms, with a finite stand-in for states without mass."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(probabilities), LOG_OF_NOTHING)


@dataclass(frozen=True)
class StateScores:
    """Everything needed for ``log f(x, z)`` of a row as one matrix product.

    Attributes
    ----------
    weights : ndarray, shape (D + M + 1, S)
        What a row of ``WorkingData.extended`` is multiplied with: natural parameters, minus the log
        partitions of the M items with missing cells, and for the column of ones the log prior minus
        the log partitions of all other items.
    """

    weights: Array

    @property
    def n_states(self) -> int:
        """Number of latent states, S."""
        return int(self.weights.shape[1])

    @classmethod
    def of(
        cls,
        parameters: MeasurementParameters,
        probabilities: Array,
        features: Array,
        gappy: NDArray[np.intp],
    ) -> StateScores:
        """Return the scores of all states under the parameters and the law."""
        theta, partition = parameters.tables(features)
        full = np.ones(parameters.n_items, dtype=bool)
        full[gappy] = False
        offset = log_probabilities(probabilities) - partition[full].sum(axis=0)
        return cls(np.vstack([theta, -partition[gappy], offset]))


def block_rows(n_states: int) -> int:
    """Return how many rows are scored at once: it depends on the number of states alone."""
    return int(np.clip(BLOCK_CELLS // n_states, 16, 2048))


def _unnormalised(
    scores: StateScores, rows: Array, *, safe: bool = False
) -> tuple[Array, Array, Array]:
    """Return posteriors up to a factor (rows, S), the factors and the log marginals (rows,).

    ``safe`` says that no row can have a largest exponent outside ``SAFE_EXPONENTS``.
    """
    joint = rows @ scores.weights
    top = np.zeros(1) if safe else joint.max(axis=1)
    if top.min() < SAFE_EXPONENTS[0] or top.max() > SAFE_EXPONENTS[1]:
        joint -= top[:, None]
    else:
        # Nothing can overflow or vanish: one pass over the block less.
        top = np.zeros(1)
    np.exp(joint, out=joint)
    mass = joint.sum(axis=1)
    return joint, 1.0 / mass, top + np.log(mass)


def _safe(scores: StateScores, data: WorkingData) -> bool:
    """Return whether the largest exponent of every row is sure to be in ``SAFE_EXPONENTS``.

    It is no further from the largest offset (the last row of the weights, for the column of ones)
    than all other columns together can take it.
    """
    largest = np.abs(data.extended).max(axis=0, initial=0.0)
    reach = float((largest * np.abs(scores.weights).max(axis=1))[:-1].sum())
    offset = float(scores.weights[-1].max())
    return SAFE_EXPONENTS[0] <= offset - reach and offset + reach <= SAFE_EXPONENTS[1]


def iterate_posteriors(
    scores: StateScores, data: WorkingData
) -> Iterator[tuple[slice, Array, Array]]:
    """Yield row ranges with their posteriors (rows, S) and log marginals (rows,)."""
    step = block_rows(scores.n_states)
    safe = _safe(scores, data)
    for start in range(0, data.n_samples, step):
        rows = slice(start, min(start + step, data.n_samples))
        posterior, factor, marginal = _unnormalised(scores, data.extended[rows], safe=safe)
        posterior *= factor[:, None]
        yield rows, posterior, marginal


def _lane(
    scores: StateScores, data: WorkingData, first: int, safe: bool, lane: int
) -> tuple[Array, float]:
    """Return the lane's sums of extended rows by state and its sum of log marginals.

    Columns before ``first`` are left out of the sums; ``safe`` is for the exponents.
    """
    step = block_rows(scores.n_states)
    sums = np.zeros((len(scores.weights) - first, scores.n_states))
    total = 0.0
    for start in range(lane * step, data.n_samples, N_LANES * step):
        rows = data.extended[start : start + step]
        posterior, factor, marginal = _unnormalised(scores, rows, safe=safe)
        if data.weights is not None:
            counts = data.weights[start : start + step]
            factor, marginal = factor * counts, marginal * counts
        # Scaling the few columns of the data is cheaper than normalising the posterior.
        sums += (rows[:, first:] * factor[:, None]).T @ posterior
        total += float(marginal.sum())
    return sums, total


def _sums(
    scores: StateScores, data: WorkingData, first: int, n_threads: int
) -> tuple[Array, float]:
    """Return sums of extended rows by state, lanes added in their order, and of log marginals."""
    lanes = range(N_LANES)
    safe = _safe(scores, data)
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            parts = list(pool.map(lambda lane: _lane(scores, data, first, safe, lane), lanes))
    else:
        parts = [_lane(scores, data, first, safe, lane) for lane in lanes]
    sums, total = parts[0]
    for more, value in parts[1:]:
        sums += more
        total += value
    return sums, total


def expect(
    parameters: MeasurementParameters,
    probabilities: Array,
    data: WorkingData,
    features: Array,
    *,
    n_threads: int = 1,
) -> tuple[Statistics, float]:
    """Return expected statistics and the observed-data log-likelihood (exact E-step).

    Parameters
    ----------
    parameters : MeasurementParameters
    probabilities : ndarray, shape (S,)
    data : WorkingData
    features : ndarray, shape (S, K)
        Latent states as predictors.
    n_threads : int
        Changes the time, never the bits.
    """
    scores = StateScores.of(parameters, probabilities, features, data.gappy)
    sums, total = _sums(scores, data, 0, n_threads)
    n_columns = data.columns.n_columns
    statistics = Statistics(sums[-1], sums[:n_columns], sums[n_columns:-1])
    return statistics, total + data.base(parameters.dispersion)


def expect_states(
    parameters: MeasurementParameters,
    probabilities: Array,
    data: WorkingData,
    features: Array,
    *,
    n_threads: int = 1,
) -> tuple[Array, float]:
    """Return expected counts of states (S,) and the log-likelihood: all that a law needs."""
    scores = StateScores.of(parameters, probabilities, features, data.gappy)
    sums, total = _sums(scores, data, len(scores.weights) - 1, n_threads)
    return sums[0], total + data.base(parameters.dispersion)
