"""The exact E-step by halves: rows meet half of the latents at a time.

Let a and b be the states of the first and the second half of the latents. The log density of a row
and a joint state is

    log f(x, z) = u(a) + v(b) + w(s, t) + offset(a, b),    z = (a, b).

Items whose natural parameter is a multiple of the predictor, with main effects only, *add up*: they
have a part in u and one in v. Other items have a table over the states of their latents; it is in u
or in v if these are all in one half, and otherwise in w, a table over the states s and t of the
border: those latents of either half that such items have (`hidag.estimate.split`). Missing cells
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

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.half_densities import Densities, Part
from hidag.estimate.split import Split
from hidag.kernels.state_products import multiply_out
from hidag.measurement import Terms

Array = NDArray[np.float64]
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
