"""The E-step for many laws with the items held: what rows say of the states is kept.

Where graphs are compared by the observed data's likelihood, a law is fitted to each of dozens with
the same items. Rows against the states of either half of the latents (`hidag.estimate.halves`) are
then the same in all E-steps; only the weights that join the halves change with the law. What is
kept is of size N (A + B) for halves with A and B states, never N A B.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.exact import log_probabilities
from hidag.estimate.expectation import expect_states, rows_by_gaps
from hidag.estimate.half_densities import Densities
from hidag.estimate.halves import SMALLEST_MASS, Halves
from hidag.estimate.halving import halves_of
from hidag.estimate.row_sums import N_LANES, Rows, RowSums, sum_lanes
from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

#: Numbers that are kept at most (32 MB); with more, E-steps begin from the rows each time.
MOST_KEPT = 1 << 22


@dataclass(frozen=True)
class _MetRows:
    """Rows that have met the states of either half.

    Attributes
    ----------
    halves : Halves
        Under any law.
    lanes : list of list of (counted, Densities)
        By lane, blocks of rows: how many rows each counts for, shape (n,), and its densities.
    """

    halves: Halves
    lanes: list[list[tuple[Array, Densities]]]

    @classmethod
    def of(cls, rows: Rows, halves: Halves) -> _MetRows:
        """Return rows and what they say, in blocks and lanes as other E-steps have them."""
        return cls(
            halves,
            [
                [
                    (block.counted, halves.densities(block.extended))
                    for block in rows.lane(lane, halves.n_rows)
                ]
                for lane in range(N_LANES)
            ],
        )


@dataclass(frozen=True)
class HeldItems:
    """Items that are held, and a table.

    Attributes
    ----------
    parameters : MeasurementParameters
        On the working scale.
    data : WorkingData
    features : ndarray, shape (S, T)
        The terms' values in all joint states.
    n_threads : int
        Changes the time, never the bits.
    """

    parameters: MeasurementParameters
    data: WorkingData
    features: Array
    n_threads: int = 1

    def expect_states(self, law: Array) -> tuple[Array, float]:
        """Return expected counts of states (S,) and the log-likelihood under a law (S,)."""
        if self._met is None:
            return self._from_the_rows(law)
        log_law = log_probabilities(law)
        counts, total = np.zeros(len(law)), 0.0
        for met in self._met:
            halves = met.halves.under(log_law)
            sums = sum_lanes(partial(_lane_counts, met, halves), self.n_threads)
            if np.isnan(sums.total):
                return self._from_the_rows(law)
            counts += halves.by_state(sums.by_place)[0]
            total += sums.total
        return counts, total + self.data.base(self.parameters.dispersion)

    def _from_the_rows(self, law: Array) -> tuple[Array, float]:
        return expect_states(
            self.parameters, law, self.data, self.features, n_threads=self.n_threads
        )

    @cached_property
    def _met(self) -> list[_MetRows] | None:
        """All rows, or None where states are listed, something is between halves, or all is much.

        Under an even law: halves do not depend on it.
        """
        n_states = len(self.features)
        tables = self.parameters.tables(self.features)
        even = np.full(n_states, -np.log(n_states))
        groups = []
        for rows, complete in rows_by_gaps(self.data):
            halves = halves_of(
                self.parameters, even, self.features, tables, self.data, gaps=not complete
            )
            if halves is None or halves.split.has_border:
                return None
            groups.append((rows, halves))
        if sum(len(rows) * sum(halves.weights.shape) for rows, halves in groups) > MOST_KEPT:
            return None
        return [_MetRows.of(rows, halves) for rows, halves in groups]


def _lane_counts(met: _MetRows, halves: Halves, lane: int) -> RowSums:
    """Return a lane's counts of states by place; a total of NaN if rows lost their digits."""
    sums = RowSums(np.zeros((1, halves.weights.size)))
    for counted, densities in met.lanes[lane]:
        meeting = halves.meet_again(densities)
        if meeting.mass.min() < SMALLEST_MASS:
            sums.total = np.nan
            break
        sums.by_place += meeting.counts(counted / meeting.mass)
        sums.total += float(meeting.marginal @ counted)
    return sums


__all__ = ["MOST_KEPT", "HeldItems"]
