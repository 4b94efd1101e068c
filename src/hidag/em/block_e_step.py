"""Exact E-step that factorises the state space into two blocks of latents.

Let a and b be the joint states of the latents in the first and in the second block. The log density
of a row and a joint state is

    log f(x, z) = u(a) + v(b) + w(s, t) + offset(a, b),    z = (a, b).

*Additive* items have a natural parameter that is a multiple of a linear predictor with main effects
only: they contribute to u and to v. Other items, and log partitions of missing cells, have tables
over their latents: in u or v if these are in one block, else in w, over the states s and t of the
*boundary* latents. Only the offset (log prior less the log partitions that all rows share) depends
on both blocks in full, and it is the same for all rows: sums over the S states are products with
one matrix, and exponentials are of the small tables only.

Sums of additive columns come out as products with the terms (see `sums_from_products`). Other items
need the joint densities of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.kernels.sufficient_statistics import multiply_out
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class BlockSplit:
    """Latents in two blocks; boundary latents come first in the first and last in the second."""

    # Latents of each block, with A and B joint states.
    first: tuple[int, ...]
    second: tuple[int, ...]
    # (C, D): joint states by the boundary latents' states in the first and in the second block;
    # other latents are at level 0. Shape (1, 1) without boundary latents.
    cross: Integers
    order: Integers  # (A B,): joint state at each position (a, b)
    # (A,) and (B,): joint states in which the other block is at level 0
    first_states: Integers
    second_states: Integers

    @property
    def has_boundary(self) -> bool:
        """Whether some item depends on both blocks without being additive."""
        return self.cross.size > 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of states of the first block's boundary, of its other latents, of the second."""
        n_boundary = len(self.cross)
        return n_boundary, len(self.first_states) // n_boundary, len(self.second_states)

    @classmethod
    def of(
        cls, levels: tuple[int, ...], first: tuple[int, ...], boundary: frozenset[int]
    ) -> BlockSplit:
        """Return the split with the given first block and boundary latents."""
        second = tuple(k for k in range(len(levels)) if k not in first)
        pairs = (first, True), (first, False), (second, False), (second, True)
        parts = [[k for k in block if (k in boundary) == inside] for block, inside in pairs]
        numbers = np.arange(prod(levels), dtype=np.int64).reshape(levels)
        sizes = [prod(levels[k] for k in part) for part in parts]
        by_parts = numbers.transpose([k for part in parts for k in part]).reshape(sizes)
        cross = np.ascontiguousarray(by_parts[:, 0, 0, :])
        own = by_parts[:, :, 0, 0].ravel(), by_parts[0, 0].ravel()
        blocks = (*parts[0], *parts[1]), (*parts[2], *parts[3])
        return cls(*blocks, cross, by_parts.ravel(), *own)


def choose_split(levels: tuple[int, ...], scopes: tuple[int, ...]) -> BlockSplit | None:
    """Return the cheapest split or None; ``scopes`` are bit sets of non-additive items' latents."""
    return _choose_split(levels, scopes, CONFIG.e_step.exponential_cost)


@lru_cache(maxsize=16)
def _choose_split(
    levels: tuple[int, ...], scopes: tuple[int, ...], exponential: int
) -> BlockSplit | None:
    n_latents, n_states = len(levels), prod(levels)
    coupled = [latents for latents in sorted(set(scopes)) if latents.bit_count() > 1]
    if n_latents < 2:
        return None
    if not coupled:
        cuts = range(1, n_latents)
        cut = min(cuts, key=lambda cut: prod(levels[:cut]) + prod(levels[cut:]))
        return BlockSplit.of(levels, tuple(range(cut)), frozenset())
    every = (1 << n_latents) - 1
    first = np.arange(1, every, dtype=np.int64)
    boundary = np.zeros_like(first)
    for latents in coupled:
        inside, outside = first & latents, ~first & latents
        boundary |= np.where((inside > 0) & (outside > 0), latents, 0)
    # Number of joint states of every set of latents, shape (2^K,).
    sizes = np.ones(1, dtype=np.int64)
    for m in levels:
        sizes = np.concatenate([sizes, m * sizes])
    n_second = sizes[every - first]
    spread = np.where(boundary > 0, sizes[boundary & first] * n_second, 0)
    cost = exponential * (sizes[first] + n_second + sizes[boundary]) + spread
    best = int(cost.argmin())
    if cost[best] >= exponential * n_states:
        return None
    return BlockSplit.of(
        levels, _members(int(first[best])), frozenset(_members(int(boundary[best])))
    )


def _members(latents: int) -> tuple[int, ...]:
    return tuple(k for k in range(latents.bit_length()) if latents >> k & 1)


@dataclass(frozen=True)
class BlockTable:
    """Log density contributions over the states of some of the latents."""

    terms: Array  # (A, T'): values of these latents' terms, for additive items
    columns: Indices  # (d,): columns of extended rows that have a table
    # (d, A): contribution of one unit of each column, centred at the middle of its range
    table: Array
    bounded: bool  # whether exponents of all rows are so small that they need no shift

    def densities(self, rows: Array, slopes: Array) -> tuple[Array, Array]:
        """Return densities of extended rows up to a factor, (n, A), and the factors' logarithms."""
        if len(self.columns) == 0:
            exponents = slopes @ self.terms.T
        else:
            exponents = rows[:, self.columns] @ self.table
            if self.terms.shape[1]:
                exponents += slopes @ self.terms.T
        if self.bounded:
            return np.exp(exponents, out=exponents), np.zeros(1)
        top = exponents.max(axis=1)
        exponents -= top[:, None]
        return np.exp(exponents, out=exponents), top


@dataclass(frozen=True)
class BlockDensities:
    """Densities of rows given the states of each block, for any latent distribution."""

    # (n, A) and (n, B), up to factors
    first: Array
    second: Array
    log_factor: Array  # (n,) or (1,): logarithms of the factors of both
    log_level: Array  # (n,): log density contributions that do not depend on the state


@dataclass(frozen=True)
class BlockModel:
    """Items and latent distribution of a block E-step."""

    split: BlockSplit
    additive: Indices  # (d,): columns of additive items
    tabled: Indices  # columns of extended rows that have tables
    slopes: Array  # (d, T): contribution of one unit of an additive column for each term that is 1
    # (T,): order of the terms in ``slopes``: those of the first block come first
    term_order: Indices
    level: Array  # (D + M + 1,): contribution of one unit of each extended column in any state
    first: BlockTable
    second: BlockTable
    cross: BlockTable
    common: Array  # (S,): sum of the log partitions that all rows share, by state
    weights: Array  # (A, B): exponential of the offset, at most 1
    top: float  # logarithm of the divisor of the weights

    def with_law(self, log_law: Array) -> BlockModel:
        """Return the same items with other log probabilities of the states, shape (S,)."""
        weights, top = _offset_weights(self.split, log_law, self.common)
        return replace(self, weights=weights, top=top)

    @property
    def n_rows(self) -> int:
        """Number of rows to process at once."""
        cells = CONFIG.e_step.block_cells // sum(self.weights.shape)
        return int(np.clip(cells, *CONFIG.e_step.block_rows))

    def posterior(self, rows: Array) -> BlockPosterior:
        """Return the posterior of extended rows (n, D + M + 1); without boundary latents."""
        return self.combine(self.densities(rows))

    def combine(self, densities: BlockDensities) -> BlockPosterior:
        """Return the posterior of rows whose block densities are known."""
        first_joint = densities.first * (densities.second @ self.weights.T)
        mass = first_joint.sum(axis=1)
        with np.errstate(divide="ignore"):
            log_marginal = np.log(mass) + self._log_factor(densities)
        return BlockPosterior(densities.first, densities.second, first_joint, mass, log_marginal)

    def joint_densities(self, rows: Array, out: Array) -> tuple[Array, Array]:
        """Return the rows' marginal densities up to factors, (n,), and their logarithms.

        The first n rows of ``out``, with S columns, receive the joint densities divided by the
        weights, with states in the order of the split.
        """
        densities = self.densities(rows)
        top = self._log_factor(densities)
        n_boundary, n_rest, n_second = self.split.shape
        cross = np.ones((len(rows), 1))
        if self.split.has_boundary:
            cross, more = self.cross.densities(rows, rows[:, :0])
            top = top + more
        joint = out[: len(rows)]
        first = densities.first.reshape(len(rows), n_boundary, n_rest)
        cross = cross.reshape(len(rows), *self.split.cross.shape)
        whole = joint.reshape(len(rows), n_boundary, n_rest, n_second)
        multiply_out(first, densities.second, cross, whole)
        mass = joint @ self.weights.ravel()
        with np.errstate(divide="ignore"):
            return mass, np.log(mass) + top

    def densities(self, rows: Array) -> BlockDensities:
        """Return densities of extended rows (n, D + M + 1) given the states of each block."""
        slopes = self.additive_columns(rows) @ self.slopes
        n_first, n_second = self.first.terms.shape[1], self.second.terms.shape[1]
        first, top = self.first.densities(rows, slopes[:, :n_first])
        second, more = self.second.densities(rows, slopes[:, n_first : n_first + n_second])
        return BlockDensities(first, second, top + more, rows @ self.level)

    def _log_factor(self, densities: BlockDensities) -> Array:
        """Return the logarithms of all divisors of densities and weights, shape (n,)."""
        return densities.log_factor + self.top + densities.log_level

    def additive_columns(self, rows: Array) -> Array:
        """Return the columns of additive items, shape (n, d)."""
        n_additive = len(self.additive)
        if n_additive and self.additive[-1] == n_additive - 1:
            # The indices ascend: these are the first columns, and a view suffices.
            return rows[:, :n_additive]
        return rows[:, self.additive]

    def by_state(self, sums: Array) -> Array:
        """Return sums in the order of the split, (m, S), times the weights, by joint state."""
        out = np.empty_like(sums)
        out[:, self.split.order] = sums * self.weights.ravel()
        return out


@dataclass(frozen=True)
class BlockPosterior:
    """Posterior of rows, factorised over the two blocks."""

    # (n, A) and (n, B): densities up to factors given the states of each block
    first: Array
    second: Array
    first_joint: Array  # (n, A): joint densities with the second block summed out
    mass: Array  # (n,): marginal densities in the same units
    log_marginal: Array  # (n,): log marginal densities, in true units

    def counts(self, factor: Array) -> Array:
        """Return sums over offset weights, (S,) in split order; ``factor`` is weight / mass."""
        return np.asarray((self.first * factor[:, None]).T @ self.second).ravel()

    def term_means(self, model: BlockModel, factor: Array) -> Array:
        """Return weighted posterior means of the terms, (n, T), first block first."""
        second_joint = self.second * (self.first @ model.weights)
        means = np.hstack([self.first_joint @ model.first.terms, second_joint @ model.second.terms])
        means *= factor[:, None]
        return means

    def second_moments(self, model: BlockModel) -> Array:
        """Return means of products of pairs of (1, terms), first block first, (n, 1 + T, 1 + T)."""
        n_rows, n_first = self.first.shape
        first, second = model.first.terms, model.second.terms
        first_joint = self.first_joint / self.mass[:, None]
        second_joint = self.second * (self.first @ model.weights)
        second_joint /= self.mass[:, None]
        # The offset weights restricted to the states in which each term of the second block is 1.
        restricted = second[:, :, None] * model.weights.T[:, None, :]
        joint = (self.second @ restricted.reshape(len(second), -1)).reshape(n_rows, -1, n_first)
        joint *= (self.first / self.mass[:, None])[:, None, :]
        across = (joint.reshape(-1, n_first) @ first).reshape(n_rows, second.shape[1], -1)
        size, cut = 1 + len(model.term_order), 1 + first.shape[1]
        out = np.empty((n_rows, size, size))
        out[:, 0, 0] = 1.0
        out[:, 0, 1:cut] = out[:, 1:cut, 0] = first_joint @ first
        out[:, 0, cut:] = out[:, cut:, 0] = second_joint @ second
        out[:, 1:cut, 1:cut] = _products(first_joint, first)
        out[:, cut:, cut:] = _products(second_joint, second)
        out[:, cut:, 1:cut] = across
        out[:, 1:cut, cut:] = across.transpose(0, 2, 1)
        return out


def _offset_weights(split: BlockSplit, log_law: Array, common: Array) -> tuple[Array, float]:
    """Return exponentials of the offset, (A, B) and at most 1, and the log of their divisor."""
    offset = (log_law - common)[split.order]
    top = float(offset.max())
    return np.exp(offset - top).reshape(len(split.first_states), -1), top


def _products(densities: Array, terms: Array) -> Array:
    """Return sums of densities (n, A) times products of two terms (A, T), shape (n, T, T)."""
    n_terms = terms.shape[1]
    both = (terms[:, :, None] * terms[:, None, :]).reshape(len(terms), -1)
    return np.asarray(densities @ both).reshape(-1, n_terms, n_terms)


def sums_from_products(products: Array, terms: Terms, n_states: int) -> Array:
    """Return sums by state, (D, S), whose products with (1, terms) are ``products`` (D, 1 + T).

    Mass is placed on states with one latent above level 0. An expression that is linear in the
    terms has the same value as with the true sums.
    """
    strides = np.cumprod([1, *terms.levels[:0:-1]], dtype=np.int64)[::-1]
    out = np.zeros((len(products), n_states))
    out[:, 0] = products[:, 0]
    for term, (latent, level) in enumerate(
        zip(terms.main_latents, terms.main_levels, strict=True), start=1
    ):
        # Terms are cumulative: mass at this level is part of the product of the level below. The
        # score of linear steps is 1 at the highest level.
        top = terms.levels[latent] - 1 if latent in terms.linear else level
        out[:, top * strides[latent]] += products[:, term]
        out[:, (0 if latent in terms.linear else level - 1) * strides[latent]] -= products[:, term]
    return out


def factorise_states(
    parameters: MeasurementParameters,
    log_law: Array,
    features: Array,
    tables: tuple[Array, Array],
    data: WorkingData,
    has_missing: bool,
) -> BlockModel | None:
    """Return the block model, or None where listing the joint states is faster.

    ``tables`` are natural parameters of columns (D, S) and log partitions of items (J, S); with
    missing cells those of incomplete items belong to the columns that indicate observed cells.
    """
    terms, (theta, partition) = parameters.terms, tables
    too_few = len(log_law) < CONFIG.e_step.min_states_for_blocks
    if too_few or prod(terms.levels) != len(log_law):
        return None
    column_item, n_columns = data.columns.item, data.columns.n_columns
    unit_slopes = _unit_slopes(parameters)
    is_additive = ~np.isnan(unit_slopes)
    tabled = np.flatnonzero(~is_additive[column_item])
    incomplete = data.incomplete if has_missing else data.incomplete[:0]
    owners = np.concatenate([column_item[tabled], incomplete])
    scopes = parameters.support[owners] @ (1 << np.arange(terms.n_latents))
    split = choose_split(terms.levels, tuple(np.unique(scopes).tolist()))
    if split is None:
        return None
    additive = np.flatnonzero(is_additive[column_item])
    items = column_item[additive]
    columns = np.concatenate([tabled, n_columns + np.arange(len(incomplete))])
    level = np.zeros(data.extended.shape[1])
    level[additive] = (parameters.intercept * unit_slopes)[items]
    largest = data.largest
    in_first = np.isin(terms.main_latents, split.first)
    slopes = parameters.loadings[items, : terms.n_main] * unit_slopes[items, None]

    def block_table(states: Integers, of_terms: Indices, chosen: NDArray[np.bool_]) -> BlockTable:
        of_items = chosen[: len(tabled)]
        removed = -partition[incomplete[chosen[len(tabled) :]]][:, states]
        table = np.concatenate([theta[tabled[of_items]][:, states], removed])
        middle = 0.5 * (table.max(axis=1) + table.min(axis=1))
        table -= middle[:, None]
        level[columns[chosen]] = middle
        # Without additive items no term is needed.
        use = of_terms if len(additive) else of_terms[:0]
        reach = np.abs(slopes[:, use]).sum(axis=1) @ largest[additive]
        reach += np.abs(table).max(axis=1, initial=0.0) @ largest[columns[chosen]]
        bounded = bool(reach <= CONFIG.e_step.largest_block_exponent)
        values = np.ascontiguousarray(features[states][:, use])
        return BlockTable(values, columns[chosen], table, bounded)

    here, there = (
        (scopes & sum(1 << k for k in block)) > 0 for block in (split.first, split.second)
    )
    first = block_table(split.first_states, np.flatnonzero(in_first), ~there)
    second = block_table(split.second_states, np.flatnonzero(~in_first), there & ~here)
    cross = block_table(split.cross.ravel(), np.zeros(0, dtype=np.intp), here & there)
    shared = np.ones(len(partition), dtype=bool)
    shared[incomplete] = False
    common = partition[shared].sum(axis=0)
    weights, top = _offset_weights(split, log_law, common)
    order = np.concatenate([np.flatnonzero(in_first), np.flatnonzero(~in_first)])
    of_terms, parts = (slopes[:, order], order), (first, second, cross)
    return BlockModel(split, additive, columns, *of_terms, level, *parts, common, weights, top)


def _unit_slopes(parameters: MeasurementParameters) -> Array:
    """Return the ratio of natural parameter and linear predictor, NaN if not additive, (J,)."""
    out = np.full(parameters.n_items, np.nan)
    if parameters.terms.interactions:
        return out
    highest = parameters.intercept + np.maximum(parameters.loadings, 0.0).sum(axis=1)
    for family, items in parameters.groups():
        additive = items[highest[items] < family.canonical_below]
        if len(additive) == 0:
            continue
        auxiliary = parameters.auxiliary(family, additive)[:, None]
        out[additive] = family.slopes(np.zeros((len(additive), 1)), auxiliary)[0][:, 0]
    return out
