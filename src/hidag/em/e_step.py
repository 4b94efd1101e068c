"""The exact E-step: statistics expected under the current estimate, and its log-likelihood.

Rows meet halves of the latents where that is possible (`hidag.em.block_e_step`), else all joint
states, listed (`hidag.em.e_step`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hidag.em.block_e_step import SMALLEST_MASS, Halves, concentrated, halves_of
from hidag.em.design_data import WorkingData
from hidag.em.statistics import Statistics
from hidag.measurement.parameters import MeasurementParameters

# --- Rows against all latent states, listed: in blocks, posteriors never kept

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


# --- Sums over rows of what they say about the latents' states: three ways to have them

#: Rows are summed in this many lanes, always, so that sums have the same bits for any threads.
N_LANES = 4


@dataclass(frozen=True)
class Rows:
    """Some rows of a table.

    Attributes
    ----------
    extended : ndarray, shape (n, D + M + 1)
    weights : ndarray, shape (n,), or None
        How many rows each counts for; None when each counts for one.
    """

    extended: Array
    weights: Array | None

    @classmethod
    def of(cls, data: WorkingData, chosen: NDArray[np.bool_]) -> Rows:
        """Return the chosen rows of a table; all of them are not copied."""
        if chosen.all():
            return cls(data.extended, data.weights)
        return cls(data.extended[chosen], None if data.weights is None else data.weights[chosen])

    @classmethod
    def joined(cls, parts: list[Rows]) -> Rows:
        """Return all rows of several parts."""
        weights = [part.weights for part in parts if part.weights is not None]
        return cls(
            np.concatenate([part.extended for part in parts]),
            np.concatenate(weights) if weights else None,
        )

    def __len__(self) -> int:
        return len(self.extended)

    def __getitem__(self, rows: slice | NDArray[np.bool_]) -> Rows:
        return Rows(self.extended[rows], None if self.weights is None else self.weights[rows])

    @property
    def counted(self) -> Array:
        """How many rows each counts for, shape (n,)."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def lane(self, lane: int, n_rows: int) -> Iterator[Rows]:
        """Yield every fourth block of so many rows."""
        for start in range(lane * n_rows, len(self), N_LANES * n_rows):
            yield self[start : start + n_rows]


@dataclass
class RowSums:
    """Sums over a lane of rows.

    Attributes
    ----------
    by_place : ndarray, shape (m, S)
        Sums of m columns by state, by place in the split where there are halves.
    products : ndarray, shape (d, 1 + T)
        Sums of other columns times a one and the terms, those of the first half first.
    total : float
        Sum of log marginals.
    lost : list of Rows
        Rows that lost their digits and are not in the sums.
    """

    by_place: Array
    products: Array = field(default_factory=lambda: np.zeros((0, 0)))
    total: float = 0.0
    lost: list[Rows] = field(default_factory=list)

    def __iadd__(self, other: RowSums) -> Self:
        self.by_place += other.by_place
        self.products += other.products
        self.total += other.total
        self.lost += other.lost
        return self


def sum_lanes(lane_sums: Callable[[int], RowSums], n_threads: int) -> RowSums:
    """Return the sums over all lanes, added in their order."""
    lanes = range(N_LANES)
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            parts = list(pool.map(lane_sums, lanes))
    else:
        parts = [lane_sums(lane) for lane in lanes]
    sums = parts[0]
    for more in parts[1:]:
        sums += more
    return sums


def list_states(rows: Rows, lane: int, scores: StateScores, *, safe: bool, first: int) -> RowSums:
    """Return a lane's sums of extended columns from the first that is wanted on, states listed."""
    sums = RowSums(np.zeros((rows.extended.shape[1] - first, scores.n_states)))
    for block in rows.lane(lane, block_rows(scores.n_states)):
        posterior, factor, marginal = unnormalised(scores, block.extended, safe=safe)
        if block.weights is not None:
            factor, marginal = factor * block.weights, marginal * block.weights
        # Scaling the few columns of the data is cheaper than normalising the posterior.
        sums.by_place += (block.extended[:, first:] * factor[:, None]).T @ posterior
        sums.total += float(marginal.sum())
    return sums


def meet_halves(rows: Rows, lane: int, halves: Halves, *, states_only: bool) -> RowSums:
    """Return a lane's counts of states and products of additive columns.

    ``states_only`` says that products are not wanted. Nothing is between the halves.
    """
    n_adding = 0 if states_only else len(halves.additive)
    products = np.zeros((n_adding, 1 + len(halves.term_order)))
    sums = RowSums(np.zeros((1, halves.weights.size)), products)
    for block in rows.lane(lane, halves.n_rows):
        meeting = halves.meet(block.extended)
        if meeting.mass.min() < SMALLEST_MASS:
            kept = meeting.mass >= SMALLEST_MASS
            sums.lost.append(block[~kept])
            block = block[kept]
            meeting = halves.meet(block.extended)
        counted = block.counted
        factor = counted / meeting.mass
        sums.by_place += meeting.counts(factor)
        sums.total += float(meeting.marginal @ counted)
        if not states_only:
            x = halves.adding(block.extended)
            products[:, 0] += counted @ x
            products[:, 1:] += x.T @ meeting.term_means(halves, factor)
    return sums


def multiply_halves_out(
    rows: Rows, lane: int, halves: Halves, columns: NDArray[np.intp]
) -> RowSums:
    """Return a lane's sums of the columns that are wanted, shape (m,), by place of the states."""
    n_states = halves.weights.size
    n_rows = block_rows(n_states)
    sums = RowSums(np.zeros((len(columns), n_states)))
    # Made once: the memory of large arrays that come and go is asked for again each time.
    joint, product = np.empty((n_rows, n_states)), np.empty_like(sums.by_place)
    for block in rows.lane(lane, n_rows):
        mass, marginal = halves.multiply_out(block.extended, joint)
        if mass.min() < SMALLEST_MASS:
            kept = mass >= SMALLEST_MASS
            sums.lost.append(block[~kept])
            block = block[kept]
            mass, marginal = halves.multiply_out(block.extended, joint)
        factor = block.counted / mass
        scaled = block.extended[:, columns] * factor[:, None]
        np.matmul(scaled.T, joint[: len(block)], out=product)
        sums.by_place += product
        sums.total += float(marginal @ block.counted)
    return sums


# ---

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
