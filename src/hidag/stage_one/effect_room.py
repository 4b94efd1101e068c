"""Terms that items may have beyond their latents' main effects, and estimation with them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.loop import Estimate, LawStep, Schedule, continued, run_em
from hidag.estimate.maximise import Basis
from hidag.estimate.support import select_support
from hidag.estimate.working import WorkingData
from hidag.kernels.item_regression import FREE, PENALISED, ZERO
from hidag.latent import StateSpace
from hidag.measurement import NO_SPARSITY, MeasurementParameters, Penalty, Terms
from hidag.measurement.effects import Effects


@dataclass(frozen=True)
class Room:
    """Terms, what they may be, the basis they make, and what they cost."""

    terms: Terms
    basis: Basis
    allowed: NDArray[np.uint8]
    penalty: Penalty
    conjunctive: bool


def room_for(
    parameters: MeasurementParameters,
    q_entries: NDArray[np.int8],
    space: StateSpace,
    effects: Effects,
    penalty: Penalty,
    n_samples: float,
) -> Room:
    """Return the room that items get whose latents are those of the parameters."""
    known = bool((q_entries >= 0).all())
    q = np.asarray(q_entries == 1 if known else parameters.support, dtype=np.int8)
    terms = effects.terms(q, space.levels)
    wanted = effects.support(terms, q)
    free = known or effects.conjunctive
    allowed = np.full((len(q), 1 + terms.n_terms), ZERO, dtype=np.uint8)
    allowed[:, 0] = FREE
    allowed[:, 1:][wanted] = FREE if free else PENALISED
    if not free:
        # Latents may still come and go; only their products have to wait for them.
        of_latent = np.choose(q_entries + 1, [PENALISED, ZERO, FREE])
        allowed[:, 1 : 1 + terms.n_main] = of_latent[:, terms.main_latents]
    # One of so many terms that might be there has to be worth more than one of K loadings.
    dearer = replace(penalty, strength=max(penalty.strength, least_price(terms, n_samples)))
    return Room(
        terms,
        Basis.over(space, terms),
        allowed,
        NO_SPARSITY if free else dearer,
        effects.conjunctive,
    )


def least_price(terms: Terms, n_samples: float) -> float:
    """Return what one of so many terms has to be worth at least, whatever loadings look like."""
    return 0.5 * float(np.log(n_samples * terms.n_terms))


def fitted_in(
    now: Estimate,
    room: Room,
    data: WorkingData,
    schedule: Schedule,
    law_step: LawStep,
    n_threads: int,
) -> Estimate:
    """Return the estimate with the room's terms, the kind of law as it is."""
    found = run_em(
        _started(now.parameters, room),
        now.probabilities,
        data,
        room.basis,
        room.allowed,
        room.penalty,
        schedule,
        law_step=law_step,
        n_threads=n_threads,
    )
    chosen, _ = select_support(
        found,
        data,
        room.basis,
        room.allowed,
        room.penalty,
        schedule,
        adapt=False,
        law_step=law_step,
        n_threads=n_threads,
    )
    return continued(now, chosen)


def _started(parameters: MeasurementParameters, room: Room) -> MeasurementParameters:
    """Return where estimation with the room's terms begins, given an estimate of any terms."""
    if not room.conjunctive:
        return parameters.with_terms(room.terms)
    if parameters.terms == room.terms:
        return parameters
    wanted = room.allowed[:, 1:] != ZERO
    rewritten = parameters.with_terms(room.terms)
    if parameters.terms.interactions and not rewritten.loadings[~wanted].any():
        # Its products are those of the room already.
        return rewritten
    # All of an item's effect goes to its one product.
    total = parameters.strengths.sum(axis=1, keepdims=True)
    return replace(rewritten, loadings=np.where(wanted, total, 0.0))
