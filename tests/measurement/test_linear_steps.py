"""Terms of latents with linear steps: one score in place of the indicators of the levels."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters, lowest_of_main
from hidag.measurement.terms import Terms, interactions_within

LEVELS, LINEAR = (3, 2, 4), (2,)
PRODUCTS = interactions_within(np.ones((1, 3)), LEVELS, 3, LINEAR)


def some_items(terms, n_items=6):
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(n_items, terms.n_terms))
    return MeasurementParameters.linear(rng.normal(size=n_items), loadings, terms)


@pytest.fixture(params=[(), PRODUCTS], ids=["main", "products"])
def terms(request):
    return Terms(LEVELS, request.param, LINEAR)


def test_a_latent_with_linear_steps_has_one_term_with_equal_scores(terms):
    features = terms.features(StateSpace(LEVELS).states())
    assert terms.n_main == 4
    assert terms.names("ABC")[:4] == ["A>=1", "A>=2", "B", "C"]
    assert np.unique(features[:, 3]).tolist() == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0])


def test_products_multiply_scores():
    terms = Terms(LEVELS, PRODUCTS, LINEAR)
    states = StateSpace(LEVELS).states()
    for t, pairs in enumerate(terms.interactions, start=terms.n_main):
        own = [states[:, k] / 3 if k == 2 else states[:, k] >= u for k, u in pairs]
        np.testing.assert_allclose(terms.features(states)[:, t], np.prod(own, axis=0))


def test_two_levels_need_no_linear_steps():
    assert Terms.main((2, 3), (0, 1)).linear == (1,)


def test_reversed_levels_are_the_same_items(terms):
    items, states = some_items(terms), StateSpace(LEVELS).states()
    turned = items.flipped(np.array([True, False, True]))
    moved = states.copy()
    for k in (0, 2):
        moved[:, k] = LEVELS[k] - 1 - moved[:, k]
    np.testing.assert_allclose(turned.predictors(moved), items.predictors(states))


def test_reordered_latents_are_the_same_items(terms):
    items, states, order = some_items(terms), StateSpace(LEVELS).states(), np.array([2, 0, 1])
    moved = items.reordered(latents=order)
    assert moved.terms.linear == (0,)
    np.testing.assert_allclose(moved.predictors(states[:, order]), items.predictors(states))


def test_heights_strengths_and_lowest_predictors_are_those_of_the_states(terms):
    items, states = some_items(terms), StateSpace(LEVELS).states()
    predictors = items.predictors(states)
    for k in range(3):
        means = [predictors[:, states[:, k] == u].mean(axis=1) for u in range(LEVELS[k])]
        heights = np.stack(means, axis=1) - means[0][:, None]
        np.testing.assert_allclose(items.heights(k), heights, atol=1e-12)
        np.testing.assert_allclose(items.strengths[:, k], heights[:, -1], atol=1e-12)
    np.testing.assert_allclose(items.lowest_predictors(), predictors.min(axis=1))
    if not terms.interactions:
        np.testing.assert_allclose(
            lowest_of_main(items.coefficients, terms), predictors.min(axis=1)
        )


def test_free_and_linear_steps_are_rewritten_into_each_other():
    free, linear = Terms.main(LEVELS), Terms.main(LEVELS, LINEAR)
    states, items = StateSpace(LEVELS).states(), some_items(linear)
    as_free = items.with_terms(free)
    np.testing.assert_allclose(as_free.predictors(states), items.predictors(states))
    np.testing.assert_allclose(as_free.with_terms(linear).loadings, items.loadings)


def test_effects_per_level_become_the_total_of_linear_steps():
    given = np.array([[1.0, 2.0, 3.0]])
    assert Terms.main(LEVELS, LINEAR).even_steps(given).tolist() == [[1.0, 1.0, 2.0, 9.0]]


def test_thresholds_restore_products(terms):
    assert terms.main_only.with_thresholds(terms.thresholds) == terms
