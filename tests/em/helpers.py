"""Cases for E-steps: families, levels, missing cells, weights, numbers of latents per item."""

from __future__ import annotations

import numpy as np

from hidag.em.design_data import WorkingData
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, Terms

N, J = 700, 9


def case(families, levels, *, missing=0.0, weights=False, size=1.0, seed=0, together=None):
    """Return arguments of an E-step; ``together`` neighbouring latents an item, or any."""
    rng = np.random.default_rng(seed)
    names = tuple(families[j % len(families)] for j in range(J))
    draw = {
        "gaussian": lambda: rng.normal(0.0, 2.0, N),
        "lognormal": lambda: np.exp(rng.normal(0.0, 1.0, N)),
        "bernoulli": lambda: (rng.random(N) < 0.4) * 1.0,
        "poisson": lambda: rng.poisson(2.0, N) * 1.0,
        "poisson-identity": lambda: rng.poisson(2.0, N) * 1.0,
        "binomial(5)": lambda: rng.binomial(5, 0.4, N) * 1.0,
    }
    values = np.column_stack([draw[name]() for name in names])
    values[rng.random(values.shape) < missing] = np.nan
    counted = rng.integers(0, 4, N).astype(float) if weights else None
    data = WorkingData.from_values(values, names, weights=counted)
    space = StateSpace(levels)
    terms = Terms.main(levels)
    loadings = (
        size
        * np.abs(rng.standard_normal((J, terms.n_main)))
        * (rng.random((J, terms.n_main)) < 0.6)
    )
    if together is not None:
        apart = (terms.main_latents - np.arange(J)[:, None]) % len(levels)
        loadings[apart >= together] = 0.0
    parameters = MeasurementParameters(names, np.full(J, 0.3), loadings, 0.5 + rng.random(J), terms)
    law = rng.dirichlet(np.ones(space.n_states))
    return parameters, law, data, terms.features(space.states())


CASES = {
    "gaussian": case(("gaussian",), (2,) * 6),
    "mixed": case(("bernoulli", "poisson", "lognormal", "binomial(5)"), (2,) * 5),
    "levels": case(("bernoulli", "gaussian"), (3, 2, 4, 2)),
    "missing": case(("bernoulli", "gaussian"), (2,) * 7, missing=0.08, together=2),
    "little missing": case(("bernoulli", "gaussian"), (2,) * 7, missing=0.02, together=2),
    "little missing, not additive": case(
        ("poisson-identity", "gaussian"), (2,) * 7, missing=0.02, together=2, weights=True
    ),
    "much missing": case(("bernoulli", "poisson"), (2,) * 7, missing=0.4, together=2),
    "weights": case(("poisson", "gaussian"), (2,) * 6, weights=True, missing=0.05, together=1),
    "not additive": case(("poisson-identity",), (2,) * 7, together=2),
    "one latent each": case(("poisson-identity",), (2,) * 6, together=1),
    "some additive": case(("poisson-identity", "gaussian"), (2,) * 7, together=3, weights=True),
    "all at once": case(
        ("poisson-identity", "gaussian"), (2, 3, 2, 2, 3), missing=0.1, together=2, weights=True
    ),
}
