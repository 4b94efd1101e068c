"""What follows a fit takes the fitted estimator as well as its result."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import hidag
from hidag.exceptions import SettingError


@pytest.fixture(scope="module")
def fit():
    truth = hidag.design("Chain-5", "Q1", "gaussian", design="research-code", rng=1)
    X = np.asarray(hidag.simulate(truth, 400, rng=2).X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hidag.DCRL(5, family="gaussian", random_state=0).fit(X), X


def functions(X, folder):
    return {
        "fit_statistics": lambda fit: hidag.fit_statistics(fit, X, n_tables=5),
        "person_fit": lambda fit: hidag.person_fit(fit, X, n_tables=1),
        "classify": lambda fit: hidag.classify(fit, X),
        "average_effects": lambda fit: hidag.average_effects(fit, items=False),
        "what_if": lambda fit: hidag.what_if(fit, do={"Z1": 1}),
        "standard_errors": lambda fit: hidag.standard_errors(fit, X),
        "to_bif": hidag.causal.to_bif,
        "to_dot": hidag.causal.to_dot,
        "to_gml": hidag.causal.to_gml,
        "edge_strengths": hidag.causal.edge_strengths,
        "write_report": lambda fit: hidag.write_report(fit, folder / "page.html").read_text(),
    }


@pytest.mark.parametrize("name", functions(None, None))
def test_a_fitted_estimator_and_its_result_give_the_same(name, fit, tmp_path):
    model, X = fit
    function = functions(X, tmp_path)[name]
    assert repr(function(model)) == repr(function(model.result_))
    with pytest.raises(SettingError, match=r"a fitted DCRL or a FitResult, got DCRL; call fit"):
        function(hidag.DCRL(5))


def test_load_takes_the_folder_of_a_fit(fit, tmp_path):
    fit[0].result_.save(tmp_path / "result.npz")
    assert hidag.load(tmp_path).log_likelihood == fit[0].log_likelihood_
