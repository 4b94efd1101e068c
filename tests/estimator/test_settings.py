"""Invalid settings, log messages and warnings."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from hidag import DCRL
from hidag.exceptions import ConvergenceWarning, DataError, IdentifiabilityWarning, SettingError


def test_types_are_logged(small, caplog):
    _, data = small
    with caplog.at_level(logging.INFO, logger="hidag"):
        DCRL(5, n_starts=1, random_state=0).fit(data.X)
    assert "gaussian" in caplog.text


def test_verbose_writes_types_and_method(small, capsys):
    _, data = small
    DCRL(5, n_starts=1, random_state=0, verbose=1).fit(data.X)
    written = capsys.readouterr().err
    assert "hidag: item types" in written
    assert "item_0" in written
    assert "Stage I by method='em'" in written


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_latents": 0}, "n_latents must be a whole number of at least 1, got 0"),
        ({"n_latents": 2.5}, "n_latents must be a whole number of at least 1, got 2.5"),
        (
            {"n_latents": 16},
            "n_latents=16 is more than the 15 items of the table, and each latent needs at least "
            "one item of its own; use at most n_latents=7, which 15 items can identify",
        ),
        (
            {"method": "mcmc"},
            "method must be 'auto', 'em' or 'saem', got 'mcmc'",
        ),
        ({"law": "dense"}, "law must be 'auto', 'network' or 'saturated', got 'dense'"),
        ({"n_starts": 0}, "n_starts must be a whole number of at least 1, got 0"),
        ({"tol": 0}, "tol must be a number above 0 and at most 100, got 0"),
        (
            {"effective_size": 3},
            "effective_size must be 'auto', 'all' or a share of N between 0 and 1, got 3",
        ),
        (
            {"resample": "twice"},
            "resample must be 'expected', a multiple of N such as 2N, a number of rows or a "
            "function of N, got 'twice'",
        ),
    ],
)
def test_invalid_settings_raise(small, settings, sentence):
    _, data = small
    with pytest.raises(SettingError) as caught:
        DCRL(**{"n_latents": 5, "family": "gaussian", **settings}).fit(data.X)
    assert str(caught.value) == sentence


def test_too_many_latents_are_warned_about(small):
    _, data = small
    with pytest.warns(IdentifiabilityWarning, match="3 latents cannot be identified from 6 items"):
        DCRL(3, family="gaussian", n_starts=1, max_iter=100).fit(data.X[:, :6])


def test_a_constant_item_is_named(small):
    _, data = small
    X = data.X.copy()
    X[:, 3] = 1.5
    with pytest.raises(DataError, match="item_3"):
        DCRL(5, family="gaussian").fit(X)


def test_nonconvergence_warns(small):
    _, data = small
    with pytest.warns(ConvergenceWarning, match=r"did not converge in 2 iterations \(max_iter=2\)"):
        DCRL(5, family="gaussian", n_starts=1, max_iter=2, tol=1e-12).fit(data.X)


def test_few_rows_are_warned_about(small):
    _, data = small
    with pytest.warns(IdentifiabilityWarning, match="20 rows are few for"):
        DCRL(2, family="gaussian", n_starts=1, random_state=0).fit(data.X[:20])


@pytest.mark.parametrize(
    "settings",
    [
        {"penalty_strength": np.inf},
        {"penalty_strength": "a"},
        {"penalty": ["tlp"]},
        {"equivalent_sample_size": None},
        {"knowledge": {"required": []}},
        {"resample": None},
        {"resample": 1e12},
        {"latent_names": 5},
        {"observer": 3},
        {"random_state": "a"},
        {"n_jobs": -2},
        {"search": "hill"},
    ],
)
def test_invalid_settings_raise_before_stage_one(small, settings):
    _, data = small
    calls = []
    with pytest.raises(SettingError):
        DCRL(5, **{"family": "gaussian", "observer": calls.append, **settings}).fit(data.X)
    assert calls == []


def test_an_invalid_graph_score_raises(small):
    with pytest.raises(SettingError, match="graph_score must be 'auto', "):
        DCRL(5, family="gaussian", graph_score="aic").fit(small[1].X)
