"""Fits end at the maximum of their own model, held against a plain EM written here."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from hidag import DCRL
from hidag.em.em import has_converged

FRACTIONS = Path(__file__).parents[3] / "shared" / "data" / "fraction_subtraction"


def plain_dina(X, q, rng, *, n_steps=400):
    """Return the log-likelihood where plain EM for DINA with a saturated law ends."""
    n_latents = q.shape[1]
    states = (np.arange(2**n_latents)[:, None] >> np.arange(n_latents)) & 1
    able = (states @ q.T >= q.sum(axis=1)).astype(float)
    low, high = rng.uniform(0.05, 0.4, len(q)), rng.uniform(0.6, 0.95, len(q))
    law = rng.dirichlet(np.ones(len(states)))
    for _ in range(n_steps):
        chance = able * high + (1 - able) * low
        joint = X @ np.log(chance).T + (1 - X) @ np.log1p(-chance).T + np.log(law)
        top = joint.max(axis=1, keepdims=True)
        weight = np.exp(joint - top)
        total = weight.sum(axis=1, keepdims=True)
        value = float((np.log(total) + top).sum())
        weight /= total
        count, right = weight.sum(axis=0), X.T @ weight
        high = np.clip((right * able.T).sum(1) / (able.T @ count), 1e-9, 1 - 1e-9)
        low = np.clip((right * (1 - able.T)).sum(1) / ((1 - able.T) @ count), 1e-9, 1 - 1e-9)
        law = np.maximum(count / count.sum(), 1e-300)
    return value


def dina_table(seed):
    rng = np.random.default_rng(seed)
    q = np.vstack([np.eye(4), rng.integers(0, 2, (10, 4))]).astype(int)
    q[q.sum(axis=1) == 0, 0] = 1
    trait = rng.standard_normal((400, 1))
    states = trait + 0.5 * rng.standard_normal((400, 4)) > 0
    able = states @ q.T >= q.sum(axis=1)
    return (rng.random(able.shape) < np.where(able, 0.85, 0.2)).astype(float), q


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_dina_with_a_given_q_ends_no_lower_than_plain_em(seed):
    X, q = dina_table(seed)
    best = max(plain_dina(X, q, np.random.default_rng(s)) for s in range(5))
    settings = {"q_matrix": q, "effects": "dina", "law": "saturated", "random_state": 0}
    found = DCRL(4, family="bernoulli", **settings).fit(X)
    assert found.log_likelihood_ > best - 0.01


def fractions(folder):
    X = np.genfromtxt(folder / "responses.csv", delimiter=",", skip_header=1)
    with (folder / "q.csv").open() as file:
        q = np.array([[int(float(v)) for v in row[1:]] for row in list(csv.reader(file))[1:]])
    return X[:, -len(q) :], q


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::hidag.exceptions.IdentifiabilityWarning")
@pytest.mark.skipif(not FRACTIONS.exists(), reason="needs the real data sets")
@pytest.mark.parametrize(("folder", "effects", "known"), [("five_skills", "dina", -3455.76)])
def test_fraction_subtraction_reaches_the_known_maximum(folder, effects, known):
    X, q = fractions(FRACTIONS / folder)
    fit = DCRL(q.shape[1], q_matrix=q, effects=effects, family="bernoulli", law="saturated")
    found = fit.set_params(random_state=5).fit(X)
    assert found.log_likelihood_ > known - 0.01


def test_em_goes_on_while_small_gains_add_up():
    creeping = [-10.0 * 0.99**t for t in range(40)]
    assert creeping[-1] - creeping[-2] < 0.1
    assert not has_converged(creeping, 0.1)
    fast = [-10.0 * 0.5**t for t in range(40)]
    assert has_converged(fast, 0.1)
    assert not has_converged([-1.0], 0.1)
