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

from hidag.estimate.item_evidence import log_evidence
from hidag.estimate.item_information import observed_information
from hidag.estimate.law_rounds import (
    FirstLook,
    LearnParents,
    estimate_under_network,
    price_of_law,
)
from hidag.estimate.loading_costs import at_a_cost, coefficient_scales
from hidag.estimate.loop import Estimate, Observer, Schedule, continued, run_em
from hidag.estimate.maximise import Basis
from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.latent.factorise import factorised
from hidag.measurement import MeasurementParameters, Penalty

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


def starts_agree(one: MeasurementParameters, other: MeasurementParameters) -> float:
    """Return how alike two starts are: the smallest cosine of two matched latents' loadings."""

    def directions(parameters: MeasurementParameters) -> Array:
        sizes = np.abs(parameters.strengths)
        return np.asarray(sizes / np.maximum(np.linalg.norm(sizes, axis=0), 1e-12))

    cosines = directions(one).T @ directions(other)
    # A latent with another number of levels is another latent.
    cosines[np.not_equal.outer(one.terms.levels, other.terms.levels)] = 0.0
    rows, columns = linear_sum_assignment(-cosines)
    return float(cosines[rows, columns].min())


@dataclass(frozen=True)
class Problem:
    """What all ends have in common: the arguments of ``run_em``, and how graphs are found."""

    data: WorkingData
    space: StateSpace
    basis: Basis
    allowed: NDArray[np.uint8]
    penalty: Penalty
    schedule: Schedule
    learn_parents: LearnParents
    adapt: bool
    n_threads: int


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
        known = (starts_agree(parameters[i], parameters[j]) for j in out)
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
    optional = at_a_cost(problem.allowed[:, 1:])
    items = log_evidence(parameters, information, coefficient_scales(data), optional)
    price = price_of_law(estimate, parents, problem.space, data.n_counted)
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
    law_step = partial(factorised, parents=best.parents, space=problem.space)
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
            mixed,
            best.estimate.probabilities,
            problem.data,
            problem.basis,
            problem.allowed,
            problem.penalty,
            plan,
            law_step=law_step,
            n_threads=problem.n_threads,
            observer=observer,
        )
        criterion = criterion_of(found, best.parents, problem)
        if criterion > best.criterion + LEAST_GAIN:
            both = continued(best.estimate, found)
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
