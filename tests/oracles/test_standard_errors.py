from __future__ import annotations

import numpy as np
import pytest

from hidag.inference.standard_errors import standard_errors
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters

from ..fitted_models import result_at

sm = pytest.importorskip("statsmodels.api")


@pytest.mark.parametrize("kind", ["louis", "sandwich"])
def test_standard_errors_are_those_of_regressions_if_an_item_shows_the_latent(kind):
    rng = np.random.default_rng(4)
    z = (rng.random(500) < 0.4).astype(float)
    binary = (rng.random(500) < np.where(z == 1, 0.8, 0.3)).astype(float)
    counts = rng.poisson(np.exp(0.4 + 0.7 * z)).astype(float)
    weights = rng.uniform(0.5, 2.0, 500)
    shown = 100.0 * z + rng.standard_normal(500)
    X = np.column_stack([shown, binary, counts])
    design = sm.add_constant(z)
    cov = {"louis": "nonrobust", "sandwich": "HC0"}[kind]
    fits = [
        sm.GLM(y, design, family=family, freq_weights=weights).fit(cov_type=cov)
        for y, family in ((binary, sm.families.Binomial()), (counts, sm.families.Poisson()))
    ]
    coefficients = np.array([[0.0, 100.0], *(fit.params for fit in fits)])
    parameters = MeasurementParameters(
        ("gaussian", "bernoulli", "poisson"),
        coefficients[:, 0],
        coefficients[:, 1:],
        np.ones(3),
    )
    share = float(np.average(z, weights=weights))
    law = SaturatedLaw(StateSpace((2,)), np.array([1 - share, share]))
    result = result_at(parameters, law, n_samples=500, q_given=np.ones((3, 1), dtype=np.int8))
    found = standard_errors(result, X, sample_weight=weights, kind=kind)
    for item, fit in zip(("X2", "X3"), fits, strict=True):
        rows = found.table.where(kind="coefficient", of=item)
        np.testing.assert_allclose(rows.column("estimate"), fit.params)
        expected = fit.bse
        if kind == "sandwich":
            # HC0 with frequency weights takes each row's square w times; ours w squared times.
            scores = (weights * (fit.model.endog - fit.fittedvalues))[:, None] * design
            bread = np.linalg.inv(-fit.model.hessian(fit.params, observed=True))
            expected = np.sqrt(np.diag(bread @ scores.T @ scores @ bread))
        np.testing.assert_allclose(rows.column("standard_error"), expected, rtol=1e-4)
    error = found.table.where(kind="share", of="Z1", term="1").column("standard_error")[0]
    binomial = np.sqrt(share * (1 - share) / weights.sum())
    squares = np.sqrt(((weights * (z - share)) ** 2).sum()) / weights.sum()
    assert error == pytest.approx({"louis": binomial, "sandwich": squares}[kind], rel=1e-6)
