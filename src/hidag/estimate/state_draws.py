"""Joint latent states drawn given rows, from sums over all joint states or over small tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.posterior import state_posteriors
from hidag.estimate.tree_posterior import TreePosterior
from hidag.latent import LatentLaw
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]
Levels = NDArray[np.int64]


def listed_states(
    parameters: MeasurementParameters, law: LatentLaw, values: Array, rng: np.random.Generator
) -> Levels:
    """Return a joint state drawn given each row, shape (N, K), all states listed.

    Parameters
    ----------
    parameters : MeasurementParameters
    law : LatentLaw
    values : ndarray, shape (N, R)
        A column for each response, NaN where it is missing.
    rng : Generator
    """
    uniforms = rng.random(len(values))
    place = np.empty(len(values), dtype=np.int64)
    for rows, posterior in state_posteriors(parameters, law, values):
        place[rows] = _drawn(posterior, uniforms[rows])
    return law.space.states()[place].astype(np.int64)


def summed_states(tree: TreePosterior, values: Array, rng: np.random.Generator) -> Levels:
    """Return a joint state drawn given each row (N, R), shape (N, K), one latent after the other.

    Latents are drawn against the order in which they were summed out, each given those before it.
    """
    uniforms = rng.random((len(tree.steps), len(values)))
    out = np.zeros((len(values), len(tree.steps)), dtype=np.int64)
    for rows, groups in tree.groups(*tree.working(values)):
        found = out[rows]
        here = np.arange(len(found))
        for i in reversed(range(len(tree.steps))):
            latent, *others = tree.steps[i]
            place: Any = (slice(None), *(found[:, v] for v in others), here)
            found[:, latent] = _drawn(groups.conditionals[i][place].T, uniforms[i, rows])
    return out


def _drawn(chances: Array, uniforms: Array) -> NDArray[np.intp]:
    """Return the place that a number from 0 to 1 falls on, (n,), of chances (n, S) up to a unit."""
    ends = np.cumsum(chances, axis=1)
    # No number is beyond the last end, and no place without a chance is ever reached.
    return np.asarray((ends <= (uniforms * ends[:, -1])[:, None]).sum(axis=1))
