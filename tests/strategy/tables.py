"""A chain of latents seen through items, and laws over it."""

from __future__ import annotations

import numpy as np

from hidag.em.design_data import WorkingData
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters
from hidag.strategy.observed_likelihood.likelihood_search import ObservedFit

SPACE = StateSpace.binary(3)
CHAIN = ((), (0,), (1,))
EMPTY = ((), (), ())
FULL = ((), (0,), (0, 1))


def chain_law(strength: float = 0.35) -> np.ndarray:
    """Return the law of three latents in a row, shape (8,)."""
    up, down = 0.5 + strength, 0.5 - strength
    p = np.ones((2, 2, 2)) * 0.5
    for a in range(2):
        for b in range(2):
            for c in range(2):
                p[a, b, c] *= (up if a == b else down) * (up if b == c else down)
    return p.ravel()


def bent_law() -> np.ndarray:
    """Return the chain's law with a spurious dependence of its ends, as a fit might leave it."""
    bent = chain_law().reshape(2, 2, 2).copy()
    bent[0, 1, 0] *= 2.2
    bent[1, 1, 0] *= 0.4
    return (bent / bent.sum()).ravel()


def observed_chain(slopes, n_rows: int, seed: int) -> ObservedFit:
    """Return the true items of a drawn table: four of one slope for each latent."""
    rng = np.random.default_rng(seed)
    loadings = np.repeat(np.eye(3), 4, axis=0) * np.array(slopes)
    families = ("bernoulli",) * 12
    parameters = MeasurementParameters(families, -0.5 * loadings.sum(axis=1), loadings, np.ones(12))
    states = SaturatedLaw(SPACE, chain_law()).sample(n_rows, rng)
    eta = parameters.intercept + states @ loadings.T
    values = (rng.random(eta.shape) < 1 / (1 + np.exp(-eta))).astype(float)
    return ObservedFit(WorkingData.from_values(values, families), parameters, SPACE, chain_law())
