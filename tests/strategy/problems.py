"""A table with known items and law, and the problem that ends of Stage I are compared in."""

from __future__ import annotations

import numpy as np

from hidag.em.design_data import WorkingData
from hidag.em.em import Schedule
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, Terms, default_penalty
from hidag.simulation import Truth, chain_dag, make_truth, random_law, simulate
from hidag.strategy.problem import SearchProblem
from hidag.strategy.structural_em import parents_by_search


def silent(*_):
    """Take no notice of a step."""


def chain_truth(q, rng) -> Truth:
    """Return binary items with the given Q on a chain of binary latents."""
    return make_truth(random_law(chain_dag(q.shape[1]), rng=rng), q, "bernoulli", rng=rng)


def open_problem(values, families, n_latents) -> SearchProblem:
    """Return the problem of a table in which all of Q is to be estimated."""
    space = StateSpace.binary(n_latents)
    terms = Terms.main(space.levels)
    q_entries = np.full((len(families), n_latents), -1, dtype=np.int8)
    return SearchProblem(
        WorkingData.from_values(values, families),
        space,
        Basis.over(space, terms),
        allowed_coefficients(q_entries, terms),
        default_penalty("tlp", len(values), n_latents),
        Schedule(),
        terms=terms,
        q_entries=q_entries,
        learn_parents=parents_by_search(space),
    )


def drawn(q, n_rows, seed):
    """Return the problem of a drawn table, its true items and its true law."""
    rng = np.random.default_rng(seed)
    truth = chain_truth(q, rng)
    problem = open_problem(simulate(truth, n_rows, rng=rng).X, truth.families, q.shape[1])
    items = MeasurementParameters(
        truth.families, truth.intercept, truth.loadings, np.ones(len(truth.families))
    )
    return problem, items, np.asarray(truth.law.probabilities)
