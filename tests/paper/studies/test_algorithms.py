"""Algorithms S.1 and S.2 of the paper, step by step, against independent computations."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize

from hidag import design, simulate
from hidag.measurement.families.base import family_named
from hidag_paper.baselines.algorithms import (
    FAMILIES,
    Estimate,
    Objective,
    Procedure,
    estimate,
    penalised_saem,
    spectral_start,
    state_numbers,
    sweep,
)
from hidag_paper.baselines.research_code import procedure_of, search_drawn_rows
from hidag_paper.studies import plan_study, run_plan

KINDS = [name for name in FAMILIES if name != "lognormal"]


def items(kind: str, n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Latents (n, 2), and responses of two items with coefficients of their own."""
    rng = np.random.default_rng(3)
    latents = rng.integers(0, 2, (n, 2))
    b = np.array([[0.5, 1.0, 0.6], [0.4, 0.8, 0.0]])
    eta = np.column_stack([np.ones(n), latents]) @ b.T
    family = family_named(kind)
    drawn = [family.sample(eta[:, j], np.ones(n), rng) for j in range(2)]
    return latents, np.column_stack(drawn), b


def log_likelihood(kind: str, b: np.ndarray, x: np.ndarray, latents: np.ndarray) -> float:
    eta = np.column_stack([np.ones(len(x)), latents]) @ b
    if kind == "bernoulli":
        return float((x * eta - np.logaddexp(0, eta)).sum())
    if kind == "poisson":
        return float((x * eta - np.exp(eta)).sum())
    if kind == "poisson-identity":
        return float((x * np.log(np.maximum(eta, 1e-9)) - eta).sum())
    return float(-0.5 * len(x) * np.log(((x - eta) ** 2).mean()))


@pytest.mark.parametrize("kind", KINDS)
def test_an_m_step_maximises_the_penalised_likelihood(kind) -> None:
    latents, x, b = items(kind)
    objective = Objective(x, (kind, kind), 2)
    # A first step of .25 leaves a quarter of the likelihood, as F starts at zero.
    objective.add(state_numbers(latents), 0.25)
    for slope in (0.0, 2.0):
        found, _ = objective.maximise(b, np.ones(2), slope, 0.3)
        for j in range(2):

            def cost(own, j=j, slope=slope):
                penalty = slope * np.minimum(np.abs(own[1:]), 0.3).sum()
                return penalty - 0.25 * log_likelihood(kind, own, x[:, j], latents)

            best = minimize(cost, found[j], method="Nelder-Mead", options={"xatol": 1e-7})
            assert cost(found[j]) <= best.fun + 2e-5


@pytest.mark.parametrize("kind", KINDS)
def test_a_sweep_draws_from_the_posterior(kind) -> None:
    _, x, b = items(kind, 5)
    law = np.array([0.4, 0.1, 0.2, 0.3])
    n = 60_000
    values = np.repeat(x[:1], n, axis=0)
    found = Estimate(law, b, np.ones(2), np.zeros((n, 2), dtype=np.int64))
    rng, latents = np.random.default_rng(0), found.latents
    for _ in range(12):
        latents = sweep(latents, values, (kind, kind), found, np.log(law), rng)
    states = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    eta = np.column_stack([np.ones(4), states]) @ b.T
    log_densities = {
        "gaussian": lambda v, e: -0.5 * (v - e) ** 2,
        "bernoulli": lambda v, e: v * e - np.logaddexp(0, e),
        "poisson": lambda v, e: v * e - np.exp(e),
        "poisson-identity": lambda v, e: v * np.log(e) - e,
    }
    weights = law * np.exp(sum(log_densities[kind](x[0, j], eta[:, j]) for j in range(2)))
    seen = np.bincount(state_numbers(latents), minlength=4) / n
    np.testing.assert_allclose(seen, weights / weights.sum(), atol=0.012)


def test_states_without_probability_stay_without_it_and_a_floor_lets_them_in() -> None:
    _, x, b = items("gaussian", 2000)
    law = np.array([0.5, 0.0, 0.0, 0.5])
    found = Estimate(law, b, np.ones(2), np.zeros((2000, 2), dtype=np.int64))
    rng = np.random.default_rng(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = sweep(found.latents, x, ("gaussian",) * 2, found, np.log(law), rng)
    # From 00 one coordinate at a time cannot reach 11 through states that cannot occur.
    assert not drawn.any()
    drawn = sweep(found.latents, x, ("gaussian",) * 2, found, np.log(law + 0.1), rng)
    assert len(np.unique(state_numbers(drawn))) == 4


def test_the_start_reads_latents_and_q_of_clear_items() -> None:
    truth = design("Chain-5", "Q1", "gaussian", rng=1)
    data = simulate(truth, 2000, rng=2)
    for sparse in (True, False):
        procedure = replace(Procedure(), sparse_scores=sparse)
        start = spectral_start(data.X, tuple(truth.families), 5, procedure)
        agree = np.abs(np.corrcoef(start.latents.T, data.states.T)[:5, 5:])
        order = agree.argmax(axis=0)
        assert (agree.max(axis=0) > 0.9).all()
        q = start.coefficients[:, 1:][:, order] != 0
        assert (q == truth.q_matrix.astype(bool)).all()


def test_steps_average_the_law_and_the_likelihood() -> None:
    truth = design("Chain-5", "Q1", "bernoulli", design="research-code", rng=1)
    data = simulate(truth, 500, rng=2)
    families = tuple(truth.families)
    procedure = replace(procedure_of("research-code", families), max_iter=1)
    start = spectral_start(data.X, families, 5, procedure)
    found = penalised_saem(data.X, families, start, procedure, np.random.default_rng(0))
    sampled = np.bincount(state_numbers(found.latents), minlength=32) / 500
    step = 0.1 / 11
    np.testing.assert_allclose(found.law, (1 - step) * start.law + step * sampled)


def test_the_printed_procedure_has_every_departure_off() -> None:
    assert procedure_of("printed", ("bernoulli",)) == Procedure()
    ran = procedure_of("research-code", ("bernoulli",))
    same = {f.name for f in fields(Procedure) if getattr(ran, f.name) == f.default}
    assert same == {"n_sweeps"}
    n = 3000
    assert ran.penalty(n) == (n**0.25, 2 * n**-0.275)
    assert Procedure().penalty(n)[0] == pytest.approx(n**0.25 / (2 * n**-0.275))


def test_the_research_code_stops_after_two_or_three_steps_near_its_start() -> None:
    truth = design("Chain-5", "Q1", "poisson", design="research-code", rng=1)
    data = simulate(truth, 3000, rng=2)
    families = tuple(truth.families)
    procedure = procedure_of("research-code", families)
    run = partial(estimate, data.X, families, 5, procedure)
    found, q = run(np.random.default_rng(0))
    assert found.n_iter <= 3
    start = spectral_start(data.X, families, 5, procedure)
    assert np.abs(found.law - start.law).sum() < 0.1
    assert q.sum() == truth.q_matrix.sum()
    graph = search_drawn_rows(found.law, 5, 3000, procedure, np.random.default_rng(0))
    assert graph.is_valid()


def test_studies_of_f_n_have_the_papers_rows_for_its_own_procedure() -> None:
    plan = plan_study(
        "table-s1", cells=["Model-7/Q1/gaussian"], n=[300], replicates=1,
        methods=("printed", "research-code"),
    )  # fmt: skip
    runs = list(run_plan(plan))
    assert [[row["rule"] for row in run] for run in runs] == [["N", "2N", "3N"]] * 2
    for run in runs:
        assert {row["status"] for row in run} == {"ok"}
        assert len({row["shd_q"] for row in run}) == 1
        assert len({row["fit_seed"] for row in run}) == 1
