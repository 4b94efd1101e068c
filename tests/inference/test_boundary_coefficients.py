"""Directions of coefficients on the boundary, with next to no information."""

from __future__ import annotations

from itertools import product

import numpy as np

from hidag.information.item_derivatives import boundary_directions, complement


def main_effects(n_latents):
    states = np.array(list(product((0, 1), repeat=n_latents)))
    return np.column_stack([np.ones(len(states)), states])


def with_interaction():
    design = main_effects(2)
    return np.column_stack([design, design[:, 1] * design[:, 2]])


def test_coefficients_of_a_boundary_pattern_are_on_the_boundary():
    found = boundary_directions(with_interaction(), np.array([1e-9, 5.0, 5.0, 5.0]))
    np.testing.assert_allclose(np.abs(found), [[0.5, 0.5, 0.5, 0.5]])
    np.testing.assert_allclose(with_interaction()[1:] @ found.T, 0.0, atol=1e-12)
    last = boundary_directions(with_interaction(), np.array([5.0, 5.0, 5.0, 1e-3]))
    np.testing.assert_allclose(np.abs(last), [[0, 0, 0, 1]], atol=1e-12)
    both = boundary_directions(with_interaction(), np.array([1e-9, 5.0, 5.0, 1e-9]))
    assert both.shape == (2, 4)
    np.testing.assert_allclose(both @ both.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(with_interaction()[1:3] @ both.T, 0.0, atol=1e-12)


def test_additive_effects_are_identified_despite_a_boundary_pattern():
    assert len(boundary_directions(main_effects(2), np.array([5.0, 5.0, 5.0, 0.0]))) == 0
    # All rows with the first latent give the same answer, for both levels of the second.
    found = boundary_directions(main_effects(2), np.array([5.0, 5.0, 0.1, 0.1]))
    np.testing.assert_allclose(np.abs(found), [[0, 1, 0]], atol=1e-12)


def test_many_weak_patterns_are_informative_together():
    # 64 patterns with less than half a row of information each.
    assert len(boundary_directions(main_effects(6), np.full(64, 0.4))) == 0
    assert len(boundary_directions(main_effects(6), np.full(64, 1e-3))) == 7


def test_states_of_one_pattern_count_together():
    twice = np.repeat(with_interaction(), 4, axis=0)
    assert len(boundary_directions(twice, np.full(16, 0.2))) == 0
    assert len(boundary_directions(twice, np.full(16, 0.01))) == 4


def test_complement_is_orthogonal_and_complete():
    directions = boundary_directions(with_interaction(), np.array([0.0, 5.0, 0.0, 5.0]))
    basis = complement(directions)
    whole = np.hstack([directions.T, basis])
    np.testing.assert_allclose(whole.T @ whole, np.eye(4), atol=1e-12)
