"""Starts for a given Q: every item begins with effects of one size on its own latents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.start.spectral import StartPoint, from_loadings

#: Effect of an item's latents together, in units of its scale: items say something, not all.
TOTAL_EFFECT = 1.5


def confirmatory_start(
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    *,
    rng: np.random.Generator | None = None,
) -> StartPoint:
    """Return a start with the given support; with ``rng``, uneven effects and an uneven law.

    Parameters
    ----------
    data : WorkingData
    space : StateSpace
    q_entries : ndarray of int8, shape (J, K)
        1 or 0 throughout.
    """
    q = (q_entries == 1).astype(np.float64)
    size = TOTAL_EFFECT / np.sqrt(np.maximum(q.sum(axis=1, keepdims=True), 1.0))
    if rng is None:
        return from_loadings(data, space, q * size, "given Q")
    point = from_loadings(data, space, q * size * rng.uniform(0.3, 1.7, q.shape), "given Q, random")
    return replace(point, probabilities=rng.dirichlet(np.ones(space.n_states)))
