"""Stage I: penalised EM with an exact E-step, and penalised Gibbs-SAEM (Algorithm S.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.expectation import expect
from hidag.estimate.gibbs import GibbsSampler
from hidag.estimate.maximise import (
    Basis,
    at_a_cost,
    coefficient_scales,
    maximise,
    penalty_scales,
)
from hidag.estimate.statistics import Statistics
from hidag.estimate.working import WorkingData
from hidag.kernels.item_regression import RISING
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, Penalty

Array = NDArray[np.float64]
Observer = Callable[[int, int, float], None]
#: Expected counts of states (S,) to the law they imply, shape (S,).
LawStep = Callable[[Array], Array]

#: Rows' worth of even mass that keeps unvisited states reachable for the Gibbs sampler.
SAMPLER_MASS = 1.0
#: Rows beyond these make EM's stopping rule no more tolerant.
MOST_TOLERANT_ROWS = 3000
#: EM steps are stretched more and more while that keeps paying (adaptive over-relaxation).
STRETCH_GROWTH = 1.3
LARGEST_STRETCH = 5.0
#: A probability below this does not take part in stretching: powers of ratios would overflow.
NO_MASS = 1e-30
#: SAEM is settled when coefficients hardly drift over this many averaged steps.
DRIFT_STEPS = 20


@dataclass(frozen=True)
class Schedule:
    """How long Stage I runs.

    Attributes
    ----------
    max_iter : int
    tolerance : float
        EM ends when the penalised log-likelihood grows by less than ``tolerance`` per row and step,
        counting at most 3000 rows: what a step gains matters however large the table is;
        SAEM when coefficients drift by less than 2/sqrt(N) of their scale in 20 steps.
    burn_in : int
        SAEM steps of size 1 before the Robbins-Monro average sets in.
    decay : float
        Step ``t`` after the burn-in has size ``t ** -decay``; between 1/2 and 1.
    n_sweeps : int
        Gibbs sweeps per SAEM step, the paper's C.
    n_newton : int
        Newton steps of an M-step.
    """

    max_iter: int = 200
    tolerance: float = 1e-4
    burn_in: int = 10
    decay: float = 0.7
    n_sweeps: int = 1
    n_newton: int = 2


@dataclass(frozen=True)
class Estimate:
    """Where Stage I ended.

    Attributes
    ----------
    parameters : MeasurementParameters
    probabilities : ndarray, shape (S,)
    log_likelihood, objective : float
        Of the observed data at the estimate, and less the penalty.
    n_iter : int
    converged : bool
    trace : ndarray, shape (n_iter, 2)
        Per step: objective (EM) or NaN (SAEM), and the largest move of a coefficient in units of
        its item's scale.
    statistics : Statistics
        Expected at the estimate.
    """

    parameters: MeasurementParameters
    probabilities: Array
    log_likelihood: float
    objective: float
    n_iter: int
    converged: bool
    trace: Array
    statistics: Statistics


def continued(before: Estimate, after: Estimate) -> Estimate:
    """Return the later estimate with the steps of both; it has settled when the later one has."""
    return replace(
        after,
        n_iter=before.n_iter + after.n_iter,
        trace=np.vstack([before.trace, after.trace]),
    )


def any_law(counts: Array) -> Array:
    """Return the shares of the states: the M-step of a law that may be anything."""
    return np.asarray(counts / counts.sum())


def penalty_of(
    parameters: MeasurementParameters,
    penalty: Penalty,
    scale: Array,
    allowed: NDArray[np.uint8],
) -> float:
    """Return the total penalty of the loadings that are not known to be there."""
    cost = penalty.value(parameters.loadings, scale[:, None])
    return float((cost * at_a_cost(allowed[:, 1:])).sum())


def largest_move(old: MeasurementParameters, new: MeasurementParameters, scale: Array) -> float:
    """Return the largest change of a coefficient, in units of its item's scale."""
    moved = np.abs(new.loadings - old.loadings).max(axis=1, initial=0.0)
    return float((np.maximum(moved, np.abs(new.intercept - old.intercept)) / scale).max())


def stretched_law(old: Array, new: Array, extra: float) -> Array:
    """Return weights ``extra`` times further on the log scale from old to new, shape (S,)."""
    alive = (new > NO_MASS) & (old > NO_MASS)
    out = new.copy()
    out[alive] *= (new[alive] / old[alive]) ** extra
    return out


def _stretched(
    old: MeasurementParameters,
    old_law: Array,
    new: MeasurementParameters,
    new_law: Array,
    stretch: float,
    law_step: LawStep,
    allowed: NDArray[np.uint8],
) -> tuple[MeasurementParameters, Array] | None:
    """Return the point ``stretch`` times as far from the old one as the new one is, or None.

    Laws move on the log scale and stay positive; loadings that are zero stay zero, and those that
    may not fall below zero are left where the step took them. None means that a family's range
    would be left.
    """
    extra = stretch - 1.0
    both = (old.loadings != 0) & (new.loadings != 0)
    loadings = new.loadings + np.where(both, extra * (new.loadings - old.loadings), 0.0)
    fallen = (allowed[:, 1:] == RISING) & (loadings < 0)
    loadings = np.where(fallen, new.loadings, loadings)
    intercept = new.intercept + extra * (new.intercept - old.intercept)
    dispersion = new.within_bounds(new.dispersion * (new.dispersion / old.dispersion) ** extra)
    cutpoints = new.cutpoints + extra * (new.cutpoints - old.cutpoints)
    point = replace(
        new, intercept=intercept, loadings=loadings, dispersion=dispersion, cutpoints=cutpoints
    )
    if not point.in_range().all():
        return None
    return point, law_step(stretched_law(old_law, new_law, extra))


def run_em(
    parameters: MeasurementParameters,
    probabilities: Array,
    data: WorkingData,
    basis: Basis,
    allowed: NDArray[np.uint8],
    penalty: Penalty,
    schedule: Schedule,
    *,
    law_step: LawStep = any_law,
    n_threads: int = 1,
    observer: Observer | None = None,
) -> Estimate:
    """Return the estimate after penalised EM; the objective never decreases on the way.

    ``law_step`` turns expected counts of states into a law of the kind that is wanted; to leave the
    likelihood rising it must return the most likely law of that kind given the counts.
    """
    scale, penalty_scale = coefficient_scales(data), penalty_scales(data)
    features = np.ascontiguousarray(basis.features)
    trace: list[tuple[float, float]] = []
    previous = -np.inf
    converged = False
    stretch = 1.0
    plain: tuple[MeasurementParameters, Array] | None = None
    while True:
        statistics, log_likelihood = expect(
            parameters, probabilities, data, features, n_threads=n_threads
        )
        objective = log_likelihood - penalty_of(parameters, penalty, penalty_scale, allowed)
        if plain is not None and objective < previous:
            # The stretched step overshot: take the plain one, which cannot.
            (parameters, probabilities), plain, stretch = plain, None, 1.0
            continue
        if trace:
            trace[-1] = (objective, trace[-1][1])
            if observer is not None:
                observer(len(trace), schedule.max_iter, objective)
        if objective - previous < schedule.tolerance * min(data.n_counted, MOST_TOLERANT_ROWS):
            converged = True
        if converged or len(trace) >= schedule.max_iter:
            break
        previous = objective
        fresh = maximise(
            parameters, statistics, data, basis, allowed, penalty, n_newton=schedule.n_newton
        )
        law = law_step(statistics.count)
        trace.append((np.nan, largest_move(parameters, fresh, scale)))
        plain = None
        if stretch > 1.0:
            stretched = _stretched(
                parameters, probabilities, fresh, law, stretch, law_step, allowed
            )
            if stretched is not None:
                plain = (fresh, law)
                fresh, law = stretched
        parameters, probabilities = fresh, law
        stretch = min(stretch * STRETCH_GROWTH, LARGEST_STRETCH)
    return Estimate(
        parameters,
        probabilities,
        log_likelihood,
        objective,
        len(trace),
        converged,
        np.array(trace).reshape(-1, 2),
        statistics,
    )


def run_saem(
    parameters: MeasurementParameters,
    probabilities: Array,
    data: WorkingData,
    basis: Basis,
    allowed: NDArray[np.uint8],
    penalty: Penalty,
    schedule: Schedule,
    *,
    space: StateSpace,
    rng: np.random.Generator,
    judge: bool = True,
    n_threads: int = 1,
    observer: Observer | None = None,
) -> Estimate:
    """Return the estimate after penalised Gibbs-SAEM (Algorithm S.2).

    Without ``judge`` it comes without a likelihood, with statistics as sampled: for steps that only
    lead to others.
    """
    scale, penalty_scale = coefficient_scales(data), penalty_scales(data)
    features = np.ascontiguousarray(basis.features)
    states = rng.choice(space.n_states, size=data.n_samples, p=probabilities / probabilities.sum())
    sampler = GibbsSampler(data, space, states, int(rng.integers(1 << 62)))
    sampler.draw(parameters, probabilities, n_sweeps=5, n_threads=n_threads)
    averaged = None
    anchor = parameters
    trace: list[tuple[float, float]] = []
    converged = False
    even = SAMPLER_MASS / space.n_states
    while len(trace) < schedule.max_iter and not converged:
        sampler.draw(parameters, probabilities, n_sweeps=schedule.n_sweeps, n_threads=n_threads)
        fresh = sampler.statistics()
        after = len(trace) - schedule.burn_in
        step = 1.0 if after < 0 or averaged is None else (after + 1.0) ** -schedule.decay
        averaged = fresh if averaged is None else averaged.blend(fresh, step)
        moved = maximise(parameters, averaged, data, basis, allowed, penalty, n_newton=1)
        change = largest_move(parameters, moved, scale)
        parameters = moved
        probabilities = (averaged.count + even) / (data.n_counted + SAMPLER_MASS)
        trace.append((np.nan, change))
        if observer is not None:
            observer(len(trace), schedule.max_iter, np.nan)
        if after >= DRIFT_STEPS and after % DRIFT_STEPS == 0:
            # A drift well inside the statistical error of a coefficient is not worth more steps.
            drift = largest_move(anchor, parameters, scale)
            converged = bool(drift < 2.0 * data.n_counted**-0.5)
        if after % DRIFT_STEPS == 0:
            anchor = parameters
    statistics, log_likelihood = averaged or sampler.statistics(), np.nan
    if judge:
        statistics, log_likelihood = expect(
            parameters, probabilities, data, features, n_threads=n_threads
        )
    return Estimate(
        parameters,
        probabilities,
        log_likelihood,
        log_likelihood - penalty_of(parameters, penalty, penalty_scale, allowed),
        len(trace),
        converged,
        np.array(trace).reshape(-1, 2),
        statistics,
    )
