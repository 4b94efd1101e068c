"""Penalised Gibbs-SAEM over listed states (Algorithm S.2): sampled states, averaged statistics."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.e_step import Statistics, log_probabilities, run_e_step
from hidag.em.em import Estimate, Problem, Schedule, largest_change
from hidag.em.layout import ItemLayout
from hidag.em.m_step import coefficient_scales, penalty_scales, run_m_step, total_penalty
from hidag.kernels import gibbs
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]


class GibbsSampler:
    """Joint states of N rows, which can be listed, updated by coordinate-wise Gibbs sweeps."""

    def __init__(
        self, data: WorkingData, space: StateSpace, states: NDArray[np.int64], seed: int
    ) -> None:
        self.data = data
        self.space = space
        self.states = np.array(states, dtype=np.int64)
        self._seed = np.uint64(seed)
        self._iteration = 0
        self._layout: ItemLayout | None = None

    def draw(
        self,
        parameters: MeasurementParameters,
        probabilities: Array,
        *,
        n_sweeps: int = 1,
        n_threads: int = 1,
    ) -> None:
        """Update all rows by Gibbs sweeps, which leave their posterior invariant."""
        # A layout costs as much as a sweep over a small table, and supports seldom change.
        if self._layout is None or not self._layout.is_of(parameters):
            self._layout = ItemLayout.of(parameters)
        layout = self._layout
        law = (log_probabilities(probabilities), self.space.strides(), layout.levels)
        tables = (layout.latent_arrays, layout.table_arrays, layout.tables(parameters))
        stream = (self._seed, self._iteration, n_sweeps)
        constant = ((self.data.x, *self.data.observed_mask), law, *tables, stream)
        edges = np.linspace(0, len(self.states), max(1, n_threads) + 1).astype(int)

        def run(part: int) -> None:
            gibbs.sweep_listed(self.states, edges[part], edges[part + 1], *constant)

        if n_threads > 1:
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(run, range(n_threads)))
        else:
            run(0)
        self._iteration += 1

    def statistics(self) -> Statistics:
        """Return the sufficient statistics of the current states."""
        data, n_states = self.data, self.space.n_states
        count = np.zeros(n_states)
        sum_x = np.zeros((n_states, data.columns.n_columns))
        incomplete_count = np.zeros((n_states, len(data.incomplete)))
        rows = (self.states, data.row_weights, data.x, data.observed_incomplete)
        gibbs.tally(*rows, count, sum_x, incomplete_count)
        sums = (np.ascontiguousarray(part.T) for part in (sum_x, incomplete_count))
        return Statistics(count, *sums)


def robbins_monro_step(schedule: Schedule, iteration: int) -> float:
    """Return the step size of an iteration, counted from 0."""
    after = iteration - schedule.burn_in
    return 1.0 if after < 0 else (after + 1.0) ** -schedule.decay


class DriftCriterion:
    """Convergence of SAEM: drift over a window, in units of scales / sqrt(N), is small."""

    def __init__(self, start: MeasurementParameters, data: WorkingData, max_drift: float) -> None:
        self.scale = coefficient_scales(data)
        self._limit = max_drift * data.n_counted**-0.5
        self._reference = start

    def is_met(self, n_averaged: int, parameters: MeasurementParameters) -> bool:
        """Return whether the parameters after ``n_averaged`` averaged iterations have converged."""
        if n_averaged < 0 or n_averaged % CONFIG.em.drift_window:
            return False
        drift = largest_change(self._reference, parameters, self.scale)
        self._reference = parameters
        return bool(n_averaged > 0 and drift < self._limit)


def run_saem(
    problem: Problem,
    parameters: MeasurementParameters,
    probabilities: Array,
    rng: np.random.Generator,
    *,
    final_e_step: bool = True,
) -> Estimate:
    """Return the estimate of Gibbs-SAEM (Algorithm S.2); without a final E-step, no likelihood."""
    data, space, schedule = problem.data, problem.space, problem.schedule
    n_threads, mass = problem.n_threads, CONFIG.em.saem_mass
    states = rng.choice(space.n_states, size=data.n_samples, p=probabilities / probabilities.sum())
    sampler = GibbsSampler(data, space, states, int(rng.integers(1 << 62)))
    n_sweeps = CONFIG.em.saem_initial_sweeps
    sampler.draw(parameters, probabilities, n_sweeps=n_sweeps, n_threads=n_threads)
    criterion = DriftCriterion(parameters, data, CONFIG.em.max_drift)
    averaged: Statistics | None = None
    changes: list[float] = []
    converged = False
    while len(changes) < schedule.max_iter and not converged:
        iteration = len(changes)
        sampler.draw(parameters, probabilities, n_sweeps=schedule.n_sweeps, n_threads=n_threads)
        fresh = sampler.statistics()
        step = robbins_monro_step(schedule, iteration)
        averaged = fresh if averaged is None else averaged.blend(fresh, step)
        updated = run_m_step(
            parameters, averaged, data, problem.basis, problem.allowed, problem.penalty
        )
        changes.append(largest_change(parameters, updated, criterion.scale))
        parameters = updated
        probabilities = (averaged.count + mass / space.n_states) / (data.n_counted + mass)
        if problem.observer is not None:
            problem.observer(len(changes), schedule.max_iter, np.nan)
        converged = criterion.is_met(iteration - schedule.burn_in, parameters)
    statistics, log_likelihood = averaged or sampler.statistics(), np.nan
    if final_e_step:
        features = np.ascontiguousarray(problem.basis.features)
        statistics, log_likelihood = run_e_step(
            parameters, probabilities, data, features, n_threads=n_threads
        )
    cost = total_penalty(parameters, problem.penalty, penalty_scales(data), problem.allowed)
    trace = np.column_stack([np.full(len(changes), np.nan), changes]).reshape(-1, 2)
    values = log_likelihood, log_likelihood - cost, len(changes), converged, trace, statistics
    return Estimate(parameters, probabilities, *values)
