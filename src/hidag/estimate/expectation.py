"""The exact E-step: statistics expected under the current estimate, and its log-likelihood.

Rows meet halves of the latents where that is possible (`hidag.estimate.halves`), else all joint
states, listed (`hidag.estimate.exact`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.exact import (
    StateScores,
    block_rows,
    exponents_are_safe,
    log_probabilities,
    unnormalised,
)
from hidag.estimate.halves import SMALLEST_MASS, Halves, concentrated, halves_of
from hidag.estimate.statistics import Statistics
from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

#: Rows are summed in this many lanes, always, so that sums have the same bits for any threads.
N_LANES = 4


@dataclass
class _Sums:
    """Sums over a lane of rows.

    Attributes
    ----------
    listed : ndarray, shape (D + M + 1 - first, S)
        Sums of extended rows by state, over the rows whose states were listed.
    products : ndarray, shape (D, 1 + T)
        Sums of the items' columns times a one and the terms, over the other rows.
    counts : ndarray, shape (A, B)
        Sums of their posteriors, before the states' common weights.
    total : float
        Sum of log marginals.
    """

    listed: Array
    products: Array
    counts: Array
    total: float = 0.0

    def __iadd__(self, other: _Sums) -> Self:
        self.listed += other.listed
        self.products += other.products
        self.counts += other.counts
        self.total += other.total
        return self


@dataclass(frozen=True)
class _Pass:
    """One pass over the table: all that the lanes share.

    Attributes
    ----------
    tables : tuple of ndarray, shapes (D, S) and (J, S)
        Natural parameters and log partitions by state.
    probabilities : ndarray, shape (S,)
    halves : Halves or None
        None where the states of every row are listed.
    data : WorkingData
    states_only : bool
        Whether sums of the items' columns are not wanted.
    """

    tables: tuple[Array, Array]
    probabilities: Array
    halves: Halves | None
    data: WorkingData
    states_only: bool

    @cached_property
    def scores(self) -> StateScores:
        """What listed rows are multiplied with; made when the first of them comes."""
        return StateScores.from_tables(*self.tables, self.probabilities, self.data.gappy)

    @cached_property
    def safe(self) -> bool:
        """Whether no listed row needs a shift before exponentials are taken."""
        return exponents_are_safe(self.scores, self.data)

    @property
    def first(self) -> int:
        """The first column of extended rows whose sums are wanted."""
        return self.data.extended.shape[1] - 1 if self.states_only else 0

    def lane(self, lane: int) -> _Sums:
        """Return the sums over every fourth block of rows."""
        halves, data, n_states = self.halves, self.data, len(self.probabilities)
        sums = _Sums(
            np.zeros((data.extended.shape[1] - self.first, n_states)),
            np.zeros((0, 0)),
            np.zeros((0, 0)),
        )
        step = block_rows(n_states)
        if halves is not None:
            step = halves.n_rows
            sums.products = np.zeros((data.columns.n_columns, 1 + halves.slopes.shape[1]))
            sums.counts = np.zeros(halves.weights.shape)
        for start in range(lane * step, data.n_samples, N_LANES * step):
            rows = slice(start, start + step)
            if halves is None:
                self._list(data.extended[rows], _part(data.weights, rows), sums)
            else:
                self._halve(rows, halves, sums)
        return sums

    def _list(self, rows: Array, weights: Array | None, sums: _Sums) -> None:
        """Add rows whose states are listed."""
        posterior, factor, marginal = unnormalised(self.scores, rows, safe=self.safe)
        if weights is not None:
            factor, marginal = factor * weights, marginal * weights
        # Scaling the few columns of the data is cheaper than normalising the posterior.
        sums.listed += (rows[:, self.first :] * factor[:, None]).T @ posterior
        sums.total += float(marginal.sum())

    def _halve(self, rows: slice, halves: Halves, sums: _Sums) -> None:
        """Add rows against halves of the latents; those with missing cells are listed."""
        data = self.data
        extended, weights = data.extended[rows], _part(data.weights, rows)
        if len(data.gappy):
            extended, weights = self._list_others(
                np.asarray(data.gaps[rows].all(axis=1)), extended, weights, sums
            )
        x = extended[:, : data.columns.n_columns]
        meeting = halves.meet(x)
        if len(x) and meeting.mass.min() < SMALLEST_MASS:
            extended, weights = self._list_others(
                meeting.mass >= SMALLEST_MASS, extended, weights, sums
            )
            x = extended[:, : data.columns.n_columns]
            meeting = halves.meet(x)
        counted = np.ones(len(x)) if weights is None else weights
        factor = counted / meeting.mass
        sums.counts += meeting.counts(factor)
        if not self.states_only:
            sums.products[:, 0] += counted @ x
            sums.products[:, 1:] += x.T @ meeting.term_means(halves, factor)
        sums.total += float((meeting.marginal * counted).sum())

    def _list_others(
        self, kept: NDArray[np.bool_], rows: Array, weights: Array | None, sums: _Sums
    ) -> tuple[Array, Array | None]:
        """Return the rows that are kept, after adding the others with their states listed."""
        if kept.all():
            return rows, weights
        step = block_rows(len(self.probabilities))
        for start in range(0, int((~kept).sum()), step):
            others = np.flatnonzero(~kept)[start : start + step]
            self._list(rows[others], None if weights is None else weights[others], sums)
        return rows[kept], None if weights is None else weights[kept]


def _part(weights: Array | None, rows: slice) -> Array | None:
    return None if weights is None else weights[rows]


def _pass(
    parameters: MeasurementParameters,
    probabilities: Array,
    data: WorkingData,
    features: Array,
    *,
    states_only: bool,
    n_threads: int,
) -> tuple[Statistics, float]:
    """Return statistics, lanes added in their order, and the log-likelihood."""
    tables = parameters.tables(features)
    halves = halves_of(parameters, log_probabilities(probabilities), features, tables[1])
    work = _Pass(tables, probabilities, halves, data, states_only)
    lanes = range(N_LANES)
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            parts = list(pool.map(work.lane, lanes))
    else:
        parts = [work.lane(lane) for lane in lanes]
    sums = parts[0]
    for more in parts[1:]:
        sums += more
    count = sums.listed[-1]
    sum_x, gap_count = (
        sums.listed[: data.columns.n_columns],
        sums.listed[data.columns.n_columns : -1],
    )
    if halves is not None:
        by_halves = (sums.counts * halves.weights).ravel()
        count = count + by_halves
        if not states_only:
            terms = parameters.terms
            sum_x = sum_x + concentrated(sums.products, terms, len(probabilities))
            gap_count = gap_count + by_halves
    return Statistics(count, sum_x, gap_count), sums.total + data.base(parameters.dispersion)


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
    return _pass(parameters, probabilities, data, features, states_only=False, n_threads=n_threads)


def expect_states(
    parameters: MeasurementParameters,
    probabilities: Array,
    data: WorkingData,
    features: Array,
    *,
    n_threads: int = 1,
) -> tuple[Array, float]:
    """Return expected counts of states (S,) and the log-likelihood: all that a law needs."""
    statistics, log_likelihood = _pass(
        parameters, probabilities, data, features, states_only=True, n_threads=n_threads
    )
    return statistics.count, log_likelihood
