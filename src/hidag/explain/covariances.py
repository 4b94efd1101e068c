"""The covariance of a fit's free parameters, and what lies in flat directions of the likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.explain.free_parameters import FreeParameters
from hidag.explain.row_scores import complete_information, lost_information, row_scores

Array = NDArray[np.float64]

#: Directions of which the rows tell less than this share of what complete data would, are flat.
FLAT = 1e-6
#: What has this share in flat directions is not estimated.
FLAT_SHARE = 1e-2


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
    distance : float
        How far the fit is from the nearest maximum of the likelihood, in standard errors.
    """

    covariance: Array
    size: Array
    idle: Array
    distance: float

    @property
    def flat(self) -> NDArray[np.bool_]:
        """Which parameters have a part in flat directions, shape (P,)."""
        return np.asarray(((self.idle * self.size) ** 2).sum(axis=0) > FLAT_SHARE)

    def error(self, slope: Array) -> float:
        """Return the standard error of a linear combination, slope (P,); NaN where it is flat.

        A combination may be known though each of its parameters is not.
        """
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
        information = complete - lost_information(free, scores)
    inverse, size, idle = inverse_of(information, complete)
    flat = ((idle * size) ** 2).sum(axis=0) > FLAT_SHARE
    gradient = np.where(flat, 0.0, weights @ scores)
    distance = float(np.sqrt(max(float(gradient @ inverse @ gradient), 0.0)))
    if kind == "sandwich":
        weighted = weights[:, None] * scores
        inverse = inverse @ (weighted.T @ weighted) @ inverse
    scale = _user_scale(free)
    return Uncertainty(inverse * (scale[:, None] * scale), size / scale, idle * scale, distance)


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
    size = np.sqrt(np.maximum(np.diag(complete), 0.0))
    size[size <= 1e-150] = 1.0
    values, vectors = np.linalg.eigh(information / (size[:, None] * size))
    good = values > FLAT
    kept = vectors[:, good]
    inverse = (kept / values[good]) @ kept.T / (size[:, None] * size)
    return inverse, size, (vectors[:, ~good] / size[:, None]).T


def _user_scale(free: FreeParameters) -> Array:
    """Return what one unit of each parameter is in the user's units, shape (P,)."""
    out = np.ones(free.n_parameters)
    for c, one in enumerate(free.channels):
        if one.kind == "predictor":
            out[free.of_channel(c)] = free.data.scale[one.response]
    return out
