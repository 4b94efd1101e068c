"""n_latents="auto": the selected number and its reason."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, poisson

from hidag import DCRL, design, fit_statistics, load, simulate
from hidag.exceptions import DataError, HidagWarning, IdentifiabilityWarning
from hidag.fitting.information_criteria import count_parameters, information_criteria
from hidag.model_selection.automatic_number import choose_number
from hidag.model_selection.candidates import independent_criteria
from hidag.model_selection.factor_count import FactorCount

from .stand_ins import Numbers


def count(parallel: int, bic: int, most: int = 8) -> FactorCount:
    """Return a count in which the two criteria select given numbers."""
    noise = np.full(most, 0.5)
    eigenvalues = np.where(np.arange(1, most + 1) <= parallel, 1.0, 0.1)
    return FactorCount(eigenvalues, noise, np.abs(np.arange(most + 1.0) - bic), 100.0)


def test_agreeing_correlations_need_no_fits():
    def never(k: int, strength: float | None) -> Numbers:
        raise AssertionError(k)

    assert choose_number(count(4, 4), never).n_latents == 4


@pytest.mark.parametrize(
    ("bic", "chosen", "fitted"),
    [
        # The count stands up to a near tie of BIC.
        ({5: 20.0, 4: 10.0}, 5, [5, 4]),
        ({5: 20.1, 4: 10.0, 3: 8.0}, 4, [5, 4, 3]),
        ({5: 20.1, 4: 10.0, 3: -1.0}, 3, [5, 4, 3]),
    ],
)
def test_fits_may_lower_the_count(bic, chosen, fitted):
    asked = []

    def fit_of(k: int, strength: float | None) -> Numbers:
        asked.append(k)
        return Numbers(bic[k], 3.0)

    choice = choose_number(count(5, 3), fit_of)
    assert (choice.n_latents, asked) == (chosen, fitted)


def test_the_reason_has_the_bic_differences():
    bic = {5: 30.0, 4: 10.0, 3: 50.0}
    assert choose_number(count(5, 3), lambda k, strength: Numbers(bic[k], 3.0)).reason == (
        "parallel analysis selects 5 and factor BIC 3; the largest spectral gap is after 5; 4 is "
        "the largest number of latents with a BIC within 10 of the best (best: 4; differences: 5: "
        "+20.0, 3: +40.0)"
    )


def test_a_count_beyond_the_items_is_a_reason_and_a_coded_message():
    beyond = replace(count(8, 8), largest=6)
    choice = choose_number(beyond, lambda k, strength: Numbers(0.0, 3.0))
    assert choice.n_latents == 6
    assert choice.reason == (
        "parallel analysis and factor BIC both select 8, but 6 is the largest number that can be "
        "selected"
    )
    assert choice.limit.code == "number-limited-by-items"
    assert str(choice.limit).endswith("; add items: 8 latents need at least 17")
    # A number below the limit, and one that fits lower, need no message.
    assert choose_number(replace(count(6, 6), largest=6), None).limit is None
    lowered = choose_number(
        replace(count(8, 3), largest=6), lambda k, strength: Numbers(20.0 * k, 3.0)
    )
    assert (lowered.n_latents, lowered.limit) == (3, None)


def test_no_common_factor_means_no_latent():
    choice = choose_number(count(0, 0), None)
    assert (choice.n_latents, choice.limit) == (0, None)
    assert choice.reason == "the correlations are consistent with independent items"


def test_fits_may_lower_the_count_to_none_if_one_criterion_selects_none():
    for ahead, chosen in ((-0.1, 1), (0.1, 0)):

        def fit_of(k: int, strength: float | None, ahead: float = ahead) -> Numbers:
            return Numbers({1: ahead, 0: 0.0}[k], 3.0, n_active=k)

        # There is no near tie: one criterion counts no factor.
        assert choose_number(count(1, 0), fit_of).n_latents == chosen
        # Both criteria count one.
        assert choose_number(count(1, 1), fit_of).n_latents == 1


def test_steps_down_double_and_the_number_of_fits_is_bounded():
    asked = []

    def fit_of(k: int, strength: float | None) -> Numbers:
        asked.append(k)
        return Numbers(20.0 * k, 3.0)

    assert choose_number(count(8, 1), fit_of).n_latents == 1
    assert asked == [8, 7, 5, 1]


def test_a_number_is_also_fitted_with_the_weaker_penalty_of_the_best():
    # Two latents have the smaller BIC until three are fitted with the same penalty.
    bic = {(3, 5.0): 40.0, (2, 3.0): 20.0, (3, 3.0): 10.0}
    learned, asked = {3: 5.0, 2: 3.0}, []

    def fit_of(k: int, strength: float | None) -> Numbers:
        asked.append((k, strength))
        used = learned[k] if strength is None else strength
        return Numbers(bic[k, used], used)

    choice = choose_number(count(3, 2), fit_of)
    assert (choice.n_latents, asked) == (3, [(3, None), (2, None), (3, 3.0)])
    assert choice.reason.endswith("(best: 3; differences: 2: +10.0)")


def test_without_a_likelihood_parallel_analysis_decides():
    choice = choose_number(count(6, 3), lambda k, strength: Numbers(float("nan"), 3.0))
    assert choice.n_latents == 6
    assert choice.reason.endswith("fits with 6 latents have no likelihood to compare")


def weak_fits(bic: dict[int, float], idle: dict[int, int], asked: list[int]):
    """Return a function that fits items with a low information ratio."""

    def fit_of(k: int, strength: float | None) -> Numbers:
        asked.append(k)
        return Numbers(bic[k], 3.0, 40, 0.06, k - idle.get(k, 0))

    return fit_of


def test_with_low_information_fits_may_raise_the_count():
    asked: list[int] = []
    bic = {3: 40.0, 4: 30.0, 5: 20.0, 6: 8.0, 7: 10.1, 8: 25.0}
    choice = choose_number(count(5, 2), weak_fits(bic, {}, asked))
    assert (choice.n_latents, asked) == (6, [5, 6, 7, 8, 4])
    assert choice.reason == (
        "parallel analysis selects 5 and factor BIC 2; the largest spectral gap is after 5; the "
        "information ratio is 6%, so that fits decide: at this share of the rows, and counting "
        "latents with at least 2 items, 6 has the smallest BIC (best: 6; differences: 8: +17.0, "
        "7: +2.1, 5: +12.0, 4: +22.0)"
    )


def test_with_low_information_the_largest_of_tied_numbers_is_selected():
    bic = dict.fromkeys(range(1, 9), 40.0) | {4: 20.0, 5: 22.0}
    choice = choose_number(count(5, 2), weak_fits(bic, {}, []))
    assert choice.n_latents == 5
    assert "5 is the largest number with a BIC within 2 of the best" in choice.reason
    assert choose_number(count(5, 2), weak_fits(bic | {5: 22.1}, {}, [])).n_latents == 4


def test_with_low_information_inactive_latents_do_not_count():
    asked: list[int] = []
    bic = dict.fromkeys(range(1, 9), 30.0) | {5: 20.0}
    assert choose_number(count(5, 2), weak_fits(bic, {5: 2}, asked)).n_latents == 3
    assert asked == [5, 6, 7, 4, 3]


def test_the_number_of_fits_is_bounded_while_bic_improves():
    asked: list[int] = []
    bic = {k: -20.0 * k for k in range(1, 20)}
    choice = choose_number(count(3, 2, most=19), weak_fits(bic, {}, asked))
    assert (choice.n_latents, choice.limit.code) == (10, "number-limited-by-fits")
    assert asked == list(range(3, 11))


@pytest.fixture(scope="module")
def data():
    truth = design("Chain-5", "Q1", "gaussian", rng=1)
    return simulate(truth, 800, rng=2)


def test_a_fit_selects_the_number_and_stores_the_reason(data, tmp_path):
    model = DCRL("auto", family="gaussian", random_state=3).fit(data.X)
    assert model.q_matrix_.shape == (15, 5)
    assert model.result_.settings["n_latents"] == "auto"
    assert model.result_.n_latents_reason == (
        "parallel analysis and factor BIC both select 5; the largest spectral gap is after 5"
    )
    same = DCRL(5, family="gaussian", random_state=3).fit(data.X)
    assert np.array_equal(model.loadings_, same.loadings_)
    assert model.graph_ == same.graph_
    assert model.predict(data.X[:3]).shape == (3, 5)
    again = load(model.result_.save(tmp_path / "a.npz"))
    assert again.settings == model.result_.settings
    assert again.n_latents_reason == model.result_.n_latents_reason


def test_other_settings_imply_the_number(data):
    fixed = {"family": "gaussian", "random_state": 0, "n_starts": 1, "max_iter": 3}
    for implied, reason in (
        ({"q_matrix": data.truth.q_matrix}, "the Q-matrix has 5 columns"),
        ({"latent_names": list("abc")}, "the names of 3 latents are given"),
        ({"levels": [2, 2]}, "the levels of 2 latents are given"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DCRL("auto", **fixed, **implied).fit(data.X)
        assert model.result_.n_latents_reason == reason
        assert (
            model.q_matrix_.shape[1] == len(next(iter(implied.values()))) or "q_matrix" in implied
        )


def test_the_selected_fit_warns():
    rng = np.random.default_rng(4)
    values = rng.integers(0, 2, (20, 1)) * 4.0 + rng.normal(size=(20, 30))
    with pytest.warns(HidagWarning, match="20 rows are few for"):
        DCRL("auto", family="gaussian", random_state=0).fit(values)


def test_independent_items_are_an_error_with_a_code():
    values = np.random.default_rng(1).normal(size=(400, 9))
    with pytest.raises(DataError) as caught:
        DCRL("auto", family="gaussian", random_state=0).fit(values)
    assert caught.value.code == "independent-items"
    assert str(caught.value) == (
        "the items are independent: no latent is supported (the correlations are consistent with "
        "independent items); check the table with hidag.select, or fit one latent all the same "
        "with n_latents=1"
    )


def test_a_fit_whose_number_the_items_limit_warns():
    rng = np.random.default_rng(0)
    states = rng.integers(0, 2, (800, 3))
    values = 3.0 * states[:, [0, 0, 1, 1, 2, 2]] + rng.normal(0, 0.5, (800, 6))
    with pytest.warns(IdentifiabilityWarning) as caught:
        model = DCRL("auto", family="gaussian", random_state=0, n_starts=1).fit(values)
    assert model.q_matrix_.shape == (6, 2)
    assert "number-limited-by-items" in {warning.message.code for warning in caught}
    assert "2 is the largest number that can be selected" in model.result_.n_latents_reason


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson", "categorical(3)"])
def test_the_model_without_latents_has_the_likelihood_of_independent_items(family):
    rng = np.random.default_rng(7)
    values = {
        "gaussian": rng.normal(2.0, 3.0, (60, 2)),
        "bernoulli": rng.integers(0, 2, (60, 2)),
        "poisson": rng.poisson(4.0, (60, 2)),
        "categorical(3)": rng.integers(0, 3, (60, 2)),
    }[family].astype(float)
    expected = 0.0
    for x in values.T:
        if family == "gaussian":
            expected += norm.logpdf(x, x.mean(), x.std()).sum()
        elif family == "poisson":
            expected += poisson.logpmf(x, x.mean()).sum()
        else:
            counts = np.bincount(x.astype(int))
            expected += (counts * np.log(counts / counts.sum())).sum()
    found = independent_criteria(values, (family,) * 2)
    assert found.log_likelihood == pytest.approx(expected, abs=0.01)
    assert found.n_parameters == {"gaussian": 4, "categorical(3)": 4}.get(family, 2)


def test_criteria_count_free_parameters(data):
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
    # A given Q has no EBIC term.
    assert fixed.ebic == fixed.bic
    assert information_criteria(result, 1600.0).bic > found.bic


def test_criteria_are_those_of_the_fit_statistics(data):
    model = DCRL(5, family="gaussian", random_state=0, n_starts=1).fit(data.X)
    ours = information_criteria(model.result_)
    theirs = fit_statistics(model.result_, data.X, n_tables=2).criteria
    for name in ("log_likelihood", "n_parameters", "aic", "bic", "ebic"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name))
