"""Laws that Stage I must obey, whatever the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from hidag.em.design_data import WorkingData
from hidag.em.e_step import run_e_step
from hidag.em.em import Problem, Schedule, run_em
from hidag.em.m_step import Basis, run_m_step
from hidag.em.posterior import posterior_marginals, row_log_likelihood
from hidag.em.saem import GibbsSampler
from hidag.initialization.initializers import predictors, spectral_start
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import NO_SPARSITY, MeasurementParameters, default_penalty, family_named

#: Families with their dispersions; ordered grades have cutpoints instead.
DISPERSIONS = {
    "bernoulli": 1.0,
    "bernoulli-probit": 1.0,
    "bernoulli-cloglog": 1.0,
    "binomial(6)": 1.0,
    "poisson": 1.0,
    "poisson-identity": 1.0,
    "negative-binomial": 0.5,
    "zero-inflated-poisson": 0.25,
    "ordinal(3)": 1.0,
    "ordinal(5)": 1.0,
    "gaussian": 0.6,
    "lognormal": 0.6,
    "censored-lognormal(2)": 0.6,
    "gamma": 0.4,
    "beta": 0.2,
}
CUTPOINTS = (0.7, 1.1, 2.0)
FAMILIES = tuple(DISPERSIONS)


def make_problem(seed: int, *, families: tuple[str, ...], n_latents: int = 3, missing: float = 0.0):
    """Return values, parameters (user scale) and a law, with two items per family and latent."""
    rng = np.random.default_rng(seed)
    names = tuple(f for f in families for _ in range(2 * n_latents))
    q = np.tile(np.eye(n_latents), (2 * len(families), 1))
    q[:: 2 * n_latents + 1, :] = 1.0
    loadings = q * rng.uniform(0.8, 1.6, q.shape)
    intercept = np.where(np.isin(names, ["poisson-identity"]), 0.7, -0.5)
    dispersion = np.array([DISPERSIONS[name] for name in names])
    cutpoints = np.full((len(names), 3), np.nan)
    for j, name in enumerate(names):
        n_cutpoints = family_named(name).n_cutpoints
        cutpoints[j, :n_cutpoints] = CUTPOINTS[:n_cutpoints]
    parameters = MeasurementParameters(names, intercept, loadings, dispersion, cutpoints=cutpoints)
    space = StateSpace.binary(n_latents)
    law = SaturatedLaw(space, rng.dirichlet(np.full(space.n_states, 2.0)))
    states = law.sample(400, rng)
    eta = intercept + states @ loadings.T
    values = np.empty(eta.shape)
    for family, items in parameters.groups():
        auxiliary = parameters.auxiliary(family, items)
        values[:, items] = family.sample(eta[:, items], auxiliary, rng)
    values[rng.random(values.shape) < missing] = np.nan
    return values, parameters, law


def censored_log_density(x, eta, g, limit):
    times = stats.lognorm(np.sqrt(g), scale=np.exp(eta))
    return np.where(x >= limit, times.logsf(limit), times.logpdf(x))


def zero_inflated_log_density(x, eta, g):
    return np.log(g * (x == 0) + (1 - g) * stats.poisson.pmf(x, np.exp(eta)))


def graded_log_density(x, eta, g, n_grades):
    cuts = np.array([-np.inf, 0.0, *CUTPOINTS[: n_grades - 2], np.inf])
    above = expit(eta - cuts)
    return np.log(above[:-1] - above[1:])[x.astype(int)]


#: Log densities of x at a predictor and a dispersion, as textbooks have them.
TEXTBOOK = {
    "bernoulli": lambda x, e, g: stats.bernoulli.logpmf(x, expit(e)),
    "bernoulli-probit": lambda x, e, g: stats.bernoulli.logpmf(x, stats.norm.cdf(e)),
    "bernoulli-cloglog": lambda x, e, g: stats.bernoulli.logpmf(x, 1 - np.exp(-np.exp(e))),
    "binomial(6)": lambda x, e, g: stats.binom.logpmf(x, 6, expit(e)),
    "poisson": lambda x, e, g: stats.poisson.logpmf(x, np.exp(e)),
    "poisson-identity": lambda x, e, g: stats.poisson.logpmf(x, e),
    "negative-binomial": lambda x, e, g: stats.nbinom.logpmf(x, 1 / g, 1 / (1 + g * np.exp(e))),
    "zero-inflated-poisson": zero_inflated_log_density,
    "ordinal(3)": lambda x, e, g: graded_log_density(x, e, g, 3),
    "ordinal(5)": lambda x, e, g: graded_log_density(x, e, g, 5),
    "gaussian": lambda x, e, g: stats.norm.logpdf(x, e, np.sqrt(g)),
    "lognormal": lambda x, e, g: stats.lognorm.logpdf(x, np.sqrt(g), scale=np.exp(e)),
    "censored-lognormal(2)": lambda x, e, g: censored_log_density(x, e, g, 2.0),
    "gamma": lambda x, e, g: stats.gamma.logpdf(x, 1 / g, scale=g * np.exp(e)),
    "beta": lambda x, e, g: stats.beta.logpdf(x, expit(e) / g, expit(-e) / g),
}


def brute_log_density(values, parameters, law):
    """Row log densities by summing textbook densities over all states, cell by cell."""
    states = law.space.states()
    out = np.full((len(values), len(states)), np.log(law.probabilities))
    for s, z in enumerate(states):
        eta = parameters.intercept + parameters.loadings @ z
        for j, name in enumerate(parameters.families):
            x = values[:, j]
            seen = ~np.isnan(x)
            out[seen, s] += TEXTBOOK[name](x[seen], eta[j], parameters.dispersion[j])
    return out


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_likelihood_and_posterior_equal_the_textbook_sum(missing):
    values, parameters, law = make_problem(1, families=FAMILIES, missing=missing)
    values[0] = np.nan
    joint = brute_log_density(values, parameters, law)
    rows = np.logaddexp.reduce(joint, axis=1)
    posterior = np.exp(joint - rows[:, None])
    np.testing.assert_allclose(row_log_likelihood(parameters, law, values), rows, atol=1e-9)
    np.testing.assert_allclose(
        posterior_marginals(parameters, law, values), posterior @ law.space.states(), atol=1e-9
    )
    assert abs(row_log_likelihood(parameters, law, values)[0]) < 1e-12
    data = WorkingData.from_values(values, parameters.families)
    statistics, total = run_e_step(
        data.to_working(parameters), law.probabilities, data, law.space.states().astype(float)
    )
    assert total == pytest.approx(rows.sum(), abs=1e-7)
    np.testing.assert_allclose(statistics.count, posterior.sum(axis=0), atol=1e-8)
    np.testing.assert_allclose(statistics.sum_x, data.x.T @ posterior, atol=1e-7)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("penalty", [None, "tlp", "scad", "mcp"])
def test_em_never_lowers_its_objective(family, missing, penalty):
    values, _, law = make_problem(2, families=(family,), missing=missing)
    data = WorkingData.from_values(values, (family,) * values.shape[1])
    basis = Basis.of(law.space.states().astype(float))
    q = np.full((data.n_items, 3), -1, dtype=np.int8)
    point = spectral_start(data, law.space, basis, q, predictors(data, 3))
    allowed = np.ones((data.n_items, 4), dtype=np.uint8)
    chosen = NO_SPARSITY if penalty is None else default_penalty(penalty, data.n_samples, 3)
    schedule = Schedule(max_iter=40, tolerance=1e-12)
    problem = Problem(data, law.space, basis, allowed, chosen, schedule)
    found = run_em(problem, point.parameters, point.probabilities)
    steps = np.diff(found.trace[:, 0])
    assert len(steps) > 10
    assert steps.min() > -1e-8 * abs(found.objective)


@pytest.mark.parametrize("family", FAMILIES)
def test_m_step_gradient_vanishes_at_its_answer(family):
    values, parameters, law = make_problem(3, families=(family,), missing=0.1)
    data = WorkingData.from_values(values, parameters.families)
    working = data.to_working(parameters)
    basis = Basis.of(law.space.states().astype(float))
    statistics, _ = run_e_step(
        working, law.probabilities, data, np.ascontiguousarray(basis.features)
    )
    allowed = np.ones((data.n_items, 4), dtype=np.uint8)
    found = run_m_step(working, statistics, data, basis, allowed, NO_SPARSITY, n_newton=60)
    counts = statistics.item_counts(np.arange(data.n_items), data.incomplete)

    kind = family_named(family)
    columns = data.columns.of(kind, np.arange(data.n_items)).reshape(-1, data.n_items)
    auxiliary = found.auxiliary(kind, np.arange(data.n_items))

    def expected(beta, j):
        eta = basis.design @ beta
        theta, partition = kind.natural(eta, auxiliary[j])
        sums = statistics.sum_x[columns[:, j]]
        return float((sums * theta).sum() - counts[j] @ partition)

    for j in range(data.n_items):
        beta = np.concatenate([[found.intercept[j]], found.loadings[j]])
        for a in range(4):
            step = np.zeros(4)
            step[a] = 1e-5
            slope = (expected(beta + step, j) - expected(beta - step, j)) / 2e-5
            assert abs(slope) < 1e-3 * data.n_samples**0.5


def test_a_restricted_m_step_keeps_its_zeros():
    values, parameters, law = make_problem(4, families=("bernoulli",))
    data = WorkingData.from_values(values, parameters.families)
    basis = Basis.of(law.space.states().astype(float))
    statistics, _ = run_e_step(
        parameters, law.probabilities, data, np.ascontiguousarray(basis.features)
    )
    allowed = np.ones((data.n_items, 4), dtype=np.uint8)
    allowed[:, 2] = 0
    found = run_m_step(parameters, statistics, data, basis, allowed, NO_SPARSITY, n_newton=5)
    assert (found.loadings[:, 1] == 0).all()
    assert (found.loadings[:, 0] != 0).any()


def test_row_blocks_add():
    values, parameters, law = make_problem(5, families=FAMILIES, missing=0.2)
    features = law.space.states().astype(float)
    whole = WorkingData.from_values(values, parameters.families)
    units = (whole.shift, whole.scale)
    working = whole.to_working(parameters)
    total, value = run_e_step(working, law.probabilities, whole, features)
    parts = []
    for rows in (slice(0, 130), slice(130, 131), slice(131, None)):
        part = WorkingData.from_values(values[rows], parameters.families, units=units)
        # Blocks of one table share which items have gaps, or their counts could not be added.
        part = replace(part, incomplete=whole.incomplete, extended=whole.extended[rows])
        parts.append(run_e_step(working, law.probabilities, part, features))
    summed = parts[0][0] + parts[1][0] + parts[2][0]
    np.testing.assert_allclose(summed.count, total.count, atol=1e-10)
    np.testing.assert_allclose(summed.sum_x, total.sum_x, atol=1e-9)
    np.testing.assert_allclose(summed.incomplete_count, total.incomplete_count, atol=1e-10)
    assert sum(v for _, v in parts) == pytest.approx(value, abs=1e-8)


def test_thread_count_changes_no_bit():
    values, parameters, law = make_problem(6, families=FAMILIES, missing=0.1)
    values = np.vstack([values] * 12)
    data = WorkingData.from_values(values, parameters.families)
    working = data.to_working(parameters)
    features = law.space.states().astype(float)
    one, total = run_e_step(working, law.probabilities, data, features)
    for n_threads in (2, 3, 7):
        many, value = run_e_step(working, law.probabilities, data, features, n_threads=n_threads)
        assert value == total
        assert np.array_equal(one.sum_x, many.sum_x)
        assert np.array_equal(one.incomplete_count, many.incomplete_count)
    samplers = [GibbsSampler(data, law.space, np.zeros(len(values), int), 7) for _ in range(2)]
    for _ in range(3):
        samplers[0].draw(working, law.probabilities)
        samplers[1].draw(working, law.probabilities, n_threads=3)
    assert np.array_equal(samplers[0].states, samplers[1].states)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_gibbs_leaves_the_posterior_invariant(missing):
    # One short row, many copies, drawn from its exact posterior: after sweeps the copies must
    # still follow it. A chi-square far in the tail would mean a wrong conditional.
    values, parameters, law = make_problem(8, families=FAMILIES, missing=missing)
    rng = np.random.default_rng(0)
    for row in values[:4]:
        keep = rng.permutation(len(row))[:5]
        few = parameters.reordered(items=keep)
        table = np.tile(row[keep], (40_000, 1))
        data = WorkingData.from_values(table, few.families, units=(np.zeros(5), np.ones(5)))
        joint = brute_log_density(row[None, keep], few, law)[0]
        posterior = np.exp(joint - np.logaddexp.reduce(joint))
        start = rng.choice(len(posterior), size=len(table), p=posterior)
        sampler = GibbsSampler(data, law.space, start, 5)
        sampler.draw(few, law.probabilities, n_sweeps=3)
        assert (sampler.states != start).mean() > 0.01
        seen = np.bincount(sampler.states, minlength=len(posterior))
        expected = posterior * len(table)
        big = expected > 5
        chi_square = ((seen - expected)[big] ** 2 / expected[big]).sum()
        assert chi_square < big.sum() + 6 * np.sqrt(2 * big.sum()) + 6


def test_gibbs_is_independent_of_its_start():
    values, parameters, law = make_problem(9, families=("bernoulli",))
    data = WorkingData.from_values(np.tile(values[0], (30_000, 1)), parameters.families)
    joint = brute_log_density(values[:1], parameters, law)[0]
    posterior = np.exp(joint - np.logaddexp.reduce(joint))
    sampler = GibbsSampler(data, law.space, np.zeros(len(data.x), int), 1)
    sampler.draw(parameters, law.probabilities, n_sweeps=60)
    seen = np.bincount(sampler.states, minlength=8) / len(data.x)
    np.testing.assert_allclose(seen, posterior, atol=0.012)


def test_the_sampler_is_its_plain_python_body():
    from hidag.kernels import gibbs

    values, parameters, law = make_problem(10, families=("poisson", "gaussian"), missing=0.2)
    data = WorkingData.from_values(values[:40], parameters.families)
    working = data.to_working(parameters)
    compiled = GibbsSampler(data, law.space, np.zeros(40, int), 3)
    compiled.draw(working, law.probabilities, n_sweeps=2)
    plain = GibbsSampler(data, law.space, np.zeros(40, int), 3)
    names = ("sweep_listed", "mix", "draw_level", "add_item_evidence")
    fast = {name: getattr(gibbs, name) for name in names}
    try:
        for name, function in fast.items():
            setattr(gibbs, name, function.py_func)
        with np.errstate(over="ignore"):
            plain.draw(working, law.probabilities, n_sweeps=2)
    finally:
        for name, function in fast.items():
            setattr(gibbs, name, function)
    assert np.array_equal(compiled.states, plain.states)


def test_a_flipped_latent_is_the_same_model():
    values, parameters, law = make_problem(11, families=FAMILIES)
    flips = np.array([True, False, True])
    cube = np.flip(law.probabilities.reshape(2, 2, 2), axis=(0, 2))
    other = SaturatedLaw(law.space, cube.ravel())
    np.testing.assert_allclose(
        row_log_likelihood(parameters.flipped(flips), other, values),
        row_log_likelihood(parameters, law, values),
        atol=1e-9,
    )
