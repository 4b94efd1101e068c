"""The estimation problem, penalised EM with an exact E-step, and EM for the law alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.block_e_step import BlockDensities, BlockModel, factorise_states
from hidag.em.design_data import WorkingData
from hidag.em.e_step import (
    RowSums,
    Statistics,
    log_probabilities,
    rows_by_completeness,
    run_e_step,
    run_law_e_step,
    sum_lanes,
)
from hidag.em.m_step import (
    Basis,
    coefficient_scales,
    penalty_scales,
    run_m_step,
    total_penalty,
)
from hidag.kernels.coordinate_descent import NONNEGATIVE
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import Penalty

Array = NDArray[np.float64]
#: M-step of the latent distribution: expected counts (S,) to probabilities (S,).
LawStep = Callable[[Array], Array]
#: Item parameters and latent distribution.
_Point = tuple[MeasurementParameters, Array]
#: Stored rows: (row weights, densities) of blocks, by lane.
_Lanes = list[list[tuple[Array, BlockDensities]]]


#: Called after every iteration with (iteration, max_iter, objective).
Observer = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Schedule:
    """Number of iterations, convergence criterion and step sizes."""

    max_iter: int = 200
    # EM converges when an iteration, and by extrapolation all further iterations together,
    # raise the penalised log-likelihood by less than ``tolerance`` per row, counting at most
    # 3000 rows. SAEM converges when coefficients drift by less than 2/sqrt(N) of their scale in
    # 20 iterations.
    tolerance: float = 1e-4
    # SAEM iterations of step size 1 before the Robbins-Monro average
    burn_in: int = field(default_factory=lambda: CONFIG.em.saem_burn_in)
    # iteration ``t`` after the burn-in has step size ``t ** -decay``; between 1/2 and 1
    decay: float = field(default_factory=lambda: CONFIG.em.saem_decay)
    n_sweeps: int = 1  # Gibbs sweeps per SAEM iteration, the paper's C
    n_newton: int = field(default_factory=lambda: CONFIG.m_step.newton_steps)  # of an M-step


@dataclass(frozen=True)
class Problem:
    """A penalised likelihood to maximise over item parameters and the latent distribution."""

    data: WorkingData
    space: StateSpace
    basis: Basis  # the joint states as regressors
    # (J, 1 + T): ZERO, PENALISED, FREE or NONNEGATIVE for each coefficient; the intercept,
    # column 0, is free
    allowed: NDArray[np.uint8]
    penalty: Penalty
    schedule: Schedule
    n_threads: int = 1  # changes the running time, never the result
    observer: Observer | None = None


@dataclass(frozen=True)
class Estimate:
    """Result of a run of EM or SAEM."""

    parameters: MeasurementParameters
    probabilities: Array  # (S,)
    log_likelihood: float  # of the observed data
    objective: float  # log-likelihood minus penalty
    n_iter: int
    converged: bool
    # (n_iter, 2): per iteration the objective (NaN for SAEM) and the largest change of a
    # coefficient in units of its item's scale
    trace: Array
    statistics: Statistics  # expected at the estimate


def append_run(before: Estimate, after: Estimate) -> Estimate:
    """Return the later estimate with the iterations of both runs."""
    trace = np.vstack([before.trace, after.trace])
    return replace(after, n_iter=before.n_iter + after.n_iter, trace=trace)


def extrapolate_gain(before: float, last: float) -> float:
    """Return the sum of all further gains if they form a geometric series with the last two."""
    ratio = last / before
    return last * ratio / (1.0 - ratio) if ratio < 1.0 else np.inf


def remaining_gain(objectives: list[float], window: int = 1) -> float:
    """Return the gain expected from the last two windows; inf if unknown, -inf without a rise."""
    if window == 0 or len(objectives) < 1 + 2 * window:
        return np.inf
    last = objectives[-1] - objectives[-1 - window]
    before = objectives[-1 - window] - objectives[-1 - 2 * window]
    if last <= 0.0:
        return -np.inf
    return extrapolate_gain(before, last) if before > 0.0 else np.inf


def has_converged(objectives: list[float], tolerance: float) -> bool:
    """Return whether this and all further iterations, judged over windows, gain less."""
    if len(objectives) < 2 or objectives[-1] - objectives[-2] >= tolerance:
        return False
    window = min(CONFIG.em.gain_window, (len(objectives) - 1) // 2)
    return remaining_gain(objectives, window) < tolerance


def normalise_counts(counts: Array) -> Array:
    """Return the relative frequencies of the states: the M-step of a saturated distribution."""
    return np.asarray(counts / counts.sum())


def largest_change(old: MeasurementParameters, new: MeasurementParameters, scale: Array) -> float:
    """Return the largest change of a coefficient, in units of its item's scale."""
    change = np.abs(new.loadings - old.loadings).max(axis=1, initial=0.0)
    return float((np.maximum(change, np.abs(new.intercept - old.intercept)) / scale).max())


def _extrapolate_law(old: Array, new: Array, extra: float) -> Array:
    """Return weights beyond ``new`` by ``extra`` times the step on the log scale, shape (S,)."""
    smallest = CONFIG.em.negligible_probability
    positive = (new > smallest) & (old > smallest)
    out = new.copy()
    out[positive] *= (new[positive] / old[positive]) ** extra
    return out


def _over_relax(
    old: _Point, new: _Point, factor: float, law_step: LawStep, allowed: NDArray[np.uint8]
) -> _Point | None:
    """Return the point ``factor`` times as far from the old one as the new one, or None.

    Zero loadings stay zero, and nonnegative loadings that would become negative stay where the
    plain step put them. None means that a linear predictor would leave its family's range.
    """
    (before, old_law), (after, new_law), extra = old, new, factor - 1.0
    both = (before.loadings != 0) & (after.loadings != 0)
    loadings = after.loadings + np.where(both, extra * (after.loadings - before.loadings), 0.0)
    negative = (allowed[:, 1:] == NONNEGATIVE) & (loadings < 0)
    dispersion = after.dispersion * (after.dispersion / before.dispersion) ** extra
    point = replace(
        after,
        intercept=after.intercept + extra * (after.intercept - before.intercept),
        loadings=np.where(negative, after.loadings, loadings),
        dispersion=after.within_bounds(dispersion),
        cutpoints=after.cutpoints + extra * (after.cutpoints - before.cutpoints),
    )
    if not point.in_range().all():
        return None
    return point, law_step(_extrapolate_law(old_law, new_law, extra))


def _longer(factor: float) -> float:
    """Return the next over-relaxation factor after a step that raised the objective."""
    return min(factor * CONFIG.em.relaxation_growth, CONFIG.em.max_relaxation)


def run_em(
    problem: Problem,
    parameters: MeasurementParameters,
    probabilities: Array,
    *,
    law_step: LawStep = normalise_counts,
) -> Estimate:
    """Return the penalised maximum likelihood estimate that EM reaches; the objective never falls.

    Starting values are on the working scale. The objective is monotone if ``law_step``, the M-step
    of the latent distribution, returns the maximum likelihood distribution of its kind.
    """
    data, schedule, allowed = problem.data, problem.schedule, problem.allowed
    basis, penalty = problem.basis, problem.penalty
    scale, penalty_scale = coefficient_scales(data), penalty_scales(data)
    features = np.ascontiguousarray(basis.features)
    tolerance = schedule.tolerance * min(data.n_counted, CONFIG.em.max_tolerance_rows)
    point: _Point = (parameters, probabilities)
    plain: _Point | None = None
    trace: list[tuple[float, float]] = []
    objectives: list[float] = []
    factor = 1.0
    while True:
        statistics, log_likelihood = run_e_step(*point, data, features, n_threads=problem.n_threads)
        cost = total_penalty(point[0], penalty, penalty_scale, allowed)
        objective = log_likelihood - cost
        if plain is not None and objective < objectives[-1]:
            # The over-relaxed step overshot: the plain step cannot.
            point, plain, factor = plain, None, 1.0
            continue
        if trace:
            trace[-1] = (objective, trace[-1][1])
            if problem.observer is not None:
                problem.observer(len(trace), schedule.max_iter, objective)
        objectives.append(objective)
        converged = has_converged(objectives, tolerance)
        if converged or len(trace) >= schedule.max_iter:
            break
        updated = run_m_step(
            point[0], statistics, data, basis, allowed, penalty, n_newton=schedule.n_newton
        )
        step: _Point = (updated, law_step(statistics.count))
        trace.append((np.nan, largest_change(point[0], updated, scale)))
        relaxed = _over_relax(point, step, factor, law_step, allowed) if factor > 1.0 else None
        point, plain = (step, None) if relaxed is None else (relaxed, step)
        factor = _longer(factor)
    values, steps = (log_likelihood, objective), np.array(trace).reshape(-1, 2)
    return Estimate(*point, *values, len(trace), converged, steps, statistics)


def fit_law(
    e_step: Callable[[Array], tuple[Array, float]],
    probabilities: Array,
    law_step: LawStep,
    *,
    tolerance: float,
    max_steps: int,
) -> tuple[Array, float]:
    """Return the latent distribution (S,) after EM with fixed items, and its log-likelihood.

    ``e_step`` takes probabilities (S,) to expected counts (S,) and the log-likelihood. The starting
    value must be of the kind that ``law_step`` returns. EM ends when an iteration raises the
    log-likelihood by less than the tolerance.
    """
    current, factor = probabilities, 1.0
    best, log_likelihood = probabilities, -np.inf
    plain: Array | None = None
    for _ in range(max_steps):
        counts, value = e_step(current)
        if plain is not None and value < log_likelihood:
            # The over-relaxed step overshot: the plain step cannot.
            current, plain, factor = plain, None, 1.0
            continue
        gain = value - log_likelihood
        best, log_likelihood = current, value
        if gain < tolerance:
            break
        step, plain = law_step(counts), None
        if factor > 1.0:
            plain, step = step, law_step(_extrapolate_law(current, step, factor - 1.0))
        current = step
        factor = _longer(factor)
    # The last step has not been evaluated, and may have overshot.
    return best, log_likelihood


def update_law_unconstrained(
    e_step: LawEStep, probabilities: Array, counts: Array, n_steps: int, *, ratio: float
) -> Array:
    """Return the latent distribution after a few unconstrained EM steps, shape (S,).

    A few steps reveal dependence that the graph lacks; many would fit noise. Each closes as much as
    two plain ones: EM closes a share ``ratio`` (the information ratio) of the remaining distance, a
    step ``2 - ratio`` times as long twice that. ``counts`` are expected under the starting value.
    """
    current = probabilities
    for step in range(n_steps):
        if step > 0:
            counts, _ = e_step.run(current)
        extrapolated = _extrapolate_law(current, counts / counts.sum(), 1.0 - ratio)
        current = extrapolated / extrapolated.sum()
    return current


@dataclass(frozen=True)
class LawEStep:
    """E-step for many latent distributions with fixed items, whose block densities are stored."""

    parameters: MeasurementParameters  # on the working scale
    data: WorkingData
    features: Array  # (S, T): values of the terms in all joint states
    n_threads: int = 1  # changes the running time, never the bits

    def run(self, law: Array) -> tuple[Array, float]:
        """Return expected counts of the states (S,) and the log-likelihood under a law (S,)."""
        if self._stored is None:
            return self._run_from_rows(law)
        log_law = log_probabilities(law)
        counts, total = np.zeros(len(law)), 0.0
        for items, lanes in self._stored:
            model = items.with_law(log_law)
            sums = sum_lanes(partial(_sum_stored, lanes, model), self.n_threads)
            if np.isnan(sums.total):
                return self._run_from_rows(law)
            counts += model.by_state(sums.by_state)[0]
            total += sums.total
        return counts, total + self.data.base(self.parameters.dispersion)

    def _run_from_rows(self, law: Array) -> tuple[Array, float]:
        """Return the same without stored densities."""
        return run_law_e_step(
            self.parameters, law, self.data, self.features, n_threads=self.n_threads
        )

    @cached_property
    def _stored(self) -> list[tuple[BlockModel, _Lanes]] | None:
        """All rows, or None if states are listed, the split has a boundary, or memory is short."""
        n_states = len(self.features)
        tables = self.parameters.tables(self.features)
        # Densities given the blocks' states do not depend on the latent distribution.
        uniform = np.full(n_states, -np.log(n_states))
        groups, size = [], 0
        for rows, complete in rows_by_completeness(self.data):
            model = factorise_states(
                self.parameters, uniform, self.features, tables, self.data, not complete
            )
            if model is None or model.split.has_boundary:
                return None
            groups.append((rows, model))
            size += len(rows) * sum(model.weights.shape)
        if size > CONFIG.e_step.max_stored_densities:
            return None
        out = []
        for rows, model in groups:
            lanes = [
                [(b.row_weights, model.densities(b.extended)) for b in rows.lane(n, model.n_rows)]
                for n in range(CONFIG.e_step.n_lanes)
            ]
            out.append((model, lanes))
        return out


def _sum_stored(lanes: _Lanes, model: BlockModel, lane: int) -> RowSums:
    """Return a lane's counts of states in split order; a total of NaN if a row underflowed."""
    sums = RowSums(np.zeros((1, model.weights.size)))
    for weights, densities in lanes[lane]:
        posterior = model.combine(densities)
        if posterior.mass.min() < CONFIG.e_step.smallest_mass:
            sums.total = np.nan
            break
        sums.by_state += posterior.counts(weights / posterior.mass)
        sums.total += float(posterior.log_marginal @ weights)
    return sums
