"""The covariance of a fit's free parameters, and what lies in flat directions of the likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.m_step import dispersion_floor
from hidag.inference.information.free_parameters import FreeParameters
from hidag.inference.information.item_derivatives import at_edge, complement
from hidag.inference.information.observed_information import (
    complete_information,
    observed_information,
)
from hidag.inference.information.row_scores import row_scores
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]

#: Directions of which the rows tell less than this share of what complete data would, are flat.
FLAT = 1e-6
#: What has this share in flat directions is not estimated.
FLAT_SHARE = 1e-2
#: Directions at an edge are known to rounding, and of many coefficients each has a small share.
EDGE_SHARE = 1e-6


@dataclass(frozen=True)
class Uncertainty:
    """How surely free parameters are known, in the user's units.

    Attributes
    ----------
    covariance : ndarray, shape (P, P)
        Outside flat directions; of parameters that lie in one it says nothing.
    size : ndarray, shape (P,)
        Root of what complete data would tell of each parameter.
    idle : ndarray, shape (F, P)
        Flat directions, orthonormal in units of ``1 / size``.
    edge : ndarray, shape (E, P)
        Directions in which coefficients ran to an edge, orthonormal; they are held.
    distance : float
        How far the fit is from the nearest maximum of the likelihood, in standard errors.
    """

    covariance: Array
    size: Array
    idle: Array
    edge: Array
    distance: float

    @property
    def flat(self) -> NDArray[np.bool_]:
        """Which parameters have a part in flat directions or in those at an edge, shape (P,)."""
        return _has_part(self.idle, self.size, self.edge)

    def error(self, slope: Array) -> float:
        """Return the standard error of a linear combination, slope (P,); NaN where it is flat.

        A combination may be known though each of its parameters is not.
        """
        ending = slope[self.edge.any(axis=0)]
        if float(((self.edge @ slope) ** 2).sum()) > EDGE_SHARE * float(ending @ ending):
            return float("nan")
        length = float(((slope / self.size) ** 2).sum())
        if length == 0 or float(((self.idle @ slope) ** 2).sum()) > FLAT_SHARE * length:
            return float("nan")
        return float(np.sqrt(max(float(slope @ self.covariance @ slope), 0.0)))


def uncertainty_of(free: FreeParameters, kind: str) -> Uncertainty:
    """Return how surely the free parameters are known.

    Parameters
    ----------
    free : FreeParameters
    kind : {"louis", "sandwich", "scores"}
    """
    scores = row_scores(free)
    weights = free.data.row_weights
    complete = complete_information(free)
    if kind == "scores":
        information = scores.T @ (weights[:, None] * scores)
    else:
        information = observed_information(free, scores, complete)
    edge, movable = _edges(free, complete.told)
    inverse, _, idle = inverse_of(_turned(information, movable), _turned(complete.matrix, movable))
    if movable is not None:
        inverse, idle = movable @ inverse @ movable.T, idle @ movable.T
    size = _sizes(complete.matrix)
    gradient = np.where(_has_part(idle, size, edge), 0.0, weights @ scores)
    distance = float(np.sqrt(max(float(gradient @ inverse @ gradient), 0.0)))
    if kind == "sandwich":
        weighted = weights[:, None] * scores
        inverse = inverse @ (weighted.T @ weighted) @ inverse
    scale = _user_scale(free)
    return Uncertainty(
        inverse * (scale[:, None] * scale), size / scale, idle * scale, edge, distance
    )


def _edges(free: FreeParameters, told: list[Array]) -> tuple[Array, Array | None]:
    """Return directions at an edge (E, P), and a basis of all others (P, P - E); None for all.

    One unit is the same for all coefficients of a response, so that units have no say in these. A
    dispersion at its bound is at an edge too: beyond it the law would be another family's, or the
    likelihood would have no maximum.
    Cutpoints around a grade that nobody gave are as close as they may be: they move as one, and
    where to is known.
    """
    found: list[Array] = []
    left: list[Array] = []
    tied = False
    everything = np.eye(free.n_parameters)
    for c, one in enumerate(free.channels):
        own = free.of_channel(c)
        if one.kind == "predictor":
            directions = at_edge(free.designs[c], told[one.response])
            if len(directions):
                found.append(directions @ everything[own])
                left.append(complement(directions).T @ everything[own])
                continue
        if one.kind == "dispersion" and _at_bound(free, one.response):
            found.append(everything[own])
            continue
        if one.kind == "cutpoint":
            ties = _ties(free.working, one.response)
            if len(ties):
                # All cutpoints of the response at once, as its first one comes up.
                if one.place == 0:
                    all_own = own[0] + np.arange(ties.shape[1])
                    left.append(complement(ties).T @ everything[all_own])
                tied = True
                continue
        left.append(everything[own])
    edge = np.vstack(found) if found else np.zeros((0, free.n_parameters))
    if not found and not tied:
        return edge, None
    law = everything[free.n_of_items :]
    return edge, np.vstack([*left, law]).T


def _ties(parameters: MeasurementParameters, response: int) -> Array:
    """Return directions in which a response's cutpoints may not move: (T, its cutpoints)."""
    family = family_named(parameters.families[response])
    steps = np.eye(family.n_cutpoints)
    steps[1:] -= steps[:-1].copy()
    gaps = steps @ parameters.cutpoints[response, : family.n_cutpoints]
    return np.asarray(steps[gaps <= family.smallest_gap])


def _at_bound(free: FreeParameters, response: int) -> bool:
    """Return whether a response's dispersion is as small or large as estimation lets it be."""
    family = family_named(free.working.families[response])
    column = free.data.columns.starts[response]
    low = float(dispersion_floor(family, free.data.variance[column : column + 1])[0])
    high = family.dispersion_bounds[1]
    value = float(free.working.dispersion[response])
    return value <= low * (1.0 + CONFIG.m_step.boundary_share) or value >= high * (
        1.0 - CONFIG.m_step.boundary_share
    )


def _turned(information: Array, basis: Array | None) -> Array:
    return information if basis is None else np.asarray(basis.T @ information @ basis)


def _has_part(idle: Array, size: Array, edge: Array) -> NDArray[np.bool_]:
    """Return which parameters have a part in flat directions or in those at an edge, (P,)."""
    flat = ((idle * size) ** 2).sum(axis=0) > FLAT_SHARE
    return np.asarray(flat | ((edge**2).sum(axis=0) > EDGE_SHARE))


def inverse_of(information: Array, complete: Array) -> tuple[Array, Array, Array]:
    """Return the inverse of an information outside its flat directions, sizes, and these.

    Parameters
    ----------
    information, complete : ndarray, shape (P, P)
        Of the observed rows, and of complete data, which is what it is measured by.

    Returns
    -------
    inverse : ndarray, shape (P, P)
    size : ndarray, shape (P,)
        Root of the diagonal of ``complete``; 1 where that is nothing.
    idle : ndarray, shape (F, P)
        As in :class:`Uncertainty`.
    """
    size = _sizes(complete)
    values, vectors = np.linalg.eigh(information / (size[:, None] * size))
    good = values > FLAT
    kept = vectors[:, good]
    inverse = (kept / values[good]) @ kept.T / (size[:, None] * size)
    return inverse, size, (vectors[:, ~good] / size[:, None]).T


def _sizes(complete: Array) -> Array:
    """Return the root of what complete data would tell of each parameter, 1 for nothing, (P,)."""
    size = np.sqrt(np.maximum(np.diag(complete), 0.0))
    return np.where(size <= 1e-150, 1.0, size)


def _user_scale(free: FreeParameters) -> Array:
    """Return what one unit of each parameter is in the user's units, shape (P,)."""
    out = np.ones(free.n_parameters)
    for c, one in enumerate(free.channels):
        if one.kind == "predictor":
            out[free.of_channel(c)] = free.data.scale[one.response]
    return out
