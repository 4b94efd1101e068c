"""Stage I by penalised Gibbs-SAEM (Algorithm S.2): latents are sampled, statistics averaged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.em.e_step import expect, log_probabilities
from hidag.em.em import Estimate, largest_move
from hidag.em.layout import ItemLayout
from hidag.em.m_step import coefficient_scales, maximise, penalty_of, penalty_scales
from hidag.em.problem import Problem
from hidag.em.statistics import Statistics
from hidag.kernels import gibbs
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters

# --- The Gibbs E-step: latent states sampled row by row, statistics tallied from the sample

Array = NDArray[np.float64]


class GibbsSampler:
    """Latent states of N rows, moved by coordinate-wise Gibbs sweeps.

    Parameters
    ----------
    data : WorkingData
    space : StateSpace
        Latents whose joint states can be listed.
    states : ndarray of int64, shape (N,)
        State numbers to start from.
    seed : int
        Root of all random numbers of this sampler.
    """

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
        """Move all rows by ``n_sweeps`` sweeps that leave their posterior invariant."""
        # Laying items out costs as much as a sweep over a small table, and supports seldom change.
        if self._layout is None or not self._layout.is_of(parameters):
            self._layout = ItemLayout.of(parameters)
        layout = self._layout
        theta, partition = layout.tables(parameters)
        log_law = log_probabilities(probabilities)
        mask = self.data.observed_columns
        has_gaps = mask is not None
        observed = np.zeros((0, 0), dtype=np.uint8) if mask is None else mask
        n_rows = len(self.states)
        edges = np.linspace(0, n_rows, max(1, n_threads) + 1).astype(int)

        def run(part: int) -> None:
            gibbs.sweep_listed(
                self.states,
                edges[part],
                edges[part + 1],
                self.data.x,
                observed,
                has_gaps,
                log_law,
                self.space.strides(),
                layout.levels,
                layout.latent_ptr,
                layout.latent_items,
                layout.latent_strides,
                layout.item_ptr,
                layout.item_parents,
                layout.item_strides,
                layout.table_ptr,
                theta,
                partition,
                self._seed,
                self._iteration,
                n_sweeps,
            )

        if n_threads > 1:
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(run, range(n_threads)))
        else:
            run(0)
        self._iteration += 1

    def statistics(self) -> Statistics:
        """Return the statistics of the current states."""
        n_states = self.space.n_states
        count = np.zeros(n_states)
        sum_x = np.zeros((n_states, self.data.columns.n_columns))
        gap_count = np.zeros((n_states, len(self.data.gappy)))
        weights = self.data.row_weights
        gibbs.tally(self.states, weights, self.data.x, self.data.gaps, count, sum_x, gap_count)
        return Statistics(count, np.ascontiguousarray(sum_x.T), np.ascontiguousarray(gap_count.T))


# ---

#: Rows' worth of even mass that keeps unvisited states reachable for the Gibbs sampler.
SAMPLER_MASS = 1.0
#: SAEM is settled when coefficients hardly drift over this many averaged steps.
DRIFT_STEPS = 20


def run_saem(
    problem: Problem,
    parameters: MeasurementParameters,
    probabilities: Array,
    rng: np.random.Generator,
    *,
    judge: bool = True,
) -> Estimate:
    """Return the estimate after penalised Gibbs-SAEM (Algorithm S.2).

    Parameters
    ----------
    problem : Problem
    parameters : MeasurementParameters
        Starting values on the working scale.
    probabilities : ndarray, shape (S,)
        Starting value of the latent distribution.
    rng : Generator
    judge : bool
        Whether the likelihood and the statistics are those of a final exact E-step. Without it the
        likelihood is NaN and the statistics are the sampled averages.
    """
    data, space, schedule = problem.data, problem.space, problem.schedule
    scale, n_threads = coefficient_scales(data), problem.n_threads
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
        moved = maximise(
            parameters, averaged, data, problem.basis, problem.allowed, problem.penalty, n_newton=1
        )
        change = largest_move(parameters, moved, scale)
        parameters = moved
        probabilities = (averaged.count + even) / (data.n_counted + SAMPLER_MASS)
        trace.append((np.nan, change))
        if problem.observer is not None:
            problem.observer(len(trace), schedule.max_iter, np.nan)
        if after >= DRIFT_STEPS and after % DRIFT_STEPS == 0:
            # A drift well inside the statistical error of a coefficient is not worth more steps.
            drift = largest_move(anchor, parameters, scale)
            converged = bool(drift < 2.0 * data.n_counted**-0.5)
        if after % DRIFT_STEPS == 0:
            anchor = parameters
    statistics, log_likelihood = averaged or sampler.statistics(), np.nan
    if judge:
        features = np.ascontiguousarray(problem.basis.features)
        statistics, log_likelihood = expect(
            parameters, probabilities, data, features, n_threads=n_threads
        )
    cost = penalty_of(parameters, problem.penalty, penalty_scales(data), problem.allowed)
    return Estimate(
        parameters,
        probabilities,
        log_likelihood,
        log_likelihood - cost,
        len(trace),
        converged,
        np.array(trace).reshape(-1, 2),
        statistics,
    )
