"""Fits of Poisson items say so where counts vary more than that, and name the cure."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import hidag
from hidag import DCRL, design, simulate
from hidag.cli.messages import overdispersion_in_options
from hidag.exceptions import MisfitWarning
from hidag.fitting.fit_warnings import overdispersion_sentence
from hidag.reporting import concerns


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
def test_a_fit_names_the_items_and_the_cure(method):
    X = counts(3.0, plain=(3,))
    result, told = fitted(X, method=method)
    varied = result.settings["overdispersed"]
    assert list(varied) == [f"item_{j}" for j in range(8) if j != 3]
    assert min(varied.values()) > 1.3
    assert told == [overdispersion_sentence(varied, 8)]
    assert "fit again with family={'item_0': 'negative-binomial', 'item_1': " in told[0]
    again, quiet = fitted(X, family=dict.fromkeys(varied, "negative-binomial"))
    assert quiet == []
    assert again.log_likelihood > result.log_likelihood + 200 or method == "saem"


def test_the_sentence_is_the_same_on_every_way_to_a_reader(tmp_path):
    result, told = fitted(counts(1.0))
    again = hidag.load(result.save(tmp_path / "fit.npz"))
    assert told[0] in concerns(again)
    assert sum("than Poisson counts do" in text for text in concerns(again, told)) == 1
    in_options = overdispersion_in_options(told[0], again)
    assert in_options.endswith(
        "fit again with --family negative-binomial, or with more latents or interactions"
    )
    assert [t for t in concerns(again, [in_options]) if "than Poisson counts do" in t] == [
        in_options
    ]


def test_sentences_are_short_for_one_item_some_items_and_all():
    head = (
        " given the latents ({}), so levels of latents, edges and errors are less certain than "
        "they seem; fit again with "
    )
    assert overdispersion_sentence({"falls": 1.84}, 9) == (
        "1 of 9 items varies more than Poisson counts do"
        + head.format("'falls', 1.8 times as much")
        + "family={'falls': 'negative-binomial'}, or with more latents or interactions"
    )
    assert overdispersion_sentence({"a": 1.5, "b": 12.3}, 2) == (
        "2 of 2 items vary more than Poisson counts do"
        + head.format("most of all 'b', 12 times as much")
        + "family='negative-binomial', or with more latents or interactions"
    )
    assert "('days', 150 times as much)" in overdispersion_sentence({"days": 152.3}, 9)


def test_patterns_stand_for_items_on_the_command_line():
    names = [f"n{j}" for j in range(6)] + ["age"]
    X = counts(3.0, plain=(6,))[:, :7]
    result, told = fitted(pd.DataFrame(X, columns=names))
    assert overdispersion_in_options(told[0], result).endswith(
        "fit again with --family 'n*=negative-binomial', or with more latents or interactions"
    )
    assert overdispersion_in_options("something else", result) == "something else"


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
    assert "overdispersed" not in result.result_.settings
