"""Drawn joint states follow the rows' posteriors, by listing and by the junction tree."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.em.posterior import state_posteriors
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import MeasurementParameters, Terms
from hidag.network_em.junction_tree import TreePosterior
from hidag.network_em.posterior import draw_listed_states


@pytest.mark.parametrize("method", ["listed", "junction tree"])
def test_draws_follow_the_posterior_of_joint_states(method):
    rng = np.random.default_rng(0)
    levels = (2, 3, 2)
    space, parents = StateSpace(levels), ((), (0,), (0, 1))
    tables = (
        np.array([0.4, 0.6]),
        np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]),
        rng.dirichlet(np.ones(2), size=(2, 3)),
    )
    law = NetworkLaw(space, parents, tables)
    terms = Terms.main(levels)
    loadings = np.array([[1.0, 0, 0, 0], [0, 0.8, 0.8, 0], [0, 0, 0, 1.2], [0.5, 0, 0, 0.5]])
    parameters = MeasurementParameters(
        ("gaussian", "gaussian", "bernoulli", "poisson"),
        np.zeros(4), loadings, np.ones(4), terms,
    )  # fmt: skip
    rows = np.array([[0.3, np.nan, 1.0, 2.0], [1.5, 1.0, 0.0, np.nan]])
    n_times = 40_000
    many = np.repeat(rows, n_times, axis=0)
    if method == "listed":
        states = draw_listed_states(parameters, law, many, rng)
    else:
        tree = TreePosterior.of(parameters, law)
        assert tree is not None
        states = tree.draw_states(many, rng)
    ((_, expected),) = state_posteriors(parameters, law, rows)
    for row, right in enumerate(expected):
        mine = space.number(states[row * n_times : (row + 1) * n_times])
        shares = np.bincount(mine, minlength=space.n_states) / n_times
        np.testing.assert_allclose(shares, right, atol=0.01)
        assert not shares[right == 0.0].any()
