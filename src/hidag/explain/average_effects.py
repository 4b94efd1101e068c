"""Average causal effects: what setting a latent high instead of low adds, to latents and items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG, DAG
from hidag.errors import SettingError
from hidag.explain.bootstrap_result import BootstrapResult
from hidag.explain.effects_found import AverageEffects
from hidag.explain.estimable import Nudges
from hidag.explain.intervals import LEVEL, checked_level, level_reached, range_interval
from hidag.explain.interventions import Questions
from hidag.explain.law_draws import LawDraws
from hidag.explain.members import MOST_CHOICES, parent_choices
from hidag.explain.outcomes import MEAN, Outcome, expected_outcomes
from hidag.result import FitResult

Array = NDArray[np.float64]


__all__ = ["AverageEffects", "average_effects"]

#: For each cause the DAGs that stand for the choices of its parents.
_Dags = dict[int, tuple[DAG, ...]]


def _dags(questions: Questions, causes: Sequence[int]) -> tuple[_Dags, set[int]]:
    """Return the choices of each cause, and the causes that have more than were looked at."""
    found = {
        k: parent_choices(questions.graph, [k], limit=questions.limit, counted=False)
        for k in causes
    }
    dags = {k: tuple(choice.dag for choice in own.choices) for k, own in found.items()}
    return dags, {k for k, own in found.items() if not own.complete}


def _reached(dag: DAG, cause: int) -> set[int]:
    """Return the cause and its descendants: setting it changes the law of no other latent."""
    out, front = {cause}, [cause]
    while front:
        for child in np.flatnonzero(dag.adjacency[front.pop()]).tolist():
            if child not in out:
                out.add(child)
                front.append(child)
    return out


def _effects_of(
    questions: Questions, dags: _Dags, outcomes: Sequence[Outcome]
) -> tuple[Array, Array]:
    """Return least and most effect of each cause on latents and outcomes, (C, K + O) each."""
    levels = questions.result.law.space.levels
    n_latents = len(levels)
    shape = len(dags), n_latents + len(outcomes)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    for c, (cause, choices) in enumerate(dags.items()):
        for dag in choices:
            reached = _reached(dag, cause)
            touched = [o for o, one in enumerate(outcomes) if reached & set(one.latents)]
            ends = []
            for level in (0, levels[cause] - 1):
                law = questions.after(dag, {cause: level})
                value = np.zeros(shape[1])
                for k in reached:
                    value[k] = law.marginal((k,)) @ np.arange(levels[k])
                value[[n_latents + o for o in touched]] = expected_outcomes(
                    [outcomes[o] for o in touched], law
                )
                ends.append(value)
            low[c] = np.minimum(low[c], ends[1] - ends[0])
            high[c] = np.maximum(high[c], ends[1] - ends[0])
        low[c, cause] = high[c, cause] = np.nan
    return low, high


def _untold_of(
    questions: Questions, dags: _Dags, n_outcomes: int
) -> tuple[NDArray[np.bool_], Array]:
    """Return which effects no data tell, (C, K + O), and whom causes put where nobody is, (C,)."""
    levels = questions.result.law.space.levels
    untold = np.zeros((len(dags), len(levels) + n_outcomes), dtype=bool)
    ruled_out = np.zeros(len(dags))
    for c, (cause, choices) in enumerate(dags.items()):
        for dag in choices:
            for level in (0, levels[cause] - 1):
                found = questions.untold(dag, {cause: level})
                untold[c] |= np.concatenate([found.latents, found.outcomes[:n_outcomes]])
                ruled_out[c] = max(ruled_out[c], found.share)
    return untold, ruled_out


def average_effects(
    result: FitResult,
    *,
    causes: Sequence[str] | None = None,
    items: bool = True,
    graph: CPDAG | DAG | None = None,
    replicates: Iterable[FitResult] | BootstrapResult | None = None,
    held: bool = False,
    level: float = LEVEL,
    limit: int = MOST_CHOICES,
) -> AverageEffects:
    """Return what setting each latent from its lowest to its highest level adds, on average.

    Where the graph leaves the parents of a latent open, the least and the most over all
    possibilities. With replicates there is an interval for the true effect, wherever between the
    least and the most it is: see :func:`hidag.explain.intervals.range_interval`.

    Parameters
    ----------
    result : FitResult
    causes : sequence of str, optional
        Latents that are set; all unless given.
    items : bool
        Whether effects on items are wanted too.
    graph : CPDAG or DAG, optional
        Directions to believe in; the fit's own graph unless given.
    replicates : BootstrapResult or iterable of FitResult, optional
        A bootstrap of ``result``; or the same model fitted to other samples, with its latents in
        its order and their levels its way round, such as :func:`hidag.explain.draws_of_law`. These
        know what the rows tell nothing of: effects that depend on it have no interval.
    held : bool
        Whether the graph of ``result`` is held in the replicates; else each has its own, and the
        intervals also say how unsure the graph is.
    level : float
    limit : int
        Choices of parents looked at, at the most.
    """
    checked_level(level)
    questions = Questions(result, graph=graph, limit=limit)
    chosen = result.latent_names if causes is None else tuple(causes)
    wanted = [next(iter(questions.read_do({cause: 0}))) for cause in chosen]
    dags, cut = _dags(questions, wanted)
    outcomes = questions.outcomes if items else ()
    shown = tuple(o.item if o.what == MEAN else f"{o.item} {o.what}" for o in outcomes)
    low, high = _effects_of(questions, dags, outcomes)
    untold, ruled_out = _untold_of(questions, dags, len(outcomes))
    low[untold] = high[untold] = np.nan
    found = AverageEffects(
        tuple(result.latent_names[k] for k in dags),
        (*result.latent_names, *shown),
        len(result.latent_names),
        low,
        high,
        tuple(len(choices) for choices in dags.values()),
        tuple(ruled_out.tolist()),
        cut=_named(cut, result),
    )
    if replicates is None:
        return found
    held = held or graph is not None
    lows: list[Array] = []
    highs: list[Array] = []
    hidden = replicates.hidden if isinstance(replicates, LawDraws) else None
    if isinstance(replicates, BootstrapResult):
        replicates = replicates.replicates(result)
    for other in replicates:
        if other.latent_names != result.latent_names or other.item_names != result.item_names:
            raise SettingError(
                "replicates must have the latents and items of the fit, in its order; align them "
                "first"
            )
        again = Questions(other, graph=questions.graph if held else None, limit=limit)
        own, more = (dags, cut) if held else _dags(again, wanted)
        cut |= more
        one = _effects_of(again, own, again.outcomes if items else ())
        # Over the fit's own graph the same are untold in all.
        none = untold if held else untold | _untold_of(again, own, len(outcomes))[0]
        for ends, kept in zip(one, (lows, highs), strict=True):
            ends[none] = np.nan
            kept.append(ends)
    if len(lows) < 2:
        raise SettingError(f"intervals need at least 2 replicates, got {len(lows)}")
    lower, upper = range_interval(lows, highs, level)
    how = f"{len(lows)} replicates, the graph {'held' if held else 'of each'}"
    reached = level_reached(len(lows), level)
    if reached < level:
        how += f" (so few make intervals of {reached:.0%} at most)"
    found = replace(
        found, lower=lower, upper=upper, level=reached, how=how, cut=_named(cut, result)
    )
    if hidden is None:
        return found
    return _without_untold(found, hidden, questions, dags, len(outcomes))


def _named(latents: set[int], result: FitResult) -> tuple[str, ...]:
    return tuple(result.latent_names[k] for k in sorted(latents))


def _without_untold(
    found: AverageEffects, hidden: Nudges, questions: Questions, dags: _Dags, n_outcomes: int
) -> AverageEffects:
    """Return effects without the intervals of those that depend on what rows do not tell."""

    def ends(moved: FitResult) -> Array:
        again = Questions(moved, graph=questions.graph, limit=questions.limit)
        return np.stack(_effects_of(again, dags, again.outcomes[:n_outcomes]))

    units = [m - 1.0 for m in questions.result.law.space.levels]
    units += [float(np.abs(one.table).max()) for one in questions.outcomes[:n_outcomes]]
    depends = hidden.decide(ends, np.array(units)).any(axis=0)
    if found.lower is None or found.upper is None or not depends.any():
        return found
    lower, upper = (np.where(depends, np.nan, end) for end in (found.lower, found.upper))
    return replace(found, lower=lower, upper=upper, hidden=hidden.in_words())
