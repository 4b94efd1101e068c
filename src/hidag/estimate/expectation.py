"""The exact E-step: statistics expected under the current estimate, and its log-likelihood.

Rows meet halves of the latents where that is possible (`hidag.estimate.halves`), else all joint
states, listed (`hidag.estimate.exact`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.exact import StateScores, exponents_are_safe, log_probabilities
from hidag.estimate.halves import Halves, concentrated
from hidag.estimate.halving import halves_of
from hidag.estimate.row_sums import (
    Rows,
    RowSums,
    list_states,
    meet_halves,
    multiply_halves_out,
    sum_lanes,
)
from hidag.estimate.statistics import Statistics
from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

#: Fewer rows without missing cells than this go with the others: what it takes to treat them apart
#: is more than what it saves.
FEWEST_COMPLETE = 500


def rows_by_gaps(data: WorkingData) -> Iterator[tuple[Rows, bool]]:
    """Yield rows without missing cells and True, then those with some and False."""
    whole = data.complete
    if not whole.all() and whole.sum() < FEWEST_COMPLETE:
        whole = np.zeros_like(whole)
    for complete in (True, False):
        chosen = whole == complete
        if chosen.any():
            yield Rows.of(data, chosen), complete


@dataclass
class _Pass:
    """One pass over the table.

    Attributes
    ----------
    parameters : MeasurementParameters
    probabilities : ndarray, shape (S,)
    data : WorkingData
    features : ndarray, shape (S, T)
    states_only : bool
        Whether sums of the items' columns are not wanted.
    n_threads : int
    by_state : ndarray, shape (D + M + 1, S), or (1, S) for states only
        Sums of extended rows by state, so far; zero for what is in ``products``.
    products : ndarray, shape (D, 1 + T)
        Sums of the items' columns times a one and the terms.
    total : float
        Sum of log marginals.
    """

    parameters: MeasurementParameters
    probabilities: Array
    data: WorkingData
    features: Array
    states_only: bool
    n_threads: int
    by_state: Array = field(init=False)
    products: Array = field(init=False)
    total: float = 0.0

    def __post_init__(self) -> None:
        n_wanted = self.data.extended.shape[1] - self.first
        self.by_state = np.zeros((n_wanted, len(self.probabilities)))
        self.products = np.zeros((self.data.columns.n_columns, 1 + self.parameters.terms.n_terms))

    @property
    def first(self) -> int:
        """The first column of extended rows whose sums are wanted."""
        return self.data.extended.shape[1] - 1 if self.states_only else 0

    @property
    def n_columns(self) -> int:
        """Number of the items' columns whose sums are wanted."""
        return 0 if self.states_only else self.data.columns.n_columns

    @cached_property
    def tables(self) -> tuple[Array, Array]:
        """Natural parameters (D, S) and log partitions (J, S)."""
        return self.parameters.tables(self.features)

    @cached_property
    def log_law(self) -> Array:
        """Logarithms of the probabilities, shape (S,)."""
        return log_probabilities(self.probabilities)

    def run(self) -> None:
        """Add all rows, those without missing cells first."""
        for rows, complete in rows_by_gaps(self.data):
            self._add(rows, complete)

    def _add(self, rows: Rows, complete: bool) -> None:
        """Add rows without missing cells, or rows with some."""
        halves = halves_of(
            self.parameters, self.log_law, self.features, self.tables, self.data, gaps=not complete
        )
        if halves is None:
            self._add_listed(rows)
        elif halves.split.has_border or (len(halves.tabled) and not self.states_only):
            self._add_multiplied_out(rows, halves, complete)
        else:
            self._add_met(rows, halves)

    def _add_listed(self, rows: Rows) -> None:
        """Add rows whose states are listed."""
        scores = StateScores.from_tables(*self.tables, self.probabilities, self.data.gappy)
        safe = exponents_are_safe(scores, self.data)
        sums = self._sum(partial(list_states, rows, scores=scores, safe=safe, first=self.first))
        self.by_state += sums.by_place

    def _add_met(self, rows: Rows, halves: Halves) -> None:
        """Add rows by halves of the latents whose joint densities nothing asks for."""
        sums = self._sum(partial(meet_halves, rows, halves=halves, states_only=self.states_only))
        # Where sums of columns are wanted these rows observed every item.
        self.by_state[self.n_columns :] += halves.by_state(sums.by_place)
        if not self.states_only:
            order = np.concatenate([[0], 1 + halves.term_order])
            self.products[np.ix_(halves.additive, order)] += sums.products

    def _add_multiplied_out(self, rows: Rows, halves: Halves, complete: bool) -> None:
        """Add rows by halves of the latents through their joint densities."""
        columns = np.arange(self.first, rows.extended.shape[1])
        if complete:
            # Columns that say whether an item was observed have the sums of the last.
            columns = np.append(columns[: self.n_columns], columns[-1])
        sums = self._sum(partial(multiply_halves_out, rows, halves=halves, columns=columns))
        by_state = halves.by_state(sums.by_place)
        self.by_state[: self.n_columns] += by_state[: self.n_columns]
        self.by_state[self.n_columns :] += by_state[self.n_columns :]

    def _sum(self, lane_sums: Callable[[int], RowSums]) -> RowSums:
        """Return the sums over all lanes; lost rows are listed."""
        sums = sum_lanes(lane_sums, self.n_threads)
        self.total += sums.total
        if sums.lost:
            self._add_listed(Rows.joined(sums.lost))
        return sums

    def statistics(self) -> tuple[Statistics, float]:
        """Return expected statistics and the log-likelihood."""
        sum_x, gap_count = self.by_state[: self.n_columns], self.by_state[self.n_columns : -1]
        if self.products.any():
            n_states = len(self.probabilities)
            sum_x = sum_x + concentrated(self.products, self.parameters.terms, n_states)
        value = self.total + self.data.base(self.parameters.dispersion)
        return Statistics(self.by_state[-1], sum_x, gap_count), value


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
    work = _Pass(parameters, probabilities, data, features, False, n_threads)
    work.run()
    return work.statistics()


def expect_states(
    parameters: MeasurementParameters,
    probabilities: Array,
    data: WorkingData,
    features: Array,
    *,
    n_threads: int = 1,
) -> tuple[Array, float]:
    """Return expected counts of states (S,) and the log-likelihood: all that a law needs."""
    work = _Pass(parameters, probabilities, data, features, True, n_threads)
    work.run()
    statistics, log_likelihood = work.statistics()
    return statistics.count, log_likelihood
