"""Sentences and tables that describe a fit, and the warnings that it justifies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hidag.config import CONFIG
from hidag.data.cells import describe_coding
from hidag.data.rows import describe_empty_rows
from hidag.exceptions import Advice, HidagWarning, Message, Setting
from hidag.fitting import fit_warnings
from hidag.formatting import join_names, plural
from hidag.inference.fitted_rows import not_summed
from hidag.latent.state_space import MAX_LISTED_STATES
from hidag.measurement.families.base import family_named, item_type, split_name
from hidag.measurement.terms import ALL_ORDERS, Effects
from hidag.plotting.q_matrix import standardized_loadings
from hidag.reporting.content import ReportContent
from hidag.results import as_result

if TYPE_CHECKING:
    from hidag.results import AnyFit, FitResult
    from hidag.structure.graphs import CPDAG, DAG

#: A latent with fewer items is rarely identified (two blocks and one more item).
MIN_ITEMS = 3
HIGH_MISSING_SHARE = 0.3
_MAX_NAMES = 6
#: Items named for each latent.
_N_STRONGEST = 3
#: Smaller shares would be displayed as 0.0 %.
_MIN_SHARE = 5e-4


def count_families(result: FitResult) -> list[tuple[str, int, str]]:
    """Return (family, number of items, meaning) of ``result``, the most frequent family first."""
    counts = Counter(result.families).most_common()
    return [(family, count, item_type(family).description) for family, count in counts]


def format_edges(graph: CPDAG | DAG) -> list[str]:
    """Return each edge of ``graph`` as 'A -> B' or 'A - B', directed edges first."""
    ends = [(graph.directed_edges, "->"), (graph.undirected_edges, "-")]
    return [f"{a} {mark} {b}" for edges, mark in ends for a, b in edges]


def describe_fit(result: FitResult) -> list[str]:
    """Return sentences on the data, the model and the algorithm of the fit ``result``."""
    n_empty, reason = result.n_unanswered, result.n_latents_reason
    share = f", with {result.missing_share:.1%} of the cells missing"
    q, how = result.q_given, "given"
    if q is None:
        how = "estimated from the data"
    elif n_open := int((q < 0).sum()):
        how = f"given in part; {n_open:,} of {q.size:,} entries were estimated"
    return [
        f"The data have {result.n_samples:,} rows and {plural(len(result.item_names), 'item')}"
        f"{share if result.missing_share else ''}. The model has {describe_latents(result)}.",
        *([f"{describe_empty_rows(n_empty, result.n_samples)}."] if n_empty else []),
        *_describe_answer_codes(result),
        *([f"The number of latents was determined automatically: {reason}."] if reason else []),
        *(["Sample weights were used."] if result.weighted else []),
        f"The Q-matrix (which latent each item measures) was {how}.",
        describe_effects(result),
        *fit_warnings.limiting_cases(result),
        *fit_warnings.boundary_estimates(result),
        *describe_knowledge(result),
        _describe_estimation(result),
    ]


def _describe_estimation(result: FitResult) -> str:
    """Return the algorithm of the measurement model and of the graph."""
    algorithm = "exact EM" if result.method == "em" else "EM with Gibbs sampling"
    n_starts = len(result.starts)
    best = f", the best of {n_starts:,} starts" if n_starts > 1 else ""
    text = f"The model was estimated by {algorithm}, {plural(result.n_iter, 'iteration')}{best}."
    if len(result.latent_names) == 1:
        return f"{text} With a single latent there is no graph to search."
    text += (
        f" The items carry {result.information_ratio:.0%} of the information about the "
        "dependences among the latents that observed latents would have; the graph search "
        f"therefore used an effective sample size of {result.graph_rows:,.0f} rows."
    )
    likelihood = "the search was continued with the likelihood of the observed data"
    more = f" Because the items are weakly informative, {likelihood}."
    return text + more if result.graph_by_likelihood else text


def _describe_answer_codes(result: FitResult) -> list[str]:
    """Return which numbers code text answers; empty if no item has any."""
    items_by_words: dict[tuple[str, ...], list[str]] = {}
    for item, words in result.answer_words.items():
        items_by_words.setdefault(tuple(words), []).append(item)
    codes = [
        f"{describe_coding(words)} ({join_names(items, limit=_MAX_NAMES)})"
        for words, items in items_by_words.items()
    ]
    return [f"Text answers were coded as numbers: {'; '.join(codes)}."] if codes else []


def describe_knowledge(result: FitResult) -> list[str]:
    """Return the prior knowledge of the fit as a sentence; empty if there is none."""
    knowledge = result.settings.get("knowledge")
    if not isinstance(knowledge, Mapping):
        return []
    names = result.latent_names

    def name(variable: str | int) -> str:
        return names[variable] if isinstance(variable, int) else variable

    def arrows(part: str) -> str:
        return ", ".join(f"{name(a)} -> {name(b)}" for a, b in knowledge.get(part, ()))

    kinds = {"required": "required edges", "forbidden": "forbidden directions"}
    parts = [f"{noun} {arrows(kind)}" for kind, noun in kinds.items() if knowledge.get(kind)]
    if knowledge.get("tiers"):
        tiers = [[name(variable) for variable in tier] for tier in knowledge["tiers"] if tier]
        free = [one for one in names if one not in {one for tier in tiers for one in tier}]
        unordered = f" ({join_names(free, limit=_MAX_NAMES)} in no tier)" if free else ""
        order = " before ".join(", ".join(tier) for tier in tiers)
        parts.append(f"tiers {order}{unordered}")
    if knowledge.get("hierarchy"):
        meaning = "combinations that violate them have probability zero"
        parts.append(f"prerequisites {arrows('hierarchy')} ({meaning})")
    return [f"Prior knowledge, not estimated from the data: {'; '.join(parts)}."] if parts else []


def list_concerns(
    result: FitResult, issued: Iterable[Message | HidagWarning | str] = ()
) -> list[Message | str]:
    """Return warnings that a reader of ``result`` needs before using it, without a full stop.

    Warnings that the fit ``issued`` are appended unless they follow from the result too.
    """
    derived = _derive_concerns(result)
    codes = {one.code for one in derived if isinstance(one, Message)}
    messages = (one.message if isinstance(one, HidagWarning) else one for one in issued)
    return derived + [one for one in messages if isinstance(one, str) or one.code not in codes]


def _derive_concerns(result: FitResult) -> list[Message | str]:
    """Return the warnings that follow from the result."""
    n_items, n_latents = len(result.item_names), len(result.latent_names)
    q = result.q_matrix
    conflicts = fit_warnings.knowledge_conflicts(result)
    findings = [finding.message for finding in result.findings]
    out: list[Message | str] = [*conflicts, *findings, *_convergence_concerns(result)]
    needed = 2 * n_latents + 1
    if n_items < needed:
        sizes = {"latents": plural(n_latents, "latent"), "items": plural(n_items, "item")}
        advice = Advice("add-items", "at least {needed} items are needed", {"needed": needed})
        template = "{latents} cannot be identified from {items}"
        out.append(Message("too-few-items", template, sizes, advice))
    counts = zip(result.latent_names, q.sum(axis=0).tolist(), strict=True)
    if weak := [name for name, count in counts if count < MIN_ITEMS]:
        fewer = "use fewer latents or " if n_latents > 1 else ""
        out.append(
            f"{plural(len(weak), 'latent is', 'latents are')} measured by fewer than {MIN_ITEMS} "
            f"items ({join_names(weak, limit=_MAX_NAMES)}) and may not be identified; {fewer}add "
            "items"
        )
    if unused := [n for n, row in zip(result.item_names, q, strict=True) if not row.any()]:
        number = plural(len(unused), "item measures", "items measure")
        out.append(f"{number} no latent ({join_names(unused, limit=_MAX_NAMES)})")
    if n_latents > 1 and result.information_ratio < CONFIG.information.low_ratio:
        # Ordinary tests have less than all information, and the search accounts for it.
        out.append(
            f"low information ratio ({result.information_ratio:.0%}): the items are weakly "
            "informative about the dependences among the latents, so edges of the graph may be "
            "missing"
        )
    out += [found for check in fit_warnings.MESSAGES if (found := check(result)) is not None]
    if result.missing_share > HIGH_MISSING_SHARE:
        assumption = "the model assumes that they are missing at random"
        out.append(f"{result.missing_share:.0%} of the cells are missing; {assumption}")
    return out


def _convergence_concerns(result: FitResult) -> list[Message | str]:
    """Return warnings about starts that did not converge."""
    out: list[Message | str] = []
    template, n_iter = "the estimate did not converge in {iterations}", result.n_iter
    if result.converged and result.all_starts_stopped:
        template = (
            "no start converged in {iterations}, so that the selected start may not be the best"
        )
        n_iter = result.settings["max_iter"]
    if not result.converged or result.all_starts_stopped:
        remedy = "fit again with a larger {max_iter} before interpreting the estimates"
        advice = Advice("raise-max-iter", remedy, {"max_iter": Setting("max_iter")})
        iterations = {"iterations": plural(n_iter, "iteration")}
        out.append(Message("not-converged", template, iterations, advice))
    return out


def explain_missing_verdict(result: FitResult, content: ReportContent) -> str:
    """Return why a report has no verdict on goodness of fit; empty if it has one."""
    tables = {table.name for table in content.tables}
    if "checks" in tables and "pair_fit" not in tables:
        return (
            "Only predictive checks were computed, which are insensitive to residual associations "
            f"of items; statistics of item pairs are {not_summed()}."
        )
    if not content.fit_assessed:
        return "Goodness of fit was not assessed."
    if result.weighted and not content.weighted:
        return (
            "The fit statistics ignore the sample weights that the fit used, and therefore do not "
            "assess it."
        )
    return ""


def all_binary(result: FitResult) -> bool:
    """Return whether every latent of the fit ``result`` has two levels."""
    return max(result.terms.levels) == 2


def describe_latents(result: FitResult) -> str:
    """Return the number of latents of ``result`` and their numbers of levels, as text."""
    levels = result.terms.levels
    if all_binary(result):
        return plural(len(levels), "binary latent variable")
    latents = plural(len(levels), "latent variable")
    even = [" in equal steps" * (k in result.terms.linear) for k in range(len(levels))]
    steps = [f"{m} levels{text}" for m, text in zip(levels, even, strict=True)]
    if len(set(steps)) == 1:
        return f"{latents} with {steps[0]}{' each' if len(levels) > 1 else ''}"
    parts = [f"{count} with {text}" for text, count in sorted(Counter(steps).items())]
    return f"{latents}, {', '.join(parts[:-1])} and {parts[-1]}"


def describe_effects(result: FitResult) -> str:
    """Return a sentence on how the latents of an item combine in ``result``."""
    effects = Effects.of(result.settings.get("effects", "main"))
    if effects.main_only:
        return "The latents of an item have additive effects (main effects only)."
    if effects.conjunctive:
        state = "present" if all_binary(result) else "high enough"
        if effects.reversed:
            return f"An item with several latents responds if any of them is {state} (DINO)."
        return f"An item with several latents responds only if all of them are {state} (DINA)."
    found = list_interactions(result)
    n_items = len({one.item for one in found})
    number = f"{plural(len(found), 'interaction')} in {plural(n_items, 'item')}"
    if effects.selected:
        tested = "Interactions among the latents of an item were tested"
        return f"{tested}; the data support {number}." if found else f"{tested}; none is supported."
    order = f"up to order {effects.highest}" if effects.highest < ALL_ORDERS else "of any order"
    if not result.terms.interactions:
        return f"Interactions {order} were allowed, but no item has several latents."
    allowed = f"Interactions {order} among the latents of an item were allowed"
    given = result.q_given is not None and bool((result.q_given >= 0).all())
    if not found:
        return f"{allowed}; none was selected."
    kind = "all of them, as Q is given" if given else "selected by penalized likelihood"
    return f"{allowed} ({kind}); the model has {number}."


@dataclass(frozen=True)
class Interaction:
    """An interaction coefficient."""

    item: str
    term: str
    coefficient: float
    rarest: float  # least probability of the combinations it contrasts; NaN: too many states
    ruled_out: bool = False  # by prerequisites, which give that combination probability zero

    def describe_rarest(self) -> str:
        """Return the share of the rarest combination as text; "" if unknown."""
        if np.isnan(self.rarest):
            return ""
        if self.ruled_out:
            return "excluded by prerequisites"
        return f"{self.rarest:.1%} of rows" if self.rarest >= _MIN_SHARE else "< 0.05% of rows"


def list_interactions(result: AnyFit) -> list[Interaction]:
    """Return the nonzero interactions of the fit ``result`` in the order of the items."""
    fitted = as_result(result)
    terms = fitted.terms
    names = terms.names(fitted.latent_names)
    coefficients = fitted.loadings[:, terms.n_main :]
    nonzero = np.argwhere(coefficients).tolist()
    rarest = {i: _rarest_combination(fitted, terms.interactions[i]) for _, i in nonzero}
    items, names = fitted.response_names, names[terms.n_main :]
    return [
        Interaction(items[j], names[i], float(coefficients[j, i]), *rarest[i]) for j, i in nonzero
    ]


def _rarest_combination(result: FitResult, pairs: Sequence[tuple[int, int]]) -> tuple[float, bool]:
    """Return the least probability of 2^s combinations, and whether prerequisites rule one out."""
    if result.law.space.n_states > MAX_LISTED_STATES:
        return float("nan"), False
    states = result.law.space.states()
    cell = np.zeros(len(states), dtype=np.int64)
    for k, u in pairs:
        cell = 2 * cell + (states[:, k] >= u)
    shares = np.bincount(cell, np.asarray(result.law.probabilities), minlength=1 << len(pairs))
    if result.ruled_out is not None:
        possible = np.bincount(cell, ~result.ruled_out, minlength=len(shares))
        if (possible == 0).any():
            return 0.0, True
    return float(shares.min()), False


@dataclass(frozen=True)
class LatentSummary:
    """Marginal distribution of a latent and the items that measure it."""

    name: str
    shares: tuple[float, ...]  # probabilities of level 0, 1, ...
    n_items: int
    strongest: tuple[str, ...]  # items with the largest standardized effects


def summarize_latents(result: FitResult) -> list[LatentSummary]:
    """Return the marginal distribution and the strongest items of each latent of ``result``."""
    table = np.asarray(result.law.marginals())
    strength, q, _ = standardized_loadings(result)
    counts = result.q_matrix.sum(axis=0)
    order = np.argsort(-np.abs(strength) * q, axis=0, kind="stable")
    out = []
    for k, (name, m) in enumerate(zip(result.latent_names, result.terms.levels, strict=True)):
        items = [result.item_names[j] for j in order[: min(counts[k], _N_STRONGEST), k]]
        out.append(LatentSummary(name, tuple(table[k, :m].tolist()), int(counts[k]), tuple(items)))
    return out


def describe_loadings(result: FitResult) -> str:
    """Return a note on the scale of the loadings."""
    change = "from 0 to 1"
    if not all_binary(result):
        change = "from its lowest to its highest level (loadings.csv has the single steps)"
    average = ""
    if (result.loadings[:, result.terms.n_main :] != 0).any():
        average = ", averaged over the levels of the item's other latents with equal weights"
        if result.has_prerequisites:
            average += ", among the combinations that prerequisites allow"
    kinds: dict[str, dict[str, None]] = {}
    for name in result.families:
        scale = family_named(item_type(name).response_families[0]).effect_scale
        kinds.setdefault(scale, {})[split_name(name)[0]] = None
    several = len(kinds) > 1
    described = [s + f" for {' and '.join(names)} items" * several for s, names in kinds.items()]
    return (
        f"A loading is the change of the linear predictor when the latent changes {change}"
        f"{average}. The predictor is the {'; '.join(described)}."
    )


def describe_dispersions(result: FitResult) -> tuple[str, str]:
    """Return the column heading of the items' dispersions and a note; "" if none is needed."""
    kinds = {name: family_named(name) for name in sorted(set(result.parameters.families))}
    means = {name: kind.dispersion_meaning for name, kind in kinds.items() if kind.has_dispersion}
    if all(kinds[name].is_location_scale for name in means):
        return "variance", ""
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in means.items())
    return "dispersion", f"Meaning of the dispersion by item type: {meanings}."
