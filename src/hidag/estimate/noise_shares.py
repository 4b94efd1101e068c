"""How much of each item may be noise: where it is little, small coefficients are known well.

A penalty whose threshold is many standard errors wide has a slope below the noise of a gradient,
and false loadings stay. Items with a size, counts and measurements, can be as quiet as that. What
other items do not explain is known beforehand, but says little where the others are noisy: an item
that all but is its latent shows how quiet it is once the latents have been found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.column_sums import mean_and_spread, unexplained_shares
from hidag.measurement import family_named

if TYPE_CHECKING:
    from hidag.estimate.working import WorkingData

Array = NDArray[np.float64]

#: Estimates make items quieter than they are while latents are not quite found: they have to tell
#: so many times less noise than the other items do before anything is made of it. The threshold of
#: a penalty is then no wider than a few standard errors.
TOLD_BY_ESTIMATE = 6.0


def noise_shares_of(data: WorkingData) -> Array:
    """Return the share of noise in squares of coefficients' scales, shape (J,); 1 if nothing tells.

    Known from means for counts. Of items that are normal on the working scale it is what other such
    items do not explain; of others with a size, what all with a size do not.
    """
    kinds = [family_named(name) for name in data.families]
    normal = np.flatnonzero([kind.is_location_scale for kind in kinds])
    out = np.ones(data.n_items)
    out[normal] = unexplained_shares(data.x[:, data.columns.starts[normal]], data.weights)
    sized = np.flatnonzero([kind.may_be_quiet for kind in kinds])
    rest: dict[int, float] = {}
    for j in sized.tolist():
        told = kinds[j].noise_share(data.mean[data.columns.of(kinds[j], np.array([j]))])
        if told is not None:
            out[j] = min(float(told.ravel()[0]), 1.0)
        elif not kinds[j].is_location_scale:
            rest = rest or _unexplained_looks(data, sized)
            out[j] = min(rest[j], 1.0)
    return out


def noise_told_by(information: Array, scale: Array, data: WorkingData) -> Array:
    """Return what an estimate says of the share of noise, shape (J,); 1 if it says nothing.

    Parameters
    ----------
    information : ndarray, shape (J,)
        Of the items' intercepts at the estimate, in all rows.
    scale : ndarray, shape (J,)
        Of the items' coefficients.
    data : WorkingData
    """
    kinds = [family_named(name) for name in data.families]
    telling = np.array([kind.may_be_quiet and kind.has_dispersion for kind in kinds])
    known = telling & (information > 0)
    # One row's noise is what its information is the inverse of.
    share = data.n_observed / np.where(known, information * scale**2, 1.0)
    return np.where(known, np.minimum(TOLD_BY_ESTIMATE * share, 1.0), 1.0)


def _unexplained_looks(data: WorkingData, items: NDArray[np.intp]) -> dict[int, float]:
    """Return the noise in first looks at items that looks at the others do not explain, by item."""
    looks = np.zeros((data.n_samples, len(items)))
    spreads = np.ones(len(items))
    for place, j in enumerate(items.tolist()):
        seen = slice(None) if data.observed is None else data.observed[:, j] == 1
        look = data.look(j)[seen]
        counts = None if data.weights is None else data.weights[seen]
        mean, spreads[place] = mean_and_spread(look, counts)
        looks[seen, place] = (look - mean) / spreads[place]
    variances = unexplained_shares(looks, data.weights) * spreads**2
    out = {}
    for j, variance in zip(items.tolist(), variances.tolist(), strict=True):
        family = family_named(data.families[j])
        columns = data.columns.of(family, np.array([j]))
        scale = float(family.coefficient_scale(data.mean[columns], data.variance[columns])[0])
        out[j] = variance / max(scale, 1e-12) ** 2
    return out
