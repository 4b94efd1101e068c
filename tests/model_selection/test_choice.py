"""n_latents="auto": which number is taken, and that the fit says why."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from hidag import DCRL, design, fit_statistics, load, simulate
from hidag.exceptions import HidagWarning
from hidag.fitting.information_criteria import count_parameters, information_criteria
from hidag.fitting.number_of_latents import JudgedFit, choose_number
from hidag.initialization.factor_count import FactorCount


def count(parallel: int, bic: int, most: int = 8) -> FactorCount:
    """Return a count in which the two criteria say what they are told to."""
    noise = np.full(most, 0.5)
    eigenvalues = np.where(np.arange(1, most + 1) <= parallel, 1.0, 0.1)
    return FactorCount(eigenvalues, noise, np.abs(np.arange(most + 1.0) - bic), 100.0)


def test_where_the_correlations_agree_nothing_is_fitted():
    def never(k: int, strength: float | None) -> JudgedFit:
        raise AssertionError(k)

    assert choose_number(count(4, 4), never).n_latents == 4


@pytest.mark.parametrize(
    ("bic", "chosen", "fitted"),
    [
        # Parallel analysis is believed up to a near tie, and then not.
        ({5: 20.0, 4: 10.0}, 5, [5, 4]),
        ({5: 20.1, 4: 10.0, 3: 8.0}, 4, [5, 4, 3]),
        ({5: 20.1, 4: 10.0, 3: -1.0}, 3, [5, 4, 3]),
    ],
)
def test_where_they_do_not_fits_may_do_with_fewer(bic, chosen, fitted):
    asked = []

    def fit_of(k: int, strength: float | None) -> JudgedFit:
        asked.append(k)
        return JudgedFit(bic[k], 3.0)

    choice = choose_number(count(5, 3), fit_of)
    assert (choice.n_latents, asked) == (chosen, fitted)


def test_the_reason_tells_by_how_much_each_number_is_behind():
    bic = {5: 30.0, 4: 10.0, 3: 50.0}
    assert choose_number(count(5, 3), lambda k, strength: JudgedFit(bic[k], 3.0)).reason == (
        "parallel analysis says 5, factor BIC 3; the largest spectral gap is after 5; of fits, 4 "
        "is the largest number with a BIC within 10 of the best (the best: 4; behind it: 5 by "
        "20.0, 3 by 40.0)"
    )


def test_the_reason_tells_which_criterion_ended_at_the_most_that_was_looked_at():
    assert count(8, 3).describe() == (
        "parallel analysis says 8, the most that was looked at, factor BIC 3; the largest spectral "
        "gap is after 1"
    )
    assert "factor BIC 8, the most that was looked at; the" in count(3, 8).describe()
    assert "looked at" not in count(7, 3).describe()


def test_there_are_never_many_fits_and_far_too_many_latents_are_left_quickly():
    asked = []

    def fit_of(k: int, strength: float | None) -> JudgedFit:
        asked.append(k)
        return JudgedFit(20.0 * k, 3.0)

    assert choose_number(count(8, 1), fit_of).n_latents == 1
    assert asked == [8, 7, 5, 1]


def test_a_number_does_not_lose_for_a_stronger_penalty_than_the_best_ones():
    # Two latents are ahead only until three have had their penalty.
    bic = {(3, 5.0): 40.0, (2, 3.0): 20.0, (3, 3.0): 10.0}
    learned, asked = {3: 5.0, 2: 3.0}, []

    def fit_of(k: int, strength: float | None) -> JudgedFit:
        asked.append((k, strength))
        used = learned[k] if strength is None else strength
        return JudgedFit(bic[k, used], used)

    choice = choose_number(count(3, 2), fit_of)
    assert (choice.n_latents, asked) == (3, [(3, None), (2, None), (3, 3.0)])
    assert choice.reason.endswith("(the best: 3; behind it: 2 by 10.0)")


def test_without_a_likelihood_parallel_analysis_decides():
    choice = choose_number(count(6, 3), lambda k, strength: JudgedFit(float("nan"), 3.0))
    assert choice.n_latents == 6
    assert choice.reason.endswith("fits of 6 latents have no likelihood to compare")


def weak_fits(bic: dict[int, float], idle: dict[int, int], asked: list[int]):
    """Return a function that fits items which hardly show their latents."""

    def fit_of(k: int, strength: float | None) -> JudgedFit:
        asked.append(k)
        return JudgedFit(bic[k], 3.0, 40, 0.06, k - idle.get(k, 0))

    return fit_of


def test_where_items_hardly_show_latents_fits_may_add():
    asked: list[int] = []
    bic = {3: 40.0, 4: 30.0, 5: 20.0, 6: 8.0, 7: 10.1, 8: 25.0}
    choice = choose_number(count(5, 2), weak_fits(bic, {}, asked))
    assert (choice.n_latents, asked) == (6, [5, 6, 7, 8, 4])
    assert choice.reason == (
        "parallel analysis says 5, factor BIC 2; the largest spectral gap is after 5; items carry "
        "6% of the latents' information, where fits count for more than correlations; by BIC at "
        "that share of the rows 6 latents with at least 2 items are the best (the best: 6; behind "
        "it: 8 by 17.0, 7 by 2.1, 5 by 12.0, 4 by 22.0)"
    )


def test_where_fits_are_level_there_the_larger_number_is_taken():
    bic = dict.fromkeys(range(1, 9), 40.0) | {4: 20.0, 5: 22.0}
    choice = choose_number(count(5, 2), weak_fits(bic, {}, []))
    assert choice.n_latents == 5
    assert (
        "5 latents with at least 2 items are, of those within 2 of the best, the largest "
        in choice.reason
    )
    assert choose_number(count(5, 2), weak_fits(bic | {5: 22.1}, {}, [])).n_latents == 4


def test_latents_that_hardly_have_items_there_are_not_counted():
    asked: list[int] = []
    bic = dict.fromkeys(range(1, 9), 30.0) | {5: 20.0}
    assert choose_number(count(5, 2), weak_fits(bic, {5: 2}, asked)).n_latents == 3
    assert asked == [5, 6, 7, 4, 3]


def test_fits_that_get_better_and_better_end():
    asked: list[int] = []
    bic = {k: -20.0 * k for k in range(1, 20)}
    assert choose_number(count(3, 2, most=19), weak_fits(bic, {}, asked)).n_latents == 10
    assert asked == list(range(3, 11))


@pytest.fixture(scope="module")
def data():
    truth = design("Chain-5", "Q1", "gaussian", rng=1)
    return simulate(truth, 800, rng=2)


def test_a_fit_chooses_the_number_and_keeps_the_reason(data, tmp_path):
    model = DCRL("auto", family="gaussian", random_state=3).fit(data.X)
    assert model.q_matrix_.shape == (15, 5)
    assert model.result_.settings["n_latents"] == "auto"
    assert model.result_.n_latents_reason == (
        "parallel analysis and factor BIC both say 5; the largest spectral gap is after 5"
    )
    same = DCRL(5, family="gaussian", random_state=3).fit(data.X)
    assert np.array_equal(model.loadings_, same.loadings_)
    assert model.graph_ == same.graph_
    assert model.predict(data.X[:3]).shape == (3, 5)
    again = load(model.result_.save(tmp_path / "a.npz"))
    assert again.settings == model.result_.settings
    assert again.n_latents_reason == model.result_.n_latents_reason


def test_other_settings_can_tell_the_number(data):
    fixed = {"family": "gaussian", "random_state": 0, "n_starts": 1, "max_iter": 3}
    for told, reason in (
        ({"q_matrix": data.truth.q_matrix}, "as many as the Q-matrix has columns"),
        ({"latent_names": list("abc")}, "as many as there are names"),
        ({"levels": [2, 2]}, "as many as there are numbers of levels"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DCRL("auto", **fixed, **told).fit(data.X)
        assert model.result_.n_latents_reason == reason
        assert model.q_matrix_.shape[1] == len(next(iter(told.values()))) or "q_matrix" in told


def test_the_fit_that_is_kept_warns():
    values = np.random.default_rng(4).normal(size=(20, 30))
    with pytest.warns(HidagWarning, match="20 rows are few for"):
        DCRL("auto", family="gaussian", random_state=0).fit(values)


def test_criteria_count_what_is_free(data):
    result = DCRL(5, family="gaussian", random_state=0, law="saturated").fit(data.X).result_
    n_loadings = int(result.q_matrix.sum())
    assert count_parameters(result) == 15 + 15 + n_loadings + 31
    found = information_criteria(result)
    assert found.aic == pytest.approx(-2 * result.log_likelihood + 2 * found.n_parameters)
    assert found.bic == pytest.approx(-2 * result.log_likelihood + np.log(800) * found.n_parameters)
    assert found.ebic > found.bic
    given = DCRL(
        5, family="gaussian", random_state=0, q_matrix=data.truth.q_matrix, n_starts=1
    ).fit(data.X)
    fixed = information_criteria(given.result_)
    # Nothing of Q was chosen, so nothing is paid for choosing.
    assert fixed.ebic == fixed.bic
    assert information_criteria(result, 1600.0).bic > found.bic


def test_criteria_are_those_of_the_fit_statistics(data):
    model = DCRL(5, family="gaussian", random_state=0, n_starts=1).fit(data.X)
    ours = information_criteria(model.result_)
    theirs = fit_statistics(model.result_, data.X, n_tables=2).criteria
    for name in ("log_likelihood", "n_parameters", "aic", "bic", "ebic"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name))
