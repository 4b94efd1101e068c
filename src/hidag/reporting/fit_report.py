"""What the report says of the fit itself: its numbers, its words and its pictures."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hidag.identifiability.certificate import describe_finding, status_mark, verdict_sentences
from hidag.identifiability.findings import sentence_case
from hidag.inference.fitted_rows import can_sum_states
from hidag.plotting.convergence import SIZE as TRACE_SIZE
from hidag.plotting.convergence import plot_trace
from hidag.plotting.figure import Size, render_png, size_of_q
from hidag.plotting.q_matrix import plot_q
from hidag.reporting.findings_text import FEW_TABLES, what_was_found, without_edges
from hidag.reporting.fit_description import (
    concerns,
    edges_in_words,
    family_counts,
    knowledge_in_words,
    what_was_fitted,
    why_not_judged,
)
from hidag.reporting.html_page import as_data_address, render_page, require_templates, write_page
from hidag.reporting.interactive_graph import graph_panel
from hidag.reporting.model_description import (
    all_binary,
    dispersions_in_words,
    interactions_of,
    loadings_in_words,
    marginals_of,
)
from hidag.reporting.sections import (
    EFFECTS_HEADING,
    FIT_HEADING,
    PLACEMENT_HEADING,
    SURE_HEADING,
    ReportParts,
    Section,
    shown_table,
)
from hidag.results import FitResult, as_result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.estimator import DCRL


# --- What a report leaves out, and which command tells it

#: Sections that every report should have, and the commands that say the same.
_COMMANDS = {
    SURE_HEADING: "`hidag bootstrap`",
    PLACEMENT_HEADING: "`hidag classify`",
    EFFECTS_HEADING: "`hidag whatif --effects`",
    FIT_HEADING: "`hidag goodness`",
}
#: More of them, that refuse where joint states are too many to sum over.
_WITH_STATES_SUMMED = {SURE_HEADING: ", or `hidag errors` for this Q and this graph"}


def absent_section(headings: Iterable[str], result: FitResult) -> Section | None:
    """Return a section about those that are not there; None where all are.

    Parameters
    ----------
    headings : iterable of str
        Of the sections that are there.
    result : FitResult
        With a single latent nothing can be said of setting it for others.
    """
    there = set(headings)
    wanted = [name for name in _COMMANDS if name != EFFECTS_HEADING or len(result.latent_names) > 1]
    absent = [name for name in wanted if name not in there]
    if not absent:
        return None
    more = _WITH_STATES_SUMMED if can_sum_states(result) else {}
    told = "; ".join(f"{name}: {_COMMANDS[name]}{more.get(name, '')}" for name in absent)
    return Section(
        "What is not here",
        (
            "This page was made from the fit alone, without its table; `hidag fit --out` makes a "
            f"whole one, and other commands say what is left out. {told}.",
        ),
    )


# ---

#: A table of more rows than this is folded away behind a line to click.
_OPEN_TABLE_ITEMS = 60
#: Letters for which a page has room beside an item, its type, intercept and variance; a loading
#: takes the fewest of a column, and a name goes on below after the most.
_PRINTED_LETTERS = 70
_FEWEST_LETTERS, _MOST_LETTERS = 7, 20
#: Starts may be many where Q is given; longer lists of them are folded.
_OPEN_STARTS = 12
_LONGEST_SETTING = 160
#: Items named for each type and reason.
_SHOWN_NAMES = 8


def summary_content(
    result: FitResult,
    *,
    warnings: Iterable[str] = (),
    plots: bool = True,
    examined: bool = False,
    only_checks: bool = False,
    doubts_kept: bool = True,
    by_weights: bool = False,
) -> dict[str, Any]:
    """Return what the page shows of the fit itself, by the names of its template.

    Parameters
    ----------
    result : FitResult
    warnings : iterable of str
        Warnings of the fit, shown with those that the result itself gives reason for.
    plots : bool
        Whether to draw Q and the trace.
    examined : bool
        Whether the model was held against its table: without that the page cannot call it fine.
    only_checks : bool
        Whether predictive checks were all that it was held against: they see too little for that.
    doubts_kept : bool
        Whether what was found against it then is among the warnings.
    by_weights : bool
        Whether rows were counted by weights then.
    """
    return {
        "result": result,
        "concerns": concerns(result, warnings),
        "not_judged": why_not_judged(
            result,
            examined=examined,
            only_checks=only_checks,
            doubts_kept=doubts_kept,
            by_weights=by_weights,
        ),
        "sentences": what_was_fitted(result),
        "told": bool(knowledge_in_words(result)),
        "edges": edges_in_words(result.graph),
        "n_directed": len(result.graph.directed_edges),
        "n_undirected": len(result.graph.undirected_edges),
        "families": family_counts(result),
        "reasons": _reasons(result),
        "binary": all_binary(result),
        "marginals": marginals_of(result),
        "loading_note": loadings_in_words(result),
        "interactions": interactions_of(result),
        "rows": _loading_rows(result),
        "listed_on_paper": _too_wide_for_paper(result.latent_names),
        "longest_open": _OPEN_TABLE_ITEMS,
        "longest_starts": _OPEN_STARTS,
        "has_dispersion": bool(np.isfinite(result.dispersion).any()),
        "dispersion": dispersions_in_words(result),
        "nested": len(result.response_names) > len(result.item_names),
        "has_cutpoints": bool(np.isfinite(result.cutpoints).any()),
        "pictures": _pictures(result) if plots else {},
        "settings": sorted((str(k), _plain(v)) for k, v in result.settings.items()),
        "versions": sorted(result.versions.items()),
    }


def _pictures(result: FitResult) -> dict[str, str]:
    """Return the figures as data addresses."""
    drawn: dict[str, tuple[Callable[[Axes], object], Size]] = {
        "q": (lambda ax: plot_q(result, ax), size_of_q(*result.q_matrix.shape)),
        "trace": (lambda ax: plot_trace(result, ax), TRACE_SIZE),
    }
    return {name: as_data_address(render_png(draw, size)) for name, (draw, size) in drawn.items()}


def _loading_rows(result: FitResult) -> list[dict[str, Any]]:
    """Return one entry per item, one per category of a nominal item; None where Q is 0."""
    q, strengths = result.q_matrix, result.response_strengths
    return [
        {
            "item": name,
            "family": result.families[j],
            "intercept": float(result.intercept[r]),
            "loadings": [float(strengths[r, k]) if q[j, k] else None for k in range(q.shape[1])],
            "dispersion": float(result.dispersion[j])
            if np.isfinite(result.dispersion[j])
            else None,
        }
        for r, (j, name) in enumerate(
            zip(result.responses.item, result.response_names, strict=True)
        )
    ]


def _too_wide_for_paper(latents: Sequence[str]) -> bool:
    """Return whether a column for each latent is more than a printed page has room for."""
    widths = (min(max(len(name) + 1, _FEWEST_LETTERS), _MOST_LETTERS) for name in latents)
    return sum(widths) > _PRINTED_LETTERS


def _reasons(result: FitResult) -> list[tuple[str, str, int, tuple[str, ...]]]:
    """Return (family, reason, number of items, some of their names), alike items together."""
    pairs = list(zip(result.families, result.family_reasons, strict=True))
    out = []
    for (family, reason), count in Counter(pairs).most_common():
        names = [
            n for n, pair in zip(result.item_names, pairs, strict=True) if pair == (family, reason)
        ]
        out.append((family, reason, count, tuple(names[:_SHOWN_NAMES])))
    return out


def _plain(value: object) -> str:
    text = "default" if value is None else str(value)
    return text if len(text) <= _LONGEST_SETTING else text[: _LONGEST_SETTING - 3] + "..."


# --- The report: the summary with a graph to take hold of, tables to sort, and all that was

_TEMPLATE, _SCRIPT = "report.html.jinja", "report.js"


def render_report(
    result: FitResult | DCRL, parts: ReportParts | None = None, *, plots: bool = True
) -> str:
    """Return the report of a fit as one self-contained HTML page.

    Parameters
    ----------
    result : FitResult or DCRL
    parts : ReportParts, optional
    plots : bool
        Whether to draw Q and the trace, if the parts have them; all else is there without pictures
        too.

    Returns
    -------
    str
        It opens without a connection and loads nothing. Its one script is named by digest in the
        page's policy, so that nothing else can run; names are escaped wherever they stand.
    """
    fitted = as_result(result)
    require_templates()
    from markupsafe import Markup

    parts = parts or ReportParts()
    tables = {table.name: shown_table(table) for table in parts.tables}
    headings = [section.heading for section in parts.sections]
    absent = absent_section(headings, fitted)
    sections = [
        {
            "id": f"part-{number}",
            "heading": section.heading,
            "paragraphs": section.paragraphs,
            "tables": [tables[name] for name in section.tables],
        }
        for number, section in enumerate((*parts.sections, *([absent] if absent else [])))
    ]
    certificate = fitted.identifiability
    support = {(a, b): share for a, b, share in parts.support} if parts.support else None
    directions = {(a, b): share for a, b, share in parts.directions}
    script = files("hidag.reporting").joinpath(_SCRIPT).read_text(encoding="utf-8")
    content = summary_content(
        fitted,
        warnings=(*parts.warnings, *parts.doubts, *parts.not_found_again),
        plots=plots and parts.plots,
        examined=parts.examined,
        # By what is there: earlier versions called a fit examined after checks alone.
        only_checks="checks" in tables and "pair_fit" not in tables,
        doubts_kept=parts.doubts_kept,
        by_weights=parts.by_weights,
    )
    return render_page(
        _TEMPLATE,
        names=(*fitted.item_names, *fitted.latent_names),
        title=parts.title,
        panel=graph_panel(fitted, support, directions) if len(fitted.latent_names) > 1 else None,
        found=what_was_found(fitted, support, directions, parts.n_resampled),
        few_tables=parts.n_resampled if (parts.n_resampled or FEW_TABLES) < FEW_TABLES else None,
        without_edges=without_edges(fitted),
        sections=sections,
        contents=_contents(sections),
        verdict=[sentence_case(head + text) for head, text in verdict_sentences(certificate)],
        findings=[
            (status_mark(found), *describe_finding(found), found) for found in certificate.findings
        ],
        command=parts.command,
        # The digest is that of the very text between the tags.
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        **content,
    )


def write_report(
    result: FitResult | DCRL,
    path: str | Path,
    parts: ReportParts | None = None,
    *,
    plots: bool = True,
) -> Path:
    """Write the report of a fit and return its path; the file appears whole or not at all.

    Parameters
    ----------
    result : FitResult or DCRL
    path : str or Path
        Of the page, in a folder that exists.
    parts : ReportParts, optional
        What it says beyond the fit: statistics of fit, errors, a bootstrap.
    plots : bool
        Whether to draw Q and the trace, if the parts have them.

    Returns
    -------
    Path

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    fitted = as_result(result)
    return write_page(render_report(fitted, parts, plots=plots), path)


def _contents(sections: Sequence[Mapping[str, object]]) -> Iterable[tuple[str, str]]:
    """Return the places of the page that its head leads to, with their names."""
    return [
        ("found", "What was found"),
        ("fitted", "What was fitted"),
        ("graph-section", "Graph"),
        ("loadings", "Items"),
        *((str(section["id"]), str(section["heading"])) for section in sections),
        ("identifiability", "Identifiability"),
        ("made", "How it was made"),
    ]
