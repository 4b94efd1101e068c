"""Levels of a latent in a line: which of them is low and which is high."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.measurement import MeasurementParameters


def levels_in_line(working: MeasurementParameters, latent: int) -> NDArray[np.intp]:
    """Return a latent's levels from low to high by what they have in common over the items.

    Heights of the levels over the items, each in its own units, have a first singular vector;
    levels are numbered along it, so that items are higher in total at the last than at the first.
    ``working`` is on the working scale.
    """
    heights = working.heights(latent) / working.deviations[:, None]
    centred = heights - heights.mean(axis=1, keepdims=True)
    line = np.linalg.svd(centred, full_matrices=False)[2][0]
    order = np.argsort(line, kind="stable")
    rises = (heights[:, order[-1]] - heights[:, order[0]]).sum()
    return np.asarray(order if rises >= 0 else order[::-1], dtype=np.intp)


def all_in_line(working: MeasurementParameters) -> tuple[NDArray[np.intp], ...]:
    """Return the levels of every latent from low to high."""
    return tuple(levels_in_line(working, k) for k in range(working.n_latents))
