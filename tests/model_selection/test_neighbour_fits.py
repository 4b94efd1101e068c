"""Refits with initial values from fits with one latent more or fewer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL, design, simulate
from hidag.config import CONFIG
from hidag.model_selection import Candidate, neighbour_fits
from hidag.model_selection.comparison import Comparison
from hidag.model_selection.neighbour_fits import (
    NeighbourFits,
    can_initialize,
    find_failed_fits,
    remove_latents,
    split_latents,
)

from .stand_ins import Numbers


@pytest.fixture(scope="module")
def data():
    return simulate(design("Chain-5", "Q1", "gaussian", rng=5), 400, rng=6)


@pytest.fixture(scope="module")
def four(data):
    return DCRL(4, family="gaussian", random_state=0, n_starts=1).fit(data.X).result_


def mean_predictors(items, law) -> np.ndarray:
    """Return the mean over the law of each item's predictor."""
    k = items.loadings.shape[1]
    states = np.indices((2,) * k).reshape(k, -1)
    return items.intercept + items.loadings @ (states @ law)


def test_a_split_latent_shares_its_items_with_the_new_one(four, data):
    places = list(split_latents(four, np.array(data.X)))
    assert 0 < len(places) <= CONFIG.selection.max_neighbour_starts
    before = four.parameters.loadings
    for items, law in places:
        assert (items.loadings.shape, law.shape) == ((15, 5), (32,))
        assert law.sum() == pytest.approx(1.0)
        assert (law > 0).all()
        gone = np.flatnonzero((items.loadings[:, :4] != before).any(axis=0))
        assert len(gone) == 1
        assert items.loadings[:, gone[0]] + items.loadings[:, 4] == pytest.approx(
            before[:, gone[0]]
        )
        assert items.loadings[:, 4].any()


def test_splits_use_weights_and_accept_missing_cells(four, data):
    values = np.array(data.X)
    doubled = [law for _, law in split_latents(four, np.vstack([values, values]))]
    weighted = [law for _, law in split_latents(four, values, np.full(len(values), 2.0))]
    assert np.allclose(doubled, weighted)
    values[::3, 0] = np.nan
    assert all(np.isfinite(items.intercept).all() for items, _ in split_latents(four, values))


def test_removing_a_latent_leaves_the_others_unchanged(four):
    before = four.parameters.loadings
    sizes = np.abs(before).sum(axis=0)
    places = list(remove_latents(four))
    assert len(places) == 4
    for (items, law), latent in zip(places, np.argsort(sizes), strict=True):
        assert items.loadings == pytest.approx(np.delete(before, latent, axis=1))
        assert (len(law), law.sum()) == (8, pytest.approx(1.0))


def test_means_of_predictors_do_not_change_without_spreading(four, data, monkeypatch):
    monkeypatch.setattr(neighbour_fits, "spread_law", lambda law: law)
    wanted = mean_predictors(four.parameters, np.asarray(four.law.probabilities))
    for items, law in (*split_latents(four, np.array(data.X)), *remove_latents(four)):
        assert mean_predictors(items, law) == pytest.approx(wanted)


@pytest.mark.filterwarnings("ignore")
def test_a_refit_from_a_neighbour_reaches_the_optimum_of_the_search(four, data):
    values = np.array(data.X)
    found = []
    for place in split_latents(four, values):
        model = DCRL(5, family="gaussian", random_state=0)._start_from(place)
        found.append(model.fit(values).log_likelihood_)
    searched = DCRL(5, family="gaussian", random_state=0).fit(values).log_likelihood_
    assert max(found) == pytest.approx(searched, abs=1.0)


@pytest.mark.filterwarnings("ignore")
def test_only_binary_latents_with_main_effects_initialize_neighbours(four, data):
    assert can_initialize(four)
    model = DCRL(2, levels=3, family="gaussian", random_state=0, n_starts=1, max_iter=3)
    assert not can_initialize(model.fit(data.X).result_)


def weak(bic: float, k: int, result: object) -> Numbers:
    return Numbers(bic, 3.0, 10, 0.05, k, result=result)


@pytest.fixture
def places(monkeypatch):
    """Replace initial values by a label, one for each direction."""
    monkeypatch.setattr(neighbour_fits, "can_initialize", lambda result: True)
    monkeypatch.setattr(
        neighbour_fits, "split_latents", lambda result, values, weights: [(result, "more")]
    )
    monkeypatch.setattr(neighbour_fits, "remove_latents", lambda result: [(result, "less")])


def test_numbers_are_refitted_until_none_improves(places):
    fits = {k: [weak(bic, k, k)] for k, bic in ((3, 50.0), (4, 20.0), (5, 40.0))}
    asked = []
    better = {(5, (4, "more")): 15.0, (4, ("5 refitted", "less")): 12.0}

    def fit_from(k, place):
        asked.append((k, place))
        return weak(better.get((k, place), 99.0), k, f"{k} refitted")

    neighbours = NeighbourFits(fits, fit_from, np.zeros((2, 2)))
    compared = Comparison(4, fits)
    assert neighbours.improve(compared)
    assert asked == [
        (4, (3, "more")),
        (5, (4, "more")),
        (4, ("5 refitted", "less")),
        (3, ("4 refitted", "less")),
    ]
    assert [len(ones) for ones in fits.values()] == [1, 2, 2]
    asked.clear()
    # Only a new best fit initializes its neighbours again.
    assert not neighbours.improve(compared)
    assert asked == [(5, ("4 refitted", "more"))]


def test_one_refit_per_number_is_added(places):
    fits = {3: [weak(50.0, 3, 3)], 4: [weak(40.0, 4, 4)]}
    values = iter([35.0, 30.0, 25.0, 20.0, 15.0, 10.0, 5.0])
    neighbours = NeighbourFits(
        fits, lambda k, place: weak(next(values), k, place), np.zeros((2, 2))
    )
    rounds = 0
    while neighbours.improve(Comparison(4, fits)):
        rounds += 1
    assert rounds == CONFIG.selection.max_neighbour_rounds
    assert [len(ones) for ones in fits.values()] == [2, 2]


def test_without_low_information_there_are_no_refits():
    fits = {3: [Numbers(50.0, 3.0)], 4: [Numbers(40.0, 3.0)]}

    def never(k, place):
        raise AssertionError(k)

    assert not NeighbourFits(fits, never, np.zeros((2, 2))).improve(Comparison(4, fits))


def test_a_refit_with_an_inactive_latent_counts_for_the_number_below(places):
    fits = {3: [weak(50.0, 3, 3)], 4: [weak(40.0, 4, 4)]}

    def fit_from(k, place):
        return weak(45.0, 3, "four, one of them idle") if k == 4 else weak(99.0, k, "worse")

    compared = Comparison(4, fits)
    assert compared.active_bic == {
        3: pytest.approx(at_effective_size(50.0)),
        4: pytest.approx(at_effective_size(40.0)),
    }
    NeighbourFits(fits, fit_from, np.zeros((2, 2))).improve(compared)
    assert compared.active_bic == {
        3: pytest.approx(at_effective_size(45.0)),
        4: pytest.approx(at_effective_size(40.0)),
    }
    assert [len(ones) for ones in fits.values()] == [1, 2]


def at_effective_size(bic: float) -> float:
    """Return the BIC of :func:`weak` at its effective sample size."""
    return bic + 10 * np.log(0.05)


def test_a_fit_worse_than_on_both_sides_has_failed():
    assert find_failed_fits({4: 50.0, 5: 30.0, 6: 45.0, 7: 34.0}) == [6]
    # Less is a near tie; ends and gaps of the path show nothing.
    assert find_failed_fits({5: 30.0, 6: 44.0, 7: 34.0}) == []
    assert find_failed_fits({5: 30.0, 6: 45.0}) == []
    assert find_failed_fits({4: 30.0, 6: 45.0, 7: 34.0}) == []


@pytest.mark.filterwarnings("ignore")
def test_a_failed_fit_is_repaired_from_its_neighbours(data):
    values = np.asarray(data.X)

    def fit(k, start=None, max_iter=300):
        model = DCRL(k, family="gaussian", random_state=0, n_starts=1, max_iter=max_iter)
        return Candidate.of(model._start_from(start).fit(values).result_)

    good = fit(5)
    # The search for five latents ended at a poor place.
    fits = {
        4: [fit(4)],
        5: [replace(good, criteria=replace(good.criteria, bic=good.bic + 2000.0))],
        6: [fit(6)],
    }
    compared = Comparison(5, fits)
    assert not compared.low_information
    assert find_failed_fits(compared.bic) == [5]
    neighbours = NeighbourFits(fits, fit, values)
    assert neighbours.improve(compared)
    assert compared.bic[5] == pytest.approx(good.bic, abs=5.0)
    assert find_failed_fits(compared.bic) == []
