"""Evidence of loadings: against numerical integrals, and what it depends on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import comb
from scipy.stats import norm

from hidag.em.information import fit_loading_prior, log_evidence
from hidag.measurement import MeasurementParameters

ALL_OPTIONAL = np.ones((4, 2), dtype=bool)


def items_with(loadings) -> MeasurementParameters:
    loadings = np.array(loadings, dtype=float)
    n_items = len(loadings)
    return MeasurementParameters(
        ("bernoulli",) * n_items, np.zeros(n_items), loadings, np.ones(n_items)
    )


def information_of(n_items, n_latents, amount):
    """Return the same information for each item, with coefficients that depend on each other."""
    one = np.full((1 + n_latents, 1 + n_latents), 0.3) + 0.7 * np.eye(1 + n_latents)
    return np.repeat(amount * one[None], n_items, axis=0)


def test_one_loading_an_item_costs_what_integrating_over_it_costs():
    items = items_with([[1.4, 0], [0.9, 0], [0, 1.1], [0, 2.0]])
    information = information_of(4, 2, 20.0)
    # The intercept is not known either: it takes .3 * .3 of each loading's information.
    left = 20.0 * (1.0 - 0.3**2) + 1e-3
    values = [np.array([b]) for b in (1.4, 0.9, 1.1, 2.0)]
    mean, variance = fit_loading_prior(values, [np.array([[left]])] * 4)

    def integral(b):
        both = lambda x: np.exp(-0.5 * left * (x - b) ** 2) * norm.pdf(x, mean, variance**0.5)  # noqa: E731
        return np.log(quad(both, b - 8, b + 8, points=[b])[0])

    # Four of eight loadings: every number of them is as probable, and so is every choice of them.
    choice = -np.log(9 * comb(8, 4))
    expected = sum(integral(b) for b in (1.4, 0.9, 1.1, 2.0)) + choice
    assert log_evidence(items, information, np.ones(4), ALL_OPTIONAL) == pytest.approx(expected)


def test_loadings_cost_less_with_less_information():
    items = items_with([[1, 0], [1.5, 0], [0, 1.2], [0, 0.8]])
    costs = [
        -log_evidence(items, information_of(4, 2, amount), np.ones(4), ALL_OPTIONAL)
        for amount in (5.0, 50.0, 500.0)
    ]
    assert costs == sorted(costs)
    assert costs[2] > costs[0] + 2


def test_loadings_of_one_size_cost_less_than_tiny_and_huge_ones():
    information = information_of(4, 2, 30.0)
    similar = items_with([[1, 0], [1.1, 0], [0, 0.9], [0, 1]])
    mixed = items_with([[0.2, 0], [3.4, 0], [0, 0.3], [0, 0.1]])
    assert log_evidence(similar, information, np.ones(4), ALL_OPTIONAL) > 2 + log_evidence(
        mixed, information, np.ones(4), ALL_OPTIONAL
    )


def test_names_of_levels_and_units_of_items_do_not_matter():
    items = items_with([[1, 0.4], [1.5, 0], [-0.3, 1.2], [0, 0.8]])
    information = information_of(4, 2, 30.0)
    plain = log_evidence(items, information, np.ones(4), ALL_OPTIONAL)
    turned = replace(items, loadings=items.loadings * [1, -1])
    sign = np.array([1.0, 1.0, -1.0])
    assert log_evidence(
        turned, information * np.outer(sign, sign), np.ones(4), ALL_OPTIONAL
    ) == pytest.approx(plain)
    units = np.array([1.0, 10.0, 0.1, 3.0])
    stretched = replace(items, loadings=items.loadings * units[:, None])
    assert log_evidence(
        stretched, information / units[:, None, None] ** 2, units, ALL_OPTIONAL
    ) == pytest.approx(plain, abs=0.01)


def test_given_loadings_are_not_part_of_the_support_prior():
    items = items_with([[1, 0], [1.5, 0], [0, 1.2], [0, 0.8]])
    information = information_of(4, 2, 30.0)
    known = items.loadings == 0
    as_choice = log_evidence(items, information, np.ones(4), ALL_OPTIONAL)
    as_known = log_evidence(items, information, np.ones(4), known)
    # Of four loadings that could be there none is: one of five numbers, and one way to have it.
    assert as_known - as_choice == pytest.approx(-np.log(5) + np.log(9 * comb(8, 4)))


def test_items_without_loadings_cost_the_choice_only():
    nothing = log_evidence(
        items_with(np.zeros((4, 2))), information_of(4, 2, 30.0), np.ones(4), ALL_OPTIONAL
    )
    assert nothing == pytest.approx(-np.log(9))


def test_the_distribution_of_loadings_is_learned():
    rng = np.random.default_rng(5)
    true = rng.normal(1.2, 0.6, size=400)
    values = [np.array([b]) for b in true + rng.normal(0, 0.4, size=400)]
    mean, variance = fit_loading_prior(values, [np.array([[1 / 0.4**2]])] * 400)
    assert mean == pytest.approx(1.2, abs=0.1)
    assert variance == pytest.approx(0.36, abs=0.1)
