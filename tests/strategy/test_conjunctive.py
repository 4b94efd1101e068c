"""Conjunctive and disjunctive items, whose model depends on the polarity of latents."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL

Q = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]] * 3 + [[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])


def drawn(effects: str, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return answers of items that need all of their skills, or one of them, and the skills."""
    skills = rng.random((2500, 3)) < share
    asked = skills[:, None, :] | (Q == 0)
    if effects == "dino":
        asked = skills[:, None, :] & (Q == 1)
    able = asked.any(axis=2) if effects == "dino" else asked.all(axis=2)
    return (rng.random(able.shape) < np.where(able, 0.85, 0.2)).astype(float), skills


@pytest.mark.parametrize("effects", ["dina", "dino"])
@pytest.mark.parametrize("share", [0.35, 0.65])
@pytest.mark.parametrize("law", ["saturated", "auto"])
def test_skills_have_the_right_polarity_from_any_start(effects, share, law):
    X, skills = drawn(effects, share, np.random.default_rng(3))
    model = DCRL(3, effects=effects, q_matrix=Q, law=law, random_state=0).fit(X)
    # Items respond to a skill by guessing (.2) and slipping (.15): within sampling error.
    states = np.indices((2, 2, 2)).reshape(3, -1).T
    chance = 1 / (1 + np.exp(-model.result_.parameters.predictors(states)))
    np.testing.assert_allclose(chance.min(axis=1), 0.2, atol=0.06)
    np.testing.assert_allclose(chance.max(axis=1), 0.85, atol=0.06)
    np.testing.assert_allclose(model.latent_law_.marginals()[:, 1], skills.mean(axis=0), atol=0.04)
    # The model with all interactions holds this one, and has nothing to add.
    free = DCRL(3, effects="all", q_matrix=Q, law="saturated", random_state=0).fit(X)
    assert free.log_likelihood_ - model.log_likelihood_ < 25


def test_levels_go_up_with_the_items_whatever_they_measure():
    rng = np.random.default_rng(4)
    skills = rng.random((2000, 3)) < 0.5
    able = (skills[:, None, :] | (Q == 0)).all(axis=2)
    seconds = np.exp(3.0 - 0.8 * able + 0.4 * rng.normal(size=able.shape))
    # Times are long as soon as one skill is lacking: level 1 is the lack.
    model = DCRL(
        3, effects="dino", family="lognormal", q_matrix=Q, law="saturated", random_state=0
    ).fit(seconds)
    states = np.array([[0, 0, 0], [1, 1, 1], [1, 0, 0]])
    none, every, first = model.result_.parameters.predictors(states).T
    np.testing.assert_allclose(every - none, 0.8, atol=0.1)
    np.testing.assert_allclose(first - none, 0.8 * Q[:, 0], atol=0.1)


@pytest.mark.parametrize("law", ["saturated", "network"])
def test_states_that_main_effects_left_without_mass_are_found_again(law):
    rng = np.random.default_rng(3)
    skills = rng.random((1000, 3)) < 0.5
    for k in (1, 2):
        skills[:, k] = np.where(rng.random(1000) < 0.4, skills[:, k - 1], skills[:, k])
    q = np.vstack([Q[3:], [[1, 1, 0], [0, 1, 1]]])
    # Nothing is counted where no skill is there: single items rule states out for good.
    X = rng.poisson(5.0 * (skills @ q.T > 0)).astype(float)
    model = DCRL(3, family="poisson", effects="dino", q_matrix=q, law=law, random_state=0).fit(X)
    shares = np.bincount(skills @ [4, 2, 1], minlength=8) / len(X)
    np.testing.assert_allclose(np.ravel(model.latent_law_.probabilities), shares, atol=0.05)
