"""Start points of EM: the sequence of initializers, and the first steps from each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.em.em import Estimate, LawStep, normalise_counts, run_em
from hidag.em.m_step import Basis
from hidag.em.problem import Problem, Schedule
from hidag.em.saem import run_saem
from hidag.initialization.common_factors import KEPT_SHARE, anchored_start, network_start
from hidag.initialization.spectral import mostly_binary, predictors, spectral_start
from hidag.initialization.start_points import StartPoint, spread_law
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY

Array = NDArray[np.float64]

#: Share of its largest loading below which an item drops a factor's loading, per start.
KEPT_SHARES = (KEPT_SHARE, 0.3)
#: SAEM steps on a start's own support, before loadings may enter or leave.
WARM_UP = Schedule(max_iter=10, burn_in=3, decay=0.6)


def generators_of(seed: int, n_starts: int) -> list[np.random.Generator]:
    """Return a generator for each start; it depends on the seed and the start's number alone."""
    return [
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i,))) for i in range(n_starts)
    ]


def further_anchored(
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    index: int,
    generator: np.random.Generator,
) -> MeasurementParameters | None:
    """Return a start by anchor items if start ``index`` is of that kind, otherwise None.

    The second start is. If latents differ in their numbers of levels, so is every other one after
    it, each with another random assignment of levels to factors.
    """
    uneven = len(set(space.levels)) > 1
    if index == 1 or (uneven and index % 2 == 1):
        rng = None if index == 1 else generator
        return anchored_start(data, q_entries, space.levels, rng=rng)
    return None


def saturated_start_points(
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    q_entries: NDArray[np.int8],
    generators: list[np.random.Generator],
) -> list[StartPoint]:
    """Return start points for SAEM under a saturated law: spectral scores and anchors."""
    centred = predictors(data, space.n_latents)
    even = np.full(space.n_states, 1.0 / space.n_states)
    points = []
    for index, generator in enumerate(generators):
        anchored = further_anchored(data, space, q_entries, index, generator)
        if anchored is not None:
            points.append(StartPoint(anchored, even, "factors, by anchors"))
        else:
            rng = None if index == 0 else generator
            points.append(spectral_start(data, space, basis, q_entries, centred, rng=rng))
    return points


def start_points(
    data: WorkingData,
    space: StateSpace,
    basis: Basis,
    q_entries: NDArray[np.int8],
    generators: list[np.random.Generator],
) -> Iterator[StartPoint]:
    """Yield start points: rotated common factors, anchor items, and hard-assigned scores.

    Scores come first unless most items are binary. The second start is of another kind than the
    first: if the two agree, further ones would too.
    """
    even = np.full(space.n_states, 1.0 / space.n_states)
    binary = mostly_binary(data)
    centred = predictors(data, space.n_latents)
    n_factors = 0
    for index, generator in enumerate(generators):
        anchored = further_anchored(data, space, q_entries, index, generator)
        if anchored is not None:
            yield StartPoint(anchored, even, "factors, by anchors")
            continue
        rng = generator if index > 2 else None
        # Scores of binary items are noisy, but differ in kind from the other starts.
        if index == 2 if binary else index % 2 == 0:
            yield spectral_start(data, space, basis, q_entries, centred, rng=rng)
        else:
            # Starts differ in the initial rotation and in the share of loadings.
            share = KEPT_SHARES[n_factors % len(KEPT_SHARES)]
            n_factors += 1
            found = network_start(data, q_entries, space.levels, rng=rng, kept_share=share)
            label = f"factors, {share:g} of the largest kept"
            yield StartPoint(found, even, label + (", rotated" if rng is not None else ""))


def _restricted(problem: Problem, items: MeasurementParameters) -> Problem:
    """Return the problem with only the loadings that the items have, not penalised."""
    own = np.hstack([np.ones((problem.data.n_items, 1)), items.loadings != 0]).astype(np.uint8)
    return replace(problem, allowed=own, penalty=NO_SPARSITY)


def warm_start(
    problem: Problem, point: StartPoint, rng: np.random.Generator
) -> tuple[MeasurementParameters, Array]:
    """Return a start whose coefficients a few SAEM steps have adjusted on its own support.

    Poor posteriors make false loadings look useful, and a loading once included is slow to leave.
    So no loading enters before the given ones have found their size. A few SAEM steps do that at a
    fraction of the cost of exact ones, and leave the law less concentrated.
    """
    own = replace(_restricted(problem, point.parameters), schedule=WARM_UP, observer=None)
    found = run_saem(own, point.parameters, point.probabilities, rng, final_e_step=False)
    return found.parameters, spread_law(found.probabilities)


def fit_own_support(
    problem: Problem, items: MeasurementParameters, *, law_step: LawStep = normalise_counts
) -> Estimate:
    """Return the EM estimate from an even law with only the loadings that the items have."""
    even = np.full(problem.space.n_states, 1.0 / problem.space.n_states)
    return run_em(_restricted(problem, items), items, even, law_step=law_step)
