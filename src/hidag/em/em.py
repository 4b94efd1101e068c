"""Stage I by penalised EM with an exact E-step: how long it runs, its steps, where it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from hidag.em.block_e_step import SMALLEST_MASS, Densities, Halves, halves_of
from hidag.em.design_data import WorkingData
from hidag.em.e_step import (
    N_LANES,
    Rows,
    RowSums,
    expect,
    expect_states,
    log_probabilities,
    rows_by_gaps,
    sum_lanes,
)
from hidag.em.m_step import coefficient_scales, maximise, penalty_of, penalty_scales
from hidag.em.problem import Problem
from hidag.em.statistics import Statistics
from hidag.kernels.coordinate_descent import NONNEGATIVE
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]
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
    fallen = (allowed[:, 1:] == NONNEGATIVE) & (loadings < 0)
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
    problem: Problem,
    parameters: MeasurementParameters,
    probabilities: Array,
    *,
    law_step: LawStep = any_law,
) -> Estimate:
    """Return the penalised maximum likelihood estimate that EM reaches; the objective never falls.

    Parameters
    ----------
    problem : Problem
    parameters : MeasurementParameters
        Starting values on the working scale.
    probabilities : ndarray, shape (S,)
        Starting value of the latent distribution.
    law_step : callable
        M-step of the latent distribution: expected counts (S,) to probabilities (S,). The objective
        is monotone if it returns the maximum likelihood distribution of its kind.
    """
    data, schedule, allowed, penalty = (
        problem.data,
        problem.schedule,
        problem.allowed,
        problem.penalty,
    )
    scale, penalty_scale = coefficient_scales(data), penalty_scales(data)
    features = np.ascontiguousarray(problem.basis.features)
    trace: list[tuple[float, float]] = []
    objectives: list[float] = []
    least_gain = schedule.tolerance * min(data.n_counted, MOST_TOLERANT_ROWS)
    previous = -np.inf
    converged = False
    stretch = 1.0
    plain: tuple[MeasurementParameters, Array] | None = None
    while True:
        statistics, log_likelihood = expect(
            parameters, probabilities, data, features, n_threads=problem.n_threads
        )
        objective = log_likelihood - penalty_of(parameters, penalty, penalty_scale, allowed)
        if plain is not None and objective < previous:
            # The stretched step overshot: take the plain one, which cannot.
            (parameters, probabilities), plain, stretch = plain, None, 1.0
            continue
        if trace:
            trace[-1] = (objective, trace[-1][1])
            if problem.observer is not None:
                problem.observer(len(trace), schedule.max_iter, objective)
        objectives.append(objective)
        converged = nearly_converged(objectives, least_gain)
        if converged or len(trace) >= schedule.max_iter:
            break
        previous = objective
        fresh = maximise(
            parameters,
            statistics,
            data,
            problem.basis,
            allowed,
            penalty,
            n_newton=schedule.n_newton,
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


# --- The latent law alone, fitted to the observed data with the items' coefficients held


def fit_law(
    expected: Callable[[Array], tuple[Array, float]],
    probabilities: Array,
    law_step: LawStep,
    *,
    tolerance: float,
    max_steps: int,
) -> tuple[Array, float]:
    """Return the law (S,) after EM, and the log-likelihood of that very law.

    Parameters
    ----------
    expected : callable
        A law (S,) to expected counts (S,) and the log-likelihood: the E-step, items held.
    probabilities : ndarray, shape (S,)
        Where EM starts, a law of the kind that ``law_step`` returns.
    law_step : callable
        Counts to the most likely law of the kind that is wanted.
    tolerance : float
        EM ends when a step gains less, in units of log-likelihood.
    max_steps : int
    """
    current, stretch = probabilities, 1.0
    settled, last = probabilities, -np.inf
    plain: Array | None = None
    for _ in range(max_steps):
        counts, value = expected(current)
        if plain is not None and value < last:
            # The stretched step overshot: the plain one cannot.
            current, plain, stretch = plain, None, 1.0
            continue
        gain = value - last
        settled, last = current, value
        if gain < tolerance:
            break
        fresh = law_step(counts)
        plain = None
        if stretch > 1.0:
            plain, fresh = fresh, law_step(stretched_law(current, fresh, stretch - 1.0))
        current = fresh
        stretch = min(stretch * STRETCH_GROWTH, LARGEST_STRETCH)
    # What the last step led to has no likelihood yet, and a stretched one may have overshot.
    return settled, last


def freed_law(
    parameters: MeasurementParameters,
    probabilities: Array,
    counts: Array,
    data: WorkingData,
    features: Array,
    n_steps: int,
    *,
    ratio: float,
    n_threads: int = 1,
) -> Array:
    """Return the law after a few steps in which it may become anything, shape (S,).

    Expected counts under a law over a graph confirm that graph. A few unrestricted steps let
    dependence show that the graph does not have; many would let the law fit noise. Each step is
    worth two of EM's: a step of EM closes a share ``ratio`` of the distance to go, one that is
    ``2 - ratio`` times as long closes as much as two, and none overshoots.

    Parameters
    ----------
    parameters : MeasurementParameters
        On the working scale, held.
    data : WorkingData
    features : ndarray, shape (S, T)
    probabilities, counts : ndarray, shape (S,)
        The law to begin with and the counts expected under it: the first step needs no E-step.
    n_steps : int
    ratio : float
        Share of the latents' information that the items carry.
    """
    current = probabilities
    for step in range(n_steps):
        if step > 0:
            counts, _ = expect_states(parameters, current, data, features, n_threads=n_threads)
        fresh = counts / counts.sum()
        further = stretched_law(current, fresh, 1.0 - ratio)
        current = further / further.sum()
    return current


# --- The E-step for many laws with the items held: what rows say of the states is kept

#: Numbers that are kept at most (32 MB); with more, E-steps begin from the rows each time.
MOST_KEPT = 1 << 22


@dataclass(frozen=True)
class _MetRows:
    """Rows that have met the states of either half.

    Attributes
    ----------
    halves : Halves
        Under any law.
    lanes : list of list of (counted, Densities)
        By lane, blocks of rows: how many rows each counts for, shape (n,), and its densities.
    """

    halves: Halves
    lanes: list[list[tuple[Array, Densities]]]

    @classmethod
    def of(cls, rows: Rows, halves: Halves) -> _MetRows:
        """Return rows and what they say, in blocks and lanes as other E-steps have them."""
        return cls(
            halves,
            [
                [
                    (block.counted, halves.densities(block.extended))
                    for block in rows.lane(lane, halves.n_rows)
                ]
                for lane in range(N_LANES)
            ],
        )


@dataclass(frozen=True)
class HeldItems:
    """Items that are held, and a table.

    Attributes
    ----------
    parameters : MeasurementParameters
        On the working scale.
    data : WorkingData
    features : ndarray, shape (S, T)
        The terms' values in all joint states.
    n_threads : int
        Changes the time, never the bits.
    """

    parameters: MeasurementParameters
    data: WorkingData
    features: Array
    n_threads: int = 1

    def expect_states(self, law: Array) -> tuple[Array, float]:
        """Return expected counts of states (S,) and the log-likelihood under a law (S,)."""
        if self._met is None:
            return self._from_the_rows(law)
        log_law = log_probabilities(law)
        counts, total = np.zeros(len(law)), 0.0
        for met in self._met:
            halves = met.halves.under(log_law)
            sums = sum_lanes(partial(_lane_counts, met, halves), self.n_threads)
            if np.isnan(sums.total):
                return self._from_the_rows(law)
            counts += halves.by_state(sums.by_place)[0]
            total += sums.total
        return counts, total + self.data.base(self.parameters.dispersion)

    def _from_the_rows(self, law: Array) -> tuple[Array, float]:
        return expect_states(
            self.parameters, law, self.data, self.features, n_threads=self.n_threads
        )

    @cached_property
    def _met(self) -> list[_MetRows] | None:
        """All rows, or None where states are listed, something is between halves, or all is much.

        Under an even law: halves do not depend on it.
        """
        n_states = len(self.features)
        tables = self.parameters.tables(self.features)
        even = np.full(n_states, -np.log(n_states))
        groups = []
        for rows, complete in rows_by_gaps(self.data):
            halves = halves_of(
                self.parameters, even, self.features, tables, self.data, gaps=not complete
            )
            if halves is None or halves.split.has_border:
                return None
            groups.append((rows, halves))
        if sum(len(rows) * sum(halves.weights.shape) for rows, halves in groups) > MOST_KEPT:
            return None
        return [_MetRows.of(rows, halves) for rows, halves in groups]


def _lane_counts(met: _MetRows, halves: Halves, lane: int) -> RowSums:
    """Return a lane's counts of states by place; a total of NaN if rows lost their digits."""
    sums = RowSums(np.zeros((1, halves.weights.size)))
    for counted, densities in met.lanes[lane]:
        meeting = halves.meet_again(densities)
        if meeting.mass.min() < SMALLEST_MASS:
            sums.total = np.nan
            break
        sums.by_place += meeting.counts(counted / meeting.mass)
        sums.total += float(meeting.marginal @ counted)
    return sums


__all__ = ["MOST_KEPT", "HeldItems"]
