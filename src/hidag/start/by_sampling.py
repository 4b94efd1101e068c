"""Stage I for many latents: sampled states, a network as law, supports judged by observed data.

The order of things matters. Loadings first find their size on the start's support. Then the law
gets room for every dependence that the draws might be hiding, since what the law cannot express
would be read as loadings. Only then is the support judged, and the law looked at again, until
nothing changes. The graph is thinned out last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.loading_costs import coefficient_scales, permissions
from hidag.estimate.loop import Schedule
from hidag.estimate.network_gibbs import NetworkSampler
from hidag.estimate.network_support import adapt_to_table, choose_loadings, judge_loadings
from hidag.estimate.working import WorkingData
from hidag.latent import NetworkLaw
from hidag.measurement import NO_SPARSITY, MeasurementParameters, Penalty
from hidag.start.network_start import independent_law, network_start
from hidag.start.sampled_splits import Agreement, Witness
from hidag.start.sampling_road import BETWEEN, ParentsOfDraws, Road, SamplingProgress

Array = NDArray[np.float64]

#: Sweeps that forget where the sampler's states came from.
FIRST_SWEEPS = 10
#: Draws on which supports are judged.
N_DRAWS = 16
#: Steps before anything is chosen.
WARM_UP = 30
#: Graphs learned before the first support is judged, and after each change of support. Draws made
#: without an edge show a part of its dependence only: it takes a few rounds to come out.
FIRST_GRAPHS, LATER_GRAPHS = 5, 2
#: Choices of support at the most.
MOST_CHOICES = 6
#: Latents at the most that are taken apart, one after another.
MOST_SPLITS = 6
#: Draws that fits are compared by.
DRAWS_COMPARED = 2
#: Steps of the last run at least.
FEWEST_LAST = 40


@dataclass(frozen=True)
class SampledStageOne:
    """Where Stage I by sampling ended.

    Attributes
    ----------
    parameters : MeasurementParameters
        On the working scale.
    law : NetworkLaw
    draws : ndarray of uint8, shape (R, N, K)
        Draws of the latents given the data, made under a law with no fewer edges than ``law``:
        what a graph is to be learned from, counting for ``rows_for_graph`` rows.
    information_ratio : float
        Share of the latents' pairwise information that the items carry.
    penalty : Penalty
        With the strength that was used.
    n_iter : int
    converged : bool
        Whether the support had stopped changing and the coefficients drifting.
    trace : ndarray, shape (n_iter,)
        Largest move of a coefficient in each step, in units of its item's scale.
    """

    parameters: MeasurementParameters
    law: NetworkLaw
    draws: NDArray[np.uint8]
    information_ratio: float
    penalty: Penalty
    n_iter: int
    converged: bool
    trace: Array


def estimate_by_sampling(
    data: WorkingData,
    levels: tuple[int, ...],
    q_entries: NDArray[np.int8],
    penalty: Penalty,
    schedule: Schedule,
    *,
    learn_parents: ParentsOfDraws,
    seed: int,
    final_parents: ParentsOfDraws | None = None,
    begin: MeasurementParameters | None = None,
    adapt: bool = True,
    to_maximum: bool = True,
    n_threads: int = 1,
    progress: SamplingProgress | None = None,
) -> SampledStageOne:
    """Return Stage I's estimate for any number of latents: no joint states are listed.

    Parameters
    ----------
    data : WorkingData
    levels : tuple of int, length K
    q_entries : ndarray of int8, shape (J, K)
        1 (loads), 0 (does not), -1 (estimate this). With no -1 the fit is confirmatory: no penalty.
    penalty : Penalty
        Its strength is what a loading has to be worth in observed-data log-likelihood. Without a
        penalty nothing is chosen: the support stays that of the start.
    schedule : Schedule
        ``n_sweeps``, ``decay`` and ``max_iter`` are used; at least 40 steps follow the last choice.
    learn_parents : callable
        Called with draws of the latents, shape (n, K), and the number of rows that they count
        for; returns each latent's parents. It should be quick: it is called often.
    seed : int
    final_parents : callable or None
        The same for the last graph; None takes ``learn_parents``.
    begin : MeasurementParameters or None
        Where to begin, on the working scale; None takes the spectral start.
    adapt : bool
        Whether the penalty's strength is learned from the table.
    to_maximum : bool
        Whether EM takes the estimate the rest of the way, where that costs little; a start for
        another search need not be there.
    n_threads : int
        Changes the time, never the bits.
    progress : callable or None
        Called with (iteration, most iterations).
    """
    if (q_entries >= 0).all():
        penalty = NO_SPARSITY
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    parameters = network_start(data, q_entries, levels) if begin is None else begin
    allowed, scale = permissions(q_entries, parameters.terms), coefficient_scales(data)

    def settle(begin: MeasurementParameters) -> Road:
        states = independent_law(levels).sample(data.n_samples, rng)
        sampler = NetworkSampler(data, states, int(rng.integers(1 << 62)), n_threads=n_threads)
        road = Road(sampler, begin, schedule, progress, penalty)
        road.draws(1, FIRST_SWEEPS)
        road.steps(WARM_UP, WARM_UP // 2)
        road.thicken(learn_parents, FIRST_GRAPHS)
        road.settled = penalty.name is None
        for _ in range(0 if road.settled else MOST_CHOICES):
            draws = road.draws(N_DRAWS)
            judged = judge_loadings(road.parameters, draws, data, allowed, n_threads=n_threads)
            if adapt:
                road.penalty = adapt_to_table(
                    judged, parameters.terms.n_terms, data.n_counted, road.penalty
                )
            chosen = choose_loadings(road.parameters, judged, allowed, road.penalty, scale)
            road.settled = np.array_equal(chosen.support, road.parameters.support)
            if road.settled:
                break
            road.parameters = chosen
            road.steps(BETWEEN, BETWEEN // 2)
            road.thicken(learn_parents, LATER_GRAPHS)
        return road

    road = settle(parameters)
    if begin is None:
        road = _better_when_split(road, settle, allowed)
    draws = road.thin(learn_parents if final_parents is None else final_parents)
    last = max(FEWEST_LAST, schedule.max_iter - road.n_iter)
    converged = road.steps(last, min(schedule.burn_in, last // 2))
    if to_maximum:
        converged |= road.to_maximum()
    return SampledStageOne(
        road.parameters,
        road.law,
        draws,
        road.ratio,
        road.penalty,
        road.n_iter,
        converged and road.settled,
        np.concatenate(road.moves),
    )


def _better_when_split(
    road: Road,
    settle: Callable[[MeasurementParameters], Road],
    allowed: NDArray[np.uint8],
) -> Road:
    """Return the road after latents that stood for two were taken apart, where that fits better."""
    if max(road.levels) > 2 or road.penalty.name is None:
        return road
    witness = Witness(road.sampler.data)

    def agreement(one: Road) -> Agreement:
        return witness.agreement(one.parameters, one.draws(DRAWS_COMPARED), allowed)

    now = agreement(road)
    for _ in range(MOST_SPLITS):
        for place in now.places:
            other = settle(place)
            then = agreement(other)
            if then.criterion < now.criterion:
                other.continue_from(road)
                road, now = other, then
                break
        else:
            break
    return road
