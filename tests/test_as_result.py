"""What follows a fit takes the fitted estimator as well as its result."""

from __future__ import annotations

import inspect
import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

import hidag
from hidag.exceptions import SettingError
from hidag.metrics import Matching
from hidag.results import FitResult

PACKAGES = (
    hidag.causal, hidag.diagnostics, hidag.identifiability, hidag.inference, hidag.metrics,
    hidag.model_selection, hidag.plotting, hidag.reporting,
)  # fmt: skip
#: Of parameters without a default, and of those that make a call short.
VALUES = {
    "do": {"Z1": 1}, "item": 0, "n_tables": 2, "n_draws": 3, "n_resamples": 1, "names": "abcde",
    "matching": Matching((0, 1, 2, 3, 4), (False,) * 5, ()),
}  # fmt: skip


def functions_of(kind):
    """Return the public functions by name that take a fit of this annotation first."""
    found = {name: getattr(package, name) for package in PACKAGES for name in package.__all__}
    return {
        name: function
        for name, function in found.items()
        if (names := list(inspect.signature(function).parameters.values()))
        and not (isinstance(function, type) and names[0].name == "n_latents")
        and re.search(rf"\b{kind}\b", str(names[0].annotation))
    }


FUNCTIONS = functions_of("AnyFit") | {"check_identifiability": hidag.check_identifiability}
del FUNCTIONS["validate_q"]  # It fits the provisional Q with the settings of an estimator.


@pytest.fixture(scope="module")
def fit():
    truth = hidag.design("Chain-5", "Q1", "gaussian", design="research-code", rng=1)
    X = np.asarray(hidag.simulate(truth, 400, rng=2).X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hidag.DCRL(5, family="gaussian", random_state=0).fit(X), X


def text_of(found):
    """Return what a function found as text; figures by their marks."""
    if hasattr(found, "get_figure"):
        found = [repr(child) for child in found.get_children()]
        plt.close("all")
    if isinstance(found, hidag.causal.InterventionModel):
        found = found.observed
    if hasattr(found, "read_text"):
        found = found.read_text()
    return re.sub(r"at 0x\w+", "", repr(found))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_fitted_estimator_and_its_result_give_the_same(name, fit, tmp_path):
    model, X = fit
    function = FUNCTIONS[name]
    given = {**VALUES, "X": X, "path": tmp_path / "page.html"}
    others = [n for n in inspect.signature(function).parameters if n in given]
    others = {n: given[n] for n in others}
    with pytest.raises(SettingError, match="a fitted DCRL or a FitResult, got DCRL") as unfitted:
        function(hidag.DCRL(5), **others)
    assert unfitted.value.code == "not-fitted"
    if name not in ("bootstrap", "to_dowhy"):  # seconds, and an optional package
        results = [function(one, **others) for one in (model, model.result_)]
        assert text_of(results[0]) == text_of(results[1])


def test_no_public_function_takes_the_result_alone():
    assert functions_of("FitResult") == {}
    assert len(FUNCTIONS) > 20


def test_further_fits_may_be_estimators(fit):
    model, X = fit
    found = hidag.average_effects(model, items=False, replicates=[model] * 20)
    assert found.lower is not None
    q = model.q_matrix_
    given = hidag.DCRL(5, q_matrix=q, family="gaussian", random_state=0).fit(X).result_
    assert isinstance(given, FitResult)
    validation = hidag.validate_q(given, X, estimated=model)
    np.testing.assert_array_equal(validation.estimated, q)


def test_load_takes_the_folder_of_a_fit(fit, tmp_path):
    fit[0].result_.save(tmp_path / "result.npz")
    assert hidag.load(tmp_path).log_likelihood == fit[0].log_likelihood_
