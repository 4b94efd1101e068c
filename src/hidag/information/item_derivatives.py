"""Derivatives of response densities by predictor, dispersion and cutpoints.

Each of these arguments of a density is a *channel*. Log densities are linear in a few statistics
T of the response, so the derivative by a channel in row i and state s is
``T_i . slope(s) - fall(s) + base_i``: tables over states, and one number per row that does not
depend on the latents. The same holds for second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.measurement.families.base import Family, family_named, normal_base
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Channel:
    """An argument of the density of a response, with the derivatives by it."""

    response: int
    kind: str  # "predictor", "dispersion" or "cutpoint"
    place: int  # index of the cutpoint; 0 for the others
    slope: Array  # (D, S), derivatives of the natural parameters in each state
    fall: Array  # (S,), derivative of the log partition function


def channels_of_response(
    parameters: MeasurementParameters, response: int, eta: Array
) -> list[Channel]:
    """Return the channels of a response on the working scale at ``eta`` (S,), predictor first."""
    family = family_named(parameters.families[response])
    own = response_auxiliary(parameters, response)
    slope, fall, _ = family.slopes(eta, broadcast_auxiliary(family, own))
    step = CONFIG.derivatives.step
    out = [Channel(response, "predictor", 0, add_column_axis(family, slope), fall)]
    kind = "cutpoint" if family.n_cutpoints else "dispersion"
    for place, direction in enumerate(auxiliary_directions(family)):
        moved = (shift_auxiliary(family, own, sign * step * direction) for sign in (1, -1))
        up, down = (_natural(family, eta, aux) for aux in moved)
        slope, fall = ((u - d) / (2 * step) for u, d in zip(up, down, strict=True))
        out.append(Channel(response, kind, place, slope, fall))
    return out


def base_slopes(family: Family, own: Array, x: Array) -> Array:
    """Return derivatives of the base term of responses (n,) by each auxiliary, shape (n, A)."""
    out = [
        _derivative(family, own, direction, lambda aux: base_term(family, aux, x))
        for direction in auxiliary_directions(family)
    ]
    return np.stack(out, axis=1) if out else np.zeros((len(x), 0))


def curvature_of(
    family: Family, own: Array, eta: Array, sums: Array, counts: Array, summary: Array
) -> tuple[Array, Array, Array]:
    """Return negative second derivatives of the expected log density of one response.

    By the predictor in each state (S,), mixed with each auxiliary (A, S), and by these (A, A).
    ``sums`` (D, S) are expected sums of the statistics, ``summary`` (2, m) values and weights.
    """

    def score(at: Array, aux: Array) -> Array:
        slope, fall, _ = family.slopes(at, broadcast_auxiliary(family, aux))
        return np.asarray((sums * add_column_axis(family, slope)).sum(axis=0) - counts * fall)

    def total(aux: Array) -> float:
        theta, partition = _natural(family, eta, aux)
        base = float(summary[1] @ base_term(family, aux, summary[0]))
        return float((sums * theta).sum() - counts @ partition) + base

    step, h = CONFIG.derivatives.step, CONFIG.derivatives.larger_step
    predictor = (score(eta - step, own) - score(eta + step, own)) / (2 * step)
    directions = list(auxiliary_directions(family))
    mixed = [-_derivative(family, own, one, lambda aux: score(eta, aux)) for one in directions]
    auxiliary = np.zeros((len(directions), len(directions)))
    for a, first in enumerate(directions):
        for b, second in enumerate(directions[: a + 1]):
            signs = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
            value = sum(
                sign * total(shift_auxiliary(family, own, h * (p * first + q * second)))
                for p, q, sign in signs
            )
            auxiliary[a, b] = auxiliary[b, a] = -value / (4 * h * h)
    return predictor, np.array(mixed).reshape(len(directions), len(eta)), auxiliary


def response_auxiliary(parameters: MeasurementParameters, response: int) -> Array:
    """Return the auxiliaries of one response: its dispersion, (), or its cutpoints, (C,)."""
    family = family_named(parameters.families[response])
    return np.asarray(parameters.auxiliary(family, np.array([response]))[0])


def auxiliary_directions(family: Family) -> Iterator[Array]:
    """Yield one unit direction for each auxiliary of a family."""
    if family.n_cutpoints:
        yield from np.eye(family.n_cutpoints)
    elif family.has_dispersion:
        yield np.ones(())


def shift_auxiliary(family: Family, own: Array, by: Array) -> Array:
    """Return shifted auxiliaries: cutpoints as they are, dispersions on their unbounded scale."""
    if family.n_cutpoints:
        return np.asarray(own + by)
    return np.asarray(family.from_unbounded(family.to_unbounded(own) + by))


def base_term(family: Family, own: Array, x: Array) -> Array:
    """Return the part of the log density without the predictor, up to a constant, (n,)."""
    return normal_base(x, own) if family.is_location_scale else family.base(x, own)


def broadcast_auxiliary(family: Family, own: Array) -> Array:
    """Return the auxiliaries of a response in the shape that broadcasts over states."""
    return own[None] if family.n_cutpoints else own


def add_column_axis(family: Family, table: Array) -> Array:
    """Return tables over states with a first axis over statistics, also if there is only one."""
    return np.asarray(table[None] if family.n_columns == 1 else table)


def log_density(family: Family, own: Array, x: Array, eta: Array) -> Array:
    """Return log densities of answers (n,) at predictors (n,); of times, of their logarithm."""
    theta, partition = _natural(family, eta, own)
    linear = (add_column_axis(family, family.to_working(x)) * theta).sum(axis=0)
    return np.asarray(linear - partition + family.working_base(x, own))


def _natural(family: Family, eta: Array, own: Array) -> tuple[Array, Array]:
    theta, partition = family.natural(eta, broadcast_auxiliary(family, own))
    return add_column_axis(family, theta), np.asarray(partition)


def _derivative(
    family: Family, own: Array, direction: Array, function: Callable[[Array], Array]
) -> Array:
    """Return the central difference of a function of the auxiliaries along a direction."""
    step = CONFIG.derivatives.step
    up, down = (function(shift_auxiliary(family, own, sign * step * direction)) for sign in (1, -1))
    return (up - down) / (2 * step)


def boundary_directions(design: Array, information: Array) -> Array:
    """Return the directions of an item's coefficients on the boundary, orthonormal, (E, P).

    ``design`` (S, P), ``information`` (S,) in units of rows. Only directions count that leave the
    predictors of all informative patterns unchanged and that the others together do not identify.
    """
    patterns, place = np.unique(design, axis=0, return_inverse=True)
    amount = np.bincount(place.ravel(), np.maximum(information, 0.0), minlength=len(patterns))
    known = amount >= CONFIG.structural_em.occupied
    _, sizes, rotation = np.linalg.svd(patterns[known], full_matrices=True)
    least = CONFIG.derivatives.smallest_singular_value * sizes.max(initial=0.0)
    rank = int((sizes > least).sum())
    suspect = rotation[rank:]
    moved = patterns[~known] @ suspect.T
    values, vectors = np.linalg.eigh(moved.T @ (amount[~known, None] * moved))
    directions = vectors.T @ suspect
    # Scaled so that neither a coefficient nor a predictor changes by more than one.
    both = np.hstack([directions, directions @ patterns.T])
    largest = np.abs(both).max(axis=1, initial=0.0)
    return np.asarray(directions[values < CONFIG.structural_em.occupied * largest**2])


def information_in_rows(
    family: Family, auxiliary: Array, information: Array, counts: Array
) -> Array:
    """Return complete-data information on a predictor in rows, at most ``counts``, shape (S,)."""
    unit = auxiliary if family.dispersion_is_variance else 1.0
    return np.asarray(np.minimum(information * unit, counts), dtype=np.float64)


def complement(directions: Array) -> Array:
    """Return an orthonormal basis of the orthogonal complement of directions (E, P), (P, P - E)."""
    _, _, rotation = np.linalg.svd(directions, full_matrices=True)
    return np.asarray(rotation[len(directions) :].T)
