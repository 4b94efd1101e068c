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
BLOCK_CELLS = 1 << 18
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
    theta : ndarray, shape (J, S)
    offset : ndarray, shape (S,)
        Log prior minus the log partitions of items without missing cells.
    gap_partition : ndarray, shape (M, S)
        Log partitions of the items with missing cells.
    """

    theta: Array
    offset: Array
    gap_partition: Array

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
        return cls(theta, offset, np.ascontiguousarray(partition[gappy]))


def block_rows(n_states: int) -> int:
    """Return how many rows are scored at once: it depends on the number of states alone."""
    return int(np.clip(BLOCK_CELLS // n_states, 16, 2048))


def _posterior(scores: StateScores, x: Array, gaps: Array) -> tuple[Array, Array]:
    """Return posteriors (rows, S) and log marginals (rows,) of a block of rows."""
    joint = x @ scores.theta
    if gaps.shape[1]:
        joint -= gaps @ scores.gap_partition
    joint += scores.offset
    top = joint.max(axis=1)
    joint -= top[:, None]
    np.exp(joint, out=joint)
    mass = joint.sum(axis=1)
    joint /= mass[:, None]
    return joint, top + np.log(mass)


def iterate_posteriors(
    scores: StateScores, data: WorkingData
) -> Iterator[tuple[slice, Array, Array]]:
    """Yield row ranges with their posteriors (rows, S) and log marginals (rows,)."""
    step = block_rows(scores.theta.shape[1])
    for start in range(0, data.n_samples, step):
        rows = slice(start, min(start + step, data.n_samples))
        yield rows, *_posterior(scores, data.x[rows], data.gaps[rows])


def _lane(scores: StateScores, data: WorkingData, lane: int) -> tuple[Statistics, float]:
    n_states = scores.theta.shape[1]
    step = block_rows(n_states)
    count = np.zeros(n_states)
    sum_x = np.zeros((data.n_items, n_states))
    gap_count = np.zeros((len(data.gappy), n_states))
    total = 0.0
    for start in range(lane * step, data.n_samples, N_LANES * step):
        rows = slice(start, min(start + step, data.n_samples))
        posterior, marginal = _posterior(scores, data.x[rows], data.gaps[rows])
        count += posterior.sum(axis=0)
        sum_x += data.x[rows].T @ posterior
        if len(data.gappy):
            gap_count += data.gaps[rows].T @ posterior
        total += float(marginal.sum())
    return Statistics(count, sum_x, gap_count), total


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
    lanes = range(N_LANES)
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            parts = list(pool.map(lambda lane: _lane(scores, data, lane), lanes))
    else:
        parts = [_lane(scores, data, lane) for lane in lanes]
    statistics, total = parts[0]
    for more, value in parts[1:]:
        statistics = statistics + more
        total += value
    return statistics, total + data.base(parameters.dispersion)
