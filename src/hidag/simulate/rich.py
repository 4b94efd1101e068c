"""Truths beyond the paper's designs: latents with several levels, latents that act together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hidag.errors import SettingError
from hidag.latent import NetworkLaw
from hidag.measurement.effects import Effects
from hidag.simulate.sample import Seed
from hidag.simulate.truth import Truth

#: Mean size of a step from one level to the next, on the scale of the predictor.
STEPS = {"gaussian": 1.5, "lognormal": 1.5, "bernoulli": 2.0, "poisson": 0.8}
#: Predictors are centred where the link flattens out on both sides.
CENTRED = frozenset({"bernoulli"})
#: Steps vary by this share of their mean size.
UNEVENNESS = 0.3


def rich_truth(
    law: NetworkLaw,
    q_matrix: ArrayLike,
    family: str | Sequence[str] = "gaussian",
    *,
    effects: str | int = "main",
    dispersion: float = 1.0,
    rng: Seed = None,
) -> Truth:
    """Return a truth whose items have a step of its own for every level and every interaction.

    Parameters
    ----------
    law : NetworkLaw
        Its latents may have any number of levels.
    q_matrix : array of 0 and 1, shape (J, K)
    family : str or sequence of str, length J
        "gaussian", "lognormal", "bernoulli" or "poisson".
    effects : {"main", "all", "dina"} or int
        Whether an item's latents add up, add up with every product of theirs (or those up to an
        order) as strong as a step, or do nothing unless all are there (twice as strong).
    dispersion : float
        Variance of gaussian and of logged lognormal items.
    rng : int, SeedSequence, Generator or None
        Sizes are drawn evenly within 30 % of their mean.
    """
    q = np.asarray(q_matrix, dtype=np.int8)
    families = (family,) * len(q) if isinstance(family, str) else tuple(family)
    for name in families:
        if name not in STEPS:
            known = ", ".join(repr(known) for known in STEPS)
            raise SettingError(f"family must be one of {known}, got {name!r}")
    wanted = Effects.of(effects)
    if wanted.reversed:
        raise SettingError("effects must be 'main', 'all', 'dina' or an order, got 'dino'")
    terms = wanted.terms(q, law.space.levels)
    generator = np.random.default_rng(rng)
    size = np.array([STEPS[name] for name in families])[:, None]
    uneven = generator.uniform(1.0 - UNEVENNESS, 1.0 + UNEVENNESS, (len(q), terms.n_terms))
    loadings = np.where(wanted.support(terms, q), size * uneven, 0.0)
    if wanted.conjunctive:
        alone = (q != 0).sum(axis=1, keepdims=True) == 1
        loadings *= np.where(alone, 1.0, 2.0)
    # The middle between an item's lowest and highest predictor comes to zero.
    middle = 0.5 * loadings.sum(axis=1)
    intercept = np.where([name in CENTRED for name in families], -middle, 0.0)
    return Truth(q, intercept, loadings, np.full(len(q), dispersion), families, law, terms=terms)
