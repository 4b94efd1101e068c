"""Stage I as one function: items' coefficients and the latent law from a table of responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.data.missingness_patterns import canonical_order
from hidag.em.design_data import WorkingData
from hidag.em.problem import Schedule
from hidag.exceptions import Advice, Setting, SettingError
from hidag.initialization.start_points import StartPoint, main_effects_only
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import Penalty
from hidag.measurement.terms import MAIN_EFFECTS, Effects
from hidag.strategy.algorithm_choice import (
    LARGEST_EXACT_STATES,
    LARGEST_STATES,
    PRICE_WITH_GIVEN_Q,
    choose_method,
    estimate_with_law,
)
from hidag.strategy.hierarchy import lost_by_hierarchy, under_hierarchy
from hidag.strategy.interactions import with_interactions
from hidag.strategy.measurement import (
    Measurement,
    exact_measurement,
    parents_by_search,
    parents_of_draws,
    sampled_measurement,
)
from hidag.strategy.multistart import StartProgress
from hidag.strategy.saem_network import SampledStageOne, estimate_by_sampling
from hidag.structure.knowledge import Knowledge, admits_complete_dag

Array = NDArray[np.float64]

#: With so many joint states a start by sampling costs less than the first steps with all of them.
STATES_FOR_SAMPLED_START = 1 << 12
#: Starts with interactions, when the user does not say.
STARTS_WITH_INTERACTIONS = 6
LAWS = ("auto", "network", "saturated")


def estimate_measurement(
    values: Array,
    families: Sequence[str],
    levels: tuple[int, ...],
    *,
    q_entries: NDArray[np.int8] | None = None,
    penalty: Penalty,
    schedule: Schedule,
    method: str = "auto",
    seed: int = 0,
    adapt: bool = True,
    n_starts: int | str = "auto",
    law: str = "auto",
    effects: Effects = MAIN_EFFECTS,
    knowledge: Knowledge | None = None,
    begin: tuple[MeasurementParameters, Array] | None = None,
    weights: Array | None = None,
    n_threads: int = 1,
    progress: StartProgress | None = None,
) -> Measurement:
    """Return Stage I's answer: items' coefficients and the latent law.

    Parameters
    ----------
    values : ndarray, shape (N, J)
        Responses on the user's scale; NaN in missing cells.
    families : sequence of str, length J
    levels : tuple of int, length K
        How many levels each latent has.
    q_entries : ndarray of int8, shape (J, K), optional
        1, 0, or -1 where Q is to be estimated; None estimates all of it.
    n_starts : int or "auto"
        "auto" takes as many as are worth their cost.
    law : {"auto", "network", "saturated"}
        Whether the law is restricted to a graph, which is learned along with it; "auto" decides by
        the Bayesian information criterion, unless knowledge keeps latents apart: a law over no
        graph would contradict it.
    effects : Effects
        Interactions that items may have beside main effects.
    knowledge : Knowledge, optional
        About the latents by their numbers in Q; only with ``q_entries``, because before the end
        nobody else knows which latent is which. The law's graph obeys it, and states that its
        hierarchy rules out have probability zero.
    begin : (MeasurementParameters, ndarray of shape (S,)), optional
        Items, in the user's order and units, and a law to begin from instead of any start. Items
        with interactions begin at their main effects where these are estimated first.
    weights : ndarray, shape (N,), optional
        How many rows each row counts for, all positive.
    penalty, schedule, method, seed, adapt, n_threads, progress
        As in ``hidag.strategy.multistart.estimate_from_starts``.
    """
    if law not in LAWS:
        raise SettingError(f"law must be 'auto', 'network' or 'saturated', got {law!r}")
    space, n_latents = StateSpace(levels), len(levels)
    hierarchy = knowledge is not None and bool(knowledge.hierarchy)
    if q_entries is None:
        knowledge = None
    numbers = tuple(f"{k}" for k in range(n_latents))
    if law == "auto" and knowledge is not None and not admits_complete_dag(knowledge, numbers):
        law = "network"
    n_samples, n_items = values.shape
    entries = q_entries
    if entries is None:
        entries = np.full((n_items, n_latents), -1, dtype=np.int8)
    if hierarchy:
        _refuse_hierarchy(q_entries is None, space)
    chosen = choose_method(method, n_samples, n_items, space, saturated=law == "saturated")
    labels = [f"{f}{row.tolist()}" for f, row in zip(families, entries, strict=True)]
    rows, columns = canonical_order(values, labels, weights)
    data = WorkingData.from_values(
        values[np.ix_(rows, columns)],
        tuple(families[j] for j in columns),
        weights=None if weights is None else weights[rows],
    )
    entries = np.ascontiguousarray(entries[columns])
    point = place = None
    if begin is not None:
        place = StartPoint(data.to_working(begin[0].reordered(items=columns)), begin[1], "given")
        point = replace(place, parameters=main_effects_only(place.parameters, begin[1]))

    def sampled_stage(*, to_maximum: bool) -> SampledStageOne:
        def told(iteration: int, last: int) -> None:
            if progress is not None:
                progress(0, 1, iteration, last, float("nan"))

        return estimate_by_sampling(
            data,
            space.levels,
            entries,
            penalty,
            schedule,
            learn_parents=parents_of_draws("ges", space.levels, data.weights, knowledge),
            final_parents=parents_of_draws("xges", space.levels, data.weights, knowledge),
            seed=seed,
            begin=None if point is None else point.parameters,
            adapt=adapt,
            to_maximum=to_maximum,
            n_threads=n_threads,
            progress=told,
        )

    if not effects.main_only and space.n_states > LARGEST_EXACT_STATES:
        raise SettingError(
            f"interactions need the latents' joint states one by one: {space.n_states_text()} are "
            f"more than {LARGEST_EXACT_STATES}; use effects='main' or ask for fewer latents"
        )
    if not effects.main_only and chosen == "saem" and law != "saturated":
        chosen = "em"
    if hierarchy and chosen == "saem":
        _refuse_sampled_hierarchy(space)
    if law != "saturated" and chosen == "saem":
        return sampled_measurement(
            sampled_stage(to_maximum=True), data, columns, reorder=q_entries is None
        )
    dear = space.n_states >= STATES_FOR_SAMPLED_START and bool((entries < 0).any())
    if law != "saturated" and dear and point is None and n_starts == "auto":
        found = sampled_stage(to_maximum=False)
        point = StartPoint(found.parameters, np.asarray(found.law.probabilities), "sampled")
    stage_one = estimate_with_law(
        data,
        space,
        entries,
        penalty,
        schedule,
        law=law,
        method=chosen,
        seed=seed,
        learn_parents=parents_by_search(space, knowledge),
        adapt=adapt,
        n_starts=n_starts,
        begin=point,
        n_threads=n_threads,
        progress=progress,
    )
    if not effects.main_only:
        stage_one = with_interactions(
            stage_one,
            data,
            space,
            entries,
            effects,
            schedule,
            law=law,
            learn_parents=parents_by_search(space, knowledge),
            seed=seed,
            n_starts=0 if begin is not None else _starts_with_interactions(n_starts),
            begin=place if place is not None and place.parameters.terms.interactions else None,
            n_threads=n_threads,
        )
    possible = None
    if knowledge is not None and hierarchy:
        possible = knowledge.possible_states(numbers, levels).ravel()
        free = stage_one
        stage_one = under_hierarchy(
            free,
            data,
            space,
            possible,
            schedule,
            law=law,
            learn_parents=parents_by_search(space, knowledge, possible),
            price=PRICE_WITH_GIVEN_Q if (entries >= 0).all() else None,
            effects=effects,
            n_threads=n_threads,
        )
        stage_one = replace(stage_one, hierarchy_loss=lost_by_hierarchy(free, stage_one))
    return exact_measurement(
        stage_one,
        data,
        space,
        columns,
        reorder=q_entries is None,
        relevel=not effects.conjunctive and not hierarchy,
        possible=possible,
        n_threads=n_threads,
    )


def _refuse_hierarchy(estimated: bool, space: StateSpace) -> None:
    """Refuse a hierarchy where nobody knows which latent is which, or states are too many."""
    if estimated:
        raise SettingError(
            "hierarchy-without-q",
            "a hierarchy is about latents with a meaning, but without a Q-matrix the fit decides "
            "which latent is which",
            advice="give {q_matrix} (-1 where it is to be estimated)",
            q_matrix=Setting("q_matrix"),
        )
    if space.n_states > LARGEST_STATES:
        most = LARGEST_STATES.bit_length() - 1
        raise SettingError(
            "hierarchy-too-large",
            "a hierarchy needs the latents' joint states one by one, and {states} are more than "
            "2^{most}",
            advice=Advice(
                "require-edges",
                "give its steps as required edges instead, which leave states without a "
                "prerequisite what probability the data give them, or ask for fewer latents",
            ),
            states=space.n_states_text(),
            most=most,
        )


def _refuse_sampled_hierarchy(space: StateSpace) -> None:
    """Refuse a hierarchy of latents that would be sampled though their states can be listed."""
    raise SettingError(
        "a hierarchy needs the latents' joint states one by one, but latents would be sampled: "
        f"{space.n_states_text()} states; use method='em', which takes longer the more there are"
    )


def _starts_with_interactions(n_starts: int | str) -> int:
    """Return how many starts are tried beside the answer with main effects."""
    return STARTS_WITH_INTERACTIONS if isinstance(n_starts, str) else n_starts
