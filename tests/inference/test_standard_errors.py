from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL
from hidag.exceptions import DataError, SettingError
from hidag.inference.standard_errors import standard_errors
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters

from ..fitted_models import drawn, result_at, two_latents

FAMILIES = ("bernoulli", "gaussian", "poisson") * 3


@pytest.fixture(scope="module")
def fitted():
    truth = two_latents(FAMILIES)
    X, _ = drawn(truth, 800, seed=3)
    model = DCRL(2, q_matrix=truth.q_given, family=list(FAMILIES), tol=1e-7, max_iter=2000,
                 n_starts=2, random_state=0)  # fmt: skip
    return model.fit(X).result_, X


def test_estimator_and_result_give_the_same_errors():
    rng = np.random.default_rng(0)
    X = (rng.random((200, 4)) < np.where(rng.random((200, 1)) < 0.5, 0.8, 0.2)).astype(float)
    model = DCRL(1, q_matrix=np.ones((4, 1)), random_state=0)
    with pytest.raises(SettingError, match="standard errors need a fitted DCRL or a FitResult"):
        standard_errors(model, X)
    model.fit(X)
    of_result = standard_errors(model.result_, X)
    np.testing.assert_array_equal(standard_errors(model, X).covariance, of_result.covariance)


def test_three_kinds_agree_for_a_correct_model(fitted):
    result, X = fitted
    errors = [
        np.array(standard_errors(result, X, kind=kind).table.column("standard_error"))
        for kind in ("louis", "sandwich", "scores")
    ]
    np.testing.assert_allclose(errors[1], errors[0], rtol=0.25)
    np.testing.assert_allclose(errors[2], errors[0], rtol=0.35)


def test_a_row_of_weight_two_is_two_rows(fitted):
    result, X = fitted
    twice = np.vstack([X, X[:100]])
    weights = np.where(np.arange(len(X)) < 100, 2.0, 1.0)
    one = standard_errors(result, X, sample_weight=weights)
    other = standard_errors(result, twice)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-6, atol=1e-9)
    assert one.n_rows == other.n_rows == 900


@pytest.mark.parametrize(("kind", "share"), [("louis", 0.5), ("scores", 0.5), ("sandwich", 1.0)])
def test_weights_are_frequencies_to_all_but_the_sandwich(fitted, kind, share):
    result, X = fitted
    once = standard_errors(result, X, kind=kind)
    twice = standard_errors(result, X, kind=kind, sample_weight=np.full(len(X), 2.0))
    np.testing.assert_allclose(twice.covariance, share * once.covariance, rtol=1e-6, atol=1e-9)


def test_units_and_order_of_items_do_not_matter(fitted):
    result, X = fitted
    here = standard_errors(result, X)
    assert here.distance < 0.3
    assert here.not_estimated == ()
    rows = here.table.where(of="item_1")
    assert rows.column("term") == ["intercept", "Z2", "variance"]
    share = here.table.where(kind="share", of="Z1")
    assert sum(share.column("estimate")) == pytest.approx(1.0)
    assert share.column("standard_error")[0] == pytest.approx(share.column("standard_error")[1])
    text = here.summary(3)
    assert text.splitlines()[0] == (
        "standard errors given Q, by the observed information: 800 rows, 27 parameters, "
        "90% intervals"
    )
    assert text.splitlines()[-1].endswith("more")


def test_unidentified_parameters_have_no_standard_error():
    # Two states with the same items: their probabilities are not identified.
    parameters = MeasurementParameters(
        ("bernoulli",) * 3, np.zeros(3), np.array([[0.0], [0.0], [0.0]]), np.ones(3)
    )
    law = SaturatedLaw(StateSpace((2,)), np.array([0.5, 0.5]))
    result = result_at(parameters, law, n_samples=100, q_given=np.ones((3, 1), dtype=np.int8))
    X, _ = drawn(result, 100, seed=0)
    found = standard_errors(result, X)
    assert "log ratio of profile=1" in found.not_estimated
    assert np.isnan(found.table.where(kind="share", term="1").column("standard_error")[0])


def test_a_boundary_probability_is_not_estimated():
    result = two_latents(("gaussian",) * 9, law="saturated")
    p = np.array([0.4, 1e-9, 0.3, 0.3 - 1e-9])
    edge = result_at(
        result.parameters, SaturatedLaw(result.law.space, p), n_samples=300, q_given=result.q_given
    )
    X, _ = drawn(edge, 300, seed=0)
    rows = standard_errors(edge, X).table.where(kind="probability")
    assert np.isnan(rows.column("standard_error")).tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"kind": "hessian"}, "kind must be 'louis', 'sandwich' or 'scores', got 'hessian'"),
        ({"level": 95}, "level must be between 0 and 1, got 95"),
    ],
)
def test_invalid_settings_are_refused(fitted, changes, sentence):
    with pytest.raises(SettingError) as error:
        standard_errors(*fitted, **changes)
    assert str(error.value) == sentence


def test_another_table_is_refused(fitted):
    result, X = fitted
    with pytest.raises(DataError) as error:
        standard_errors(result, X[:, :5])
    assert str(error.value) == (
        "the table must have the 9 items of the fit, but it has 5 columns; give the table that was "
        "fitted, or one with the same columns"
    )


def test_a_dispersion_at_its_bound_is_fixed():
    # Poisson counts taken for overdispersed ones: what varies more is nothing.
    rng = np.random.default_rng(5)
    z = rng.integers(0, 2, 600)
    X = np.column_stack([rng.poisson(np.exp(4 + 0.5 * z)) for _ in range(3)]).astype(float)
    X[:, 0] = rng.binomial(1000, 0.06 + 0.04 * z)
    model = DCRL(1, family="negative-binomial", q_matrix=np.ones((3, 1)), random_state=0, tol=1e-7)
    found = standard_errors(model.fit(X).result_, X)
    assert model.result_.dispersion[0] == pytest.approx(1e-5)
    assert "item_0: dispersion" in found.not_estimated
    assert found.distance < 1.0
