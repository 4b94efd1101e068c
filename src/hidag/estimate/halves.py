"""The exact E-step where latents add up: rows meet half of the latents at a time.

With main effects and families whose natural parameter is a multiple of the predictor, the log
density of a complete row and a state is

    log f(x, z) = u(a) + v(b) + offset(a, b),    z = (a, b),

where a and b are the states of the first and the second half of the latents. Only the offset (log
prior less log partitions) knows both halves, and it is the same for all rows. So sums over the S
states are matrix products with one S-sized matrix: about 3 N S multiplications instead of 2 N S for
each of the D columns of the table, and N sqrt(S) exponentials instead of N S.

The sums of the items' columns come out as products with the terms, which is all that such families
ask of them; `concentrated` gives them back as sums by state.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from hidag.measurement import MeasurementParameters, Terms

Array = NDArray[np.float64]

#: With fewer states listing them costs next to nothing.
FEWEST_STATES = 32
#: Rows of a block times states of both halves: about this many numbers stay in the cache.
BLOCK_CELLS = 1 << 16
#: Rows whose mass, in units of the largest conceivable, is below this have lost digits.
SMALLEST_MASS = 1e-200


@dataclass(frozen=True)
class Halves:
    """What rows are multiplied with.

    Attributes
    ----------
    slopes : ndarray, shape (D, T)
        What a unit of a column adds to the log density for each term that holds.
    level : ndarray, shape (D,)
        What it adds in any state.
    first, second : ndarray, shape (A, T1) and (B, T2)
        Values of the terms of each half of the latents in its states; T1 + T2 = T.
    weights : ndarray, shape (A, B)
        Exponential of the offset, at most 1.
    top : float
        Logarithm of what the weights were divided by.
    """

    slopes: Array
    level: Array
    first: Array
    second: Array
    weights: Array
    top: float

    @property
    def n_rows(self) -> int:
        """How many rows are taken at once."""
        return int(np.clip(BLOCK_CELLS // sum(self.weights.shape), 64, 512))

    def meet(self, x: Array) -> Meeting:
        """Return complete rows, given by the items' columns (n, D), against all states."""
        pull = x @ self.slopes
        n_first = self.first.shape[1]
        left, top_left = _exponentials(pull[:, :n_first] @ self.first.T)
        right, top_right = _exponentials(pull[:, n_first:] @ self.second.T)
        through = left * (right @ self.weights.T)
        mass = through.sum(axis=1)
        with np.errstate(divide="ignore"):
            marginal = np.log(mass) + top_left + top_right + self.top + x @ self.level
        return Meeting(left, right, through, mass, marginal)


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
        """Return sums of posteriors by state over weights, (A, B), for ``factor`` / mass (n,)."""
        return (self.left * factor[:, None]).T @ self.right

    def term_means(self, halves: Halves, factor: Array) -> Array:
        """Return the terms' posterior means times what is counted, shape (n, T)."""
        back = self.right * (self.left @ halves.weights)
        means = np.hstack([self.through @ halves.first, back @ halves.second])
        means *= factor[:, None]
        return means


def _exponentials(exponents: Array) -> tuple[Array, Array]:
    """Return exponentials divided by each row's largest, and its logarithm."""
    top = exponents.max(axis=1)
    exponents -= top[:, None]
    return np.exp(exponents, out=exponents), top


def halves_of(
    parameters: MeasurementParameters, log_law: Array, features: Array, partition: Array
) -> Halves | None:
    """Return the halves, or None where states must be listed.

    Parameters
    ----------
    parameters : MeasurementParameters
    log_law : ndarray, shape (S,)
        Logarithms of the states' probabilities.
    features : ndarray, shape (S, T)
        The terms' values in all joint states.
    partition : ndarray, shape (J, S)
        The items' log partitions there.
    """
    terms = parameters.terms
    if terms.interactions or len(log_law) < FEWEST_STATES or prod(terms.levels) != len(log_law):
        return None
    per_unit = np.empty(parameters.n_items)
    highest = parameters.intercept + np.maximum(parameters.loadings, 0.0).sum(axis=1)
    for family, items in parameters.groups():
        if highest[items].max() >= family.canonical_below:
            return None
        auxiliary = parameters.auxiliary(family, items)[:, None]
        per_unit[items] = family.slopes(np.zeros((len(items), 1)), auxiliary)[0][:, 0]
    n_first = _first_half(terms.levels)
    of_first = terms.main_latents < n_first
    size = prod(terms.levels[n_first:])
    offset = log_law - partition.sum(axis=0)
    top = float(offset.max())
    return Halves(
        parameters.loadings * per_unit[:, None],
        parameters.intercept * per_unit,
        np.ascontiguousarray(features[::size, of_first]),
        np.ascontiguousarray(features[:size, ~of_first]),
        np.exp(offset - top).reshape(-1, size),
        top,
    )


def _first_half(levels: tuple[int, ...]) -> int:
    """Return how many latents to put first so that the two halves have the fewest states."""
    cuts = range(1, len(levels))
    return min(cuts, key=lambda cut: prod(levels[:cut]) + prod(levels[cut:]), default=1)


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
