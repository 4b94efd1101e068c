"""Rows against halves of the latents give what rows against all states give."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.estimate import expectation
from hidag.estimate.expectation import expect, expect_states
from hidag.estimate.halves import halves_of
from hidag.estimate.maximise import Basis, maximise, permissions
from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, Penalty, Terms

N, J = 700, 9


def case(families, levels, *, missing=0.0, weights=False, size=1.0, seed=0):
    rng = np.random.default_rng(seed)
    names = tuple(families[j % len(families)] for j in range(J))
    draw = {
        "gaussian": lambda: rng.normal(0.0, 2.0, N),
        "lognormal": lambda: np.exp(rng.normal(0.0, 1.0, N)),
        "bernoulli": lambda: (rng.random(N) < 0.4) * 1.0,
        "poisson": lambda: rng.poisson(2.0, N) * 1.0,
        "poisson-identity": lambda: rng.poisson(2.0, N) * 1.0,
        "binomial(5)": lambda: rng.binomial(5, 0.4, N) * 1.0,
    }
    values = np.column_stack([draw[name]() for name in names])
    values[rng.random(values.shape) < missing] = np.nan
    counted = rng.integers(0, 4, N).astype(float) if weights else None
    data = WorkingData.from_values(values, names, weights=counted)
    space = StateSpace(levels)
    terms = Terms.main(levels)
    loadings = (
        size
        * np.abs(rng.standard_normal((J, terms.n_main)))
        * (rng.random((J, terms.n_main)) < 0.6)
    )
    parameters = MeasurementParameters(names, np.full(J, 0.3), loadings, 0.5 + rng.random(J), terms)
    law = rng.dirichlet(np.ones(space.n_states))
    return parameters, law, data, terms.features(space.states())


def listed(monkeypatch, arguments):
    with monkeypatch.context() as patch:
        patch.setattr(expectation, "halves_of", lambda *a: None)
        return expect(*arguments), expect_states(*arguments)


def is_halved(parameters, law, data, features):
    return halves_of(parameters, np.log(law), features, parameters.tables(features)[1]) is not None


CASES = {
    "gaussian": case(("gaussian",), (2,) * 6),
    "mixed": case(("bernoulli", "poisson", "lognormal", "binomial(5)"), (2,) * 5),
    "levels": case(("bernoulli", "gaussian"), (3, 2, 4, 2)),
    "missing": case(("bernoulli", "gaussian"), (2,) * 6, missing=0.08),
    "weights": case(("poisson", "gaussian"), (2,) * 5, weights=True, missing=0.05),
}


@pytest.mark.parametrize("name", CASES)
def test_halves_give_what_listed_states_give(monkeypatch, name):
    arguments = CASES[name]
    parameters, _, data, features = arguments
    assert is_halved(*arguments)
    (theirs, value), (their_counts, _) = listed(monkeypatch, arguments)
    ours, found = expect(*arguments)
    counts, _ = expect_states(*arguments)
    assert found == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(ours.count, theirs.count, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(counts, their_counts, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.gap_count, theirs.gap_count, rtol=1e-9, atol=1e-9)
    design = Basis.of(features).design
    np.testing.assert_allclose(ours.sum_x @ design, theirs.sum_x @ design, rtol=1e-9, atol=1e-8)
    q = np.full((J, parameters.terms.n_latents), -1, dtype=np.int8)
    allowed = permissions(q, parameters.terms)
    steps = [
        maximise(parameters, s, data, Basis.of(features), allowed, Penalty("tlp", 3.0, 0.1))
        for s in (ours, theirs)
    ]
    np.testing.assert_allclose(steps[0].loadings, steps[1].loadings, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(steps[0].dispersion, steps[1].dispersion, rtol=1e-7)


def test_threads_do_not_change_bits():
    arguments = CASES["missing"]
    one, two = (expect(*arguments, n_threads=n) for n in (1, 3))
    assert one[1] == two[1]
    np.testing.assert_array_equal(one[0].sum_x, two[0].sum_x)


@pytest.mark.filterwarnings("error")
def test_rows_that_lose_their_digits_are_listed(monkeypatch):
    """Responses far beyond what the law allows: halves alone would find no mass at all."""
    parameters, _, data, features = case(("gaussian",), (2,) * 6, size=40.0, seed=3)
    law = np.full(64, 1e-300)
    law[[0, 63]] = 0.5
    arguments = (parameters, law, data, features)
    assert is_halved(*arguments)
    (theirs, value), _ = listed(monkeypatch, arguments)
    ours, found = expect(*arguments)
    assert found == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(ours.count, theirs.count, rtol=1e-6, atol=1e-9)


def test_what_does_not_add_up_is_listed():
    assert not is_halved(*case(("poisson-identity",), (2,) * 6))
    assert not is_halved(*case(("bernoulli", "poisson-identity"), (2,) * 6))
    assert not is_halved(*case(("gaussian",), (2,) * 3))
    assert not is_halved(*case(("poisson",), (2,) * 6, size=60.0))
    parameters, law, data, _ = case(("gaussian",), (2,) * 5)
    terms = Terms(parameters.terms.levels, (((0, 1), (1, 1)),))
    wider = terms.features(StateSpace(terms.levels).states())
    assert not is_halved(parameters.with_terms(terms), law, data, wider)
