"""Stage I by penalised Gibbs-SAEM (Algorithm S.2): latents are sampled, statistics averaged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.expectation import expect
from hidag.estimate.gibbs import GibbsSampler
from hidag.estimate.loading_costs import coefficient_scales, penalty_of, penalty_scales
from hidag.estimate.loop import Estimate, Observer, Schedule, largest_move
from hidag.estimate.maximise import Basis, maximise
from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, Penalty

Array = NDArray[np.float64]

#: Rows' worth of even mass that keeps unvisited states reachable for the Gibbs sampler.
SAMPLER_MASS = 1.0
#: SAEM is settled when coefficients hardly drift over this many averaged steps.
DRIFT_STEPS = 20


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
