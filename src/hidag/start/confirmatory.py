"""Starts for a given Q: every item begins with effects of one size on its own latents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.start.points import StartPoint, from_loadings, spread_law

#: Effect of an item's latents together, in units of its scale: items say something, not all.
TOTAL_EFFECT = 1.5
#: Dirichlet weight per state of a random law; below 1 some states are rare.
UNEVENNESS = 0.3


def confirmatory_start(
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    *,
    rng: np.random.Generator | None = None,
) -> StartPoint:
    """Return a start with the given support; with ``rng``, uneven effects and an uneven law.

    Random starts do not take for granted that an item's latents pull the same way: half of them
    give each latent a sign of its own, a quarter each effect, a quarter none.

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
    effects = q * size * rng.uniform(0.3, 1.7, q.shape)
    kind = int(rng.integers(4))
    if kind < 2:
        effects *= rng.choice([-1.0, 1.0], size=q.shape[1])
    elif kind == 2:
        effects = q * size * rng.standard_normal(q.shape)
    point = from_loadings(data, space, effects, "given Q, random")
    uneven = rng.dirichlet(np.full(space.n_states, UNEVENNESS))
    return replace(point, probabilities=spread_law(uneven))
