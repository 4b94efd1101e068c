"""Stage I under the law that is wanted: saturated, over a graph, or whichever the data prefer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.em.problem import Schedule
from hidag.exceptions import SettingError
from hidag.initialization.start_points import StartPoint
from hidag.latent.laws import is_saturated
from hidag.latent.state_space import StateSpace
from hidag.measurement.penalties import Penalty
from hidag.measurement.terms import Terms
from hidag.strategy.multistart import (
    FINAL_TOLERANCE,
    StageOne,
    StartProgress,
    estimate_from_starts,
    observer_of,
)
from hidag.strategy.structural_em import (
    LearnParents,
    estimate_under_network,
    initial_structure_step,
)
from hidag.strategy.structural_multistart import estimate_under_graph

# --- What a table of this size can afford: exact or sampled steps, and how many starts

#: Exact E-steps cost about N * J * 2^K; past this many multiplications sampling is cheaper.
LARGEST_EXACT_WORK = 4e9
#: More joint states than this are not listed by the exact E-step on its own choice.
LARGEST_EXACT_STATES = 1 << 13
#: Neither method lists more joint states than this.
LARGEST_STATES = 1 << 16
#: Multiplications that all starts' E-steps together may take per step, when the user does not say.
WORK_FOR_STARTS = 3e8
#: Bounds on the number of starts: a given Q has more local optima, and cheaper fits.
FEWEST_STARTS, MOST_STARTS = {True: 4, False: 1}, {True: 90, False: 4}
#: Starts at least when latents differ in their numbers of levels.
FEWEST_WHEN_UNEVEN = 8


def choose_method(
    method: str, n_samples: int, n_items: int, space: StateSpace, *, saturated: bool
) -> str:
    """Return "em" or "saem"; "auto" goes by the cost of listing all states."""
    if method not in ("auto", "em", "saem"):
        raise SettingError(f"method must be 'auto', 'em' or 'saem', got {method!r}")
    if space.n_states > LARGEST_STATES and (saturated or method == "em"):
        given = "a saturated latent law" if saturated else "method='em'"
        most = LARGEST_STATES.bit_length() - 1
        raise SettingError(
            f"n_latents={space.n_latents} means {space.n_states_text()} latent states; {given} is "
            f"limited to 2^{most}: use law='auto' and method='auto', or ask for fewer latents"
        )
    if method != "auto":
        return method
    work = float(n_samples) * n_items * space.n_states
    small = space.n_states <= LARGEST_EXACT_STATES and work <= LARGEST_EXACT_WORK
    return "em" if small else "saem"


def choose_n_starts(n_samples: int, n_items: int, space: StateSpace, *, known: bool) -> int:
    """Return how many starts are worth their cost; ``known`` says whether Q is given in full."""
    work = float(n_samples) * n_items * space.n_states
    count = int(np.clip(WORK_FOR_STARTS // work, FEWEST_STARTS[known], MOST_STARTS[known]))
    # Which latent has how many levels is one more thing to go wrong.
    uneven = not known and len(set(space.levels)) > 1
    return max(count, FEWEST_WHEN_UNEVEN) if uneven else count


# ---

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
    basis, allowed = Basis.over(space, terms), allowed_coefficients(q_entries, terms)
    observer = observer_of(progress, count - 1, count)
    first = initial_structure_step(
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
    empty = known and is_saturated(network.parents, space)
    if law == "network" or (network.preferred and not empty):
        return replace(found, network=network, penalty=network.penalty)
    return found
