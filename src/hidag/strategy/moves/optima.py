"""Local optima of Stage I: their criterion, convergence on all rows, and monotone loadings.

A sample of rows and a few steps separate bad starts from good ones, but not the best from the third
best: those differ by one or two confused latents. So the best few are run to convergence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import betaln

from hidag.config import CONFIG
from hidag.em.em import Estimate, Observer, append_run, run_em
from hidag.em.information import log_evidence, observed_information
from hidag.em.m_step import Basis, coefficient_scales, is_penalised
from hidag.kernels.coordinate_descent import NONNEGATIVE, PENALISED
from hidag.latent.laws import factorise_counts
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.strategy.problem import SearchProblem
from hidag.strategy.structural_em import Candidate, law_complexity, structural_em

Array = NDArray[np.float64]


def loading_similarity(one: MeasurementParameters, other: MeasurementParameters) -> float:
    """Return the smallest cosine of two matched latents' loadings."""
    return _similarity(_directions(one), _directions(other), one.terms.levels, other.terms.levels)


def _directions(parameters: MeasurementParameters) -> Array:
    """Return the absolute effects of each latent on the items as unit vectors, shape (J, K)."""
    sizes = np.abs(parameters.strengths)
    return np.asarray(sizes / np.maximum(np.linalg.norm(sizes, axis=0), 1e-12))


def _similarity(
    one: Array, other: Array, levels: tuple[int, ...], other_levels: tuple[int, ...]
) -> float:
    cosines = one.T @ other
    # Latents with different numbers of levels do not match.
    cosines[np.not_equal.outer(levels, other_levels)] = 0.0
    rows, columns = linear_sum_assignment(-cosines)
    return float(cosines[rows, columns].min())


def converge(
    candidates: list[Candidate],
    problem: SearchProblem,
    observers: list[Observer],
    *,
    most_ends: int | None = None,
) -> list[Candidate]:
    """Return distinct candidates run to convergence on all rows, the best first.

    Parameters
    ----------
    candidates : list of Candidate
        One per start. If all are the same optimum, the best is returned alone, unchanged.
    observers : list of callables
        Called after every EM step, one per start.
    most_ends : int, optional
        Largest number of candidates that are run to convergence; default as in ``CONFIG``.
    """
    most = CONFIG.optima.most_ends if most_ends is None else most_ends
    parameters = [candidate.estimate.parameters for candidate in candidates]
    order = distinct_optima(parameters, [candidate.criterion for candidate in candidates], most)
    if len(order) == 1:
        return [candidates[order[0]]]
    ends = [run_to_convergence(candidates[i], problem, observers[i]) for i in order]
    return sorted(ends, key=lambda one: -one.criterion)


def mostly_agree(candidates: list[Candidate]) -> bool:
    """Return whether more than half of the candidates are the optimum that the best one is."""
    best = max(candidates, key=lambda one: one.criterion).estimate.parameters
    similar = [loading_similarity(one.estimate.parameters, best) for one in candidates]
    return 2 * sum(s >= CONFIG.optima.same_optimum_cosine for s in similar) > len(candidates)


def distinct_optima(
    parameters: Sequence[MeasurementParameters], values: Sequence[float], most: int = 1 << 30
) -> list[int]:
    """Return the indices of ends with different loadings, highest value first, at most ``most``."""
    out: list[int] = []
    found: list[Array] = []
    for i in sorted(range(len(values)), key=lambda i: -values[i]):
        if len(out) == most:
            break
        mine, levels = _directions(parameters[i]), parameters[i].terms.levels
        if all(
            _similarity(mine, other, levels, parameters[j].terms.levels)
            < CONFIG.optima.same_optimum_cosine
            for j, other in zip(out, found, strict=True)
        ):
            out.append(i)
            found.append(mine)
    return out


def criterion_of(
    estimate: Estimate, parents: tuple[tuple[int, ...], ...], problem: SearchProblem
) -> float:
    """Return the criterion of a candidate; larger is better.

    It is the log-likelihood minus the complexity of the items, by a Laplace approximation of their
    evidence, of the law, and of unused latents. It does not depend on the penalty.
    """
    parameters, data = estimate.parameters, problem.data
    _, information = observed_information(
        parameters, estimate.probabilities, estimate.statistics, data, problem.basis
    )
    optional = is_penalised(problem.allowed[:, 1:])
    items = log_evidence(parameters, information, coefficient_scales(data), optional)
    cost = law_complexity(estimate, parents, problem.space, data.n_counted)
    unused = int((parameters.q_matrix.sum(axis=0) < CONFIG.optima.fewest_items).sum())
    return float(estimate.log_likelihood + items - cost - CONFIG.optima.unused_latent_cost * unused)


def run_to_convergence(
    candidate: Candidate, problem: SearchProblem, observer: Observer
) -> Candidate:
    """Return a candidate after structural EM on all rows with a coarser tolerance."""
    coarse = replace(
        problem, schedule=problem.tolerating(CONFIG.optima.ends_tolerance), observer=observer
    )
    found = structural_em(coarse, candidate, max_rounds=CONFIG.optima.rounds_to_end)
    estimate = found.estimate
    if max(problem.space.levels) > 2:
        # Without single steps a latent has fewer levels than asked for, which would look cheap.
        law_step = partial(factorise_counts, parents=found.parents, space=problem.space)
        whole = with_selected_loadings(coarse, estimate.parameters)
        refitted = run_em(whole, estimate.parameters, estimate.probabilities, law_step=law_step)
        estimate = append_run(estimate, refitted)
    criterion = criterion_of(estimate, found.parents, problem)
    return replace(candidate, estimate=estimate, parents=found.parents, criterion=criterion)


def with_selected_loadings(problem: SearchProblem, items: MeasurementParameters) -> SearchProblem:
    """Return the problem with the items' Q as if given: no penalty, all steps of its latents."""
    allowed = problem.allowed.copy()
    allowed[:, 1:] *= items.terms.support(items.support)
    return replace(problem, penalty=NO_SPARSITY, adapt=False, allowed=allowed)


def replace_loadings(
    items: MeasurementParameters, loadings: Array, before: Array, after: Array
) -> MeasurementParameters:
    """Return the items with other loadings, shape (J, T), and the same means of predictors.

    Items whose predictors would leave their family's range stay unchanged.

    Parameters
    ----------
    before, after : ndarray, shape (T,)
        Means of the terms under the old and the new law.
    """
    intercept = items.intercept + items.loadings @ before - loadings @ after
    keep = replace(items, intercept=intercept, loadings=loadings).in_range()
    return replace(
        items,
        intercept=np.where(keep, intercept, items.intercept),
        loadings=np.where(keep[:, None], loadings, items.loadings),
    )


def reversed_loadings(parameters: MeasurementParameters) -> NDArray[np.bool_]:
    """Return the loadings whose sign differs from that of their latent's sum, shape (J, K)."""
    direction = np.where(parameters.loadings.sum(axis=0) < 0, -1.0, 1.0)
    return np.asarray(parameters.loadings * direction < 0)


def sign_complexity(parameters: MeasurementParameters) -> float:
    """Return the description length of the loadings' signs, in units of log-likelihood.

    Each loading is reversed with the same unknown probability, which has a Beta(1/2, 1/2) prior:
    minus the log of the marginal probability of the signs.
    """
    n_against = int(reversed_loadings(parameters).sum())
    n_along = int((parameters.loadings != 0).sum()) - n_against
    return float(betaln(0.5, 0.5) - betaln(n_against + 0.5, n_along + 0.5))


def make_monotone(candidate: Candidate, basis: Basis) -> Candidate:
    """Return the candidate with latents turned such that loadings rise, without reversed loadings.

    Intercepts change such that predictors keep their means.
    """
    estimate = candidate.estimate
    levels = estimate.parameters.terms.levels
    turned = estimate.parameters.loadings.sum(axis=0) < 0
    items = estimate.parameters.flipped(turned)
    cube = np.flip(estimate.probabilities.reshape(levels), tuple(np.flatnonzero(turned)))
    law = np.ascontiguousarray(cube).ravel()
    falling = np.minimum(items.loadings, 0.0)
    monotone = replace(
        items,
        intercept=items.intercept + falling @ (law @ basis.features),
        loadings=items.loadings - falling,
    )
    return replace(candidate, estimate=replace(estimate, parameters=monotone, probabilities=law))


def try_monotone_loadings(
    ends: list[Candidate],
    candidates: list[Candidate],
    problem: SearchProblem,
    observers: list[Observer],
) -> tuple[list[Candidate], SearchProblem]:
    """Return the ends, or ends with nonnegative loadings if the best of those is better.

    Parameters
    ----------
    ends : list of Candidate
        The best first. A single one, to which all starts converged, is returned unchanged.
    candidates : list of Candidate
        Candidates, one per start.

    Returns
    -------
    list of Candidate, SearchProblem
        Ends, the best first, and the problem to continue with, in which loadings are nonnegative
        if such an end won.
    """
    best = ends[0]
    # Levels beyond two are not yet in order during estimation.
    if len(ends) == 1 or max(problem.space.levels) > 2:
        return ends, problem
    n_against = int(reversed_loadings(best.estimate.parameters).sum())
    n_loadings = int((best.estimate.parameters.loadings != 0).sum())
    if not 0 < n_against <= CONFIG.optima.largest_share_against * n_loadings:
        return ends, problem
    allowed = np.where(problem.allowed == PENALISED, NONNEGATIVE, problem.allowed).astype(np.uint8)
    rising = replace(problem, allowed=allowed)
    # The best end is a further start, and the first.
    first = replace(best, criterion=np.inf)
    starts = [make_monotone(candidate, problem.basis) for candidate in (first, *candidates)]
    watchers = [observers[0], *observers]
    monotone = converge(starts, rising, watchers, most_ends=len(starts))
    if monotone[0] is starts[0]:
        # All are the same optimum.
        monotone = [run_to_convergence(monotone[0], rising, watchers[0])]
    lead = monotone[0].criterion - sign_complexity(monotone[0].estimate.parameters)
    if lead > best.criterion - sign_complexity(best.estimate.parameters):
        return monotone, rising
    return ends, problem
