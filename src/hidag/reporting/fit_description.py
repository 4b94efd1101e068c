"""What a fit says, in plain words: sentences for the page and for the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hidag.config import CONFIG
from hidag.data.nonnumeric_cells import numbered
from hidag.data.sample_weights import unanswered_in_words
from hidag.fitting.fit_warnings import (
    knowledge_conflicts,
    limiting_cases,
    noiseless_message,
    overdispersion_message,
)
from hidag.formatting import plural
from hidag.inference.fitted_rows import NOT_SUMMED, was_weighted
from hidag.measurement.families import item_type
from hidag.reporting.model_description import effects_in_words, latents_in_words
from hidag.reporting.sections import FIT_HEADING

if TYPE_CHECKING:
    from hidag.results import FitResult
    from hidag.structure.graphs import CPDAG, DAG


#: A latent that fewer items measure is rarely pinned down (two blocks and one more item).
FEWEST_ITEMS = 3
MUCH_MISSING = 0.3
_SHOWN_NAMES = 5


def family_counts(result: FitResult) -> list[tuple[str, int, str]]:
    """Return (family, number of items, meaning) for each family that occurs, the largest first."""
    return [
        (family, count, item_type(family).description)
        for family, count in Counter(result.families).most_common()
    ]


def edges_in_words(graph: CPDAG | DAG) -> list[str]:
    """Return each edge as 'A -> B' or 'A - B', the directed ones first."""
    return [f"{a} -> {b}" for a, b in graph.directed_edges] + [
        f"{a} - {b}" for a, b in graph.undirected_edges
    ]


def what_was_fitted(result: FitResult) -> list[str]:
    """Return sentences that say what was done, for a reader who knows no formulas."""
    n_items, n_latents = len(result.item_names), len(result.latent_names)
    q = result.q_given
    if q is not None and (q >= 0).all():
        support = "Which cause drives which item was given (the Q-matrix) and not changed."
    elif q is not None:
        n_open = int((q < 0).sum())
        support = (
            f"Which cause drives which item was given in part; {n_open:,} of {q.size:,} entries of "
            "the Q-matrix were estimated."
        )
    else:
        support = "Which cause drives which item (the Q-matrix) was estimated from the data."
    steps = "exact EM" if result.method == "em" else "EM with Gibbs sampling"
    missing = (
        f", with {result.missing_share:.1%} of the cells missing," if result.missing_share else ""
    )
    rows = (
        f"The items tell {result.information_ratio:.0%} of what seeing the causes would tell of "
        "how they go together, and the graph among them was then searched in counts that stand "
        f"for {result.graph_rows:,.0f} rows."
        if n_latents > 1
        else "With a single cause there is no graph to search."
    )
    if result.graph_by_likelihood:
        rows += (
            " Because the items say little about the causes, the search went on from there by the "
            "likelihood of the table itself."
        )
    n_starts = len(result.starts)
    best_of = f", best of {n_starts:,} starts" if n_starts > 1 else ""
    return [
        f"A table of {result.n_samples:,} rows and {plural(n_items, 'item', 'items')}{missing} "
        f"was explained by {latents_in_words(result)}.",
        *_unanswered(result),
        *_answers_in_words(result),
        *_number_in_words(result),
        *(["Rows were counted by weights."] if was_weighted(result) else []),
        support,
        effects_in_words(result),
        *limiting_cases(result),
        *knowledge_in_words(result),
        f"The estimate comes from {steps}, {plural(result.n_iter, 'step')}{best_of}. {rows}",
    ]


def _unanswered(result: FitResult) -> list[str]:
    """Return how many rows hold no answer, as a sentence; empty if none."""
    n_empty = result.n_unanswered
    return [f"{unanswered_in_words(n_empty, result.n_samples)}."] if n_empty else []


def _answers_in_words(result: FitResult) -> list[str]:
    """Return which numbers stand for answers in words, as a sentence; empty if there were none."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for item, words in result.answer_words.items():
        alike.setdefault(tuple(words), []).append(item)
    told = [f"{numbered(words)} ({_listed(items)})" for words, items in alike.items()]
    return [f"Answers in words have numbers: {'; '.join(told)}."] if told else []


def _number_in_words(result: FitResult) -> list[str]:
    """Return why there are so many latents, as a sentence; empty if the user said how many."""
    reason = result.n_latents_reason
    if not reason:
        return []
    return [f"Their number was chosen from the table: {reason}."]


def knowledge_in_words(result: FitResult) -> list[str]:
    """Return what the fit was told beforehand about the causes, as sentences; empty if nothing."""
    told = result.settings.get("knowledge")
    if not isinstance(told, Mapping):
        return []
    names = result.latent_names

    def name(variable: str | int) -> str:
        return names[variable] if isinstance(variable, int) else variable

    def arrows(part: str) -> str:
        return ", ".join(f"{name(a)} -> {name(b)}" for a, b in told.get(part, ()))

    out = []
    if told.get("required"):
        out.append(f"edges that must be there: {arrows('required')}")
    if told.get("forbidden"):
        out.append(f"directions ruled out: {arrows('forbidden')}")
    if told.get("tiers"):
        members = [[name(variable) for variable in tier] for tier in told["tiers"] if tier]
        tiers = " before ".join(", ".join(tier) for tier in members)
        free = [one for one in names if one not in {one for tier in members for one in tier}]
        passed = f" (effects may pass through {_listed(free)}, in no tier)" if free else ""
        out.append(f"an order against which no edge goes: {tiers}{passed}")
    if told.get("hierarchy"):
        out.append(
            f"prerequisites, without which nobody has the other: {arrows('hierarchy')} (other "
            "combinations were given probability zero)"
        )
    return [f"Told beforehand, not found in the data: {'; '.join(out)}."] if out else []


def concerns(result: FitResult, more: Iterable[str] = ()) -> list[str]:
    """Return what a reader has to know before trusting the fit, as sentences; empty if nothing.

    Parameters
    ----------
    result : FitResult
    more : iterable of str
        Warnings that were issued during the fit; those said here already are left out.
    """
    out: list[str] = []
    n_items, n_latents = len(result.item_names), len(result.latent_names)
    out += [str(message) for message in knowledge_conflicts(result)]
    if not result.converged:
        out.append(
            f"the estimate had not settled after {plural(result.n_iter, 'step')}; fit again with "
            "a larger max_iter before reading the numbers"
        )
    elif result.all_starts_stopped:
        out.append(
            f"no start had settled after {plural(result.settings['max_iter'], 'step')}, so that "
            "the one that looked best may not be the best; fit again with a larger max_iter before "
            "reading the numbers"
        )
    # Starts that were given up after a rough look cannot tell where they would have ended.
    if result.n_finished > 1 and result.n_reached == 1 and not result.all_starts_stopped:
        out.append(
            f"only 1 of {result.n_finished} starts reached the best solution, so a better one may "
            "exist; fit again with more starts"
        )
    if n_items < 2 * n_latents + 1:
        out.append(
            f"{plural(n_latents, 'latent')} cannot be identified from {plural(n_items, 'item')}; "
            f"at least {2 * n_latents + 1} items are needed"
        )
    q = result.q_matrix
    thin = [
        name
        for name, count in zip(result.latent_names, q.sum(axis=0).tolist(), strict=True)
        if count < FEWEST_ITEMS
    ]
    if thin:
        out.append(
            f"{plural(len(thin), 'latent is', 'latents are')} measured by fewer than "
            f"{FEWEST_ITEMS} items ({_listed(thin)}) and may not be identified; "
            f"{'ask for fewer latents or ' if n_latents > 1 else ''}add items"
        )
    idle = [name for name, row in zip(result.item_names, q, strict=True) if not row.any()]
    if idle:
        out.append(
            f"{plural(len(idle), 'item measures', 'items measure')} no latent ({_listed(idle)})"
        )
    if n_latents > 1 and result.information_ratio < CONFIG.information.low_ratio:
        # What ordinary tests leave in the dark is no concern: the search counts as many rows less.
        # Below this share the method itself goes other ways.
        out.append(
            "the items hardly show the latents "
            f"({result.information_ratio:.0%} of what seeing them would tell of how they go "
            "together), so edges of the graph may be missing"
        )
    more = list(more)
    for message in (overdispersion_message(result), noiseless_message(result)):
        # Warnings of the command line name options in their advice.
        start = "" if message is None else str(message).partition(";")[0]
        if message is not None and not any(text.startswith(start) for text in more):
            out.append(str(message))
    if result.missing_share > MUCH_MISSING:
        out.append(
            f"{result.missing_share:.0%} of the cells are missing; the fit takes them as missing "
            "at random"
        )
    return out + [text for text in more if not _said_already(text)]


def why_not_judged(
    result: FitResult, *, examined: bool, only_checks: bool, doubts_kept: bool, by_weights: bool
) -> str:
    """Return why nobody can say whether the model describes its table; empty where one can.

    Parameters
    ----------
    result : FitResult
    examined : bool
        Whether statistics of fit were computed.
    only_checks : bool
        Whether predictive checks were all that was computed.
    doubts_kept : bool
        Whether what they found against the model is known.
    by_weights : bool
        Whether they counted rows by weights.
    """
    if only_checks:
        return (
            "Only predictive checks were made, which see little of how items go together; "
            f"statistics that do are {NOT_SUMMED}."
        )
    if not examined:
        return "How well the model describes the table was not examined here."
    if was_weighted(result) and not by_weights:
        return (
            "Statistics of fit count every row once here, and so they do not judge a fit that "
            "counted rows by weights."
        )
    if not doubts_kept:
        return (
            f'Statistics of fit are below ("{FIT_HEADING}"), but an earlier version of hidag wrote '
            "them and did not keep whether they cast doubt on the model; fit again to know."
        )
    return ""


def _said_already(warning: str) -> bool:
    said = ("had not settled", "cannot be identified from", "the data contradict the")
    return any(words in warning for words in said)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN_NAMES])
    rest = len(names) - _SHOWN_NAMES
    return f"{shown} and {rest} more" if rest > 0 else shown
