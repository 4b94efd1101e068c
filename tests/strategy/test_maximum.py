"""Fits end at the maximum of their own model, held against a plain EM written here."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
import pytest

from hidag import DCRL
from hidag.em.em import has_converged

FRACTIONS = Path(__file__).parents[3] / "shared" / "data" / "fraction_subtraction"


def state_groups(q, effects):
    """Return the group of each joint state within which an item's probability is the same, (J, S).

    Every model for a given Q and a saturated law is such a partition: DINA and DINO have two
    groups, G-DINA has one for each pattern of the item's latents.
    """
    n_latents = q.shape[1]
    states = (np.arange(2**n_latents)[:, None] >> np.arange(n_latents)) & 1
    if effects == "dina":
        return (q @ states.T >= q.sum(axis=1, keepdims=True)).astype(int)
    if effects == "dino":
        return (q @ states.T > 0).astype(int)
    patterns = q[:, None, :] * states[None] @ (1 << np.arange(n_latents))
    return np.array([np.unique(row, return_inverse=True)[1] for row in patterns])


def plain_em(X, groups, rng, *, n_steps=400):
    """Return the log-likelihood at which plain EM with a saturated law ends."""
    n_states = groups.shape[1]
    members = [np.eye(g.max() + 1)[g] for g in groups]
    # Random but ordered: patterns with more latents succeed more often.
    chances = [np.sort(rng.uniform(0.05, 0.95, m.shape[1])) for m in members]
    law = rng.dirichlet(np.ones(n_states))
    for _ in range(n_steps):
        chance = np.stack([m @ c for m, c in zip(members, chances, strict=True)])
        joint = X @ np.log(chance) + (1 - X) @ np.log1p(-chance) + np.log(law)
        top = joint.max(axis=1, keepdims=True)
        weight = np.exp(joint - top)
        total = weight.sum(axis=1, keepdims=True)
        value = float((np.log(total) + top).sum())
        weight /= total
        count, right = weight.sum(axis=0), X.T @ weight
        for j, m in enumerate(members):
            seen = np.maximum(count @ m, 1e-12)
            chances[j] = np.clip((right[j] @ m) / seen, 1e-9, 1 - 1e-9)
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


LOW = pytest.mark.xfail(reason="ends 1.1 units below the best of 20 runs of plain EM", strict=True)


@pytest.mark.parametrize(
    ("effects", "seed"),
    [("dina", 11), ("dina", 12), ("dino", 11), ("gdina", 11), pytest.param("gdina", 13, marks=LOW)],
)
def test_a_fit_with_a_given_q_ends_no_lower_than_plain_em(effects, seed):
    X, q = dina_table(seed)
    groups = state_groups(q, effects)
    best = max(plain_em(X, groups, np.random.default_rng(s)) for s in range(12))
    settings = {"q_matrix": q, "effects": effects, "law": "saturated", "random_state": seed}
    found = DCRL(4, family="bernoulli", **settings).fit(X)
    assert found.log_likelihood_ > best - 0.05


def test_latent_classes_end_no_lower_than_plain_em():
    X, _ = dina_table(14)
    q = np.ones((X.shape[1], 2), dtype=int)
    best = max(plain_em(X, state_groups(q, "gdina"), np.random.default_rng(s)) for s in range(12))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DCRL(2, q_matrix=q, effects="all", family="bernoulli", law="saturated")
        found = model.set_params(random_state=0).fit(X)
    assert found.log_likelihood_ > best - 0.05


@pytest.mark.parametrize("seed", [21])
def test_a_fit_never_ends_below_a_nested_model(seed):
    X, q = dina_table(seed)
    value = {}
    for effects in ("main", "dina", "dino", "gdina"):
        model = DCRL(4, q_matrix=q, effects=effects, family="bernoulli", law="saturated")
        value[effects] = model.set_params(random_state=0).fit(X).log_likelihood_
    assert value["gdina"] > max(value["main"], value["dina"], value["dino"]) - 1e-3


def fractions(folder):
    X = np.genfromtxt(folder / "responses.csv", delimiter=",", skip_header=1)
    with (folder / "q.csv").open() as file:
        q = np.array([[int(float(v)) for v in row[1:]] for row in list(csv.reader(file))[1:]])
    return X[:, -len(q) :], q


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::hidag.exceptions.IdentifiabilityWarning")
@pytest.mark.skipif(not FRACTIONS.exists(), reason="needs the real data sets")
@pytest.mark.parametrize(
    ("folder", "effects", "known"),
    [("five_skills", "dina", -3455.77), ("five_skills", "gdina", -3217.57)],
)
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
