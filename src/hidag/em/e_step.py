"""Exact E-step: expected sufficient statistics and log-likelihood, states listed or in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.block_e_step import BlockModel, factorise_states, sums_from_products
from hidag.em.design_data import WorkingData
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class SufficientStatistics:
    """Complete-data sums over rows: additive over blocks of rows, averaged by SAEM."""

    def _combine(self, other: Self, function: Callable[[Array, Array], Array]) -> Self:
        names = [f.name for f in fields(self)]
        return type(self)(*(function(getattr(self, n), getattr(other, n)) for n in names))

    def __add__(self, other: Self) -> Self:
        return self._combine(other, np.add)

    def blend(self, fresh: Self, step: float) -> Self:
        """Return the Robbins-Monro average ``(1 - step) * self + step * fresh``."""
        return self._combine(fresh, lambda old, new: (1.0 - step) * old + step * new)


@dataclass(frozen=True)
class Statistics(SufficientStatistics):
    """Expected or sampled complete-data sums by joint state."""

    count: Array  # (S,): rows in each latent state
    sum_x: Array  # (D, S): sums of the items' columns over observed cells
    # (M, S): rows that observed the item, for the M items with missing cells
    incomplete_count: Array

    def item_counts(self, items: NDArray[np.intp], incomplete: NDArray[np.intp]) -> Array:
        """Return the rows that observed each item by state, shape (len(items), S)."""
        out = np.broadcast_to(self.count, (len(items), len(self.count)))
        if len(incomplete) == 0:
            return out
        out = out.copy()
        place = {int(j): m for m, j in enumerate(incomplete)}
        for row, j in enumerate(items):
            if int(j) in place:
                out[row] = self.incomplete_count[place[int(j)]]
        return out


def map_lanes(work: Callable[[int], T], n_threads: int) -> list[T]:
    """Return the results of all lanes in their order, computed on up to ``n_threads`` threads."""
    lanes = range(CONFIG.e_step.n_lanes)
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(work, lanes))
    return [work(lane) for lane in lanes]


def log_probabilities(probabilities: Array) -> Array:
    """Return logarithms, with a finite value for zero."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(probabilities), CONFIG.e_step.log_zero)


@dataclass(frozen=True)
class StateScores:
    """Coefficients that give ``log f(x, z)`` of a row for all states as one matrix product."""

    # (D + M + 1, S): multiplied with rows of ``WorkingData.extended``: natural parameters;
    # minus the log partitions of the M incomplete items; for the column of ones the log prior
    # minus the log partitions of all other items
    weights: Array

    @property
    def n_states(self) -> int:
        """Number of latent states, S."""
        return int(self.weights.shape[1])

    @classmethod
    def of(
        cls, tables: tuple[Array, Array], probabilities: Array, incomplete: NDArray[np.intp]
    ) -> StateScores:
        """Return the coefficients from natural parameters (D, S) and log partitions (J, S)."""
        theta, partition = tables
        complete = np.ones(len(partition), dtype=bool)
        complete[incomplete] = False
        offset = log_probabilities(probabilities) - partition[complete].sum(axis=0)
        return cls(np.vstack([theta, -partition[incomplete], offset]))


def block_rows(n_states: int) -> int:
    """Return the number of rows to process at once; it depends on the number of states only."""
    return int(
        np.clip(CONFIG.e_step.listed_block_cells // n_states, *CONFIG.e_step.listed_block_rows)
    )


def unnormalised_posterior(
    scores: StateScores, rows: Array, *, safe: bool = False
) -> tuple[Array, Array, Array]:
    """Return posteriors up to factors (n, S), factors, log marginals; ``safe``: no shift needed."""
    lower, upper = CONFIG.e_step.safe_exponents
    joint = rows @ scores.weights
    top = np.zeros(1) if safe else joint.max(axis=1)
    if top.min() < lower or top.max() > upper:
        joint -= top[:, None]
    else:
        # Without a shift one pass over the block is saved.
        top = np.zeros(1)
    np.exp(joint, out=joint)
    mass = np.einsum("is->i", joint)
    return joint, 1.0 / mass, top + np.log(mass)


def exponents_are_safe(scores: StateScores, data: WorkingData) -> bool:
    """Return whether no row's largest exponent can leave ``safe_exponents``."""
    lower, upper = CONFIG.e_step.safe_exponents
    reach = float((data.largest * np.abs(scores.weights).max(axis=1))[:-1].sum())
    offset = float(scores.weights[-1].max())
    return lower <= offset - reach and offset + reach <= upper


def iterate_posteriors(
    scores: StateScores, data: WorkingData
) -> Iterator[tuple[slice, Array, Array]]:
    """Yield row ranges with their posteriors (n, S) and log marginals (n,)."""
    step = block_rows(scores.n_states)
    safe = exponents_are_safe(scores, data)
    for start in range(0, data.n_samples, step):
        rows = slice(start, min(start + step, data.n_samples))
        posterior, factor, marginal = unnormalised_posterior(scores, data.extended[rows], safe=safe)
        posterior *= factor[:, None]
        yield rows, posterior, marginal


@dataclass(frozen=True)
class Rows:
    """Some rows of the design data: extended columns (n, D + M + 1) and weights (n,) or None."""

    extended: Array
    weights: Array | None

    def __len__(self) -> int:
        return len(self.extended)

    def __getitem__(self, rows: slice | NDArray[np.bool_]) -> Rows:
        return Rows(self.extended[rows], None if self.weights is None else self.weights[rows])

    @property
    def row_weights(self) -> Array:
        """Row weights, ones if there are none, shape (n,)."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def lane(self, lane: int, n_rows: int) -> Iterator[Rows]:
        """Yield the blocks of ``n_rows`` rows that belong to a lane."""
        n_lanes = CONFIG.e_step.n_lanes
        for start in range(lane * n_rows, len(self), n_lanes * n_rows):
            yield self[start : start + n_rows]


@dataclass
class RowSums:
    """Sums over a lane of rows."""

    # (m, S): sums of m columns; with blocks, in the order of the split and before weighting
    by_state: Array
    # (d, 1 + T): sums of additive columns times 1 and the terms, those of the first block first
    products: Array = field(default_factory=lambda: np.zeros((0, 0)))
    total: float = 0.0  # sum of log marginals
    # rows that are not in the sums because their block densities underflowed
    underflowed: list[Rows] = field(default_factory=list)

    def __iadd__(self, other: RowSums) -> Self:
        self.by_state += other.by_state
        self.products += other.products
        self.total += other.total
        self.underflowed += other.underflowed
        return self


def sum_lanes(lane_sums: Callable[[int], RowSums], n_threads: int) -> RowSums:
    """Return the sums over all lanes, added in their order."""
    sums, *others = map_lanes(lane_sums, n_threads)
    for more in others:
        sums += more
    return sums


def _sum_listed(rows: Rows, lane: int, scores: StateScores, *, safe: bool, first: int) -> RowSums:
    """Return a lane's sums of the extended columns from ``first`` on, states listed."""
    sums = RowSums(np.zeros((rows.extended.shape[1] - first, scores.n_states)))
    for block in rows.lane(lane, block_rows(scores.n_states)):
        posterior, factor, marginal = unnormalised_posterior(scores, block.extended, safe=safe)
        if block.weights is not None:
            factor, marginal = factor * block.weights, marginal * block.weights
        # Scaling the few data columns is cheaper than normalising the posterior.
        sums.by_state += (block.extended[:, first:] * factor[:, None]).T @ posterior
        sums.total += float(marginal.sum())
    return sums


def _sum_blocks(rows: Rows, lane: int, model: BlockModel, *, states_only: bool) -> RowSums:
    """Return a lane's counts of states, and products of additive columns, without boundary."""
    n_additive = 0 if states_only else len(model.additive)
    products = np.zeros((n_additive, 1 + len(model.term_order)))
    sums = RowSums(np.zeros((1, model.weights.size)), products)
    for block in rows.lane(lane, model.n_rows):
        posterior = model.posterior(block.extended)
        valid = posterior.mass >= CONFIG.e_step.smallest_mass
        if not valid.all():
            sums.underflowed.append(block[~valid])
            block = block[valid]
            posterior = model.posterior(block.extended)
        weights = block.row_weights
        factor = weights / posterior.mass
        sums.by_state += posterior.counts(factor)
        sums.total += float(posterior.log_marginal @ weights)
        if not states_only:
            x = model.additive_columns(block.extended)
            products[:, 0] += weights @ x
            products[:, 1:] += x.T @ posterior.term_means(model, factor)
    return sums


def _sum_joint(rows: Rows, lane: int, model: BlockModel, columns: NDArray[np.intp]) -> RowSums:
    """Return a lane's sums of some extended columns (m,) from the joint densities of the blocks."""
    n_states = model.weights.size
    n_rows = block_rows(n_states)
    sums = RowSums(np.zeros((len(columns), n_states)))
    # Allocated once: allocating large arrays in every pass is slow.
    joint, product = np.empty((n_rows, n_states)), np.empty_like(sums.by_state)
    for block in rows.lane(lane, n_rows):
        mass, marginal = model.joint_densities(block.extended, joint)
        valid = mass >= CONFIG.e_step.smallest_mass
        if not valid.all():
            sums.underflowed.append(block[~valid])
            block = block[valid]
            mass, marginal = model.joint_densities(block.extended, joint)
        factor = block.row_weights / mass
        scaled = block.extended[:, columns] * factor[:, None]
        np.matmul(scaled.T, joint[: len(block)], out=product)
        sums.by_state += product
        sums.total += float(marginal @ block.row_weights)
    return sums


def rows_by_completeness(data: WorkingData) -> Iterator[tuple[Rows, bool]]:
    """Yield rows without missing cells and True, then rows with missing cells and False."""
    every = Rows(data.extended, data.weights)
    complete = data.complete
    if not complete.all() and complete.sum() < CONFIG.e_step.min_complete_rows:
        complete = np.zeros_like(complete)
    for is_complete in (True, False):
        chosen = complete == is_complete
        if chosen.any():
            yield every if chosen.all() else every[chosen], is_complete


@dataclass
class _Pass:
    """One pass over the rows, which accumulates sums."""

    parameters: MeasurementParameters
    probabilities: Array
    data: WorkingData
    features: Array
    states_only: bool  # whether only the counts of states are needed
    n_threads: int
    # (D + M + 1, S): sums of extended columns; zero for columns that are in ``products``
    by_state: Array = field(init=False)
    # (D, 1 + T): sums of the items' columns times 1 and the terms
    products: Array = field(init=False)
    total: float = 0.0  # sum of log marginals

    def __post_init__(self) -> None:
        n_extended, n_columns = self.data.extended.shape[1], self.data.columns.n_columns
        #: First extended column and number of item columns whose sums are needed.
        self.first = n_extended - 1 if self.states_only else 0
        self.n_columns = 0 if self.states_only else n_columns
        self.by_state = np.zeros((n_extended - self.first, len(self.probabilities)))
        self.products = np.zeros((n_columns, 1 + self.parameters.terms.n_terms))

    @cached_property
    def tables(self) -> tuple[Array, Array]:
        """Natural parameters (D, S) and log partitions (J, S)."""
        return self.parameters.tables(self.features)

    def run(self) -> tuple[Statistics, float]:
        """Return the expected statistics and the log-likelihood."""
        log_law = log_probabilities(self.probabilities)
        for rows, complete in rows_by_completeness(self.data):
            model = factorise_states(
                self.parameters, log_law, self.features, self.tables, self.data, not complete
            )
            if model is None:
                self._add_listed(rows)
            elif model.split.has_boundary or (len(model.tabled) and not self.states_only):
                self._add_joint(rows, model, complete)
            else:
                self._add_blocks(rows, model)
        sum_x = self.by_state[: self.n_columns]
        if self.products.any():
            n_states = len(self.probabilities)
            sum_x = sum_x + sums_from_products(self.products, self.parameters.terms, n_states)
        value = self.total + self.data.base(self.parameters.dispersion)
        return Statistics(self.by_state[-1], sum_x, self.by_state[self.n_columns : -1]), value

    def _add_listed(self, rows: Rows) -> None:
        scores = StateScores.of(self.tables, self.probabilities, self.data.incomplete)
        safe = exponents_are_safe(scores, self.data)
        sums = self._sum(partial(_sum_listed, rows, scores=scores, safe=safe, first=self.first))
        self.by_state += sums.by_state

    def _add_blocks(self, rows: Rows, model: BlockModel) -> None:
        sums = self._sum(partial(_sum_blocks, rows, model=model, states_only=self.states_only))
        # If sums of columns are needed, these rows have no missing cells.
        self.by_state[self.n_columns :] += model.by_state(sums.by_state)
        if not self.states_only:
            order = np.concatenate([[0], 1 + model.term_order])
            self.products[np.ix_(model.additive, order)] += sums.products

    def _add_joint(self, rows: Rows, model: BlockModel, complete: bool) -> None:
        columns = np.arange(self.first, rows.extended.shape[1])
        if complete:
            # Indicators of observed cells have the sums of the column of ones.
            columns = np.append(columns[: self.n_columns], columns[-1])
        sums = self._sum(partial(_sum_joint, rows, model=model, columns=columns))
        by_state = model.by_state(sums.by_state)
        self.by_state[: self.n_columns] += by_state[: self.n_columns]
        self.by_state[self.n_columns :] += by_state[self.n_columns :]

    def _sum(self, lane_sums: Callable[[int], RowSums]) -> RowSums:
        """Return the sums over all lanes; rows that underflowed are added over listed states."""
        sums = sum_lanes(lane_sums, self.n_threads)
        self.total += sums.total
        if sums.underflowed:
            weights = [rows.weights for rows in sums.underflowed if rows.weights is not None]
            extended = np.concatenate([rows.extended for rows in sums.underflowed])
            self._add_listed(Rows(extended, np.concatenate(weights) if weights else None))
        return sums


def run_e_step(
    parameters: MeasurementParameters,
    probabilities: Array,
    data: WorkingData,
    features: Array,
    *,
    n_threads: int = 1,
) -> tuple[Statistics, float]:
    """Return expected sufficient statistics and the observed-data log-likelihood.

    Parameters are on the working scale; ``features`` (S, T) are the terms' values in all joint
    states. Threads change the running time, never the bits.
    """
    return _Pass(parameters, probabilities, data, features, False, n_threads).run()


def run_law_e_step(
    parameters: MeasurementParameters,
    probabilities: Array,
    data: WorkingData,
    features: Array,
    *,
    n_threads: int = 1,
) -> tuple[Array, float]:
    """Return expected counts of the joint states, (S,), and the log-likelihood (`run_e_step`)."""
    statistics, value = _Pass(parameters, probabilities, data, features, True, n_threads).run()
    return statistics.count, value
