"""EM for the latent distribution with fixed items, constrained and unconstrained."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from hidag.em.design_data import WorkingData
from hidag.em.e_step import run_law_e_step
from hidag.em.em import LawEStep, fit_law, normalise_counts, update_law_unconstrained
from hidag.latent import SaturatedLaw, StateSpace
from hidag.latent.laws import factorise_counts
from hidag.measurement import MeasurementParameters

SPACE = StateSpace.binary(3)
FEATURES = SPACE.states().astype(np.float64)
#: The first two latents go together, the third stands alone.
TRUE = np.array([0.2, 0.2, 0.05, 0.05, 0.05, 0.05, 0.2, 0.2])
CHAIN, ALONE = ((), (0,), ()), ((), (), ())


def over(parents):
    return lambda counts: factorise_counts(counts, parents, SPACE)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    q = np.repeat(np.eye(3), 3, axis=0)
    parameters = MeasurementParameters(("bernoulli",) * 9, np.full(9, -1.0), 2.2 * q, np.ones(9))
    states = SaturatedLaw(SPACE, TRUE).sample(700, rng)
    chances = 1.0 / (1.0 + np.exp(-(parameters.intercept + states @ parameters.loadings.T)))
    values = (rng.random(chances.shape) < chances).astype(float)
    values[rng.random(values.shape) < 0.1] = np.nan
    return parameters, WorkingData.from_values(values, parameters.families)


def likelihood(problem, law):
    return run_law_e_step(problem[0], law, problem[1], FEATURES)[1]


def steps(problem, law_step, n_steps, tolerance=0.0):
    expected = LawEStep(*problem, FEATURES).run
    even = law_step(np.full(8, 1.0))
    return fit_law(expected, even, law_step, tolerance=tolerance, max_steps=n_steps)


@pytest.mark.parametrize("law_step", [normalise_counts, over(CHAIN), over(ALONE)])
def test_more_steps_never_lower_the_likelihood(problem, law_step):
    values = [steps(problem, law_step, n)[1] for n in range(1, 40)]
    assert np.diff(values).min() >= -1e-9
    assert values[-1] > values[0]


@pytest.mark.parametrize("law_step", [normalise_counts, over(CHAIN)])
def test_the_likelihood_belongs_to_the_law_returned_with_it(problem, law_step):
    for n_steps in range(1, 25):
        law, value = steps(problem, law_step, n_steps)
        assert likelihood(problem, law) == pytest.approx(value, abs=1e-8)


def test_em_ends_at_the_constrained_maximum(problem):
    found, value = steps(problem, over(CHAIN), 2000, tolerance=1e-10)

    def law_of(odds):
        a, b0, b1, c = 1.0 / (1.0 + np.exp(-odds))
        cube = np.empty((2, 2, 2))
        for i, j, k in np.ndindex(2, 2, 2):
            b = b1 if i else b0
            cube[i, j, k] = (a if i else 1 - a) * (b if j else 1 - b) * (c if k else 1 - c)
        return cube.ravel()

    best = minimize(lambda odds: -likelihood(problem, law_of(odds)), np.zeros(4), tol=1e-10)
    assert value == pytest.approx(-best.fun, abs=1e-4)
    np.testing.assert_allclose(found, law_of(best.x), atol=2e-3)
    np.testing.assert_allclose(found, factorise_counts(found, CHAIN, SPACE), atol=1e-12)


def correlation(law):
    cube = law.reshape(2, 2, 2).sum(axis=2)
    return cube[1, 1] - cube[1].sum() * cube[:, 1].sum()


def test_unconstrained_steps_reveal_a_dependence_that_the_graph_lacks(problem):
    e_step = LawEStep(*problem, FEATURES)
    law, _ = steps(problem, over(ALONE), 200, tolerance=1e-6)
    assert correlation(law) == pytest.approx(0.0, abs=1e-12)
    counts, _ = e_step.run(law)
    shown = [
        correlation(update_law_unconstrained(e_step, law, counts, n, ratio=0.5))
        for n in (0, 1, 2, 4)
    ]
    assert shown[0] == pytest.approx(0.0, abs=1e-12)
    assert 0.02 < shown[1] < shown[2] < shown[3] < correlation(TRUE) + 0.05
    freed = update_law_unconstrained(e_step, law, counts, 4, ratio=0.5)
    assert freed.sum() == pytest.approx(1.0)
    assert likelihood(problem, freed) > likelihood(problem, law) + 5.0
    # Latents that do not go together are not made to.
    third = freed.reshape(2, 2, 2).sum(axis=0)
    assert abs(third[1, 1] - third[1].sum() * third[:, 1].sum()) < 0.03
