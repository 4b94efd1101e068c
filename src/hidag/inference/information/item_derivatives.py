"""How a response's log density moves: with its predictor, its dispersion, its cutpoints.

Each of these is a *channel*. Densities are linear in a few columns of the response, so a channel's
derivative in row i and state s is ``T_i . slope(s) - fall(s) + base_i``: tables over states, and
one number per row that no latent enters. The same holds for second derivatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.measurement.families.base import Family, normal_base
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.strategy.structural_em import OCCUPIED

Array = NDArray[np.float64]

#: Steps of numerical first and second derivatives; errors are about their squares.
STEP, LARGER_STEP = 1e-5, 1e-4


@dataclass(frozen=True)
class Channel:
    """One way in which a response's density moves.

    Attributes
    ----------
    response : int
    kind : {"predictor", "dispersion", "cutpoint"}
    place : int
        Which cutpoint, from 0; 0 for the others.
    slope : ndarray, shape (D, S)
    fall : ndarray, shape (S,)
    """

    response: int
    kind: str
    place: int
    slope: Array
    fall: Array


def channels_of_response(
    parameters: MeasurementParameters, response: int, eta: Array
) -> list[Channel]:
    """Return the channels of one response, the predictor's first.

    Parameters
    ----------
    parameters : MeasurementParameters
        On the working scale. Dispersions move on the scale on which they have no bounds
        (``Family.to_unbounded``).
    response : int
    eta : ndarray, shape (S,)
        Its predictor in each state.
    """
    family = family_named(parameters.families[response])
    own = auxiliary_of(parameters, response)
    slope, fall, _ = family.slopes(eta, shaped(family, own))
    out = [Channel(response, "predictor", 0, columned(family, slope), fall)]
    for place, move in enumerate(moves(family)):
        up = _natural(family, eta, moved(family, own, STEP * move))
        down = _natural(family, eta, moved(family, own, -STEP * move))
        slope, fall = ((u - d) / (2 * STEP) for u, d in zip(up, down, strict=True))
        kind = "cutpoint" if family.n_cutpoints else "dispersion"
        out.append(Channel(response, kind, place, slope, fall))
    return out


def base_slopes(family: Family, own: Array, x: Array) -> Array:
    """Return derivatives of the part without predictor by each auxiliary, shape (n, A).

    ``x`` (n,) are observed responses, on the working scale for location-scale families.
    """
    out = [
        (
            base(family, moved(family, own, STEP * move), x)
            - base(family, moved(family, own, -STEP * move), x)
        )
        / (2 * STEP)
        for move in moves(family)
    ]
    return np.stack(out, axis=1) if out else np.zeros((len(x), 0))


@dataclass(frozen=True)
class Curvature:
    """Minus the second derivatives of one response's expected log density.

    Attributes
    ----------
    predictor : ndarray, shape (S,)
        By the predictor, in each state.
    mixed : ndarray, shape (A, S)
        By the predictor and each auxiliary.
    auxiliary : ndarray, shape (A, A)
    """

    predictor: Array
    mixed: Array
    auxiliary: Array


def curvature_of(
    family: Family, own: Array, eta: Array, sums: Array, counts: Array, summary: Array
) -> Curvature:
    """Return the curvature of a response given its expected statistics.

    Parameters
    ----------
    family : Family
    own : ndarray
        Dispersion, shape (), or cutpoints.
    eta, counts : ndarray, shape (S,)
    sums : ndarray, shape (D, S)
        Sums of the columns by state.
    summary : ndarray, shape (2, m)
        Distinct observed values and how often they count.
    """

    def slope_total(at: Array, aux: Array) -> Array:
        slope, fall, _ = family.slopes(at, shaped(family, aux))
        return np.asarray((sums * columned(family, slope)).sum(axis=0) - counts * fall)

    def total(aux: Array) -> float:
        theta, partition = _natural(family, eta, aux)
        known = float(summary[1] @ base(family, aux, summary[0]))
        return float((sums * theta).sum() - counts @ partition) + known

    predictor = (slope_total(eta - STEP, own) - slope_total(eta + STEP, own)) / (2 * STEP)
    steps = list(moves(family))
    mixed = [
        (
            slope_total(eta, moved(family, own, -STEP * m))
            - slope_total(eta, moved(family, own, STEP * m))
        )
        / (2 * STEP)
        for m in steps
    ]
    h = LARGER_STEP
    auxiliary = np.zeros((len(steps), len(steps)))
    for a, first in enumerate(steps):
        for b, second in enumerate(steps[: a + 1]):
            signs = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
            value = sum(
                sign * total(moved(family, own, h * (p * first + q * second)))
                for p, q, sign in signs
            )
            auxiliary[a, b] = auxiliary[b, a] = -value / (4 * h * h)
    return Curvature(predictor, np.array(mixed).reshape(len(steps), len(eta)), auxiliary)


def auxiliary_of(parameters: MeasurementParameters, response: int) -> Array:
    """Return what one response has besides its predictor: dispersion, (), or cutpoints, (C,)."""
    family = family_named(parameters.families[response])
    return np.asarray(parameters.auxiliary(family, np.array([response]))[0])


def moves(family: Family) -> Iterator[Array]:
    """Yield the directions in which a family's auxiliaries move, one for each."""
    if family.n_cutpoints:
        yield from np.eye(family.n_cutpoints)
    elif family.has_dispersion:
        yield np.ones(())


def moved(family: Family, own: Array, by: Array) -> Array:
    """Return auxiliaries moved: cutpoints as they are, dispersions on their free scale."""
    if family.n_cutpoints:
        return np.asarray(own + by)
    return np.asarray(family.from_unbounded(family.to_unbounded(own) + by))


def base(family: Family, own: Array, x: Array) -> Array:
    """Return the part of the log density that no predictor enters, up to a constant, (n,)."""
    if family.is_location_scale:
        return normal_base(x, own)
    return family.base(x, own)


def shaped(family: Family, own: Array) -> Array:
    """Return a response's auxiliaries as its family takes them beside an axis of states."""
    return own[None] if family.n_cutpoints else own


def columned(family: Family, table: Array) -> Array:
    """Return tables over states with an axis of columns, also where there is one column."""
    return np.asarray(table[None] if family.n_columns == 1 else table)


def _natural(family: Family, eta: Array, own: Array) -> tuple[Array, Array]:
    theta, partition = family.natural(eta, shaped(family, own))
    return columned(family, theta), np.asarray(partition)


# --- Which of an item's coefficients ran to an edge: directions that next to no answer tells

#: Rows of a design whose singular values are below this share of the largest add no direction.
NO_DIRECTION = 1e-9


def at_edge(design: Array, told: Array) -> Array:
    """Return directions of an item's coefficients that next to nothing tells of, shape (E, P).

    Orthonormal. A pattern at the edge does no harm if its predictor follows from others: effects
    that add up. So only directions count that leave every pattern with an answer to tell where it
    is, and of these only those of which the other patterns together do not tell either.

    Parameters
    ----------
    design : ndarray, shape (S, P)
        What the coefficients add to the predictor in each state.
    told : ndarray, shape (S,)
        What complete data would tell of the predictor in each state: see :func:`told_in_rows`.
    """
    patterns, place = np.unique(design, axis=0, return_inverse=True)
    amount = np.bincount(place.ravel(), np.maximum(told, 0.0), minlength=len(patterns))
    known = amount >= OCCUPIED
    _, sizes, turned = np.linalg.svd(patterns[known], full_matrices=True)
    rank = int((sizes > NO_DIRECTION * sizes.max(initial=0.0)).sum())
    suspect = turned[rank:]
    moved = patterns[~known] @ suspect.T
    values, vectors = np.linalg.eigh(moved.T @ (amount[~known, None] * moved))
    directions = vectors.T @ suspect
    # Of a direction that moves neither a coefficient nor a predictor by more than one.
    both = np.hstack([directions, directions @ patterns.T])
    largest = np.abs(both).max(axis=1, initial=0.0)
    return np.asarray(directions[values < OCCUPIED * largest**2])


def told_in_rows(family: Family, auxiliary: Array, information: Array, counts: Array) -> Array:
    """Return what complete data tell of a predictor in each state, in rows, shape (S,).

    Parameters
    ----------
    family : Family
    auxiliary : ndarray
        Of the item: a dispersion, shape (), or cutpoints.
    information : ndarray, shape (S,)
        About the predictor.
    counts : ndarray, shape (S,)
        Rows that answered the item. More than they are is not told: of a yes or a no it is about
        the number of the rarer answers, of a measurement the number of rows, whatever its unit.
    """
    unit = auxiliary if family.dispersion_is_variance else 1.0
    return np.asarray(np.minimum(information * unit, counts), dtype=np.float64)


def complement(directions: Array) -> Array:
    """Return an orthonormal basis of what is at right angles to directions (E, P), (P, P - E)."""
    _, _, turned = np.linalg.svd(directions, full_matrices=True)
    return np.asarray(turned[len(directions) :].T)
