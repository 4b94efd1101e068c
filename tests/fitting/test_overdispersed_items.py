"""Overdispersed Poisson items: warning and advice."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import hidag
from hidag import DCRL, design, simulate
from hidag.cli.messages import CommandLineStyle
from hidag.exceptions import MisfitWarning
from hidag.fitting.fit_warnings import overdispersion_message
from hidag.measurement.families.counts import PoissonIdentity
from hidag.reporting.fit_description import list_concerns


def counts(shape: float, plain: tuple[int, ...] = (), n_rows: int = 800):
    """Return counts of 8 items of two latents, negative binomial with a shape or Poisson."""
    rng = np.random.default_rng(0)
    first = rng.random(n_rows) < 0.5
    second = rng.random(n_rows) < np.where(first, 0.7, 0.3)
    means = np.exp(0.9 + 1.2 * np.column_stack([first] * 4 + [second] * 4))
    varied = np.setdiff1d(np.arange(8), plain)
    means[:, varied] *= rng.gamma(shape, 1.0 / shape, (n_rows, len(varied)))
    return rng.poisson(means).astype(float)


def fitted(X, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = DCRL(2, n_starts=2, random_state=0, **settings).fit(X).result_
    return result, [str(w.message) for w in caught if issubclass(w.category, MisfitWarning)]


@pytest.mark.parametrize("method", ["em", "saem"])
def test_a_fit_names_the_items_and_the_remedy(method):
    X = counts(3.0, plain=(3,))
    result, warned = fitted(X, method=method)
    varied = result.overdispersed
    assert list(varied) == [f"item_{j}" for j in range(8) if j != 3]
    assert min(varied.values()) > 1.3
    assert warned == [str(overdispersion_message(result))]
    assert "fit again with family={'item_0': 'negative-binomial', 'item_1': " in warned[0]
    again, quiet = fitted(X, family=dict.fromkeys(varied, "negative-binomial"))
    assert quiet == []
    assert again.log_likelihood > result.log_likelihood + 200 or method == "saem"


def test_a_saved_fit_has_the_same_warning(tmp_path):
    result, warned = fitted(counts(1.0))
    again = hidag.load(result.save(tmp_path / "fit.npz"))
    issued = MisfitWarning.of(overdispersion_message(result))
    assert [str(one) for one in list_concerns(again, [issued])].count(warned[0]) == 1


def test_the_advice_is_short_for_one_item_and_for_all():
    result, _ = fitted(counts(1.0))
    named = replace(result, item_names=("falls", "days", *result.item_names[2:]))
    one = overdispersion_message(replace(named, overdispersed={"falls": 1.84}))
    assert str(one) == (
        "1 of 8 items has more variance than the Poisson family given the latents ('falls', 1.8 "
        "times as much), so that standard errors, classification and edges are overconfident; fit "
        "again with family={'falls': 'negative-binomial'}, or with more latents or interactions"
    )
    every = overdispersion_message(result)
    assert "(the largest: 'item_" in str(every)
    assert every.params["family"].value == "negative-binomial"
    many = overdispersion_message(replace(named, overdispersed={"days": 152.3}))
    assert "('days', 150 times as much)" in str(many)


def test_the_command_line_names_items_by_a_pattern():
    result, _ = fitted(counts(1.0))
    names = (*(f"n{j}" for j in range(7)), "age")
    some = replace(result, item_names=names, overdispersed=dict.fromkeys(names[:7], 2.0))
    shown = overdispersion_message(some).render(CommandLineStyle(items=names))
    assert "fit again with --family 'n*=negative-binomial', or with" in shown
    shown = overdispersion_message(result).render(CommandLineStyle(items=result.item_names))
    assert "fit again with --family negative-binomial, or with" in shown


@pytest.mark.parametrize("kind", ["text", "research-code"])
@pytest.mark.parametrize("method", ["em", "saem"])
def test_true_poisson_designs_are_not_warned_about(kind, method):
    truth = design("Tree-5", "Q1", "poisson", design=kind, rng=1)
    data = simulate(truth, 500, rng=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", MisfitWarning)
        family = "poisson" if kind == "text" else "poisson-identity"
        result = DCRL(5, family=family, method=method, n_starts=1, random_state=0).fit(data.X)
    assert result.result_.overdispersed == {}


def test_the_suggested_family_is_that_of_the_items_own_family(monkeypatch):
    monkeypatch.setattr(PoissonIdentity, "overdispersed_alternative", "gamma")
    result, _ = fitted(counts(1.0), family=["poisson-identity"] + ["poisson"] * 7)
    found = overdispersion_message(replace(result, overdispersed={"item_0": 2.0, "item_1": 2.0}))
    expected = {"item_0": "gamma", "item_1": "negative-binomial"}
    assert found.params["family"].value == expected
