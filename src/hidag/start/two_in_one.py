"""What shows that one latent stands for two: items that have more in common than a fit says.

Items of the same true latent do, items of different ones less. The leading eigenvector of a
latent's residual correlations parts them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.loading_costs import coefficient_scales
from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters
from hidag.measurement.families.base import MeanFamily

Array = NDArray[np.float64]

#: A latent with fewer items than this has nothing to take apart.
FEWEST_ITEMS = 3
#: How often the halves of a latent are in the same state at first.
HALVES_AGREE = 0.7


@dataclass(frozen=True)
class Split:
    """A latent that may be two.

    Attributes
    ----------
    latent : int
    leaving : ndarray of int
        Items that go to the other half.
    excess : float
        What its items have in common beyond the fit along the direction that parts them (the
        leading eigenvalue of their residual correlations).
    """

    latent: int
    leaving: NDArray[np.intp]
    excess: float


def two_sides(residual: Array, own: NDArray[np.intp]) -> tuple[NDArray[np.intp], float]:
    """Return which of a latent's items would go to its other half, and what speaks for two halves.

    Parameters
    ----------
    residual : ndarray, shape (J, J)
        What items' correlations are beyond the fit's.
    own : ndarray of int
        The latent's items.

    Returns
    -------
    ndarray of int, float
        The items, and the leading eigenvalue of the residual correlations.
    """
    values, vectors = np.linalg.eigh(residual[np.ix_(own, own)])
    main = vectors[:, -1]
    # An eigenvector's sign is arbitrary: the first item stays.
    apart = main * main[0] < 0
    if not apart.any():
        apart = np.abs(main) < np.median(np.abs(main))
    return own[apart], float(values[-1])


def beyond_the_fit(x: Array, seen: Array, weights: Array | None, means: Array, law: Array) -> Array:
    """Return what responses' correlations are beyond those that a law gives them, shape (R, R).

    Parameters
    ----------
    x : ndarray, shape (N, R)
        Responses; anything where they are missing.
    seen : ndarray, shape (N, R)
        1 where they are not.
    weights : ndarray, shape (N,), or None
    means : ndarray, shape (R, S)
        Of the responses in each state.
    law : ndarray, shape (S,)

    Returns
    -------
    ndarray
        Zero on the diagonal.
    """
    middle = means @ law
    means, x = means - middle[:, None], np.where(seen > 0, x - middle, 0.0)
    counted = np.ones(len(x)) if weights is None else weights
    rows = np.maximum((seen * counted[:, None]).T @ seen, 1e-12)
    total = (x * counted[:, None]).T @ x / rows
    spread = np.sqrt(np.maximum(np.diag(total), 1e-12))
    out: Array = (total - (means * law) @ means.T) / np.outer(spread, spread)
    np.fill_diagonal(out, 0.0)
    return out


def residual_correlations(
    items: MeasurementParameters, data: WorkingData, design: Array, law: Array
) -> Array:
    """Return what items' correlations are beyond a fit's, shape (J, J), zero on the diagonal.

    Items whose response has no mean that goes with their latents alone are not judged: their rows
    and columns are zero, and NaN on the diagonal.

    Parameters
    ----------
    items : MeasurementParameters
    data : WorkingData
    design : ndarray, shape (S, 1 + T)
        A one and the terms' values in each state.
    law : ndarray, shape (S,)
        Probabilities of the states.
    """
    means = np.zeros((data.n_items, len(law)))
    judged = np.zeros(data.n_items, dtype=bool)
    x = np.zeros((data.n_samples, data.n_items))
    for family, members in items.groups():
        if isinstance(family, MeanFamily):
            means[members] = family.mean(items.coefficients[members] @ design.T)
            x[:, members] = data.x[:, data.columns.of(family, members)]
            judged[members] = True
    seen = np.ones(x.shape) if data.observed is None else data.observed.astype(np.float64)
    out = beyond_the_fit(x, seen, data.weights, means, law)
    out[~judged] = out[:, ~judged] = 0.0
    np.fill_diagonal(out, np.where(judged, 0.0, np.nan))
    return out


def idlest_and_splits(
    items: MeasurementParameters, data: WorkingData, residual: Array, free: NDArray[np.bool_]
) -> tuple[int, list[Split]]:
    """Return the idlest latent, and how each other one would come apart, the most excess first.

    The idlest has the smallest loadings in sum, in units of the items' scales.

    Parameters
    ----------
    items : MeasurementParameters
    data : WorkingData
    residual : ndarray, shape (J, J)
        As of :func:`residual_correlations`.
    free : ndarray of bool, shape (K,)
        Latents none of whose items are known: others stay as they are.
    """
    sizes = (np.abs(items.loadings) / coefficient_scales(data)[:, None]).sum(axis=0)
    idle = int(np.argmin(np.where(free, sizes, np.inf)))
    if not free[idle]:
        return idle, []
    judged = ~np.isnan(np.diag(residual))
    out = []
    for latent in np.flatnonzero(free):
        own = np.flatnonzero((items.loadings[:, latent] != 0) & judged)
        if latent == idle or len(own) < FEWEST_ITEMS:
            continue
        leaving, excess = two_sides(residual, own)
        out.append(Split(int(latent), leaving, excess))
    return idle, sorted(out, key=lambda one: -one.excess)


def halved_loadings(loadings: Array, split: Split, idle: int) -> Array:
    """Return loadings (J, K) of binary latents with the idle latent as one half of another one."""
    out = loadings.copy()
    out[:, idle] = 0.0
    out[split.leaving, idle] = loadings[split.leaving, split.latent]
    out[split.leaving, split.latent] = 0.0
    return out
