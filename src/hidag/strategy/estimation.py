"""Stage I in one function: items' coefficients and the latent law from a table of responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.data.rows import canonical_order, collapse_rows
from hidag.em.design_data import WorkingData
from hidag.em.em import Schedule
from hidag.em.m_step import Basis, allowed_coefficients
from hidag.em.saem import run_saem
from hidag.exceptions import Advice, Setting, SettingError
from hidag.initialization.initializers import generators_of, start_points
from hidag.initialization.start_points import StartPoint, confirmatory_start, main_effects_only
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY, Penalty
from hidag.measurement.terms import MAIN_EFFECTS, Effects, Terms
from hidag.strategy.confirmatory import estimate_confirmatory
from hidag.strategy.exploratory import estimate_by_saturated_saem, estimate_exploratory
from hidag.strategy.hierarchy import estimate_under_hierarchy
from hidag.strategy.interactions import (
    add_interactions,
    interacting_items,
    select_interactions,
)
from hidag.strategy.measurement import (
    Measurement,
    exact_measurement,
    sampled_measurement,
)
from hidag.strategy.moves.level_choice import search_levels
from hidag.strategy.moves.nuisance_factors import add_nuisances
from hidag.strategy.problem import Nuisance, SearchProblem, StageOne, StartProgress, choose_method
from hidag.strategy.saem_network import (
    SampledStageOne,
    SamplingTask,
    estimate_by_sampling,
    parents_of_draws,
)
from hidag.strategy.structural_em import parents_by_search
from hidag.structure.knowledge import Knowledge, admits_complete_dag

Array = NDArray[np.float64]

LAWS = ("auto", "network", "saturated")


@dataclass(frozen=True)
class StageOneSettings:
    """The model of Stage I and how it is estimated."""

    levels: tuple[int, ...]  # Length K.
    penalty: Penalty  # Its initial strength.
    schedule: Schedule
    # 1, 0, or -1 where Q is to be estimated; None estimates all of it, shape (J, K).
    q_entries: NDArray[np.int8] | None = None
    effects: Effects = MAIN_EFFECTS
    method: str = "auto"  # {"auto", "em", "saem"}.
    # "auto" decides by an information criterion, unless knowledge forbids edges, {"auto",
    # "network", "saturated"}.
    law: str = "auto"
    # About the latents by their numbers in Q; used only with ``q_entries``, because otherwise
    # labels of latents are arbitrary during the fit.
    knowledge: Knowledge | None = None
    linear: tuple[int, ...] = ()  # Latents with linear steps, by their numbers.
    nuisances: tuple[Nuisance, ...] = ()
    select_levels: bool = False  # Whether levels and steps are selected by the data.
    adapt: bool = True  # Whether the penalty's strength is estimated from the data.
    n_starts: int | str = "auto"
    seed: int = 0
    n_threads: int = 1
    progress: StartProgress | None = None

    @property
    def latent_numbers(self) -> tuple[str, ...]:
        """Names of the latents in ``knowledge``."""
        return tuple(f"{k}" for k in range(len(self.levels)))

    @property
    def has_hierarchy(self) -> bool:
        """Whether there is a hierarchy of latents."""
        return self.knowledge is not None and bool(self.knowledge.hierarchy)

    def _refuse_levels(self, space: StateSpace) -> None:
        """Refuse selected levels or linear steps with what needs levels of a given meaning."""
        levels = Setting("levels", "auto" if self.select_levels else "4-linear")
        if self.effects.conjunctive:
            raise SettingError(
                "levels-conjunctive",
                "conjunctive and disjunctive items need levels with a meaning, which {levels} does "
                "not give them",
                advice="give the number of levels of each latent, or use {effects}",
                levels=levels,
                effects=Setting("effects", "main"),
            )
        if self.has_hierarchy and self.select_levels:
            raise SettingError(
                "levels-hierarchy",
                "a hierarchy refers to levels, which {levels} selects",
                advice="give the number of levels of each latent",
                levels=levels,
            )

    def _refuse_nuisances(self, space: StateSpace, method: str) -> None:
        """Refuse nuisances where states are not enumerated, or with interactions or hierarchies."""
        reason = ""
        if method == "saem" or self.law == "saturated":
            reason = "need enumerated joint states and a network law"
        elif not self.effects.main_only or self.has_hierarchy:
            reason = "are fitted with main effects and without a hierarchy only"
        n_states = space.n_states * prod(one.n_levels for one in self.nuisances)
        if n_states > CONFIG.nuisance.most_states:
            reason = f"multiply the joint states to {n_states:,}, more than are enumerated"
        if reason:
            raise SettingError(
                "nuisance-not-possible",
                "nuisances ({names}) {reason}",
                advice="use fewer latents, levels or pairs, or fit without nuisances",
                names=", ".join(one.name for one in self.nuisances),
                reason=reason,
            )

    def resolved(self, n_samples: int, n_items: int) -> StageOneSettings:
        """Return the settings with "auto" replaced for a table, or raise what cannot be fitted."""
        if self.law not in LAWS:
            raise SettingError(
                "law",
                "{law} must be 'auto', 'network' or 'saturated', got {value!r}",
                law=Setting("law"),
                value=self.law,
            )
        space = StateSpace(self.levels)
        if self.select_levels or self.linear:
            self._refuse_levels(space)
        if self.has_hierarchy:
            _refuse_hierarchy(self.q_entries is None, space)
        law, known = self.law, None if self.q_entries is None else self.knowledge
        if (
            law == "auto"
            and known is not None
            and not admits_complete_dag(known, self.latent_numbers)
        ):
            law = "network"
        method = choose_method(self.method, n_samples, n_items, space, saturated=law == "saturated")
        effects = self.effects
        if effects.selected and (
            method == "saem" or space.n_states > CONFIG.enumeration.largest_exact_states
        ):
            # Without enumerated states there are no interactions to select.
            effects = MAIN_EFFECTS
        if not (effects.main_only or effects.selected):
            if space.n_states > CONFIG.enumeration.largest_exact_states:
                raise SettingError(
                    "interactions-too-large",
                    "interactions need an enumeration of the joint states, at most {most}, but "
                    "there are {states}",
                    advice="use {effects} or fewer latents",
                    most=CONFIG.enumeration.largest_exact_states,
                    states=space.n_states_text(),
                    effects=Setting("effects", "main"),
                )
            if law != "saturated":
                method = "em"
        if self.has_hierarchy and method == "saem":
            _refuse_sampled_hierarchy(space)
        if self.nuisances:
            self._refuse_nuisances(space, method)
        if (self.select_levels or self.linear) and method == "saem":
            raise SettingError(
                "levels-sampled",
                "{levels} needs an enumeration of the joint states, but with {states} joint states "
                "or {method} latents are sampled",
                advice="give numbers of levels without equal steps",
                levels=Setting("levels", "auto" if self.select_levels else "4-linear"),
                states=space.n_states_text(),
                method=Setting("method", "saem"),
            )
        return replace(self, law=law, knowledge=known, method=method, effects=effects)


def estimate_measurement(
    values: Array,
    families: Sequence[str],
    settings: StageOneSettings,
    *,
    weights: Array | None = None,
    start: tuple[MeasurementParameters, Array] | None = None,
) -> Measurement:
    """Return the estimate of Stage I in the user's order of items.

    Parameters
    ----------
    values : ndarray, shape (N, J)
        Responses on the user's scale; NaN in missing cells.
    families : sequence of str, length J
    weights : ndarray, shape (N,), optional
        Positive weights of rows.
    start : (MeasurementParameters, ndarray of shape (S,)), optional
        Starting point in the user's order and units, instead of all other starts.
    """
    n_items = values.shape[1]
    estimated = settings.q_entries is None
    collapsed = collapse_rows(values, weights)
    chosen = settings.resolved(len(collapsed[0]), n_items)
    if chosen.method == "em":
        # Each distinct row is needed once; sampled latents need each row.
        values, weights = collapsed
    space = StateSpace(chosen.levels)
    entries = chosen.q_entries
    if entries is None:
        entries = np.full((n_items, space.n_latents), -1, dtype=np.int8)
    fixed = np.column_stack([entries, *(one.signs for one in chosen.nuisances)])
    labels = [f"{f}{row.tolist()}" for f, row in zip(families, fixed, strict=True)]
    rows, columns = canonical_order(values, labels, weights)
    data = WorkingData.from_values(
        values[np.ix_(rows, columns)],
        tuple(families[j] for j in columns),
        weights=None if weights is None else weights[rows],
    )
    nuisances = tuple(replace(one, signs=one.signs[columns]) for one in chosen.nuisances)
    chosen = replace(chosen, q_entries=np.ascontiguousarray(entries[columns]), nuisances=nuisances)
    point = None
    if start is not None:
        point = StartPoint(data.to_working(start[0].reordered(items=columns)), start[1], "given")
    if chosen.law != "saturated" and chosen.method == "saem":
        found = _estimate_by_sampling(data, chosen, point, to_maximum=True)
        return sampled_measurement(found, data, columns, reorder=estimated)
    stage_one, possible = _estimate_exact(data, chosen, point)
    return exact_measurement(
        stage_one,
        data,
        StateSpace(stage_one.best.parameters.terms.levels, len(nuisances)),
        columns,
        reorder=estimated,
        relevel=not chosen.effects.conjunctive and not chosen.has_hierarchy,
        possible=possible,
        n_threads=chosen.n_threads,
    )


def _problem(data: WorkingData, settings: StageOneSettings, terms: Terms) -> SearchProblem:
    """Return the problem whose latents have these main terms."""
    space = StateSpace(terms.levels)
    assert settings.q_entries is not None
    return SearchProblem(
        data,
        space,
        Basis.over(space, terms),
        allowed_coefficients(settings.q_entries, terms),
        settings.penalty,
        settings.schedule,
        settings.n_threads,
        terms=terms,
        q_entries=settings.q_entries,
        learn_parents=parents_by_search(space, settings.knowledge),
        effects=MAIN_EFFECTS if settings.effects.selected else settings.effects,
        adapt=settings.adapt,
        seed=settings.seed,
        n_starts=settings.n_starts,
        law=settings.law,
        progress=settings.progress,
    )


def _select_levels(
    data: WorkingData, settings: StageOneSettings
) -> tuple[StageOneSettings, StageOne]:
    """Return settings with the levels that the data support, and the estimate of main effects."""
    assert settings.q_entries is not None
    simple = replace(settings, effects=MAIN_EFFECTS)
    given = bool((settings.q_entries >= 0).all())
    problem, found = search_levels(
        lambda terms: _problem(data, simple, terms),
        len(settings.levels),
        estimate_confirmatory if given else estimate_exploratory,
    )
    terms = problem.terms
    return replace(settings, levels=terms.levels, linear=terms.linear, select_levels=False), found


def _estimate_exact(
    data: WorkingData, settings: StageOneSettings, start: StartPoint | None
) -> tuple[StageOne, NDArray[np.bool_] | None]:
    """Return the estimate with enumerated states, and the states that a hierarchy allows (S,)."""
    knowledge, chosen = settings.knowledge, None
    if settings.select_levels and start is not None:
        terms = start.parameters.terms
        settings = replace(settings, levels=terms.levels, linear=terms.linear)
    elif settings.select_levels:
        settings, chosen = _select_levels(data, settings)
    problem = _problem(data, settings, Terms.main(settings.levels, settings.linear))
    space = problem.space
    if settings.method == "saem":
        found = _estimate_by_saturated_saem(problem, start)
    elif problem.q_given:
        found = (chosen if problem.effects.main_only else None) or estimate_confirmatory(
            problem, start
        )
    else:
        first = start
        if start is not None:
            items = main_effects_only(start.parameters, start.probabilities)
            first = replace(start, parameters=items)
        elif (
            settings.law != "saturated"
            and not settings.linear
            and problem.starts("sampled").replaces_others
        ):
            sampled = _estimate_by_sampling(data, settings, None, to_maximum=False)
            law = np.asarray(sampled.law.probabilities)
            first = StartPoint(sampled.parameters, law, "sampled")
        found = chosen or estimate_exploratory(problem, first)
        if not (settings.effects.main_only or settings.effects.selected):
            found = add_interactions(problem, found, start)
    if settings.effects.selected:
        found = select_interactions(problem, found, start)
    possible = None
    if knowledge is not None and settings.has_hierarchy:
        possible = knowledge.possible_states(settings.latent_numbers, space.levels).ravel()
        obeying = replace(problem, learn_parents=parents_by_search(space, knowledge, possible))
        found = estimate_under_hierarchy(obeying, found, possible)
    if settings.effects.main_only and settings.method == "em":
        found = replace(found, interacting=interacting_items(problem, found.estimate))
    if settings.nuisances:
        found = add_nuisances(problem, found, settings.nuisances)
    if chosen is not None:
        found = replace(found, level_tests=chosen.level_tests)
    return found, possible


def _estimate_by_saturated_saem(problem: SearchProblem, start: StartPoint | None) -> StageOne:
    """Return the best of several SAEM runs under a saturated law, the paper's Algorithm S.2."""
    if problem.q_given:
        problem = replace(problem, penalty=NO_SPARSITY)
    policy = problem.starts("confirmatory" if problem.q_given else "saturated SAEM")
    count = 1 if start is not None else policy.most
    generators = generators_of(problem.seed, count)
    if start is not None:
        points = [start]
    elif problem.q_given:
        points = [
            confirmatory_start(
                problem.data, problem.space, problem.q_entries, rng=rng if index else None
            )
            for index, rng in enumerate(generators)
        ]
    else:
        model = problem.data, problem.space, problem.basis, problem.q_entries
        points = list(start_points(*model, generators, with_factors=False))
    return estimate_by_saturated_saem(
        problem,
        lambda index, point: run_saem(
            replace(problem, observer=problem.observer_of(index, count)),
            point.parameters,
            point.probabilities,
            generators[index],
        ),
        points,
    )


def _estimate_by_sampling(
    data: WorkingData, settings: StageOneSettings, start: StartPoint | None, *, to_maximum: bool
) -> SampledStageOne:
    """Return the estimate with sampled latents, whose joint states are not enumerated."""
    progress = settings.progress

    def report(iteration: int, last: int) -> None:
        if progress is not None:
            progress(0, 1, iteration, last, float("nan"))

    assert settings.q_entries is not None
    levels, knowledge = settings.levels, settings.knowledge
    first = None
    if start is not None:
        first = main_effects_only(start.parameters, start.probabilities)
    task = SamplingTask(
        data,
        levels,
        settings.q_entries,
        settings.penalty,
        settings.schedule,
        learn_parents=parents_of_draws("ges", levels, data.weights, knowledge),
        final_parents=parents_of_draws("xges", levels, data.weights, knowledge),
        seed=settings.seed,
        adapt=settings.adapt,
        n_threads=settings.n_threads,
        progress=report,
    )
    return estimate_by_sampling(task, first, to_maximum=to_maximum)


def _refuse_hierarchy(estimated: bool, space: StateSpace) -> None:
    """Refuse a hierarchy of latents without a given Q, or of too many joint states."""
    if estimated:
        raise SettingError(
            "hierarchy-without-q",
            "a hierarchy is about latents with a meaning, but without a Q-matrix the fit decides "
            "which latent is which",
            advice="give {q_matrix} (-1 where it is to be estimated)",
            q_matrix=Setting("q_matrix"),
        )
    if space.n_states > CONFIG.enumeration.largest_states:
        most = CONFIG.enumeration.largest_states.bit_length() - 1
        raise SettingError(
            "hierarchy-too-large",
            "a hierarchy needs an enumeration of the joint states, and {states} are more than "
            "2^{most}",
            advice=Advice(
                "require-edges",
                "give its steps as required edges instead, which exclude no state, or use fewer "
                "latents",
            ),
            states=space.n_states_text(),
            most=most,
        )


def _refuse_sampled_hierarchy(space: StateSpace) -> None:
    """Refuse a hierarchy with sampled latents."""
    raise SettingError(
        "hierarchy-sampled",
        "a hierarchy needs an enumeration of the joint states, but with {states} states latents "
        "would be sampled",
        advice="use {method}, whose cost grows with the number of states",
        states=space.n_states_text(),
        method=Setting("method", "em"),
    )
