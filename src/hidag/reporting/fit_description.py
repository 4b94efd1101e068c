"""Sentences that describe a fit and the warnings that it justifies, for pages and the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hidag.config import CONFIG
from hidag.data.cells import describe_coding
from hidag.data.rows import describe_empty_rows
from hidag.exceptions import Advice, HidagWarning, Message, Setting
from hidag.fitting.fit_warnings import (
    knowledge_conflicts,
    limiting_cases,
    noiseless_message,
    overdispersion_message,
)
from hidag.formatting import join_names, plural
from hidag.inference.fitted_rows import NOT_SUMMED
from hidag.measurement.families import item_type
from hidag.reporting.content import GOODNESS_OF_FIT, ReportContent
from hidag.reporting.model_description import describe_effects, describe_latents

if TYPE_CHECKING:
    from hidag.results import FitResult
    from hidag.structure.graphs import CPDAG, DAG

#: A latent with fewer items is rarely identified (two blocks and one more item).
MIN_ITEMS = 3
HIGH_MISSING_SHARE = 0.3
_MAX_NAMES = 6


def count_families(result: FitResult) -> list[tuple[str, int, str]]:
    """Return (family, number of items, meaning), the most frequent family first."""
    return [
        (family, count, item_type(family).description)
        for family, count in Counter(result.families).most_common()
    ]


def format_edges(graph: CPDAG | DAG) -> list[str]:
    """Return each edge as 'A -> B' or 'A - B', directed edges first."""
    return [f"{a} -> {b}" for a, b in graph.directed_edges] + [
        f"{a} - {b}" for a, b in graph.undirected_edges
    ]


def describe_fit(result: FitResult) -> list[str]:
    """Return sentences on the data, the model and the algorithm of a fit."""
    n_empty, reason = result.n_unanswered, result.n_latents_reason
    missing = (
        f", with {result.missing_share:.1%} of the cells missing" if result.missing_share else ""
    )
    return [
        f"The data have {result.n_samples:,} rows and {plural(len(result.item_names), 'item')}"
        f"{missing}. The model has {describe_latents(result)}.",
        *([f"{describe_empty_rows(n_empty, result.n_samples)}."] if n_empty else []),
        *_describe_answer_codes(result),
        *([f"The number of latents was selected from the data: {reason}."] if reason else []),
        *(["Sample weights were used."] if result.weighted else []),
        _describe_q(result),
        describe_effects(result),
        *limiting_cases(result),
        *describe_knowledge(result),
        _describe_estimation(result),
    ]


def _describe_q(result: FitResult) -> str:
    """Return whether the Q-matrix was given."""
    q = result.q_given
    if q is None:
        return "The Q-matrix (which latent each item measures) was estimated from the data."
    n_open = int((q < 0).sum())
    if not n_open:
        return "The Q-matrix (which latent each item measures) was given."
    return (
        f"The Q-matrix (which latent each item measures) was given in part; {n_open:,} of "
        f"{q.size:,} entries were estimated."
    )


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
    if result.graph_by_likelihood:
        text += (
            " Because the items are weakly informative, the search was continued with the "
            "likelihood of the observed data."
        )
    return text


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

    parts = []
    if knowledge.get("required"):
        parts.append(f"required edges {arrows('required')}")
    if knowledge.get("forbidden"):
        parts.append(f"forbidden directions {arrows('forbidden')}")
    if knowledge.get("tiers"):
        tiers = [[name(variable) for variable in tier] for tier in knowledge["tiers"] if tier]
        free = [one for one in names if one not in {one for tier in tiers for one in tier}]
        unordered = f" ({join_names(free, limit=_MAX_NAMES)} in no tier)" if free else ""
        order = " before ".join(", ".join(tier) for tier in tiers)
        parts.append(f"tiers {order}{unordered}")
    if knowledge.get("hierarchy"):
        parts.append(
            f"prerequisites {arrows('hierarchy')} (combinations that violate them have "
            "probability zero)"
        )
    return [f"Prior knowledge, not estimated from the data: {'; '.join(parts)}."] if parts else []


def list_concerns(
    result: FitResult, issued: Iterable[Message | HidagWarning | str] = ()
) -> list[Message | str]:
    """Return warnings that a reader needs before using the fit, without a full stop.

    Parameters
    ----------
    result : FitResult
    issued : iterable of Message, HidagWarning or str
        Warnings of the fit, appended unless they follow from the result too.
    """
    derived = _derive_concerns(result)
    codes = {one.code for one in derived if isinstance(one, Message)}
    messages = (one.message if isinstance(one, HidagWarning) else one for one in issued)
    return derived + [one for one in messages if isinstance(one, str) or one.code not in codes]


def _derive_concerns(result: FitResult) -> list[Message | str]:
    """Return the warnings that follow from the result."""
    n_items, n_latents = len(result.item_names), len(result.latent_names)
    q = result.q_matrix
    out: list[Message | str] = [*knowledge_conflicts(result), *_convergence_concerns(result)]
    if n_items < 2 * n_latents + 1:
        out.append(
            Message(
                "too-few-items",
                "{latents} cannot be identified from {items}",
                {"latents": plural(n_latents, "latent"), "items": plural(n_items, "item")},
                Advice(
                    "add-items", "at least {needed} items are needed", {"needed": 2 * n_latents + 1}
                ),
            )
        )
    weak = [
        name
        for name, count in zip(result.latent_names, q.sum(axis=0).tolist(), strict=True)
        if count < MIN_ITEMS
    ]
    if weak:
        fewer = "use fewer latents or " if n_latents > 1 else ""
        out.append(
            f"{plural(len(weak), 'latent is', 'latents are')} measured by fewer than {MIN_ITEMS} "
            f"items ({join_names(weak, limit=_MAX_NAMES)}) and may not be identified; {fewer}add "
            "items"
        )
    unused = [name for name, row in zip(result.item_names, q, strict=True) if not row.any()]
    if unused:
        out.append(
            f"{plural(len(unused), 'item measures', 'items measure')} no latent "
            f"({join_names(unused, limit=_MAX_NAMES)})"
        )
    if n_latents > 1 and result.information_ratio < CONFIG.information.low_ratio:
        # Ordinary tests have less than all information, and the search accounts for it.
        out.append(
            f"low information ratio ({result.information_ratio:.0%}): the items are weakly "
            "informative about the dependences among the latents, so edges of the graph may be "
            "missing"
        )
    messages = (overdispersion_message(result), noiseless_message(result))
    out += [message for message in messages if message is not None]
    if result.missing_share > HIGH_MISSING_SHARE:
        out.append(
            f"{result.missing_share:.0%} of the cells are missing; the model assumes that they are "
            "missing at random"
        )
    return out


def _convergence_concerns(result: FitResult) -> list[Message | str]:
    """Return warnings about starts that did not converge or disagree."""
    more_iterations = Advice(
        "raise-max-iter",
        "fit again with a larger {max_iter} before interpreting the estimates",
        {"max_iter": Setting("max_iter")},
    )
    out: list[Message | str] = []
    if not result.converged:
        out.append(
            Message(
                "not-converged",
                "the estimate did not converge in {iterations}",
                {"iterations": plural(result.n_iter, "iteration")},
                more_iterations,
            )
        )
    elif result.all_starts_stopped:
        out.append(
            Message(
                "not-converged",
                "no start converged in {iterations}, so that the selected start may not be the "
                "best",
                {"iterations": plural(result.settings["max_iter"], "iteration")},
                more_iterations,
            )
        )
    # Starts that were stopped early do not show where they would have ended.
    if result.n_finished > 1 and result.n_reached == 1 and not result.all_starts_stopped:
        out.append(
            Message(
                "best-start-not-replicated",
                "only 1 of {n_finished} starts reached the best solution, so a better one may "
                "exist",
                {"n_finished": result.n_finished},
                Advice(
                    "more-starts",
                    "fit again with a larger {n_starts}",
                    {"n_starts": Setting("n_starts")},
                ),
            )
        )
    return out


def explain_missing_verdict(result: FitResult, content: ReportContent) -> str:
    """Return why a report has no verdict on goodness of fit; empty if it has one."""
    tables = {table.name for table in content.tables}
    # By the tables: earlier versions counted predictive checks alone as an assessment.
    if "checks" in tables and "pair_fit" not in tables:
        return (
            "Only predictive checks were computed, which are insensitive to residual associations "
            f"of items; statistics of item pairs are {NOT_SUMMED}."
        )
    if not content.fit_assessed:
        return "Goodness of fit was not assessed."
    if result.weighted and not content.weighted:
        return (
            "The fit statistics ignore the sample weights that the fit used, and therefore do not "
            "assess it."
        )
    if not content.misfits_stored:
        return (
            f'Fit statistics are listed below ("{GOODNESS_OF_FIT}"), but the version of hidag that '
            "wrote them did not store whether they indicate misfit; fit again for a verdict."
        )
    return ""
