"""Average causal effects of each latent on the other latents and on the items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from hidag.causal.interventions import NOT_IDENTIFIED, InterventionModel
from hidag.causal.possible_parents import MAX_PARENT_SETS, enumerate_parent_sets
from hidag.causal.probability_queries import Outcome, expected_outcomes
from hidag.exceptions import Advice, Message, Setting, SettingError
from hidag.formatting import join_names
from hidag.inference.asymptotic_draws import NO_INTERVAL, AsymptoticDraws, Perturbations
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.inference.intervals import LEVEL, attainable_level, check_level, range_interval
from hidag.results import AnyFit, FitResult, as_result
from hidag.structure.graphs import CPDAG, DAG
from hidag.views import View

Array = NDArray[np.float64]
#: For each cause, one DAG for each of its possible sets of parents.
_Dags = dict[int, tuple[DAG, ...]]


@dataclass(frozen=True, repr=False)
class AverageEffects(
    View, title="causes {0.causes}, intervals: {0.interval_source}", frames={"rows": "rows"}
):
    """Average effects of raising each cause from its lowest to its highest level.

    Attributes
    ----------
    causes : tuple of str, length C
    effects : tuple of str, length E
        Latents (expected level), then items (mean, or probability of a category).
    n_latents : int, number of latents among the effects
    low, high : arrays (C, E)
        Bounds over the sets of parents that the graph allows; equal where it allows one. NaN where
        cause and effect are the same latent, and where the effect is not identified: see
        :meth:`hidag.causal.InterventionModel.find_unidentified`.
    n_parent_sets : tuple of int, sets of parents of each cause in the equivalence class
    ruled_out : tuple of float
        Largest share of the population that an intervention on the cause moves into states ruled
        out.
    lower, upper : arrays (C, E) or None
        Interval for the true effect. NaN also where the effect depends on parameters that are not
        locally identified: see :mod:`hidag.inference.asymptotic_draws`.
    level, requested_level : float
        Confidence level of the intervals; few replicates reach less than requested.
    n_replicates : int, replicates behind the intervals
    graph_fixed : bool, whether all replicates used the graph of the fit
    missing_interval_reason : str or Message or None, why some effects have no interval
    truncated : tuple of str
        Causes with more sets of parents than were examined; their bounds may be too narrow.
    """

    causes: tuple[str, ...]
    effects: tuple[str, ...]
    n_latents: int
    low: Array
    high: Array
    n_parent_sets: tuple[int, ...]
    ruled_out: tuple[float, ...]
    lower: Array | None = None
    upper: Array | None = None
    level: float = LEVEL
    requested_level: float = LEVEL
    n_replicates: int = 0
    graph_fixed: bool = False
    missing_interval_reason: Message | str | None = None
    truncated: tuple[str, ...] = ()

    @property
    def interval_source(self) -> str:
        """The origin of the intervals as a phrase, "none" without intervals."""
        if self.lower is None:
            return "none"
        graph = "the fitted graph" if self.graph_fixed else "a graph estimated in each"
        few = self.level < self.requested_level
        few_note = f" (too few for a level above {self.level:.0%})" if few else ""
        return f"{self.n_replicates} replicates with {graph}{few_note}"

    def interval_note(self) -> Message | None:
        """Return how many effects have no interval and why; None if all have one."""
        if self.missing_interval_reason is None:
            return None
        number = sum(row.get("reason") == NO_INTERVAL for row in self.rows())
        noun = "effect has" if number == 1 else "effects have"
        params = {"reason": self.missing_interval_reason, "number": number, "noun": noun}
        return Message("effects-without-interval", "{reason}; {number} {noun} no interval", params)

    def truncation_note(self) -> Message | None:
        """Return which causes have bounds that may be too narrow; None if none has."""
        if not self.truncated:
            return None
        text = "pass a larger {setting} to average_effects"
        return Message(
            "parent-sets-truncated",
            "the graph allows more sets of parents of {causes} than were examined, and the bounds "
            "of their effects may be too narrow",
            {"causes": join_names(list(self.truncated))},
            Advice("raise-limit", text, {"setting": Setting("limit")}),
        )

    def unidentified_note(self) -> Message | None:
        """Return how many effects are not identified and why; None if all are."""
        number = sum(row.get("reason") == NOT_IDENTIFIED for row in self.rows())
        if not number:
            return None
        pairs = zip(self.causes, self.ruled_out, strict=True)
        shares = [f"{share:.1%} when {cause} is set" for cause, share in pairs if share > 0]
        noun, verb = ("effect is", "has") if number == 1 else ("effects are", "have")
        return Message(
            "unidentified-effects",
            "{number} {noun} not identified and {verb} no value, because interventions move part "
            "of the population into states that prerequisites rule out: {shares}",
            {"number": number, "noun": noun, "verb": verb, "shares": join_names(shares)},
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per pair: cause, effect, kind, low, high, lower, upper, perhaps reason."""
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
                    row["reason"] = NOT_IDENTIFIED
                elif self.missing_interval_reason is not None and np.isnan(row.get("lower", 0.0)):
                    row["reason"] = NO_INTERVAL
                out.append(row)
        return out


def average_effects(
    result: AnyFit,
    *,
    causes: Sequence[str] | None = None,
    items: bool = True,
    graph: CPDAG | DAG | None = None,
    replicates: Iterable[AnyFit] | BootstrapResult | None = None,
    fix_graph: bool = False,
    level: float = LEVEL,
    limit: int = MAX_PARENT_SETS,
) -> AverageEffects:
    """Return the average effect of raising each latent from its lowest to its highest level.

    Where the graph leaves the parents of a latent open, effects have bounds over all possible sets
    of parents. With replicates there is an interval for the true effect, wherever it lies between
    the bounds: see :func:`hidag.inference.intervals.range_interval`.

    Parameters
    ----------
    result : FitResult or DCRL
    causes : sequence of str, optional, all latents by default
    items : bool, whether to include effects on items
    graph : CPDAG or DAG, optional, causal graph; the fitted one by default
    replicates : BootstrapResult or iterable of FitResult or DCRL, optional
        A bootstrap of ``result``, or fits of the same model to other samples with latents and
        levels in the same order, such as :func:`hidag.inference.draw_asymptotic`. With such draws,
        effects that depend on parameters without information have no interval.
    fix_graph : bool
        Whether replicates use the graph of ``result``. Otherwise each uses its own, and the
        intervals include the uncertainty of the graph.
    level : float
    limit : int, largest number of sets of parents for each cause

    Returns
    -------
    AverageEffects
        Bounds of the effects, shape (causes, effects), and intervals with replicates.

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> effects = hidag.average_effects(model, items=False)
    >>> effects.to_frame().shape
    (6, 5)
    """
    fitted = as_result(result)
    fitted.refuse_nuisance("average effects on items")
    check_level(level)
    model = InterventionModel(fitted, graph=graph, limit=limit)
    names = fitted.latent_names
    chosen = names if causes is None else causes
    targets = [next(iter(model.parse_do({cause: 0}))) for cause in chosen]
    dags, truncated = _parent_dags(model, targets)
    outcomes = model.outcomes if items else ()
    low, high = _effect_bounds(model, dags, outcomes)
    unidentified, ruled_out = _find_unidentified(model, dags, len(outcomes))
    low[unidentified] = high[unidentified] = np.nan
    found = AverageEffects(
        tuple(names[k] for k in dags),
        (*names, *(outcome.label for outcome in outcomes)),
        len(names),
        low,
        high,
        tuple(len(own) for own in dags.values()),
        tuple(ruled_out.tolist()),
        truncated=tuple(names[k] for k in sorted(truncated)),
    ).like(fitted)
    if replicates is None:
        return found
    flat = replicates.unidentified if isinstance(replicates, AsymptoticDraws) else None
    if isinstance(replicates, BootstrapResult):
        replicates = replicates.replicates(fitted)
    fix_graph = fix_graph or graph is not None
    lows: list[Array] = []
    highs: list[Array] = []
    for other in map(as_result, replicates):
        if other.latent_names != names or other.item_names != fitted.item_names:
            reason = "{setting} must have the latents and items of the fit in the same order"
            setting, advice = Setting("replicates"), "align them first"
            raise SettingError("replicate-mismatch", reason, advice=advice, setting=setting)
        again = InterventionModel(other, graph=model.graph if fix_graph else None, limit=limit)
        own_dags, own_unidentified = dags, unidentified
        if not fix_graph:
            own_dags, more = _parent_dags(again, targets)
            truncated |= more
            own_unidentified = unidentified | _find_unidentified(again, own_dags, len(outcomes))[0]
        bounds = _effect_bounds(again, own_dags, again.outcomes if items else ())
        for values, collected in zip(bounds, (lows, highs), strict=True):
            values[own_unidentified] = np.nan
            collected.append(values)
    if len(lows) < 2:
        reason = "intervals need at least 2 replicates, got {n}"
        raise SettingError("too-few-replicates", reason, n=len(lows))
    lower, upper = range_interval(lows, highs, level)
    found = replace(
        found,
        lower=lower,
        upper=upper,
        level=attainable_level(len(lows), level),
        requested_level=level,
        n_replicates=len(lows),
        graph_fixed=fix_graph,
        truncated=tuple(names[k] for k in sorted(truncated)),
    )
    return found if flat is None else _drop_flat_intervals(found, flat, model, dags, len(outcomes))


def _parent_dags(model: InterventionModel, causes: Sequence[int]) -> tuple[_Dags, set[int]]:
    """Return a DAG for each set of parents of each cause, and the causes with too many sets."""
    found = {k: enumerate_parent_sets(model.graph, [k], limit=model.limit) for k in causes}
    truncated = {k for k, own in found.items() if not own.complete}
    return {k: own.dags for k, own in found.items()}, truncated


def _effect_bounds(
    model: InterventionModel, dags: _Dags, outcomes: Sequence[Outcome]
) -> tuple[Array, Array]:
    """Return the bounds of each cause's effects on latents and outcomes, (C, K + O) each."""
    levels = model.result.law.space.levels
    n_latents = len(levels)
    shape = len(dags), n_latents + len(outcomes)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    for c, (cause, own_dags) in enumerate(dags.items()):
        for dag in own_dags:
            # An intervention leaves the distribution of all but its descendants unchanged.
            edges = nx.from_numpy_array(dag.adjacency, create_using=nx.DiGraph)
            changed = {cause} | nx.descendants(edges, cause)
            affected = [o for o, one in enumerate(outcomes) if changed & set(one.latents)]
            means = []
            for level in (0, levels[cause] - 1):
                law = model.after(dag, {cause: level})
                value = np.zeros(shape[1])
                for k in changed:
                    value[k] = law.marginal((k,)) @ np.arange(levels[k])
                expected = expected_outcomes([outcomes[o] for o in affected], law)
                value[[n_latents + o for o in affected]] = expected
                means.append(value)
            low[c] = np.minimum(low[c], means[1] - means[0])
            high[c] = np.maximum(high[c], means[1] - means[0])
        low[c, cause] = high[c, cause] = np.nan
    return low, high


def _find_unidentified(
    model: InterventionModel, dags: _Dags, n_outcomes: int
) -> tuple[NDArray[np.bool_], Array]:
    """Return which effects are not identified (C, K + O), and shares in ruled-out states (C,)."""
    levels = model.result.law.space.levels
    unidentified = np.zeros((len(dags), len(levels) + n_outcomes), dtype=bool)
    ruled_out = np.zeros(len(dags))
    for c, (cause, own_dags) in enumerate(dags.items()):
        for dag in own_dags:
            for level in (0, levels[cause] - 1):
                share, latents, items = model.find_unidentified(dag, {cause: level})
                unidentified[c] |= np.concatenate([latents, items[:n_outcomes]])
                ruled_out[c] = max(ruled_out[c], share)
    return unidentified, ruled_out


def _drop_flat_intervals(
    found: AverageEffects, flat: Perturbations, model: InterventionModel, dags: _Dags, n_items: int
) -> AverageEffects:
    """Return effects without the intervals of those that depend on flat directions."""

    def bounds(moved: FitResult) -> Array:
        again = InterventionModel(moved, graph=model.graph, limit=model.limit)
        return np.stack(_effect_bounds(again, dags, again.outcomes[:n_items]))

    units = [m - 1.0 for m in model.result.law.space.levels]
    units += [float(np.abs(one.table).max()) for one in model.outcomes[:n_items]]
    depends = flat.affect(bounds, np.array(units)).any(axis=0)
    if found.lower is None or found.upper is None or not depends.any():
        return found
    lower, upper = (np.where(depends, np.nan, end) for end in (found.lower, found.upper))
    return replace(found, lower=lower, upper=upper, missing_interval_reason=flat.describe())
