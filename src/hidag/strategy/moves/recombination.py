"""Several starts taken to their ends on all rows, and crossed.

Some of the rows and a few steps tell a bad start from a good one, but not the best from the third
best: those differ by a confused latent or two, which hardly shows before everything has settled.
So the best few go on. Ends of different starts get different latents right: a latent of the best
end is exchanged for the same latent of another end, and the exchange is kept where the penalised
likelihood is higher once EM has settled around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import betaln

from hidag.em.em import Estimate, append_run, run_em
from hidag.em.information import log_evidence, observed_information
from hidag.em.m_step import Basis, coefficient_scales, is_penalised
from hidag.em.problem import Observer
from hidag.em.problem import Problem as EMProblem
from hidag.kernels.coordinate_descent import NONNEGATIVE, PENALISED
from hidag.latent.laws import factorise_counts
from hidag.measurement.parameters import MeasurementParameters
from hidag.strategy.structural_em import (
    FirstLook,
    LearnParents,
    estimate_under_network,
    law_complexity,
)

Array = NDArray[np.float64]

#: Starts that are taken to their ends.
MOST_ENDS = 4
#: A start goes where a better one goes when no latent's loadings differ by more than this cosine.
SAME_PLACE = 0.97
#: How much coarser their steps end than the last ones of the fit.
ENDS_TOLERANCE = 3.0
#: Times that a graph is learned on the way to an end.
ROUNDS_TO_END = 2
#: Versions of a latent are the same when their loadings have at least this cosine.
SAME_VERSION = 0.93
#: EM steps after which an exchange is judged.
STEPS_OF_EXCHANGE = 8
#: A latent with fewer items than this is idle: what one item alone shows of it is noise of its own.
FEWEST_ITEMS = 2
#: What an idle latent costs, in units of log-likelihood. Who asks for so many latents says that
#: they are there: an end that does without one must fit far better.
PRICE_OF_IDLE = 10.0
#: An exchange must gain this much, in units of log-likelihood: less is a step of EM.
LEAST_GAIN = 1.0


def loading_similarity(one: MeasurementParameters, other: MeasurementParameters) -> float:
    """Return how alike two starts are: the smallest cosine of two matched latents' loadings."""

    def directions(parameters: MeasurementParameters) -> Array:
        sizes = np.abs(parameters.strengths)
        return np.asarray(sizes / np.maximum(np.linalg.norm(sizes, axis=0), 1e-12))

    cosines = directions(one).T @ directions(other)
    # A latent with another number of levels is another latent.
    cosines[np.not_equal.outer(one.terms.levels, other.terms.levels)] = 0.0
    rows, columns = linear_sum_assignment(-cosines)
    return float(cosines[rows, columns].min())


@dataclass(frozen=True, kw_only=True)
class Problem(EMProblem):
    """An estimation problem whose latent distribution factorises over a graph to be learned.

    Attributes
    ----------
    learn_parents : callable
        Finds the graph.
    adapt : bool
        Whether the penalty's strength is learned from the data.
    """

    learn_parents: LearnParents
    adapt: bool = True


def ends_of(
    looks: list[FirstLook],
    problem: Problem,
    observers: list[Observer],
    *,
    most_ends: int = MOST_ENDS,
) -> list[FirstLook]:
    """Return where several starts lead, taken further on all rows, the best first.

    The best is crossed with the others, which stay as they are.

    Parameters
    ----------
    looks : list of FirstLook
        One for each start; if all lead to one place there is nothing to choose, and the best look
        comes back alone.
    problem : Problem
    observers : list of callables
        Told of the steps of each start.
    most_ends : int
        How many looks are taken further, the best ones.
    """
    parameters = [look.estimate.parameters for look in looks]
    order = different_places(parameters, [look.criterion for look in looks])[:most_ends]
    if len(order) == 1:
        return [looks[order[0]]]
    ends = [taken_to_its_end(looks[i], problem, observers[i]) for i in order]
    first, *others = sorted(range(len(ends)), key=lambda i: -ends[i].criterion)
    best = ends[first]
    tried: list[list[Array]] = [[] for _ in range(problem.space.n_latents)]
    for i in others:
        best = _crossed(best, ends[i].estimate.parameters, tried, problem, observers[order[i]])
    return [best, *(ends[i] for i in others)]


def different_places(
    parameters: Sequence[MeasurementParameters], values: Sequence[float]
) -> list[int]:
    """Return which of several ends are in different places, those with the highest value first."""
    out: list[int] = []
    for i in sorted(range(len(values)), key=lambda i: -values[i]):
        known = (loading_similarity(parameters[i], parameters[j]) for j in out)
        if all(cosine < SAME_PLACE for cosine in known):
            out.append(i)
    return out


def criterion_of(
    estimate: Estimate, parents: tuple[tuple[int, ...], ...], problem: Problem
) -> float:
    """Return what ends are compared by: the likelihood, less what items, law and idle latents cost.

    Items cost what the table's evidence asks for them, whatever penalty led there.
    """
    parameters, data = estimate.parameters, problem.data
    _, information = observed_information(
        parameters, estimate.probabilities, estimate.statistics, data, problem.basis
    )
    optional = is_penalised(problem.allowed[:, 1:])
    items = log_evidence(parameters, information, coefficient_scales(data), optional)
    price = law_complexity(estimate, parents, problem.space, data.n_counted)
    idle = int((parameters.q_matrix.sum(axis=0) < FEWEST_ITEMS).sum())
    return float(estimate.log_likelihood + items - price - PRICE_OF_IDLE * idle)


def taken_to_its_end(look: FirstLook, problem: Problem, observer: Observer) -> FirstLook:
    """Return a start's estimate on all rows: EM, support and graph, with coarser steps."""
    coarse = replace(problem.schedule, tolerance=ENDS_TOLERANCE * problem.schedule.tolerance)
    found = estimate_under_network(
        look,
        problem.data,
        problem.space,
        problem.basis,
        problem.allowed,
        problem.penalty,
        coarse,
        problem.learn_parents,
        adapt=problem.adapt,
        max_rounds=ROUNDS_TO_END,
        n_threads=problem.n_threads,
        observer=observer,
    )
    return replace(
        look,
        estimate=found.estimate,
        parents=found.parents,
        criterion=criterion_of(found.estimate, found.parents, problem),
    )


def _crossed(
    best: FirstLook,
    other: MeasurementParameters,
    tried: list[list[Array]],
    problem: Problem,
    observer: Observer,
) -> FirstLook:
    """Return the best end with those latents of the other's that make it better.

    ``tried`` holds the versions that each latent has been given; it grows.
    """
    law_step = partial(factorise_counts, parents=best.parents, space=problem.space)
    plan = replace(
        problem.schedule,
        tolerance=ENDS_TOLERANCE * problem.schedule.tolerance,
        max_iter=min(STEPS_OF_EXCHANGE, problem.schedule.max_iter),
    )
    partner = matched(best.estimate.parameters, other)
    for k, version in _other_versions(best.estimate.parameters, partner):
        if any(_cosine(version, old) >= SAME_VERSION for old in tried[k]):
            continue
        tried[k].append(version)
        mixed = exchanged(best.estimate, partner, k, problem.basis)
        found = run_em(
            replace(problem, schedule=plan, observer=observer),
            mixed,
            best.estimate.probabilities,
            law_step=law_step,
        )
        criterion = criterion_of(found, best.parents, problem)
        if criterion > best.criterion + LEAST_GAIN:
            both = append_run(best.estimate, found)
            best = replace(best, estimate=both, criterion=criterion)
    return best


def _cosine(one: Array, other: Array) -> float:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return abs(float(one @ other)) / max(lengths, 1e-12)


def _other_versions(
    best: MeasurementParameters, partner: MeasurementParameters
) -> Iterator[tuple[int, Array]]:
    """Yield the latents that the partner has in another version, with its strengths (J,)."""
    for k in range(best.n_latents):
        mine, version = best.strengths[:, k], partner.strengths[:, k]
        if _cosine(mine, version) < SAME_VERSION:
            yield k, version


def matched(best: MeasurementParameters, other: MeasurementParameters) -> MeasurementParameters:
    """Return the other's items, its latents in the order and direction of the best's.

    Only latents with as many levels are matched with each other.
    """
    lengths = [np.maximum(np.linalg.norm(p.strengths, axis=0), 1e-12) for p in (best, other)]
    cosines = (best.strengths / lengths[0]).T @ (other.strengths / lengths[1])
    alike = np.equal.outer(best.terms.levels, other.terms.levels)
    _, order = linear_sum_assignment(np.where(alike, -np.abs(cosines), 2.0))
    turned = cosines[np.arange(len(order)), order] < 0
    return other.reordered(latents=order).flipped(turned)


def exchanged(
    best: Estimate,
    partner: MeasurementParameters,
    latents: int | NDArray[np.integer],
    basis: Basis,
    law: Array | None = None,
) -> MeasurementParameters:
    """Return the best's items with the partner's loadings on some latents.

    Intercepts make up for it, so that items' predictors keep their means (under ``law`` if another
    law comes along, shape (S,)). Items whose predictors would leave their family's range stay as
    they were.
    """
    mine = best.parameters
    columns = np.flatnonzero(np.isin(mine.terms.main_latents, latents))
    loadings = mine.loadings.copy()
    loadings[:, columns] = partner.loadings[:, columns]
    means = best.probabilities @ basis.features
    after = means if law is None else law @ basis.features
    return with_loadings(mine, loadings, means, after)


def with_loadings(
    items: MeasurementParameters, loadings: Array, before: Array, after: Array
) -> MeasurementParameters:
    """Return the items with other loadings (J, T), their predictors' means as they were.

    Items whose predictors would leave their family's range stay as they were.

    Parameters
    ----------
    before, after : ndarray, shape (T,)
        Means of the terms under the law that the items had, and under the one that they get.
    """
    intercept = items.intercept + items.loadings @ before - loadings @ after
    keep = replace(items, intercept=intercept, loadings=loadings).in_range()
    return replace(
        items,
        intercept=np.where(keep, intercept, items.intercept),
        loadings=np.where(keep[:, None], loadings, items.loadings),
    )


# --- Ends in which every loading points in its latent's direction, held against the best

#: Where a larger share of the loadings runs against their latents, items are keyed both ways.
LARGEST_SHARE_AGAINST = 0.25


def against_their_latents(parameters: MeasurementParameters) -> NDArray[np.bool_]:
    """Return which loadings point the other way than their latent's do in sum, shape (J, K)."""
    direction = np.where(parameters.loadings.sum(axis=0) < 0, -1.0, 1.0)
    return np.asarray(parameters.loadings * direction < 0)


def price_of_signs(parameters: MeasurementParameters) -> float:
    """Return what the directions of the loadings cost, in units of log-likelihood.

    Each loading runs against its latent with the same unknown probability, all of whose values are
    possible beforehand (a beta distribution with halves): the logarithm of how improbable the
    directions found are on average over them.
    """
    n_against = int(against_their_latents(parameters).sum())
    n_along = int((parameters.loadings != 0).sum()) - n_against
    return float(betaln(0.5, 0.5) - betaln(n_against + 0.5, n_along + 0.5))


def in_one_direction(look: FirstLook, basis: Basis) -> FirstLook:
    """Return the look with its latents' directions up and no loading against them.

    Intercepts make up for loadings that go, so that items' predictors keep their means.
    """
    estimate = look.estimate
    levels = estimate.parameters.terms.levels
    turned = estimate.parameters.loadings.sum(axis=0) < 0
    items = estimate.parameters.flipped(turned)
    cube = np.flip(estimate.probabilities.reshape(levels), tuple(np.flatnonzero(turned)))
    law = np.ascontiguousarray(cube).ravel()
    falling = np.minimum(items.loadings, 0.0)
    upright = replace(
        items,
        intercept=items.intercept + falling @ (law @ basis.features),
        loadings=items.loadings - falling,
    )
    return replace(look, estimate=replace(estimate, parameters=upright, probabilities=law))


def better_in_one_direction(
    ends: list[FirstLook], looks: list[FirstLook], problem: Problem, observers: list[Observer]
) -> tuple[list[FirstLook], Problem]:
    """Return the ends, or those without loadings against their latents if their best is better.

    Parameters
    ----------
    ends : list of FirstLook
        The best end first; a single one where all starts lead to one place: then there is no doubt,
        and it comes back.
    looks : list of FirstLook
        One for each start.
    problem : Problem
    observers : list of callables

    Returns
    -------
    list of FirstLook, Problem
        Ends, the best first, and the problem as it goes on: with loadings that may not fall if such
        an end won.
    """
    best = ends[0]
    # The steps of more than two levels go up and down as levels happen to be numbered.
    if len(ends) == 1 or max(problem.space.levels) > 2:
        return ends, problem
    n_against = int(against_their_latents(best.estimate.parameters).sum())
    n_loadings = int((best.estimate.parameters.loadings != 0).sum())
    if not 0 < n_against <= LARGEST_SHARE_AGAINST * n_loadings:
        return ends, problem
    allowed = np.where(problem.allowed == PENALISED, NONNEGATIVE, problem.allowed).astype(np.uint8)
    rising = replace(problem, allowed=allowed)
    # The best end was crossed with others: it is one more place to begin, and the first.
    first = replace(best, criterion=np.inf)
    begun = [in_one_direction(look, problem.basis) for look in (first, *looks)]
    told = [observers[0], *observers]
    upright = ends_of(begun, rising, told, most_ends=len(begun))
    if upright[0] is begun[0]:
        # Without loadings against them all lead to one place.
        upright = [taken_to_its_end(upright[0], rising, told[0])]
    lead = upright[0].criterion - price_of_signs(upright[0].estimate.parameters)
    if lead > best.criterion - price_of_signs(best.estimate.parameters):
        return upright, rising
    return ends, problem
