"""Average causal effects: what setting a latent high instead of low adds, to latents and items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.causal.interventions import Questions
from hidag.causal.item_outcomes import MEAN, Outcome, expected_outcomes
from hidag.causal.possible_parents import MOST_CHOICES, parent_choices
from hidag.causal.unidentified_effects import REASON
from hidag.exceptions import SettingError
from hidag.identifiability.findings import join_names
from hidag.inference.asymptotic_draws import LawDraws
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.inference.information.expected_information import NO_INTERVAL, Nudges
from hidag.inference.intervals import LEVEL, checked_level, level_reached, range_interval
from hidag.results import FitResult, as_result
from hidag.structure.graphs import CPDAG, DAG

if TYPE_CHECKING:
    from hidag.estimator import DCRL


# --- Average effects that were found: least and most, intervals, and what is to be said with

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AverageEffects:
    """What setting each cause from its lowest to its highest level adds, on average.

    Attributes
    ----------
    causes : tuple of str, length C
    effects : tuple of str, length E
        Latents (their expected level), then items (their mean, or a category's probability).
    n_latents : int
        How many of the effects are latents.
    low, high : ndarray, shape (C, E)
        Least and most over the choices that the graph leaves; equal where it leaves one. NaN where
        cause and effect are one latent, and where no data tell: see
        :mod:`hidag.causal.unidentified_effects`.
    n_choices : tuple of int, length C
        Different sets of parents that the cause has among the graph's members.
    ruled_out : tuple of float, length C
        Share of people, at the most, whom setting the cause puts into states that prerequisites
        rule out.
    lower, upper : ndarray, shape (C, E), or None
        Interval for the true effect, wherever from low to high it is. NaN also where rows tell
        nothing of something that the effect depends on: see
        :mod:`hidag.inference.information.expected_information`.
    level : float
        Share of such intervals that should hold the true effect.
    how : str
        Where the intervals come from, in words.
    hidden : str or None
        What the rows do not tell, in words, where that leaves effects without an interval.
    cut : tuple of str
        Causes with more sets of parents than were looked at, in the fit or in a replicate: low
        and high are the least and the most of those only.
    """

    causes: tuple[str, ...]
    effects: tuple[str, ...]
    n_latents: int
    low: Array
    high: Array
    n_choices: tuple[int, ...]
    ruled_out: tuple[float, ...]
    lower: Array | None = None
    upper: Array | None = None
    level: float = LEVEL
    how: str = "none"
    hidden: str | None = None
    cut: tuple[str, ...] = ()

    def about_intervals(self) -> str | None:
        """Return how many effects have no interval and why, in a sentence; None if all have one."""
        if self.hidden is None:
            return None
        number = sum(row.get("reason") == NO_INTERVAL for row in self.rows())
        have = "effect that depends on it has" if number == 1 else "effects that depend on it have"
        return f"{self.hidden}; {number} {have} no interval"

    def about_choices(self) -> str | None:
        """Return whose least and most may lie further out, in a sentence; None if nobody's."""
        if not self.cut:
            return None
        many = len(self.cut) > 1
        return (
            f"the graph leaves {join_names(list(self.cut))} more sets of parents than were looked "
            f"at: the least and the most effect of {'these' if many else 'this latent'} may lie "
            "further out; give average_effects a higher limit"
        )

    def about_untold(self) -> str | None:
        """Return which effects have no number and why, in a sentence; None if all have one."""
        n_untold = sum(row.get("reason") == REASON for row in self.rows())
        if not n_untold:
            return None
        shares = [
            f"{share:.1%} by setting {cause}"
            for cause, share in zip(self.causes, self.ruled_out, strict=True)
            if share > 0
        ]
        have = "effect that depends on them has"
        if n_untold > 1:
            have = "effects that depend on them have"
        return (
            f"of all people {join_names(shares)} would come into states that prerequisites rule "
            f"out; no data tell what follows there, and {n_untold} {have} no number"
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per pair: cause, effect, kind, low, high, lower, upper.

        Where some of these are NaN there is a reason too.
        """
        out = []
        for c, cause in enumerate(self.causes):
            for e, effect in enumerate(self.effects):
                if e < self.n_latents and cause == effect:
                    continue
                row: dict[str, Any] = {"cause": cause, "effect": effect}
                row["kind"] = "latent" if e < self.n_latents else "item"
                row |= {"low": float(self.low[c, e]), "high": float(self.high[c, e])}
                if self.lower is not None and self.upper is not None:
                    row |= {"lower": float(self.lower[c, e]), "upper": float(self.upper[c, e])}
                if np.isnan(self.low[c, e]):
                    row["reason"] = REASON
                elif self.hidden is not None and np.isnan(row.get("lower", 0.0)):
                    row["reason"] = NO_INTERVAL
                out.append(row)
        return out


# ---

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
    result: FitResult | DCRL,
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
    least and the most it is: see :func:`hidag.inference.intervals.range_interval`.

    Parameters
    ----------
    result : FitResult or DCRL
    causes : sequence of str, optional
        Latents that are set; all unless given.
    items : bool
        Whether effects on items are wanted too.
    graph : CPDAG or DAG, optional
        Directions to believe in; the fit's own graph unless given.
    replicates : BootstrapResult or iterable of FitResult, optional
        A bootstrap of ``result``; or the same model fitted to other samples, with its latents in
        its order and their levels its way round, such as
        :func:`hidag.inference.asymptotic_draws.draws_of_law`. These
        know what the rows tell nothing of: effects that depend on it have no interval.
    held : bool
        Whether the graph of ``result`` is held in the replicates; else each has its own, and the
        intervals also say how unsure the graph is.
    level : float
    limit : int
        Choices of parents looked at, at the most.
    """
    fitted = as_result(result)
    checked_level(level)
    questions = Questions(fitted, graph=graph, limit=limit)
    chosen = fitted.latent_names if causes is None else tuple(causes)
    wanted = [next(iter(questions.read_do({cause: 0}))) for cause in chosen]
    dags, cut = _dags(questions, wanted)
    outcomes = questions.outcomes if items else ()
    shown = tuple(o.item if o.what == MEAN else f"{o.item} {o.what}" for o in outcomes)
    low, high = _effects_of(questions, dags, outcomes)
    untold, ruled_out = _untold_of(questions, dags, len(outcomes))
    low[untold] = high[untold] = np.nan
    found = AverageEffects(
        tuple(fitted.latent_names[k] for k in dags),
        (*fitted.latent_names, *shown),
        len(fitted.latent_names),
        low,
        high,
        tuple(len(choices) for choices in dags.values()),
        tuple(ruled_out.tolist()),
        cut=_named(cut, fitted),
    )
    if replicates is None:
        return found
    held = held or graph is not None
    lows: list[Array] = []
    highs: list[Array] = []
    hidden = replicates.hidden if isinstance(replicates, LawDraws) else None
    if isinstance(replicates, BootstrapResult):
        replicates = replicates.replicates(fitted)
    for other in replicates:
        if other.latent_names != fitted.latent_names or other.item_names != fitted.item_names:
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
        found, lower=lower, upper=upper, level=reached, how=how, cut=_named(cut, fitted)
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
