"""Item terms beyond main effects: which terms a model has, and what they cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hidag.em.m_step import Basis
from hidag.kernels.coordinate_descent import FREE, PENALISED, ZERO
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.measurement.terms import Terms
from hidag.strategy.problem import SearchProblem


def fixed_terms(problem: SearchProblem) -> SearchProblem:
    """Return the problem with all terms that a given Q and the effects imply, not penalised."""
    q = (problem.q_entries == 1).astype(np.int8)
    terms = problem.effects.terms(q, problem.space.levels, problem.terms.linear)
    allowed = np.full((len(q), 1 + terms.n_terms), ZERO, dtype=np.uint8)
    allowed[:, 0] = FREE
    allowed[:, 1:][problem.effects.support(terms, q)] = FREE
    basis = Basis.over(problem.space, terms)
    return replace(problem, terms=terms, basis=basis, allowed=allowed, penalty=NO_SPARSITY)


def open_terms(problem: SearchProblem, parameters: MeasurementParameters) -> SearchProblem:
    """Return the problem with the terms that the parameters' support and the effects imply.

    Terms of conjunctive items are fixed by their latents. Otherwise main effects may still enter
    and leave, and interactions of the present latents are penalised: at least half log(N T), since
    one of T possible terms has to gain more than one of K loadings.
    """
    q = np.asarray(parameters.support, dtype=np.int8)
    terms = problem.effects.terms(q, problem.space.levels, problem.terms.linear)
    wanted = problem.effects.support(terms, q)
    conjunctive = problem.effects.conjunctive
    allowed = np.full((len(q), 1 + terms.n_terms), ZERO, dtype=np.uint8)
    allowed[:, 0] = FREE
    allowed[:, 1:][wanted] = FREE if conjunctive else PENALISED
    penalty = NO_SPARSITY
    if not conjunctive:
        of_latent = np.choose(problem.q_entries + 1, [PENALISED, ZERO, FREE])
        allowed[:, 1 : 1 + terms.n_main] = of_latent[:, terms.main_latents]
        least = least_strength(terms, problem.data.n_counted)
        penalty = replace(problem.penalty, strength=max(problem.penalty.strength, least))
    basis = Basis.over(problem.space, terms)
    return replace(problem, terms=terms, basis=basis, allowed=allowed, penalty=penalty)


def least_strength(terms: Terms, n_samples: float) -> float:
    """Return the smallest penalty strength for so many possible terms."""
    return 0.5 * float(np.log(n_samples * terms.n_terms))


def started_in(problem: SearchProblem, parameters: MeasurementParameters) -> MeasurementParameters:
    """Return parameters of any terms as a starting point with the terms of the problem."""
    terms = problem.terms
    if parameters.terms == terms:
        return parameters
    rewritten = parameters.with_terms(terms)
    wanted = problem.allowed[:, 1:] != ZERO
    if not problem.effects.conjunctive:
        return rewritten
    if parameters.terms.interactions and not rewritten.loadings[~wanted].any():
        return rewritten
    # The total effect of an item goes to its one product.
    total = parameters.strengths.sum(axis=1, keepdims=True)
    return replace(rewritten, loadings=np.where(wanted, total, 0.0))
