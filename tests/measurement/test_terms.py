from __future__ import annotations

import numpy as np

from hidag.measurement import MeasurementParameters, Terms
from hidag.measurement.terms import interactions_within


def test_reordered_terms_stand_in_the_order_of_the_new_latents():
    levels = (2, 3, 2)
    terms = Terms(levels, interactions_within(np.ones((1, 3)), levels, 3))
    rng = np.random.default_rng(0)
    items = MeasurementParameters(
        ("gaussian",) * 2,
        rng.normal(size=2),
        rng.normal(size=(2, terms.n_terms)),
        np.ones(2),
        terms,
    )
    order = np.array([2, 0, 1])
    moved = items.reordered(latents=order)
    assert moved.terms.names("CAB") == [
        *("C", "A", "B>=1", "B>=2", "C*A", "C*B>=1", "C*B>=2", "A*B>=1", "A*B>=2"),
        *("C*A*B>=1", "C*A*B>=2"),
    ]
    # The items are the same items.
    states = np.stack([axis.ravel() for axis in np.indices(levels)], axis=1)
    np.testing.assert_allclose(moved.predictors(states[:, order]), items.predictors(states))
