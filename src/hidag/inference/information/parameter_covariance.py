"""Covariance of the free parameters of a fit, and the flat directions of its likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.m_step import dispersion_floor
from hidag.inference.information.free_parameters import FreeParameters
from hidag.inference.information.item_derivatives import boundary_directions, complement
from hidag.inference.information.observed_information import (
    complete_information,
    observed_information,
)
from hidag.inference.information.row_scores import row_scores
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]

#: Directions with a smaller share of the complete-data information are flat.
FLAT = 1e-6
#: A parameter with this share in flat directions is not estimated.
FLAT_SHARE = 1e-2
#: Boundary directions are known up to rounding, and each of many coefficients has a small share.
BOUNDARY_SHARE = 1e-6


@dataclass(frozen=True)
class Uncertainty:
    """The covariance of the free parameters, in the user's units.

    Attributes
    ----------
    covariance : ndarray, shape (P, P)
        Outside flat directions; meaningless for parameters in these.
    size : ndarray, shape (P,)
        Square root of the complete-data information on each parameter.
    flat : ndarray, shape (F, P)
        Flat directions, orthonormal in units of ``1 / size``.
    boundary : ndarray, shape (E, P)
        Directions in which coefficients are on the boundary, orthonormal; they are fixed.
    distance : float
        Distance of the fit from the nearest maximum of the likelihood, in standard errors.
    """

    covariance: Array
    size: Array
    flat: Array
    boundary: Array
    distance: float

    @property
    def not_estimated(self) -> NDArray[np.bool_]:
        """Whether each parameter has a part in flat or boundary directions, shape (P,)."""
        return _has_part(self.flat, self.size, self.boundary)

    def error(self, slope: Array) -> float:
        """Return the standard error of a linear combination, slope (P,); NaN if not estimated.

        A combination may be estimated though its parameters are not.
        """
        affected = slope[self.boundary.any(axis=0)]
        inside = float(((self.boundary @ slope) ** 2).sum())
        if inside > BOUNDARY_SHARE * float(affected @ affected):
            return float("nan")
        length = float(((slope / self.size) ** 2).sum())
        if length == 0 or float(((self.flat @ slope) ** 2).sum()) > FLAT_SHARE * length:
            return float("nan")
        return float(np.sqrt(max(float(slope @ self.covariance @ slope), 0.0)))


def estimate_uncertainty(free: FreeParameters, kind: str) -> Uncertainty:
    """Return the covariance of the free parameters.

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
    boundary, basis = _split_boundary(free, complete.of_predictors)
    reduced = [
        one if basis is None else np.asarray(basis.T @ one @ basis)
        for one in (information, complete.matrix)
    ]
    inverse, flat = invert_information(*reduced)
    if basis is not None:
        inverse, flat = basis @ inverse @ basis.T, flat @ basis.T
    size = _sizes(complete.matrix)
    gradient = np.where(_has_part(flat, size, boundary), 0.0, weights @ scores)
    distance = float(np.sqrt(max(float(gradient @ inverse @ gradient), 0.0)))
    if kind == "sandwich":
        weighted = weights[:, None] * scores
        inverse = inverse @ (weighted.T @ weighted) @ inverse
    scale = np.ones(free.n_parameters)
    for c, one in enumerate(free.channels):
        if one.kind == "predictor":
            scale[free.of_channel(c)] = free.data.scale[one.response]
    covariance = inverse * (scale[:, None] * scale)
    return Uncertainty(covariance, size / scale, flat * scale, boundary, distance)


def _split_boundary(free: FreeParameters, information: list[Array]) -> tuple[Array, Array | None]:
    """Return boundary directions (E, P), and a basis of all others (P, P - E); None for all.

    Coefficients of a response share one unit, so that units do not matter. A dispersion at its
    bound is on the boundary too: beyond it the model is another family, or the likelihood has no
    maximum. Cutpoints around a category without answers are as close as allowed and move together.
    """
    found: list[Array] = []
    others: list[Array] = []
    tied = False
    identity = np.eye(free.n_parameters)
    for c, one in enumerate(free.channels):
        own = free.of_channel(c)
        if one.kind == "predictor":
            directions = boundary_directions(free.designs[c], information[one.response])
            if len(directions):
                found.append(directions @ identity[own])
                others.append(complement(directions).T @ identity[own])
                continue
        if one.kind == "dispersion" and _at_bound(free, one.response):
            found.append(identity[own])
            continue
        if one.kind == "cutpoint":
            ties = _ties(free.working, one.response)
            if len(ties):
                # All cutpoints of the response are handled with the first.
                if one.place == 0:
                    all_own = own[0] + np.arange(ties.shape[1])
                    others.append(complement(ties).T @ identity[all_own])
                tied = True
                continue
        others.append(identity[own])
    boundary = np.vstack(found) if found else np.zeros((0, free.n_parameters))
    if not found and not tied:
        return boundary, None
    return boundary, np.vstack([*others, identity[free.n_of_items :]]).T


def _ties(parameters: MeasurementParameters, response: int) -> Array:
    """Return directions in which the cutpoints of a response cannot move, shape (T, C)."""
    family = family_named(parameters.families[response])
    steps = np.eye(family.n_cutpoints)
    steps[1:] -= steps[:-1].copy()
    gaps = steps @ parameters.cutpoints[response, : family.n_cutpoints]
    return np.asarray(steps[gaps <= family.smallest_gap])


def _at_bound(free: FreeParameters, response: int) -> bool:
    """Return whether the dispersion of a response is at a bound of its estimation."""
    family = family_named(free.working.families[response])
    column = free.data.columns.starts[response]
    low = float(dispersion_floor(family, free.data.variance[column : column + 1])[0])
    high = family.dispersion_bounds[1]
    value = float(free.working.dispersion[response])
    return value <= low * (1.0 + CONFIG.m_step.boundary_share) or value >= high * (
        1.0 - CONFIG.m_step.boundary_share
    )


def _has_part(flat: Array, size: Array, boundary: Array) -> NDArray[np.bool_]:
    """Return which parameters have a part in flat or boundary directions, shape (P,)."""
    share = ((flat * size) ** 2).sum(axis=0)
    return np.asarray((share > FLAT_SHARE) | ((boundary**2).sum(axis=0) > BOUNDARY_SHARE))


def invert_information(information: Array, complete: Array) -> tuple[Array, Array]:
    """Return the inverse of an information matrix outside its flat directions, and these.

    Parameters
    ----------
    information, complete : ndarray, shape (P, P)
        Of the observed rows, and of complete data as a reference.

    Returns
    -------
    inverse : ndarray, shape (P, P)
    flat : ndarray, shape (F, P)
        As in :class:`Uncertainty`.
    """
    size = _sizes(complete)
    values, vectors = np.linalg.eigh(information / (size[:, None] * size))
    good = values > FLAT
    axes = vectors[:, good]
    inverse = (axes / values[good]) @ axes.T / (size[:, None] * size)
    return inverse, (vectors[:, ~good] / size[:, None]).T


def _sizes(complete: Array) -> Array:
    """Return the square root of the complete-data information on each parameter, 1 if zero."""
    size = np.sqrt(np.maximum(np.diag(complete), 0.0))
    return np.where(size <= 1e-150, 1.0, size)
