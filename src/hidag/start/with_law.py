"""Stage I under the law that is wanted: saturated, over a graph, or whichever the data prefer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.law_rounds import LearnParents, estimate_under_network, look_under_network
from hidag.estimate.loading_costs import permissions
from hidag.estimate.loop import Schedule
from hidag.estimate.maximise import Basis
from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.latent.factorise import is_any_law
from hidag.measurement import Penalty, Terms
from hidag.start.budget import choose_n_starts
from hidag.start.points import StartPoint
from hidag.start.records import StageOne, StartProgress, observer_of
from hidag.start.several import FINAL_TOLERANCE, estimate_from_starts
from hidag.start.under_graph import estimate_under_graph

#: What a law's parameter costs when Q is given in full, in units of log-likelihood: a simpler law
#: then has no latents to help find, and is taken when it predicts as well (Akaike's criterion).
PRICE_WITH_GIVEN_Q = 1.0
#: With so few joint states a saturated law costs little and is fitted in full.
FEW_STATES = 64


def estimate_with_law(
    data: WorkingData,
    space: StateSpace,
    q_entries: NDArray[np.int8],
    penalty: Penalty,
    schedule: Schedule,
    *,
    law: str,
    method: str,
    seed: int,
    learn_parents: LearnParents,
    adapt: bool = True,
    n_starts: int | str = "auto",
    begin: StartPoint | None = None,
    n_threads: int = 1,
    progress: StartProgress | None = None,
) -> StageOne:
    """Return Stage I's answer under the law that is wanted, or that the data prefer.

    Parameters
    ----------
    law : {"auto", "network", "saturated"}
        "auto" compares information criteria.
    data, space, q_entries, penalty, schedule, method, seed, learn_parents, adapt, n_starts, begin,
    n_threads, progress
        As in ``estimate_from_starts`` and :func:`estimate_under_graph`.
    """
    known = bool((q_entries >= 0).all())
    bridged = law != "saturated" and method == "em"
    if bridged and not known and (law == "network" or space.n_states > FEW_STATES):
        soon = estimate_under_graph(
            data,
            space,
            q_entries,
            penalty,
            schedule,
            seed=seed,
            learn_parents=learn_parents,
            adapt=adapt,
            n_starts=n_starts,
            begin=begin,
            n_threads=n_threads,
            progress=progress,
        )
        if law == "network" or (soon.network is not None and soon.network.preferred):
            return soon
        bridged = False
    count = 1 if begin is not None else n_starts
    if isinstance(count, str):
        count = choose_n_starts(data.n_samples, data.n_items, space, known=known)
    found = estimate_from_starts(
        data,
        space,
        q_entries,
        penalty,
        schedule,
        method=method,
        seed=seed,
        adapt=adapt,
        n_starts=count,
        begin=begin,
        n_threads=n_threads,
        progress=progress,
    )
    if not bridged:
        return found
    plan = schedule
    if found.penalty.name is None:
        plan = replace(schedule, tolerance=FINAL_TOLERANCE * schedule.tolerance)
    terms = Terms.main(space.levels)
    basis, allowed = Basis.over(space, terms), permissions(q_entries, terms)
    observer = observer_of(progress, count - 1, count)
    first = look_under_network(
        found.best,
        data,
        space,
        basis,
        allowed,
        found.penalty,
        plan,
        learn_parents,
        n_steps=found.best.n_iter,
        n_threads=n_threads,
        observer=observer,
    )
    network = estimate_under_network(
        first,
        data,
        space,
        basis,
        allowed,
        found.penalty,
        plan,
        learn_parents,
        adapt=adapt,
        price=PRICE_WITH_GIVEN_Q if known else None,
        n_threads=n_threads,
        observer=observer,
    )
    # With Q given a law over a complete graph restricts nothing: it is the saturated one.
    empty = known and is_any_law(network.parents, space)
    if law == "network" or (network.preferred and not empty):
        return replace(found, network=network, penalty=network.penalty)
    return found
