"""Items without noise given the latents: warning, and no standard error of the dispersion."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import hidag
from hidag import DCRL
from hidag.cli.messages import CommandLineStyle
from hidag.exceptions import IdentifiabilityWarning
from hidag.fitting.fit_warnings import noiseless_message
from hidag.inference.standard_errors import standard_errors
from hidag.reporting.fit_description import describe_fit, list_concerns

CODE = "noiseless-items"


def table(n_rows: int = 400, seed: int = 0):
    """Return a binary latent, and a table of it and four measurements."""
    rng = np.random.default_rng(seed)
    z = (rng.random(n_rows) < 0.4).astype(float)
    return z, np.column_stack([z, 1.5 * z[:, None] + rng.normal(size=(n_rows, 4))])


def fitted(X, family, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        q = np.ones((X.shape[1], 1))
        model = DCRL(1, family=family, q_matrix=q, random_state=0, **settings).fit(X)
    return model.result_, [str(w.message) for w in caught if getattr(w.message, "code", "") == CODE]


@pytest.mark.parametrize(
    ("family", "change"),
    [
        ("gaussian", lambda x: 50.0 * x),
        ("lognormal", np.exp),
        ("gamma", lambda x: np.exp(0.5 * x)),
        ("beta", lambda x: 1.0 / (1.0 + np.exp(-x))),
        ("censored-lognormal(2000)", np.exp),
    ],
)
def test_a_copy_of_the_latent_is_reported_and_its_dispersion_has_no_standard_error(family, change):
    X = change(table()[1])
    result, warned = fitted(X, family)
    assert result.noiseless == ("item_0",)
    assert warned == [str(noiseless_message(result))]
    found = standard_errors(result, X)
    assert "item_0: dispersion" in found.not_estimated
    errors = found.table.where(kind="dispersion").column("standard_error")
    assert np.isnan(errors).tolist() == [True] + [False] * 4
    assert found.distance < 0.1


def test_saem_with_weights_and_missing_cells_warns_too():
    z, X = table()
    X[::7, 0] = np.nan
    weights = np.where(z == 1, 0.2, 1.3)
    model = DCRL(1, family="gaussian", method="saem", random_state=0, max_iter=60)
    with pytest.warns(IdentifiabilityWarning, match="no noise given the latents"):
        model.fit(X, sample_weight=weights)
    assert model.result_.noiseless == ("item_0",)


@pytest.mark.parametrize("method", ["em", "saem"])
def test_items_with_little_noise_are_not_reported(method):
    z, X = table()
    X[:, 0] += 0.1 * np.random.default_rng(1).normal(size=len(z))
    result, warned = fitted(X, "gaussian", method=method, max_iter=60)
    assert warned == []
    assert result.noiseless == ()


@pytest.mark.parametrize(
    ("family", "n_values"), [("bernoulli", 2), ("ordinal", 3), ("categorical", 3)]
)
def test_discrete_families_are_a_remedy(family, n_values):
    X = table()[1]
    if n_values > 2:
        X[:200, 0] *= 2.0
    assert fitted(X, [family] + ["gaussian"] * 4)[1] == []


def test_a_saved_fit_has_the_same_warning(tmp_path):
    result, warned = fitted(table()[1], "gaussian")
    again = hidag.load(result.save(tmp_path / "fit.npz"))
    assert warned[0] in map(str, list_concerns(again))


def test_the_message_names_a_few_items():
    result, _ = fitted(table()[1], "gaussian")
    assert str(noiseless_message(result)).startswith(
        "1 of 5 items has no noise given the latents ('item_0'): its dispersion is at its lower "
    )
    shown = noiseless_message(result).render(CommandLineStyle())
    assert shown.endswith("leave it out with --drop COLUMN")
    many = replace(result, noiseless=tuple("abcdef"))
    assert str(noiseless_message(many)).startswith(
        "6 of 5 items have no noise given the latents ('a', 'b', 'c', 'd' and 2 more): their "
    )


@pytest.mark.parametrize("family", ["negative-binomial", "zero-inflated-poisson"])
def test_counts_fitted_as_poisson_are_described_without_a_warning(family):
    rng = np.random.default_rng(0)
    means = np.exp(1.0 + (rng.random((500, 1)) < 0.5) + np.zeros(4))
    X = rng.poisson(means).astype(float)
    X[:, 0] = rng.binomial(10, means[:, 0] / 10.0)
    result, warned = fitted(X, family)
    assert warned == []
    assert list_concerns(result) == []
    (sentence,) = (text for text in describe_fit(result) if "are fitted as" in text)
    n_ended = int((result.dispersion < 2e-5).sum())
    assert sentence.startswith(f"{n_ended} of the {family} items are fitted as Poisson counts:")
    assert "(item_0" in sentence
