"""Items on one known latent, against regressions that others wrote."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit

from hidag import DCRL
from hidag.em.design_data import WorkingData
from hidag.em.e_step import Statistics
from hidag.em.m_step import Basis, run_m_step
from hidag.initialization.start_points import null_parameters
from hidag.latent import StateSpace
from hidag.measurement import (
    NO_SPARSITY,
    MeasurementParameters,
    Terms,
    family_named,
    nominal_item,
)
from hidag.measurement.families.categorical import Categorical

sm = pytest.importorskip("statsmodels.api")

N = 3000
INTERCEPT, SLOPE = -0.4, 1.1


def drawn(name: str, auxiliary: float | list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return responses and the latent that they are drawn given, both (N,)."""
    rng = np.random.default_rng(0)
    z = (rng.random(N) < 0.4).astype(float)
    return family_named(name).sample(INTERCEPT + SLOPE * z, np.array(auxiliary), rng), z


def fitted(name: str, x: np.ndarray, z: np.ndarray) -> MeasurementParameters:
    """Return our fit of the item when the latent of every row is known."""
    data = WorkingData.from_values(x[:, None], (name,))
    sums = np.stack([np.bincount(z.astype(int), column, minlength=2) for column in data.x.T])
    statistics = Statistics(np.bincount(z.astype(int)).astype(float), sums, np.zeros((0, 2)))
    return run_m_step(
        null_parameters(data, Terms.main((2,))),
        statistics,
        data,
        Basis.of(StateSpace.binary(1).states().astype(float)),
        np.full((1, 2), 2, dtype=np.uint8),
        NO_SPARSITY,
        n_newton=300,
    )


def oracle(model, **arguments) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.fit(disp=0, **arguments).params)


def coefficients(found: MeasurementParameters) -> np.ndarray:
    return np.array([found.intercept[0], found.loadings[0, 0]])


def test_binomial_counts_have_the_coefficients_of_the_generalised_linear_model():
    x, z = drawn("binomial(7)", 1.0)
    model = sm.GLM(np.stack([x, 7 - x], 1), sm.add_constant(z), sm.families.Binomial())
    np.testing.assert_allclose(
        coefficients(fitted("binomial(7)", x, z)), model.fit().params, atol=1e-6
    )


def test_complementary_log_log():
    x, z = drawn("bernoulli-cloglog", 1.0)
    model = sm.GLM(x, sm.add_constant(z), sm.families.Binomial(sm.families.links.CLogLog()))
    np.testing.assert_allclose(
        coefficients(fitted("bernoulli-cloglog", x, z)), model.fit().params, atol=1e-5
    )


def test_probit():
    x, z = drawn("bernoulli-probit", 1.0)
    expected = oracle(sm.Probit(x, sm.add_constant(z)))
    np.testing.assert_allclose(coefficients(fitted("bernoulli-probit", x, z)), expected, atol=1e-5)


def test_negative_binomial():
    x, z = drawn("negative-binomial", 0.6)
    expected = oracle(sm.NegativeBinomial(x, sm.add_constant(z)), gtol=1e-9)
    found = fitted("negative-binomial", x, z)
    np.testing.assert_allclose([*coefficients(found), found.dispersion[0]], expected, rtol=1e-4)


def test_zero_inflated_counts():
    x, z = drawn("zero-inflated-poisson", 0.3)
    model = sm.ZeroInflatedPoisson(x, sm.add_constant(z), exog_infl=np.ones((N, 1)))
    expected = oracle(model, method="bfgs", gtol=1e-8, maxiter=500)
    found = fitted("zero-inflated-poisson", x, z)
    ours = [found.dispersion[0], *coefficients(found)]
    np.testing.assert_allclose(ours, [expit(expected[0]), *expected[1:]], atol=1e-4)


def test_shares():
    from statsmodels.othermod.betareg import BetaModel

    x, z = drawn("beta", 0.2)
    expected = oracle(BetaModel(x, sm.add_constant(z)))
    found = fitted("beta", x, z)
    ours = [*coefficients(found), -np.log(found.dispersion[0])]
    np.testing.assert_allclose(ours, expected, atol=1e-4)


@pytest.mark.parametrize("cutpoints", [[0.9], [0.6, 1.1, 2.4]])
def test_ordered_grades(cutpoints):
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    name = f"ordinal({len(cutpoints) + 2})"
    x, z = drawn(name, cutpoints)
    model = OrderedModel(x.astype(int), z[:, None], distr="logit")
    found = fitted(name, x, z)
    raw = oracle(model, method="bfgs", gtol=1e-9)
    cuts = model.transform_threshold_params(raw)[1:-1]
    ours = [found.loadings[0, 0], *(-found.intercept[0] + np.array([0.0, *found.cutpoints[0]]))]
    np.testing.assert_allclose(ours, [raw[0], *cuts], atol=1e-4)


def most_likely(log_density, start: list[float]) -> np.ndarray:
    """Return the parameters that maximise a mean log density, by scipy alone."""
    found = optimize.minimize(
        lambda p: -log_density(p).mean(), start, method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 20_000, "maxfev": 20_000},
    )  # fmt: skip
    assert found.success
    return found.x


def test_gamma_amounts():
    x, z = drawn("gamma", 0.5)
    found = fitted("gamma", x, z)
    model = sm.GLM(x, sm.add_constant(z), sm.families.Gamma(sm.families.links.Log()))
    np.testing.assert_allclose(coefficients(found), model.fit().params, atol=1e-6)

    def log_density(p):
        shape = np.exp(-p[2])
        return stats.gamma.logpdf(x, shape, scale=np.exp(p[0] + p[1] * z) / shape)

    expected = most_likely(log_density, [0.0, 1.0, 0.0])
    ours = [*coefficients(found), np.log(found.dispersion[0])]
    np.testing.assert_allclose(ours, expected, atol=1e-4)


def test_censored_times():
    name = "censored-lognormal(2)"
    x, z = drawn(name, 0.5)
    assert 0.1 < (x >= 2).mean() < 0.5
    found = fitted(name, x, z)

    def log_density(p):
        times = stats.lognorm(np.exp(0.5 * p[2]), scale=np.exp(p[0] + p[1] * z))
        return np.where(x >= 2, times.logsf(2.0), times.logpdf(x))

    expected = most_likely(log_density, [0.0, 1.0, 0.0])
    ours = [*coefficients(found), np.log(found.dispersion[0])]
    np.testing.assert_allclose(ours, expected, atol=1e-4)


def test_nominal_items_have_the_likelihood_of_multinomial_logit():
    rng = np.random.default_rng(1)
    z = (rng.random(N) < 0.4).astype(float)
    scores = np.array([0.0, 0.5, -0.3, -1.0]) + z[:, None] * np.array([0.0, 1.2, 0.4, -0.8])
    x = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1).astype(float)
    item = nominal_item(Categorical.name_from_values(x))
    answers = item.expand(x)
    # The nested responses are regressions of their own, each on the rows that were asked.
    yes = np.empty((2, len(item.order) - 1))
    value = 0.0
    for r, column in enumerate(answers.T):
        seen = ~np.isnan(column)
        found = fitted("bernoulli", column[seen], z[seen])
        yes[:, r] = expit(found.intercept[0] + np.array([0.0, 1.0]) * found.loadings[0, 0])
        chance = yes[z[seen].astype(int), r]
        value += np.log(np.where(column[seen] == 1, chance, 1 - chance)).sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle_fit = sm.MNLogit(x, sm.add_constant(z)).fit(disp=0)
    assert value == pytest.approx(oracle_fit.llf, abs=1e-4)
    expected = oracle_fit.predict(np.array([[1.0, 0.0], [1.0, 1.0]]))
    ours = item.probabilities(yes)[:, np.argsort(item.order)]
    np.testing.assert_allclose(ours, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "auxiliary"),
    [
        ("bernoulli-probit", 1.0),
        ("binomial(7)", 1.0),
        ("negative-binomial", 0.6),
        ("zero-inflated-poisson", 0.3),
        ("ordinal(4)", [0.8, 2.0]),
        ("censored-lognormal(2)", 0.5),
        ("gamma", 0.5),
        ("beta", 0.2),
    ],
)
def test_coefficients_are_those_of_a_regression_if_other_items_determine_the_latent(
    name, auxiliary
):
    x, z = drawn(name, auxiliary)
    rng = np.random.default_rng(2)
    anchors = 6.0 * z[:, None] + rng.standard_normal((N, 3))
    model = DCRL(1, family=["gaussian"] * 3 + [name], q_matrix=np.ones((4, 1)), random_state=0)
    model.fit(np.column_stack([anchors, x]))
    known = fitted(name, x, z)
    np.testing.assert_allclose(model.intercept_[3], known.intercept[0], atol=2e-3)
    np.testing.assert_allclose(model.loadings_[3], known.loadings[0], atol=2e-3)
    if np.isfinite(model.dispersion_[3]):
        np.testing.assert_allclose(model.dispersion_[3], known.dispersion[0], rtol=0.01)
    np.testing.assert_allclose(model.cutpoints_[3], known.cutpoints[0], atol=2e-3)
