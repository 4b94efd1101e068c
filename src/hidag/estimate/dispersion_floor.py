"""How small estimation lets dispersions be, and which items ended there.

An item whose responses are a function of its latents has a likelihood without a maximum: the
smaller its dispersion, the higher. So there is a floor, and a dispersion that ended on it is no
estimate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.column_sums import mean_and_spread
from hidag.measurement import Family, MeasurementParameters

Array = NDArray[np.float64]

#: Smallest share of an item's variance that its dispersion may shrink to.
SMALLEST_SHARE = 1e-4
#: A dispersion this close to its bound, as a share of it, is at the bound.
BOUND_SHARE = 1e-3
#: Rows' worth of the item's mean, spread over its sub-states, where latents are sampled: no effect
#: runs off to infinity when a latent tells an item's answers apart without fail.
ITEM_MASS = 1.0
#: Where latents are sampled, a dispersion up to so many times what that mass alone makes it, is
#: that mass's doing: draws blur it.
_BLURRED = 1.2


def smallest_dispersion(family: Family, variance: Array) -> Array:
    """Return the least that estimation lets dispersions of a family's items be, shape (n,).

    Parameters
    ----------
    family : Family
    variance : ndarray, shape (n,)
        Of the items on the working scale; matters to families that are standardised.
    """
    low = np.full(len(variance), family.dispersion_bounds[0])
    return np.maximum(low, SMALLEST_SHARE * variance) if family.is_location_scale else low


def ended_smallest(
    parameters: MeasurementParameters,
    values: Array,
    weights: Array | None = None,
    *,
    sampled: bool = False,
) -> NDArray[np.bool_]:
    """Return which items' dispersions ended as small as estimation lets them be, shape (J,).

    Parameters
    ----------
    parameters : MeasurementParameters
        In the user's units.
    values : ndarray, shape (N, J)
        What they were estimated from; NaN cells are missing.
    weights : ndarray, shape (N,), optional
        How many rows each row counts for.
    sampled : bool
        Whether latents were sampled: then the mass that every sub-state is given keeps Gaussian and
        lognormal items above the floor, and such items count if nothing else does.
    """
    out = np.zeros(parameters.n_items, dtype=bool)
    for family, items in parameters.groups():
        if not family.has_dispersion:
            continue
        mean, variance, n_rows = np.zeros(len(items)), np.zeros(len(items)), np.ones(len(items))
        if family.is_location_scale:
            for place, j in enumerate(items):
                seen = ~np.isnan(values[:, j])
                counts = None if weights is None else weights[seen]
                mean[place], spread = mean_and_spread(family.to_working(values[seen, j]), counts)
                variance[place] = spread**2
                n_rows[place] = seen.sum() if counts is None else counts.sum()
        least = (1.0 + BOUND_SHARE) * smallest_dispersion(family, variance)
        if sampled and family.is_location_scale:
            by_mass = _left_by_mass(parameters, items, mean) / n_rows
            least = np.maximum(least, _BLURRED * by_mass)
        out[items] = parameters.dispersion[items] <= least
    return out


def _left_by_mass(parameters: MeasurementParameters, items: NDArray[np.intp], mean: Array) -> Array:
    """Return the squares that the mass of sub-states adds to items of given means, shape (n,)."""
    out = np.empty(len(items))
    for place, j in enumerate(items):
        states = parameters.terms.states_of(np.flatnonzero(parameters.support[j]))
        eta = parameters.intercept[j] + parameters.terms.features(states) @ parameters.loadings[j]
        out[place] = ITEM_MASS * float(((eta - mean[place]) ** 2).mean())
    return out
