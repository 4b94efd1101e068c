"""Local optima: which candidates are distinct, and their convergence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.em.em import run_em
from hidag.em.m_step import Basis
from hidag.latent import StateSpace
from hidag.measurement import Terms
from hidag.strategy.moves import optima
from hidag.strategy.moves.optima import converge
from hidag.strategy.structural_em import initial_structure_step

from .problems import drawn, silent

K, N = 4, 1500
SPACE = StateSpace.binary(K)
TERMS = Terms.main(SPACE.levels)
BASIS = Basis.over(SPACE, TERMS)
Q = np.vstack([np.eye(K)] * 3 + [np.eye(K) + np.roll(np.eye(K), 1, axis=1)])


@pytest.fixture(scope="module")
def setting():
    return drawn(Q, N, 5)


def look_from(problem, items, law, allowed=None):
    if allowed is not None:
        problem = replace(problem, allowed=allowed)
    saturated = run_em(problem, items, law)
    return initial_structure_step(problem, saturated, n_steps=saturated.n_iter)


def confused(problem, items, law, latent):
    """Return where a start ends whose latent has the wrong items, and may have no others."""
    wrong = items.loadings.copy()
    wrong[:, latent] = np.roll(wrong[:, latent], 1)
    allowed = problem.allowed.copy()
    allowed[:, 1 + latent] = wrong[:, latent] != 0
    return look_from(problem, replace(items, loadings=wrong), law, allowed)


def test_best_end_is_no_worse_than_any_candidate(setting):
    problem, items, law = setting
    looks = [confused(problem, items, law, latent) for latent in (0, 3)]
    assert converge(looks[:1], problem, [silent])[0] is looks[0]
    # Starts that lead to one place are nothing to choose from either.
    again = replace(looks[0], criterion=looks[0].criterion - 1.0)
    assert converge([again, looks[0]], problem, [silent, silent])[0] is looks[0]
    found, *others = converge(looks, problem, [silent, silent])
    assert len(others) == 1
    alone = [optima.run_to_convergence(look, problem, silent) for look in looks]
    assert found.criterion >= max(one.criterion for one in alone)


def test_distinct_optima_drops_duplicates(setting):
    problem, items, law = setting
    good = look_from(problem, items, law)
    mixed = items.loadings.copy()
    mixed[:, 0] = np.roll(mixed[:, 0], 2)
    elsewhere = replace(good.estimate, parameters=replace(items, loadings=mixed))
    bad = replace(good, estimate=elsewhere, criterion=good.criterion - 1.0)
    looks = [bad, good, good, bad]
    parameters = [look.estimate.parameters for look in looks]
    assert optima.distinct_optima(parameters, [look.criterion for look in looks]) == [1, 0]
