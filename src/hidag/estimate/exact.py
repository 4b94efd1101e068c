"""Rows against all latent states, listed: in blocks, posteriors never kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

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
        return cls.from_tables(*parameters.tables(features), probabilities, gappy)

    @classmethod
    def from_tables(
        cls, theta: Array, partition: Array, probabilities: Array, gappy: NDArray[np.intp]
    ) -> StateScores:
        """Return the scores from natural parameters (D, S) and log partitions (J, S)."""
        full = np.ones(len(partition), dtype=bool)
        full[gappy] = False
        offset = log_probabilities(probabilities) - partition[full].sum(axis=0)
        return cls(np.vstack([theta, -partition[gappy], offset]))


def block_rows(n_states: int) -> int:
    """Return how many rows are scored at once: it depends on the number of states alone."""
    return int(np.clip(BLOCK_CELLS // n_states, 16, 2048))


def unnormalised(
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
    mass = np.einsum("is->i", joint)
    return joint, 1.0 / mass, top + np.log(mass)


def exponents_are_safe(scores: StateScores, data: WorkingData) -> bool:
    """Return whether the largest exponent of every row is sure to be in ``SAFE_EXPONENTS``.

    It is no further from the largest offset (the last row of the weights, for the column of ones)
    than all other columns together can take it.
    """
    reach = float((data.largest * np.abs(scores.weights).max(axis=1))[:-1].sum())
    offset = float(scores.weights[-1].max())
    return SAFE_EXPONENTS[0] <= offset - reach and offset + reach <= SAFE_EXPONENTS[1]


def iterate_posteriors(
    scores: StateScores, data: WorkingData
) -> Iterator[tuple[slice, Array, Array]]:
    """Yield row ranges with their posteriors (rows, S) and log marginals (rows,)."""
    step = block_rows(scores.n_states)
    safe = exponents_are_safe(scores, data)
    for start in range(0, data.n_samples, step):
        rows = slice(start, min(start + step, data.n_samples))
        posterior, factor, marginal = unnormalised(scores, data.extended[rows], safe=safe)
        posterior *= factor[:, None]
        yield rows, posterior, marginal
