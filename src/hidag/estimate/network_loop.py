"""Gibbs-SAEM with a network as the latents' law: supports and parent sets stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.loading_costs import coefficient_scales
from hidag.estimate.loop import largest_move
from hidag.estimate.network_gibbs import NetworkSampler, NetworkStatistics
from hidag.estimate.network_layout import FamilyLayout, ItemLayout
from hidag.estimate.network_maximise import maximise_tables
from hidag.estimate.saem import DRIFT_STEPS
from hidag.latent import NetworkLaw, Parents
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]

#: Rows' worth of even mass in each latent's table: no configuration becomes impossible.
LAW_MASS = 1.0
#: SAEM has settled when over 20 averaged steps coefficients drift by at most so many 1/sqrt(N).
LARGEST_DRIFT = 4.0


@dataclass(frozen=True)
class NetworkEstimate:
    """Where a run of SAEM steps ended.

    Attributes
    ----------
    parameters : MeasurementParameters
    law : NetworkLaw
    moves : ndarray, shape (n_steps,)
        Largest move of a coefficient in each step, in units of its item's scale.
    converged : bool
        Whether coefficients had stopped drifting.
    """

    parameters: MeasurementParameters
    law: NetworkLaw
    moves: Array
    converged: bool


def law_of_draws(
    parents: Parents,
    draws: NDArray[np.uint8],
    levels: tuple[int, ...],
    *,
    weights: Array | None = None,
    mass: float = LAW_MASS,
) -> NetworkLaw:
    """Return the network with these parent sets and the frequencies of the draws, (R, N, K).

    ``mass`` rows are spread evenly over each latent's table; every draw counts for 1/R rows, or for
    that share of its row's weight (N,).
    """
    often = None if weights is None else np.tile(weights, len(draws))
    families = FamilyLayout.of(parents, levels)
    counts = np.zeros(families.size)
    states = draws.reshape(-1, draws.shape[-1])
    for k, pa in enumerate(parents):
        code = states[:, k].astype(np.int64)
        strides = families.parent_strides[families.parent_ptr[k] : families.parent_ptr[k + 1]]
        for a, stride in zip(pa, strides, strict=True):
            code += states[:, a].astype(np.int64) * stride
        begin, end = families.table_ptr[k], families.table_ptr[k + 1]
        counts[begin:end] = np.bincount(code, often, minlength=end - begin) / len(draws)
    return families.law_from(counts, mass)


def run_steps(
    parameters: MeasurementParameters,
    law: NetworkLaw,
    sampler: NetworkSampler,
    *,
    n_steps: int,
    burn_in: int,
    decay: float = 0.7,
    n_sweeps: int = 1,
    observer: Callable[[], None] | None = None,
) -> NetworkEstimate:
    """Return the estimate after SAEM steps on the given support and parent sets (Algorithm S.2).

    Steps end early when, over 20 averaged ones, no coefficient drifts by more than 4/sqrt(N) of its
    scale: well inside its statistical error.

    Parameters
    ----------
    parameters, law : MeasurementParameters, NetworkLaw
        Where to begin; loadings that are zero stay zero.
    sampler : NetworkSampler
        Its states go on from where they are.
    n_steps, burn_in : int
        Steps at the most, the first ``burn_in`` of size 1.
    decay : float
        Step ``t`` after the burn-in has size ``t ** -decay``.
    n_sweeps : int
        Gibbs sweeps per step, the paper's C.
    observer : callable or None
        Called after every step.
    """
    data = sampler.data
    items, families = ItemLayout.of(parameters), FamilyLayout.of_law(law)
    scale = coefficient_scales(data)
    averaged: NetworkStatistics | None = None
    moves = []
    anchor, converged = parameters, False
    for t in range(n_steps):
        sampler.draw(parameters, law, items, families, n_sweeps=n_sweeps)
        fresh = sampler.statistics(items, families)
        step = 1.0 if averaged is None or t < burn_in else (t - burn_in + 1.0) ** -decay
        averaged = fresh if averaged is None else averaged.blend(fresh, step)
        moved = maximise_tables(parameters, averaged, data, items)
        moves.append(largest_move(parameters, moved, scale))
        parameters = moved
        law = families.law_from(averaged.families, LAW_MASS)
        if observer is not None:
            observer()
        after = t - burn_in + 1
        if after >= 0 and after % DRIFT_STEPS == 0:
            drift = largest_move(anchor, parameters, scale)
            anchor = parameters
            converged = after > 0 and drift < LARGEST_DRIFT * data.n_counted**-0.5
            if converged:
                break
    return NetworkEstimate(parameters, law, np.array(moves), converged)
