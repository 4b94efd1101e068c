"""Stage I by sampling on small tables, compared with the truth and with exact EM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.em import Schedule
from hidag.initialization.initializers import network_start
from hidag.latent import LatentCounts
from hidag.measurement import default_penalty
from hidag.metrics import Parts, evaluate
from hidag.simulation import chain_dag, make_truth, random_law, random_q, simulate
from hidag.strategy.exploratory import estimate_exploratory
from hidag.strategy.saem_network import SamplingTask, estimate_by_sampling
from hidag.structure import DAG, search_graph

from .problems import open_problem


def learn_parents(states, n_rows):
    counts = LatentCounts.from_rows(states, levels=(2,) * states.shape[1])
    weights = counts.weights * (n_rows / counts.total)
    scaled = LatentCounts(counts.states, weights, counts.levels, counts.names)
    return search_graph(scaled, search="ges", max_parents=6).graph.to_dag().parents


def simulated(seed, n_latents, n_samples, family, **missing):
    rng = np.random.default_rng(seed)
    law = random_law(chain_dag(n_latents), rng=rng)
    q = random_q(3 * n_latents, n_latents, rng=rng) if n_latents > 1 else np.ones((3, 1))
    truth = make_truth(law, q, family, rng=rng)
    return truth, simulate(truth, n_samples, rng=rng, **missing).X


def draw(*design, **missing):
    truth, values = simulated(*design, **missing)
    return truth, WorkingData.from_values(values, truth.families)


def run(data, n_latents, q_entries=None):
    if q_entries is None:
        q_entries = np.full((data.n_items, n_latents), -1, dtype=np.int8)
    task = SamplingTask(
        data,
        (2,) * n_latents,
        q_entries,
        default_penalty("tlp", data.n_samples, n_latents),
        Schedule(),
        learn_parents=learn_parents,
        seed=1,
    )
    return estimate_by_sampling(task)


def parts(found, data):
    user = data.to_user(found.parameters)
    adjacency = np.zeros((user.n_latents,) * 2, dtype=np.int8)
    for child, causes in enumerate(found.law.parents):
        adjacency[list(causes), child] = 1
    graph = DAG(adjacency).to_cpdag().adjacency
    return Parts(user.q_matrix, user.intercept, user.loadings, found.law, graph)


MIXED = tuple(["gaussian", "bernoulli", "poisson", "lognormal", "poisson-identity"] * 5)[:18]


@pytest.mark.parametrize(
    ("family", "missing", "n_samples"),
    [("gaussian", 0.0, 2000), ("bernoulli", 0.0, 8000), (MIXED, 0.1, 4000)],
)
def test_loadings_and_edges_are_found_from_an_independent_start(family, missing, n_samples):
    truth, data = draw(11, 6, n_samples, family, missing=missing)
    found = run(data, 6)
    held = evaluate(parts(found, data), truth)
    assert held.shd_q == 0
    assert held.skeleton_f1 == 1.0
    assert found.draws.shape[1:] == (n_samples, 6)
    assert len(found.trace) == found.n_iter


def test_sampling_and_enumeration_give_the_same_estimate():
    truth, values = simulated(12, 4, 3000, "bernoulli")
    problem = replace(open_problem(values, truth.families, 4), seed=1, law="network")
    found = run(problem.data, 4)
    exact = estimate_exploratory(problem).estimate.parameters
    ours = Parts(found.parameters.q_matrix, found.parameters.intercept, found.parameters.loadings)
    held = evaluate(ours, Parts(exact.q_matrix, exact.intercept, exact.loadings))
    assert held.shd_q == 0
    assert held.rmse_loadings < 0.1


def test_given_entries_of_q_are_kept():
    truth, data = draw(13, 5, 1500, "gaussian")
    known = np.full((15, 5), -1, dtype=np.int8)
    known[::2] = truth.q_matrix[::2]
    known[3, :] = [1, 0, 1, 0, -1]
    for entries in (known, truth.q_matrix.astype(np.int8)):
        start = network_start(data, entries, (2,) * entries.shape[1])
        found = run(data, 5, entries)
        for loadings in (start.loadings, found.parameters.loadings):
            assert (loadings[entries == 1] != 0).all()
            assert (loadings[entries == 0] == 0).all()
    user = data.to_user(found.parameters)
    # With all of Q given, latents stay in their places; signs are free.
    assert np.abs(np.abs(user.loadings) - np.abs(truth.loadings)).max() < 0.35


def test_one_latent_is_enough():
    truth, data = draw(14, 1, 500, "gaussian")
    found = run(data, 1, np.ones((3, 1), dtype=np.int8))
    assert found.law.parents == ((),)
    assert found.information_ratio == 1.0
    assert np.abs(np.abs(data.to_user(found.parameters).loadings) - truth.loadings).max() < 0.6


def test_splits_separate_latents_that_the_start_merged(monkeypatch):
    # A chain of 16: the spectral start has one factor for two neighbours, and one of noise.
    rng = np.random.default_rng(1004)
    n, k, per = 500, 16, 6
    states = np.zeros((n, k), dtype=int)
    for latent in range(k):
        fresh = rng.integers(0, 2, n)
        if latent:
            fresh = np.where(rng.random(n) < 0.5, states[:, latent - 1], fresh)
        states[:, latent] = fresh
    columns, families = [], []
    for latent in range(k):
        z = states[:, latent]
        for item in range(per):
            family = ("bernoulli", "gaussian", "poisson")[(item + latent) % 3]
            families.append(family)
            if family == "bernoulli":
                columns.append(rng.random(n) < 1 / (1 + np.exp(1 - 2 * z)))
            elif family == "gaussian":
                columns.append(rng.normal(1.6 * z, 1))
            else:
                columns.append(rng.poisson(np.exp(0.3 + 0.8 * z)))
    data = WorkingData.from_values(np.column_stack(columns).astype(float), tuple(families))
    right = {tuple(range(latent * per, latent * per + per)) for latent in range(k)}

    def found():
        return {tuple(np.flatnonzero(c)) for c in run(data, k).parameters.q_matrix.T}

    assert found() == right
    monkeypatch.setattr(CONFIG, "saem_network", replace(CONFIG.saem_network, most_splits=0))
    assert len(found() & right) < k
