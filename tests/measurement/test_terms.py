"""What coefficients multiply: thresholds, products, and what renaming does to them."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.exceptions import SettingError
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, Terms
from hidag.measurement.terms import ALL_ORDERS, Effects, interactions_within


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


LEVELS = (2, 3, 4)


def all_terms():
    return Terms(LEVELS, interactions_within(np.ones((1, 3)), LEVELS, 3))


def some_items(terms, n_items=6, seed=0):
    rng = np.random.default_rng(seed)
    return MeasurementParameters(
        ("gaussian",) * n_items,
        rng.normal(size=n_items),
        rng.normal(size=(n_items, terms.n_terms)),
        np.ones(n_items),
        terms,
    )


def test_features_are_products_of_reached_levels():
    terms, states = all_terms(), StateSpace(LEVELS).states()
    features = terms.features(states)
    assert terms.n_main == 6
    assert terms.n_terms == 2 * 3 * 4 - 1
    for s, state in enumerate(states):
        main = [float(state[k] >= u) for k, m in enumerate(LEVELS) for u in range(1, m)]
        products = [
            float(np.prod([state[k] >= u for k, u in pairs])) for pairs in terms.interactions
        ]
        assert features[s].tolist() == main + products
    # With every product the terms span all functions of the joint state.
    assert np.linalg.matrix_rank(np.hstack([np.ones((24, 1)), features])) == 24


def test_invalid_interactions_are_refused():
    with pytest.raises(SettingError) as caught:
        Terms(LEVELS, (((1, 1), (0, 1)),))
    assert str(caught.value) == (
        "an interaction must have two or more latents in ascending order, got ((1, 1), (0, 1))"
    )
    with pytest.raises(SettingError) as caught:
        Terms(LEVELS, (((0, 2), (1, 1)),))
    assert str(caught.value) == ("interaction ((0, 2), (1, 1)) has levels beyond (2, 3, 4)")


@pytest.mark.parametrize(
    "orders", [([1, 0], [0, 1, 2], [0, 1, 2, 3]), ([1, 0], [2, 0, 1], [3, 1, 0, 2])]
)
def test_calling_levels_by_other_names_changes_no_predictor(orders):
    items, states = some_items(all_terms()), StateSpace(LEVELS).states()
    moved = items.relevelled([np.array(order) for order in orders])
    old = np.stack([np.array(orders[k])[states[:, k]] for k in range(3)], axis=1)
    np.testing.assert_allclose(moved.predictors(states), items.predictors(old), atol=1e-12)


def test_flipping_is_reversing_and_twice_is_nothing():
    items, states = some_items(all_terms()), StateSpace(LEVELS).states()
    flips = np.array([True, False, True])
    moved = items.flipped(flips)
    old = np.where(flips, np.array(LEVELS) - 1 - states, states)
    np.testing.assert_allclose(moved.predictors(states), items.predictors(old), atol=1e-12)
    np.testing.assert_allclose(moved.flipped(flips).loadings, items.loadings, atol=1e-12)


def test_reordering_latents_reorders_states():
    items, order = some_items(all_terms()), np.array([2, 0, 1])
    moved = items.reordered(latents=order)
    states = StateSpace(tuple(LEVELS[k] for k in order)).states()
    old = np.empty_like(states)
    old[:, order] = states
    np.testing.assert_allclose(moved.predictors(states), items.predictors(old), atol=1e-12)


@pytest.mark.parametrize("terms", [Terms.main(LEVELS), all_terms()])
def test_lowest_predictors_are_the_smallest_over_all_states(terms):
    items = some_items(terms)
    expected = items.predictors(StateSpace(LEVELS).states()).min(axis=1)
    np.testing.assert_allclose(items.lowest_predictors(), expected, atol=1e-12)


def test_strengths_are_average_differences_between_highest_and_lowest_level():
    items, states = some_items(all_terms()), StateSpace(LEVELS).states()
    eta = items.predictors(states)
    for k, m in enumerate(LEVELS):
        gap = eta[:, states[:, k] == m - 1].mean(axis=1) - eta[:, states[:, k] == 0].mean(axis=1)
        np.testing.assert_allclose(items.strengths[:, k], gap, atol=1e-12)
        heights = np.stack([eta[:, states[:, k] == v].mean(axis=1) for v in range(m)], axis=1)
        np.testing.assert_allclose(items.heights(k), heights - heights[:, :1], atol=1e-12)


def test_interactions_stay_within_the_items_latents_and_the_order():
    q = np.array([[1, 1, 0], [0, 0, 1], [1, 1, 1]])
    latents = {tuple(k for k, _ in pairs) for pairs in interactions_within(q, (2, 2, 2), 2)}
    assert latents == {(0, 1), (0, 2), (1, 2)}
    assert len(interactions_within(q, (2, 2, 2), 9)) == 4
    assert interactions_within(q, (2, 2, 2), 1) == ()
    pairs = interactions_within(q[:1], (3, 2, 2), 2)
    assert pairs == (((0, 1), (1, 1)), ((0, 2), (1, 1)))


@pytest.mark.parametrize(
    ("given", "highest", "conjunctive", "turned"),
    [
        ("main", 1, False, False),
        ("acdm", 1, False, False),
        (2, 2, False, False),
        ("all", ALL_ORDERS, False, False),
        ("gdina", ALL_ORDERS, False, False),
        ("dina", ALL_ORDERS, True, False),
        ("dino", ALL_ORDERS, True, True),
    ],
)
def test_effects_by_name(given, highest, conjunctive, turned):
    assert Effects.of(given) == Effects(highest, conjunctive, turned)


@pytest.mark.parametrize("given", ["none", 0, True, 1.5, None])
def test_effects_of_no_kind_are_refused(given):
    with pytest.raises(SettingError) as caught:
        Effects.of(given)
    assert str(caught.value) == (
        "effects must be 'main', 'auto', 'all', 'acdm', 'gdina', 'dina', 'dino' or the highest "
        f"order of an interaction (1, 2, ...), got {given!r}"
    )


def test_interactions_that_no_item_has_are_left_out():
    terms, states = all_terms(), StateSpace(LEVELS).states()
    items = some_items(terms)
    loadings = np.array(items.loadings)
    # Only latents 0 and 1 act together.
    alone = [{k for k, _ in pairs} != {0, 1} for pairs in terms.interactions]
    loadings[:, terms.n_main :][:, alone] = 0.0
    items = MeasurementParameters(items.families, items.intercept, loadings, np.ones(6), terms)
    left = items.pruned()
    assert left.terms.interactions == (((0, 1), (1, 1)), ((0, 1), (1, 2)))
    np.testing.assert_allclose(left.predictors(states), items.predictors(states), atol=1e-12)
    flips = np.array([True, True, False])
    np.testing.assert_allclose(
        left.flipped(flips).predictors(states), items.flipped(flips).predictors(states), atol=1e-12
    )


def test_terms_come_back_from_what_they_ask():
    levels = (2, 3, 2)
    terms = Terms(levels, interactions_within(np.ones((1, 3)), levels, 3))
    assert terms.thresholds[:6].tolist() == [
        [1, 0, 0], [0, 1, 0], [0, 2, 0], [0, 0, 1], [1, 1, 0], [1, 2, 0],
    ]  # fmt: skip
    main = Terms.main(levels)
    assert main.with_thresholds(terms.thresholds) == terms
    assert terms.with_thresholds(main.thresholds) == main


def test_joined_terms_are_all_of_them_in_their_order():
    levels = (2, 3, 2)
    terms = Terms(levels, interactions_within(np.ones((1, 3)), levels, 3))
    some = Terms(levels, terms.interactions[2::2])
    others = [Terms(levels, terms.interactions[:3]), Terms(levels, terms.interactions[3:])]
    assert some.joined(others) == terms
    assert some.joined([]) == some


def test_strengths_among_states_that_occur_are_average_differences_between_these():
    rng = np.random.default_rng(0)
    terms = Terms((2, 3, 2), interactions_within(np.ones((1, 3), dtype=int), (2, 3, 2), 3))
    coefficients = rng.normal(size=(4, terms.n_terms))
    states = StateSpace((2, 3, 2)).states()
    every = terms.strengths_among(coefficients, states)
    np.testing.assert_allclose(every, terms.strengths(coefficients), atol=1e-12)
    # Nobody is above the lowest level of the second latent at the lowest of the first.
    possible = states[~((states[:, 0] == 0) & (states[:, 1] > 0))]
    found = terms.strengths_among(coefficients, possible)

    def predictor(*state):
        return coefficients @ terms.features(np.array([state]))[0]

    first = [predictor(1, 0, c) - predictor(0, 0, c) for c in (0, 1)]
    second = [predictor(1, 2, c) - predictor(1, 0, c) for c in (0, 1)]
    np.testing.assert_allclose(found[:, 0], np.mean(first, axis=0), atol=1e-12)
    np.testing.assert_allclose(found[:, 1], np.mean(second, axis=0), atol=1e-12)
