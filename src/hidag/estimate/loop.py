"""Stage I by penalised EM with an exact E-step: how long it runs, its steps, where it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.expectation import expect
from hidag.estimate.loading_costs import coefficient_scales, penalty_of, penalty_scales
from hidag.estimate.maximise import Basis, maximise
from hidag.estimate.statistics import Statistics
from hidag.estimate.working import WorkingData
from hidag.kernels.item_regression import RISING
from hidag.measurement import MeasurementParameters, Penalty

Array = NDArray[np.float64]
Observer = Callable[[int, int, float], None]
#: Expected counts of states (S,) to the law they imply, shape (S,).
LawStep = Callable[[Array], Array]

#: Rows beyond these make EM's stopping rule no more tolerant.
MOST_TOLERANT_ROWS = 3000
#: Steps over which gains are compared to extrapolate the gain still to come.
GAIN_WINDOW = 10
#: EM steps are stretched more and more while that keeps paying (adaptive over-relaxation).
STRETCH_GROWTH = 1.3
LARGEST_STRETCH = 5.0
#: A probability below this does not take part in stretching: powers of ratios would overflow.
NO_MASS = 1e-30


@dataclass(frozen=True)
class Schedule:
    """How long Stage I runs.

    Attributes
    ----------
    max_iter : int
    tolerance : float
        EM ends when a step, and all steps to come by extrapolation, raise the penalised
        log-likelihood by less than ``tolerance`` per row, counting at most 3000 rows;
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


def to_come(before: float, gained: float) -> float:
    """Return the sum of all gains to come if each is as much less than the last as this one was."""
    ratio = gained / before
    return gained * ratio / (1.0 - ratio) if ratio < 1.0 else np.inf


def nearly_converged(objectives: list[float], least: float) -> bool:
    """Return whether the last step and, by extrapolation, all steps to come gain less than this.

    Gains of over-relaxed steps go up and down, so gains over a few steps are compared.

    Parameters
    ----------
    objectives : list of float
        Of all steps so far, the last one last.
    least : float
        Units of log-likelihood.
    """
    if len(objectives) < 2 or objectives[-1] - objectives[-2] >= least:
        return False
    window = min(GAIN_WINDOW, (len(objectives) - 1) // 2)
    if window == 0:
        return False
    last = objectives[-1] - objectives[-1 - window]
    before = objectives[-1 - window] - objectives[-1 - 2 * window]
    return last <= 0.0 or (before > 0.0 and to_come(before, last) < least)


def any_law(counts: Array) -> Array:
    """Return the shares of the states: the M-step of a law that may be anything."""
    return np.asarray(counts / counts.sum())


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
    objectives: list[float] = []
    least_gain = schedule.tolerance * min(data.n_counted, MOST_TOLERANT_ROWS)
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
        objectives.append(objective)
        converged = nearly_converged(objectives, least_gain)
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
