"""How many levels each latent has, and whether in free or in linear steps: ``levels="auto"``.

A trait in three equal steps costs its items one coefficient each, as a binary latent does, and can
become either: a middle level without rows leaves a binary latent. So the search starts with traits,
where a search with binary latents would divide a trait among two of them. Then each latent's levels
change by one step, or its steps become free or linear, while an information criterion improves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.em import Estimate, run_em
from hidag.em.m_step import allowed_coefficients
from hidag.initialization.start_points import StartPoint
from hidag.latent.laws import Parents, factorise_counts
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.measurement.terms import Terms
from hidag.strategy.moves.level_assignment import change_levels
from hidag.strategy.problem import LevelTest, SearchProblem, StageOne
from hidag.strategy.structural_em import law_complexity

Array = NDArray[np.float64]
#: The problem whose latents have these main terms.
Model = Callable[[Terms], SearchProblem]
#: Search from starts, or from a given one.
Search = Callable[[SearchProblem, StartPoint | None], StageOne]
#: Levels of a latent, and whether its steps are linear.
Steps = tuple[int, bool]


@dataclass(frozen=True)
class _Fit:
    """An estimate with some levels for a fixed Q and graph."""

    items: MeasurementParameters
    law: Array  # (S,)
    parents: Parents
    criterion: float  # Log-likelihood minus half log n for each parameter; larger is better.

    @property
    def steps(self) -> list[Steps]:
        terms = self.items.terms
        return [(m, k in terms.linear) for k, m in enumerate(terms.levels)]


def search_levels(model: Model, n_latents: int, search: Search) -> tuple[SearchProblem, StageOne]:
    """Return the problem with the selected levels, and its estimate.

    Parameters
    ----------
    model : callable
        Returns the problem of some main terms.
    search : callable
        Returns the estimate of a problem from a starting point (None: all its own).
    """
    most = CONFIG.levels.most_auto_states
    found: list[tuple[_Fit, StageOne, tuple[LevelTest, ...]]] = []
    n_levels = CONFIG.levels.first_levels
    while n_levels**n_latents <= most:
        traits = Terms.main((n_levels,) * n_latents, range(n_latents))
        found.append(_improve(model, traits, search))
        # Loadings that replace missing levels would remain if there were no search with more.
        top = max(found[-1][0].items.terms.levels)
        if top <= n_levels:
            break
        n_levels = max(m for m in range(n_levels, top + 1) if m**n_latents <= most)
        if n_levels == traits.levels[0]:
            break
    # A search that ends in levels, not traits, may have missed what binary latents show.
    if not found or min(found[0][0].items.terms.levels) == 2:
        found.append(_improve(model, Terms.main((2,) * n_latents), search))
    # Of several estimates with the same levels, that of the search nearest to them is the last.
    if len({one[0].items.terms for one in found}) == 1:
        found = found[-1:]
    best, stage_one, tests = max(found, key=lambda one: one[0].criterion)
    return model(best.items.terms), replace(stage_one, level_tests=tests)


def _improve(
    model: Model, first: Terms, search: Search
) -> tuple[_Fit, StageOne, tuple[LevelTest, ...]]:
    """Return the best levels reached from the first ones, with the estimate of a full search."""
    start: StartPoint | None = None
    terms = first
    while True:
        stage_one = search(model(terms), start)
        now = _fit_of(model, stage_one)
        better, tests = _climb(model, now)
        if better.items.terms == terms or start is not None:
            return now, stage_one, tests
        terms, start = better.items.terms, StartPoint(better.items, better.law, "other levels")


def _fit_of(model: Model, stage_one: StageOne) -> _Fit:
    """Return the estimate of a search, fitted again on the rows for comparisons."""
    items, law = stage_one.estimate.parameters, stage_one.estimate.probabilities
    n_latents = items.n_latents
    parents: Parents = tuple(tuple(range(k)) for k in range(n_latents))
    if stage_one.network is not None:
        parents = stage_one.network.parents
    return _refit(model, (items, law), parents)


def _refit(model: Model, point: tuple[MeasurementParameters, Array], parents: Parents) -> _Fit:
    """Return the fit after EM with the items' own latents, under a fixed graph."""
    items, law = point
    problem = model(items.terms)
    data = problem.data.first_rows(CONFIG.levels.rows_to_choose)
    law_step = partial(factorise_counts, parents=parents, space=problem.space)
    fixed = replace(
        problem,
        data=data,
        allowed=allowed_coefficients(items.support.astype(np.int8), items.terms),
        penalty=NO_SPARSITY,
        schedule=replace(
            problem.schedule,
            max_iter=CONFIG.levels.steps_to_choose,
            tolerance=CONFIG.levels.choice_tolerance / min(data.n_counted, 3000),
        ),
        observer=None,
    )
    found: Estimate = run_em(fixed, items, law_step(law), law_step=law_step)
    cost = law_complexity(found, parents, problem.space, data.n_counted)
    cost += 0.5 * np.log(data.n_counted) * fixed.allowed[:, 1:].sum()
    return _Fit(found.parameters, found.probabilities, parents, float(found.log_likelihood - cost))


def _climb(model: Model, now: _Fit) -> tuple[_Fit, tuple[LevelTest, ...]]:
    """Return the best fit that changes of levels reach, and a test of each latent's levels."""
    config = CONFIG.levels
    tests: dict[int, LevelTest] = {}
    for _ in range(config.max_level_rounds):
        tests, best = {}, {}
        for k in range(len(now.steps)):
            tried = [(_changed(model, now, {k: one}), one) for one in _neighbours(now, k)]
            if not tried:
                continue
            fit, steps = max(tried, key=lambda one: one[0].criterion)
            tests[k] = LevelTest(now.steps[k], steps, now.criterion - fit.criterion)
            if fit.criterion > now.criterion + config.min_gain:
                best[k] = fit, steps
        if not best:
            break
        ends = [fit for fit, _ in best.values()]
        if len(best) > 1:
            ends.append(_changed(model, now, {k: steps for k, (_, steps) in best.items()}))
        now = max(ends, key=lambda one: one.criterion)
    return now, tuple(tests[k] for k in sorted(tests))


def _neighbours(now: _Fit, latent: int) -> list[Steps]:
    """Return the steps that differ in one level, or in being linear, within the limits."""
    config, steps = CONFIG.levels, now.steps
    n_levels, linear = steps[latent]
    wanted: list[Steps] = [(n_levels, not linear), (n_levels - 1, linear), (n_levels + 1, linear)]
    if n_levels == 2:
        wanted = [(3, False), (3, True)]
    elif n_levels == 3:
        wanted[1] = (2, False)
    others = int(np.prod([m for m, _ in steps])) // n_levels
    return [
        (m, line)
        for m, line in wanted
        if m <= config.most_levels and others * m <= config.most_auto_states
    ]


def _changed(model: Model, now: _Fit, changes: dict[int, Steps]) -> _Fit:
    """Return the fit after some latents got other levels."""
    steps = [changes.get(k, one) for k, one in enumerate(now.steps)]
    levels = tuple(m for m, _ in steps)
    linear = tuple(k for k, (_, line) in enumerate(steps) if line)
    return _refit(model, change_levels(now.items, now.law, levels, linear), now.parents)
