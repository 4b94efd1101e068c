"""Which means a simulated item can have: what fitting never meets, drawing must refuse."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.errors import SettingError

Floats = NDArray[np.float64]

#: exp of this is still a count that numpy's Poisson sampler and float64 hold exactly.
MAX_LOG_MEAN = 36.0


def refuse_impossible_means(
    families: tuple[str, ...], lowest: Floats, highest: Floats, names: tuple[str, ...]
) -> None:
    """Raise unless every state gives every item a mean its family can have.

    Parameters
    ----------
    families : tuple of str, length J
    lowest, highest : ndarray, shape (J,)
        Smallest and largest linear predictor over the latent states.
    names : tuple of str, length J
    """
    kinds = np.array(families)
    bad = np.flatnonzero((kinds == "poisson-identity") & (lowest <= 0))
    if len(bad):
        raise SettingError(
            f"family='poisson-identity' needs a mean > 0 in every latent state, but item "
            f"{names[bad[0]]!r} has mean {lowest[bad[0]]:.6g} in one ({len(bad)} of {len(names)} "
            f"items); raise the intercept or use family='poisson' (log link)"
        )
    exponential = np.isin(
        kinds, ["poisson", "lognormal", "negative-binomial", "zero-inflated-poisson"]
    )
    bad = np.flatnonzero(exponential & (highest > MAX_LOG_MEAN))
    if len(bad):
        raise SettingError(
            f"family={families[bad[0]]!r} has a log link and needs a linear predictor of at most "
            f"{MAX_LOG_MEAN:g}, but item {names[bad[0]]!r} reaches {highest[bad[0]]:.6g} "
            f"({len(bad)} of {len(names)} items); lower the intercept or the slopes"
        )
