"""The exact E-step by halves: rows meet half of the latents at a time.

Let a and b be the states of the first and the second half of the latents. The log density of a row
and a joint state is

    log f(x, z) = u(a) + v(b) + w(s, t) + offset(a, b),    z = (a, b).

Items whose natural parameter is a multiple of the predictor, with main effects only, *add up*: they
have a part in u and one in v. Other items have a table over the states of their latents; it is in u
or in v if these are all in one half, and otherwise in w, a table over the states s and t of the
border: those latents of either half that such items have (`hidag.em.block_e_step`). Missing cells
take log partitions out of a row's density: these are tables like any other. Only the offset (log
prior less the log partitions that all rows have) knows both halves in full, and it is the same for
all rows. So sums over the S states are matrix products with one S-sized matrix: about 3 N S
multiplications instead of 2 N S for each of the D columns of the table, and exponentials of the
small tables only instead of N S.

Sums of the columns of items that add up come out as products with the terms, which is all that such
families ask of them; `concentrated` gives them back as sums by state. Other items need sums by
state, and for these the rows' joint densities are multiplied out, as they are where there is a
border: N S multiplications more, and those of the sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.kernels.sufficient_statistics import multiply_out
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms

# --- Which latents make up the two halves that rows are met with

Integers = NDArray[np.int64]

#: What an exponential costs, in multiplications.
EXPONENTIAL = 4


@dataclass(frozen=True)
class Split:
    """The latents in two halves, and their states.

    An item that does not add up is *between* the halves when it has latents in both. The latents of
    such items are the border: they come first in the first half and last in the second.

    Attributes
    ----------
    first, second : tuple of int
        Latents of each half, A and B joint states.
    between : ndarray of int64, shape (C, D)
        Numbers of joint states, by states of the border in the first and in the second half; other
        latents are at their lowest level. Shape (1, 1) where nothing is between.
    order : ndarray of int64, shape (A B,)
        Number of the joint state that stands at each place (a, b).
    of_first, of_second : ndarray of int64, shape (A,) and (B,)
        Numbers of the states in which the other half is at its lowest.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    between: Integers
    order: Integers
    of_first: Integers
    of_second: Integers

    @property
    def has_border(self) -> bool:
        """Whether anything is between the halves."""
        return self.between.size > 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """States of the first half's border, of its other latents, and of the second half."""
        n_border = len(self.between)
        return n_border, len(self.of_first) // n_border, len(self.of_second)

    @classmethod
    def of(cls, levels: tuple[int, ...], first: tuple[int, ...], border: frozenset[int]) -> Split:
        """Return the split with these latents first, and the latents of the border."""
        second = tuple(k for k in range(len(levels)) if k not in first)
        parts = [
            [k for k in first if k in border],
            [k for k in first if k not in border],
            [k for k in second if k not in border],
            [k for k in second if k in border],
        ]
        numbers = np.arange(prod(levels), dtype=np.int64).reshape(levels)
        sizes = [prod(levels[k] for k in part) for part in parts]
        by_parts = numbers.transpose([k for part in parts for k in part]).reshape(sizes)
        return cls(
            (*parts[0], *parts[1]),
            (*parts[2], *parts[3]),
            np.ascontiguousarray(by_parts[:, 0, 0, :]),
            by_parts.ravel(),
            by_parts[:, :, 0, 0].ravel(),
            by_parts[0, 0].ravel(),
        )


@lru_cache(maxsize=16)
def split_of(levels: tuple[int, ...], together: tuple[int, ...]) -> Split | None:
    """Return the split that costs least, or None where listing all joint states costs less.

    Parameters
    ----------
    levels : tuple of int, length K
    together : tuple of int
        Sets of latents on which some item depends without adding up, as sums of powers of two.
    """
    n_latents, n_states = len(levels), prod(levels)
    coupled = [latents for latents in sorted(set(together)) if latents.bit_count() > 1]
    if n_latents < 2:
        return None
    if not coupled:
        cuts = range(1, n_latents)
        cut = min(cuts, key=lambda cut: prod(levels[:cut]) + prod(levels[cut:]))
        return Split.of(levels, tuple(range(cut)), frozenset())
    every = (1 << n_latents) - 1
    first = np.arange(1, every, dtype=np.int64)
    border = np.zeros_like(first)
    for latents in coupled:
        inside, outside = first & latents, ~first & latents
        border |= np.where((inside > 0) & (outside > 0), latents, 0)
    sizes = _sizes(levels)
    n_second, n_between = sizes[every - first], sizes[border]
    n_outer = sizes[border & first]
    spread = np.where(border > 0, n_outer * n_second, 0)
    cost = EXPONENTIAL * (sizes[first] + n_second + n_between) + spread
    best = int(cost.argmin())
    if cost[best] >= EXPONENTIAL * n_states:
        return None
    return Split.of(levels, _members(int(first[best])), frozenset(_members(int(border[best]))))


def _sizes(levels: tuple[int, ...]) -> Integers:
    """Return the number of joint states of every set of latents, shape (2^K,)."""
    out = np.ones(1, dtype=np.int64)
    for m in levels:
        out = np.concatenate([out, m * out])
    return out


def _members(latents: int) -> tuple[int, ...]:
    return tuple(k for k in range(latents.bit_length()) if latents >> k & 1)


# --- Rows against the states of half of the latents: see :mod:`hidag.em.block_e_step`

Array = NDArray[np.float64]
IndexArray = NDArray[np.intp]

#: Exponents of a part that cannot be larger than this, either way, need no shift: exponentials of
#: three such parts have a product within the range of numbers.
BOUNDED = 150.0


@dataclass(frozen=True)
class Part:
    """What rows are multiplied with to meet the states of some of the latents.

    Attributes
    ----------
    terms : ndarray, shape (A, T')
        Values of these latents' terms: what items that add up have.
    columns : ndarray of int, shape (d,)
        Columns of extended rows that have a table.
    table : ndarray, shape (d, A)
        What a unit of each adds to the log density, less the middle of its range.
    bounded : bool
        Whether no row's exponents can be beyond ``BOUNDED``.
    """

    terms: Array
    columns: IndexArray
    table: Array
    bounded: bool

    def densities(self, rows: Array, pull: Array) -> tuple[Array, Array]:
        """Return densities up to a factor for each row, (n, A), and the factors' logarithms.

        ``rows`` are extended ones, ``pull`` (n, T') is what makes the terms more or less likely.
        """
        if len(self.columns) == 0:
            exponents = pull @ self.terms.T
        else:
            exponents = rows[:, self.columns] @ self.table
            if self.terms.shape[1]:
                exponents += pull @ self.terms.T
        if self.bounded:
            return np.exp(exponents, out=exponents), np.zeros(1)
        top = exponents.max(axis=1)
        exponents -= top[:, None]
        return np.exp(exponents, out=exponents), top


@dataclass(frozen=True)
class Densities:
    """Rows against the states of either half, whatever the law is.

    Attributes
    ----------
    left, right : ndarray, shape (n, A) and (n, B)
        Densities up to factors.
    log_factor : ndarray, shape (n,) or (1,)
        Logarithms of the factors of both.
    log_level : ndarray, shape (n,)
        Logarithms of what a row has in any state.
    """

    left: Array
    right: Array
    log_factor: Array
    log_level: Array

    def __getitem__(self, rows: NDArray[np.bool_]) -> Densities:
        factor = self.log_factor if len(self.log_factor) == 1 else self.log_factor[rows]
        return Densities(self.left[rows], self.right[rows], factor, self.log_level[rows])


# ---

Indices = NDArray[np.intp]

#: Rows of a block times states of both halves: about this many numbers stay in the cache.
BLOCK_CELLS = 1 << 16
#: Rows whose mass, in units of the largest conceivable, is below this have lost digits.
SMALLEST_MASS = 1e-200


@dataclass(frozen=True)
class Halves:
    """What rows are multiplied with.

    Attributes
    ----------
    split : Split
        The halves, with A and B states.
    additive : ndarray of int, shape (d,)
        Columns of items that add up.
    tabled : ndarray of int
        Columns of extended rows that have tables.
    slopes : ndarray, shape (d, T)
        What a unit of an additive column adds to the log density for each term that holds.
    term_order : ndarray of int, shape (T,)
        The terms as the slopes have them: those of the first half first.
    level : ndarray, shape (D + M + 1,)
        What a unit of an extended row's column adds in any state.
    first, second, between : Part
    common : ndarray, shape (S,)
        By state, the sum of the log partitions that all rows have.
    weights : ndarray, shape (A, B)
        Exponential of the offset, at most 1.
    top : float
        Logarithm of what the weights were divided by.
    """

    split: Split
    additive: Indices
    tabled: Indices
    slopes: Array
    term_order: Indices
    level: Array
    first: Part
    second: Part
    between: Part
    common: Array
    weights: Array
    top: float

    def under(self, log_law: Array) -> Halves:
        """Return the halves of the same items under another law, its logarithms (S,) given."""
        weights, top = offset_weights(self.split, log_law, self.common)
        return replace(self, weights=weights, top=top)

    @property
    def n_rows(self) -> int:
        """How many rows are taken at once."""
        return int(np.clip(BLOCK_CELLS // sum(self.weights.shape), 64, 512))

    def meet(self, rows: Array) -> Meeting:
        """Return extended rows (n, D + M + 1) against all states; nothing is between the halves."""
        return self.meet_again(self.densities(rows))

    def meet_again(self, known: Densities) -> Meeting:
        """Return rows against all states whose densities are known."""
        through = known.left * (known.right @ self.weights.T)
        mass = through.sum(axis=1)
        marginal = _logarithms(mass) + self._log_factor(known)
        return Meeting(known.left, known.right, through, mass, marginal)

    def multiply_out(self, rows: Array, out: Array) -> tuple[Array, Array]:
        """Return rows' densities with all latents summed out (n,), and their true logarithms.

        The first n rows of ``out``, with S columns, are filled with joint densities over weights;
        states stand in the places that the split gives them.
        """
        known = self.densities(rows)
        left, right, top = known.left, known.right, self._log_factor(known)
        n_border, n_rest, n_second = self.split.shape
        between = np.ones((len(rows), 1))
        if self.split.has_border:
            between, more = self.between.densities(rows, rows[:, :0])
            top = top + more
        joint = out[: len(rows)]
        multiply_out(
            left.reshape(len(rows), n_border, n_rest),
            right,
            between.reshape(len(rows), *self.split.between.shape),
            joint.reshape(len(rows), n_border, n_rest, n_second),
        )
        mass = joint @ self.weights.ravel()
        return mass, _logarithms(mass) + top

    def densities(self, rows: Array) -> Densities:
        """Return extended rows (n, D + M + 1) against the states of either half."""
        pull = self.adding(rows) @ self.slopes
        n_first, n_second = self.first.terms.shape[1], self.second.terms.shape[1]
        left, top = self.first.densities(rows, pull[:, :n_first])
        right, more = self.second.densities(rows, pull[:, n_first : n_first + n_second])
        return Densities(left, right, top + more, rows @ self.level)

    def _log_factor(self, known: Densities) -> Array:
        """Return the logarithms of all that densities and weights were divided by, shape (n,)."""
        return known.log_factor + self.top + known.log_level

    def adding(self, rows: Array) -> Array:
        """Return the columns of items that add up, shape (n, d)."""
        n_adding = len(self.additive)
        if n_adding and self.additive[-1] == n_adding - 1:
            # They are in ascending order: these are the first columns, and need no copy.
            return rows[:, :n_adding]
        return rows[:, self.additive]

    def by_state(self, sums: Array) -> Array:
        """Return sums by place of the split, (m, S), times the weights, by number of the state."""
        out = np.empty_like(sums)
        out[:, self.split.order] = sums * self.weights.ravel()
        return out


@dataclass(frozen=True)
class Meeting:
    """Rows against states.

    Attributes
    ----------
    left, right : ndarray, shape (n, A) and (n, B)
        Densities up to factors, by state of each half.
    through : ndarray, shape (n, A)
        Joint densities with the second half summed out.
    mass : ndarray, shape (n,)
        Densities with all latents summed out, in the same units.
    marginal : ndarray, shape (n,)
        Their logarithms in true units.
    """

    left: Array
    right: Array
    through: Array
    mass: Array
    marginal: Array

    def counts(self, factor: Array) -> Array:
        """Return sums of posteriors by place over weights, (S,), for ``factor`` / mass (n,)."""
        return np.asarray((self.left * factor[:, None]).T @ self.right).ravel()

    def term_means(self, halves: Halves, factor: Array) -> Array:
        """Return the terms' posterior means times what is counted, (n, T), first half first."""
        back = self.right * (self.left @ halves.weights)
        means = np.hstack([self.through @ halves.first.terms, back @ halves.second.terms])
        means *= factor[:, None]
        return means

    def second_moments(self, halves: Halves) -> Array:
        """Return posterior means of products of two of a one and the terms, (n, 1 + T, 1 + T).

        The terms of the first half come first, as they do by number where all items add up.
        """
        n_rows, n_first = self.left.shape
        first, second = halves.first.terms, halves.second.terms
        through = self.through / self.mass[:, None]
        back = self.right * (self.left @ halves.weights)
        back /= self.mass[:, None]
        # Each term of the second half in turn: where it holds, what is left of the weights.
        held = second[:, :, None] * halves.weights.T[:, None, :]
        met = (self.right @ held.reshape(len(second), -1)).reshape(n_rows, -1, n_first)
        met *= (self.left / self.mass[:, None])[:, None, :]
        across = (met.reshape(-1, n_first) @ first).reshape(n_rows, second.shape[1], -1)
        size, cut = 1 + len(halves.term_order), 1 + first.shape[1]
        out = np.empty((n_rows, size, size))
        out[:, 0, 0] = 1.0
        out[:, 0, 1:cut] = out[:, 1:cut, 0] = through @ first
        out[:, 0, cut:] = out[:, cut:, 0] = back @ second
        out[:, 1:cut, 1:cut] = _products(through, first)
        out[:, cut:, cut:] = _products(back, second)
        out[:, cut:, 1:cut] = across
        out[:, 1:cut, cut:] = across.transpose(0, 2, 1)
        return out


def offset_weights(split: Split, log_law: Array, common: Array) -> tuple[Array, float]:
    """Return exponentials of the offset, (A, B) and at most 1, and the log of their divisor.

    Parameters
    ----------
    split : Split
    log_law, common : ndarray, shape (S,)
        By state, the log probability and the sum of the log partitions that all rows have.
    """
    offset = (log_law - common)[split.order]
    top = float(offset.max())
    return np.exp(offset - top).reshape(len(split.of_first), -1), top


def _products(densities: Array, terms: Array) -> Array:
    """Return sums of densities (n, A) times products of two terms (A, T), shape (n, T, T)."""
    n_terms = terms.shape[1]
    both = (terms[:, :, None] * terms[:, None, :]).reshape(len(terms), -1)
    return np.asarray(densities @ both).reshape(-1, n_terms, n_terms)


def _logarithms(mass: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(mass)


def concentrated(products: Array, terms: Terms, n_states: int) -> Array:
    """Return sums by state, (D, S), with the given products with a one and the terms (D, 1 + T).

    They are as if latents had left their lowest level one at a time. Whatever is linear in the
    terms cannot tell these sums from the true ones.
    """
    strides = np.cumprod([1, *terms.levels[:0:-1]], dtype=np.int64)[::-1]
    out = np.zeros((len(products), n_states))
    out[:, 0] = products[:, 0]
    for term, (latent, level) in enumerate(
        zip(terms.main_latents, terms.main_levels, strict=True), start=1
    ):
        out[:, level * strides[latent]] += products[:, term]
        # Whoever is at this level has passed those below, and counts there no more.
        out[:, (level - 1) * strides[latent]] -= products[:, term]
    return out


# --- Which columns of a table go with which half of the latents, and what rows are

#: With fewer states listing them costs next to nothing.
FEWEST_STATES = 32


def halves_of(
    parameters: MeasurementParameters,
    log_law: Array,
    features: Array,
    tables: tuple[Array, Array],
    data: WorkingData,
    *,
    gaps: bool,
) -> Halves | None:
    """Return the halves, or None where states are better listed.

    Parameters
    ----------
    parameters : MeasurementParameters
    log_law : ndarray, shape (S,)
        Logarithms of the states' probabilities.
    features : ndarray, shape (S, T)
        The terms' values in all joint states.
    tables : tuple of ndarray, shapes (D, S) and (J, S)
        Natural parameters of columns and log partitions of items there.
    data : WorkingData
        The rows are among these.
    gaps : bool
        Whether rows may have missing cells. Log partitions of items that have any then go with the
        columns that say whether a cell was observed.
    """
    terms, (theta, partition) = parameters.terms, tables
    if len(log_law) < FEWEST_STATES or prod(terms.levels) != len(log_law):
        return None
    column_item, n_columns = data.columns.item, data.columns.n_columns
    per_unit = _per_unit(parameters)
    adds_up = ~np.isnan(per_unit)
    tabled = np.flatnonzero(~adds_up[column_item])
    gappy = data.gappy if gaps else data.gappy[:0]
    owners = np.concatenate([column_item[tabled], gappy])
    sets = parameters.support[owners] @ (1 << np.arange(terms.n_latents))
    split = split_of(terms.levels, tuple(np.unique(sets).tolist()))
    if split is None:
        return None
    additive = np.flatnonzero(adds_up[column_item])
    items = column_item[additive]
    columns = np.concatenate([tabled, n_columns + np.arange(len(gappy))])
    level = np.zeros(data.extended.shape[1])
    level[additive] = (parameters.intercept * per_unit)[items]
    largest = data.largest
    in_first = np.isin(terms.main_latents, split.first)
    slopes = parameters.loadings[items, : terms.n_main] * per_unit[items, None]

    def part(
        states: NDArray[np.int64], of_terms: NDArray[np.intp], chosen: NDArray[np.bool_]
    ) -> Part:
        of_items = chosen[: len(tabled)]
        table = np.concatenate(
            [
                theta[tabled[of_items]][:, states],
                -partition[gappy[chosen[len(tabled) :]]][:, states],
            ]
        )
        middle = 0.5 * (table.max(axis=1) + table.min(axis=1))
        table -= middle[:, None]
        level[columns[chosen]] = middle
        # Where nothing adds up there are no terms to be looked at.
        use = of_terms if len(additive) else of_terms[:0]
        reach = np.abs(slopes[:, use]).sum(axis=1) @ largest[additive]
        reach += np.abs(table).max(axis=1, initial=0.0) @ largest[columns[chosen]]
        values = features[states][:, use]
        return Part(np.ascontiguousarray(values), columns[chosen], table, bool(reach <= BOUNDED))

    here, there = ((sets & sum(1 << k for k in half)) > 0 for half in (split.first, split.second))
    first = part(split.of_first, np.flatnonzero(in_first), ~there)
    second = part(split.of_second, np.flatnonzero(~in_first), there & ~here)
    between = part(split.between.ravel(), np.zeros(0, dtype=np.intp), here & there)
    everywhere = np.ones(len(partition), dtype=bool)
    everywhere[gappy] = False
    common = partition[everywhere].sum(axis=0)
    weights, top = offset_weights(split, log_law, common)
    order = np.concatenate([np.flatnonzero(in_first), np.flatnonzero(~in_first)])
    return Halves(
        split,
        additive,
        columns,
        slopes[:, order],
        order,
        level,
        first,
        second,
        between,
        common,
        weights,
        top,
    )


def _per_unit(parameters: MeasurementParameters) -> Array:
    """Return how much of the predictor a unit of an item's column brings, NaN if not so, (J,).

    An item adds up when its natural parameter is a multiple of a predictor that is a sum over
    latents.
    """
    out = np.full(parameters.n_items, np.nan)
    if parameters.terms.interactions:
        return out
    highest = parameters.intercept + np.maximum(parameters.loadings, 0.0).sum(axis=1)
    for family, items in parameters.groups():
        adds_up = items[highest[items] < family.canonical_below]
        if len(adds_up) == 0:
            continue
        auxiliary = parameters.auxiliary(family, adds_up)[:, None]
        out[adds_up] = family.slopes(np.zeros((len(adds_up), 1)), auxiliary)[0][:, 0]
    return out
