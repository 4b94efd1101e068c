"""Fits without fitting: a law, items and a graph put into a result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL
from hidag.config import CONFIG
from hidag.results import FitResult

from .fitted_models import drawn, two_latents


def result_of(truth, *, graph=None, law=None, latent_names=None):
    """Return a result that says what a truth says."""
    names = truth.latent_names if latent_names is None else latent_names
    return FitResult(
        item_names=truth.item_names,
        latent_names=names,
        parameters=truth.items,
        law=truth.law if law is None else law,
        graph=(truth.cpdag if graph is None else graph).rename(names),
        q_given=None,
        log_likelihood=-1.0,
        objective=-1.0,
        n_samples=1000,
        missing_share=0.0,
        n_iter=1,
        converged=True,
        method="em",
        trace=np.zeros((1, 2)),
        starts=(),
        n_reached=1,
        graph_rows=1000.0,
        information_ratio=1.0,
        edge_tests=(),
        family_reasons=("given",) * truth.n_items,
    )


@pytest.fixture(scope="session")
def as_result():
    return result_of


@pytest.fixture
def configure(monkeypatch):
    """Return a function that changes constants of a stage for the test."""

    def change(stage, **constants):
        monkeypatch.setattr(CONFIG, stage, replace(getattr(CONFIG, stage), **constants))

    return change


@pytest.fixture
def sum_nothing(configure):
    """Return what makes any joint states too many to sum over, from when it is called."""

    def patch():
        configure("derivatives", max_states=2)
        configure("network_em", max_clique_cells=1)

    return patch


@pytest.fixture(scope="session")
def mixed():
    """Items of many kinds with gaps, two of them tied to each other beyond the latents."""
    families = ("bernoulli", "gaussian", "ordinal(3)", "poisson", "lognormal", "categorical(3)",
                "bernoulli", "gaussian", "bernoulli")  # fmt: skip
    result = two_latents(families)
    X, _ = drawn(result, 1500, seed=8, missing=0.05)
    X[:, 7] += 0.4 * (X[:, 1] - np.nanmean(X[:, 1]))
    X[:, 7] = np.where(np.isnan(X[:, 7]), 0.1, X[:, 7])
    model = DCRL(2, q_matrix=result.q_given, family=list(families), random_state=0, n_starts=2)
    return model.fit(X).result_, X
