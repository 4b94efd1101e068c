"""Drawing data from a truth."""

from __future__ import annotations

import numpy as np

from hidag.errors import SettingError
from hidag.measurement import family_named
from hidag.simulate.truth import Simulation, Truth

#: What every function here that draws accepts: a seed, a seed sequence, a generator, or nothing.
Seed = int | np.random.SeedSequence | np.random.Generator | None


def simulate(truth: Truth, n_samples: int, *, rng: Seed = None, missing: float = 0.0) -> Simulation:
    """Return data drawn from a truth.

    Parameters
    ----------
    truth : Truth
    n_samples : int
        Number of rows, N.
    rng : int, SeedSequence, Generator or None
        The same seed gives the same bits; None draws afresh.
    missing : float
        Probability that a cell is missing, independently of everything (missing completely at
        random). The cells that stay are the ones that ``missing=0`` would have drawn.

    Returns
    -------
    Simulation
    """
    if n_samples < 1:
        raise SettingError(f"n_samples must be at least 1, got {n_samples}")
    if not 0.0 <= missing < 1.0:
        raise SettingError(f"missing must be a probability from 0 to below 1, got {missing}")
    generator = np.random.default_rng(rng)
    states = truth.law.sample(n_samples, generator)
    eta = truth.predictor(states)
    X = np.empty(eta.shape)
    items = truth.items
    for j, name in enumerate(truth.families):
        family = family_named(name)
        auxiliary = items.auxiliary(family, np.array([j]))[0]
        X[:, j] = family.sample(eta[:, j], auxiliary, generator)
    # The mask is drawn last, so that asking for missing cells changes no other draw.
    if missing > 0.0:
        X[generator.random(X.shape) < missing] = np.nan
    X.setflags(write=False)
    states.setflags(write=False)
    return Simulation(X, states, truth)
