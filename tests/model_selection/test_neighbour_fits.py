"""Fits that begin where fits with one latent more or fewer ended."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, design, simulate
from hidag.fitting import number_of_latents
from hidag.fitting.number_of_latents import (
    Comparison,
    JudgedFit,
    Neighbours,
    can_tell,
    taken_apart,
    with_one_less,
)


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


def test_a_latent_taken_apart_leaves_items_and_their_means(four, data):
    places = list(taken_apart(four, np.array(data.X)))
    assert 0 < len(places) <= number_of_latents.MOST_TRIED
    before = four.parameters.loadings
    for items, law in places:
        assert (items.loadings.shape, law.shape) == ((15, 5), (32,))
        assert law.sum() == pytest.approx(1.0)
        assert (law > 0).all()
        # One latent's items are shared out between it and the new one.
        gone = np.flatnonzero((items.loadings[:, :4] != before).any(axis=0))
        assert len(gone) == 1
        assert items.loadings[:, gone[0]] + items.loadings[:, 4] == pytest.approx(
            before[:, gone[0]]
        )
        assert items.loadings[:, 4].any()


def test_missing_cells_and_weights_are_heeded(four, data):
    values = np.array(data.X)
    doubled = [law for _, law in taken_apart(four, np.vstack([values, values]))]
    weighted = [law for _, law in taken_apart(four, values, np.full(len(values), 2.0))]
    assert np.allclose(doubled, weighted)
    values[::3, 0] = np.nan
    assert all(np.isfinite(items.intercept).all() for items, _ in taken_apart(four, values))


def test_a_latent_left_out_leaves_the_others_as_they_were(four):
    before = four.parameters.loadings
    sizes = np.abs(before).sum(axis=0)
    places = list(with_one_less(four))
    assert len(places) == 4
    for (items, law), latent in zip(places, np.argsort(sizes), strict=True):
        assert items.loadings == pytest.approx(np.delete(before, latent, axis=1))
        assert (len(law), law.sum()) == (8, pytest.approx(1.0))


def test_predictors_keep_their_means_but_for_what_is_spread(four, data, monkeypatch):
    monkeypatch.setattr(number_of_latents, "spread_law", lambda law: law)
    wanted = mean_predictors(four.parameters, np.asarray(four.law.probabilities))
    for items, law in (*taken_apart(four, np.array(data.X)), *with_one_less(four)):
        assert mean_predictors(items, law) == pytest.approx(wanted)


@pytest.mark.filterwarnings("ignore")
def test_a_fit_begun_at_a_neighbour_finds_what_was_found_as_one(four, data):
    values = np.array(data.X)
    found = []
    for place in taken_apart(four, values):
        model = DCRL(5, family="gaussian", random_state=0)._begun_at(place)
        found.append(model.fit(values).log_likelihood_)
    searched = DCRL(5, family="gaussian", random_state=0).fit(values).log_likelihood_
    assert max(found) == pytest.approx(searched, abs=1.0)


@pytest.mark.filterwarnings("ignore")
def test_only_binary_latents_whose_effects_add_up_tell(four, data):
    assert can_tell(four)
    model = DCRL(2, levels=3, family="gaussian", random_state=0, n_starts=1, max_iter=3)
    assert not can_tell(model.fit(data.X).result_)


def weak(bic: float, k: int, result: object) -> JudgedFit:
    return JudgedFit(bic, 3.0, 10, 0.05, k, result=result)


@pytest.fixture
def places(monkeypatch):
    """Let a fit tell whatever stands in place of its result, and one place from each."""
    monkeypatch.setattr(number_of_latents, "can_tell", lambda result: True)
    monkeypatch.setattr(
        number_of_latents, "taken_apart", lambda result, values, weights: [(result, "more")]
    )
    monkeypatch.setattr(number_of_latents, "with_one_less", lambda result: [(result, "less")])


def test_numbers_tell_each_other_until_none_gets_better(places):
    fits = {k: [weak(bic, k, k)] for k, bic in ((3, 50.0), (4, 20.0), (5, 40.0))}
    asked = []
    better = {(5, (4, "more")): 15.0, (4, ("5 begun", "less")): 12.0}

    def begun(k, place):
        asked.append((k, place))
        return weak(better.get((k, place), 99.0), k, f"{k} begun")

    neighbours = Neighbours(fits, begun, np.zeros((2, 2)))
    compared = Comparison(4, fits)
    assert neighbours.tell(compared)
    assert asked == [
        (4, (3, "more")),
        (5, (4, "more")),
        (4, ("5 begun", "less")),
        (3, ("4 begun", "less")),
    ]
    assert [len(ones) for ones in fits.values()] == [1, 2, 2]
    asked.clear()
    # Only who has something new to tell is asked again.
    assert not neighbours.tell(compared)
    assert asked == [(5, ("4 begun", "more"))]


def test_of_those_that_began_at_a_neighbour_one_is_kept(places):
    fits = {3: [weak(50.0, 3, 3)], 4: [weak(40.0, 4, 4)]}
    values = iter([35.0, 30.0, 25.0, 20.0, 15.0, 10.0, 5.0])
    neighbours = Neighbours(fits, lambda k, place: weak(next(values), k, place), np.zeros((2, 2)))
    rounds = 0
    while neighbours.tell(Comparison(4, fits)):
        rounds += 1
    assert rounds == number_of_latents.MOST_ROUNDS
    assert [len(ones) for ones in fits.values()] == [2, 2]


def test_where_items_show_their_latents_nothing_is_asked():
    fits = {3: [JudgedFit(50.0, 3.0)], 4: [JudgedFit(40.0, 3.0)]}

    def never(k, place):
        raise AssertionError(k)

    assert not Neighbours(fits, never, np.zeros((2, 2))).tell(Comparison(4, fits))


def test_a_fit_whose_last_latent_ends_idle_stands_for_the_number_below(places):
    fits = {3: [weak(50.0, 3, 3)], 4: [weak(40.0, 4, 4)]}

    def begun(k, place):
        return weak(45.0, 3, "four, one of them idle") if k == 4 else weak(99.0, k, "worse")

    compared = Comparison(4, fits)
    assert compared.standing == {3: pytest.approx(at_price(50.0)), 4: pytest.approx(at_price(40.0))}
    Neighbours(fits, begun, np.zeros((2, 2))).tell(compared)
    assert compared.standing == {3: pytest.approx(at_price(45.0)), 4: pytest.approx(at_price(40.0))}
    assert [len(ones) for ones in fits.values()] == [1, 2]


def at_price(bic: float) -> float:
    """Return the BIC of :func:`weak` at the share of rows that its items are worth."""
    return bic + 10 * np.log(0.05)
