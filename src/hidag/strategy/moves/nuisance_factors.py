"""Nuisances: response styles of a person, and dependence of pairs of items.

A nuisance is one more latent with linear steps, whose items and law are given, and which is
independent of all others: it is summed out, and no node of the graph. A fit without it comes first:
it finds Q, because a style singles out no items. Structural EM then continues with the nuisances,
and learns the graph again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.em import Estimate
from hidag.em.m_step import Basis, coefficient_scales
from hidag.kernels.coordinate_descent import TIED, ZERO
from hidag.latent.laws import Parents
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.measurement.terms import Terms
from hidag.strategy.problem import Nuisance, SearchProblem, StageOne
from hidag.strategy.structural_em import Candidate, structural_em

Array = NDArray[np.float64]


def add_nuisances(
    problem: SearchProblem, found: StageOne, nuisances: tuple[Nuisance, ...]
) -> StageOne:
    """Return the estimate with nuisances, under a network law, from one without them.

    Parameters
    ----------
    problem : SearchProblem
        Without nuisances, with main effects.
    found : StageOne
        Its estimate.
    nuisances : tuple of Nuisance
        With items in the order of the data.
    """
    now = found.estimate
    n_latents = problem.space.n_latents
    parents: Parents = tuple(tuple(range(k)) for k in range(n_latents))
    if found.network is not None:
        parents = found.network.parents
    signs = _signs(problem.data, now, problem.space, nuisances)
    wide, items = _widen(problem, now.parameters, nuisances, signs)
    law = wide.space.with_nuisances(now.probabilities)
    start = replace(now, parameters=items, probabilities=law)
    first = Candidate(start, start, parents, problem.data, -np.inf)
    network = structural_em(wide, first)
    own = wide.allowed.copy()
    own[:, 1:] *= wide.terms.support(network.estimate.parameters.support)
    final = replace(
        wide,
        allowed=own,
        penalty=NO_SPARSITY,
        adapt=False,
        schedule=problem.tolerating(CONFIG.exploratory.final_tolerance),
    )
    one = replace(first, estimate=network.estimate, parents=network.parents)
    last = replace(structural_em(final, one), penalty=network.penalty)
    return replace(found, best=last.estimate, network=last, penalty=last.penalty, interacting=())


def _widen(
    problem: SearchProblem,
    items: MeasurementParameters,
    nuisances: tuple[Nuisance, ...],
    signs: Array,
) -> tuple[SearchProblem, MeasurementParameters]:
    """Return problem and items with a term for each nuisance; ``signs`` are (R, n)."""
    own = items.terms
    levels = own.levels + tuple(one.n_levels for one in nuisances)
    places = range(own.n_latents, len(levels))
    terms = Terms.main(levels, (*own.linear, *places))
    space = StateSpace(levels, len(nuisances))
    # A coefficient is the effect of the highest versus the lowest level.
    ranges = np.array([(m - 1) / np.sqrt((m - 1) / 4.0) for m in levels[own.n_latents :]])
    sizes = CONFIG.nuisance.first_sd * coefficient_scales(problem.data)[:, None] * ranges
    loadings = np.hstack([items.loadings, signs * sizes])
    middle = items.intercept - 0.5 * (signs * sizes).sum(axis=1)
    tied = np.where(signs != 0, TIED, ZERO).astype(np.uint8)
    wide = replace(
        problem,
        space=space,
        terms=terms,
        basis=Basis.over(space, terms),
        allowed=np.hstack([problem.allowed[:, : 1 + own.n_main], tied]),
        q_entries=np.hstack([problem.q_entries, (signs != 0).astype(np.int8)]),
    )
    return wide, replace(items, intercept=middle, loadings=loadings, terms=terms)


def _signs(
    data: WorkingData, now: Estimate, space: StateSpace, nuisances: tuple[Nuisance, ...]
) -> Array:
    """Return the signs of the nuisances' coefficients, (R, n); those of pairs by residuals."""
    out = np.column_stack([one.signs for one in nuisances]).astype(np.float64)
    means = now.parameters.response_means(space.states())
    law = now.probabilities / now.probabilities.sum()
    for place, one in enumerate(nuisances):
        if not one.paired:
            continue
        a, b = np.flatnonzero(one.signs)
        seen = data.seen[:, a] & data.seen[:, b]
        weights = data.row_weights[seen]
        x = np.column_stack([data.linear_response(int(j))[seen] for j in (a, b)])
        observed = np.cov(x.T, aweights=weights)[0, 1]
        apart = means[:, [a, b]] - law @ means[:, [a, b]]
        if observed < law @ (apart[:, 0] * apart[:, 1]):
            out[b, place] = -1.0
    return out
