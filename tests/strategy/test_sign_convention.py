"""Level 1 is the level at which a latent's items are higher, whatever their units and edges."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL
from hidag.em.design_data import WorkingData
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters
from hidag.strategy.labels import canonicalise_labels, measure_rises, shares_of_draws, shares_of_law

SPACE = StateSpace.binary(2)
LAW = np.array([[0.4, 0.1], [0.1, 0.4]])


def drawn(families, intercept, loadings, cutpoints=None):
    """A table of rows under a law of two latents, and the parameters on its working scale."""
    rng = np.random.default_rng(11)
    user = MeasurementParameters(
        families,
        np.asarray(intercept, float),
        np.asarray(loadings, float),
        np.ones(len(families)),
        cutpoints=cutpoints,
    )
    states = SPACE.states()[rng.choice(4, 400, p=LAW.ravel())]
    data = WorkingData.from_values(user.sample(states, rng), families)
    return data.to_working(user), data


def test_a_coefficient_at_an_edge_does_not_outvote_the_others():
    loadings = np.zeros((6, 2))
    loadings[:, 0] = [2.0, 2.0, 2.0, -40.0, 0.0, 0.0]
    loadings[4:, 1] = 2.0
    # The fourth item says nearly nothing: it is almost always 1.
    intercept = np.array([-1.0, -1.0, -1.0, 43.0, -1.0, -1.0])
    working, data = drawn(("bernoulli",) * 6, intercept, loadings)
    votes = measure_rises(working, data, shares_of_law(LAW))
    assert loadings[:, 0].sum() < 0
    assert votes.sum(axis=0).min() > 0
    assert np.abs(votes).max() <= 0.5
    assert [order.tolist() for order in _orders(working, data)] == [[0, 1], [0, 1]]


def _orders(working, data):
    return canonicalise_labels(working, data, shares_of_law(LAW), reorder=False)[1]


@pytest.mark.parametrize("family", ["gaussian", "lognormal", "poisson", "ordinal(4)"])
def test_turned_coefficients_turn_every_vote(family):
    loadings = np.zeros((4, 2))
    loadings[:2, 0], loadings[2:, 1] = 1.0, -1.0
    cutpoints = np.tile([0.7, 1.5], (4, 1)) if family.startswith("ordinal") else None
    working, data = drawn((family,) * 4, np.full(4, 0.5), loadings, cutpoints)
    votes = measure_rises(working, data, shares_of_law(LAW))
    assert (votes[:2, 0] > 0.05).all()
    assert (votes[2:, 1] < -0.05).all()
    assert (votes[:2, 1] == 0).all()
    assert [order.tolist() for order in _orders(working, data)] == [[0, 1], [1, 0]]


def test_what_other_latents_do_is_not_counted():
    # The second item rises with the first latent and falls with the second; these go together.
    working, data = drawn(("bernoulli",) * 2, [-1.0, 0.0], [[2.0, 0.0], [3.0, -1.0]])
    votes = measure_rises(working, data, shares_of_law(LAW))
    means = working.response_means(SPACE.states())[:, 1].reshape(2, 2)
    at_high = (means * LAW).sum(axis=0) / LAW.sum(axis=0)
    assert at_high[1] > at_high[0]
    assert votes[1, 1] < 0


def test_shares_of_draws_approach_those_of_the_law():
    rng = np.random.default_rng(4)
    levels = (2, 3, 2)
    cube = rng.dirichlet(np.ones(12)).reshape(levels)
    weights = rng.uniform(0.5, 2.0, 4000)
    states = np.array(np.unravel_index(rng.choice(12, (6, 4000), p=cube.ravel()), levels))
    draws = np.moveaxis(states, 0, -1).astype(np.uint8)
    by_law, by_draws = shares_of_law(cube), shares_of_draws(draws, levels, weights)
    for latents in [(0,), (1,), (0, 2), (1, 2), (0, 1, 2)]:
        assert by_draws(latents).shape == by_law(latents).shape
        assert by_draws(latents).sum() == pytest.approx(1.0)
        np.testing.assert_allclose(by_draws(latents), by_law(latents), atol=0.03)


def test_the_unit_of_an_item_turns_no_latent():
    rng = np.random.default_rng(8)
    z = rng.random((600, 1)) < 0.5
    chances = np.where(z, 0.8, 0.2)
    answers = (rng.random((600, 5)) < chances).astype(float)
    level = -1.2 * z + rng.normal(size=(600, 1))
    small = np.hstack([answers, level])
    large = np.hstack([answers, 1000.0 * level])
    families = ["bernoulli"] * 5 + ["gaussian"]
    fits = [DCRL(1, family=families, random_state=0).fit(values) for values in (small, large)]
    for fit in fits:
        assert (fit.loadings_[:5, 0] > 0).all()
        assert fit.loadings_[5, 0] < 0
    assert fits[1].loadings_[:, 0].sum() < 0
