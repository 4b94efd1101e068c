"""The report of a fit: one HTML page with the model, diagnostics, inference and interventions."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hidag.formatting import sentence_case
from hidag.identifiability.certificate import STATUS_MARKS, describe_finding, verdict_sentences
from hidag.plotting.convergence import SIZE as TRACE_SIZE
from hidag.plotting.convergence import plot_trace
from hidag.plotting.figure import Size, render_png, size_of_q
from hidag.plotting.q_matrix import plot_q
from hidag.reporting.assembly import assemble_report, missing_section
from hidag.reporting.content import ReportContent, display_table
from hidag.reporting.findings import FEW_SAMPLES, describe_empty_graph, describe_findings
from hidag.reporting.fit_description import (
    count_families,
    describe_fit,
    describe_knowledge,
    explain_missing_verdict,
    format_edges,
    list_concerns,
)
from hidag.reporting.graph_drawing import draw_graph
from hidag.reporting.html_page import (
    data_uri,
    read_asset,
    render_page,
    require_templates,
    write_page,
)
from hidag.reporting.model_description import (
    all_binary,
    describe_dispersions,
    describe_loadings,
    list_interactions,
    summarize_latents,
)
from hidag.results import FitResult, as_result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.estimator import DCRL
    from hidag.inference.bootstrap_result import BootstrapResult

#: Longer tables of items and lists of starts are collapsed.
_OPEN_TABLE_ITEMS, _OPEN_STARTS = 60, 12
#: Characters of a printed page beside an item, its type, intercept and variance, and the least and
#: most that the column of a loading takes.
_PRINTED_WIDTH, _MIN_COLUMN, _MAX_COLUMN = 70, 7, 20
_MAX_SETTING_LENGTH = 160
#: Items named for each type and reason.
_MAX_NAMES = 8


def write_report(
    model: FitResult | DCRL,
    path: str | Path,
    X: Any = None,
    *,
    sample_weight: Any = None,
    bootstrap: BootstrapResult | None = None,
    statistics: bool | None = None,
    title: str | None = None,
    plots: bool = True,
) -> Path:
    """Write the full report of a fit as one HTML file.

    Parameters
    ----------
    model : FitResult or DCRL
    path : str or Path
        File to write, in an existing folder.
    X : table, shape (N, J), optional
        Data of the fit: array, data frame or mapping of columns. With them the report has
        goodness of fit, standard errors, classification and, for a given Q-matrix, its
        validation; without them only the model and interventions.
    sample_weight : array, shape (N,), optional
        Weights that the fit used.
    bootstrap : BootstrapResult, optional
        Result of :func:`hidag.bootstrap`; its intervals replace the standard errors.
    statistics : bool, optional
        Whether to compute fit statistics; by default if they take seconds.
    title : str, optional
    plots : bool
        Whether to draw the Q-matrix and the trace.

    Returns
    -------
    Path

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    result = as_result(model)
    require_templates()
    content = assemble_report(
        result,
        X,
        sample_weight=sample_weight,
        bootstrap=bootstrap,
        statistics=statistics,
        title=title,
    )
    return write_page(render_report(result, content, plots=plots), path)


def render_report(
    model: FitResult | DCRL,
    content: ReportContent | None = None,
    *,
    plots: bool = True,
    render: Callable[[Any], str] = str,
) -> str:
    """Return the report of a fit as the text of a self-contained HTML page.

    Parameters
    ----------
    model : FitResult or DCRL
    content : ReportContent, optional
        Contents beyond the fit, as :func:`assemble_report` returns them.
    plots : bool
        Whether to draw the Q-matrix and the trace, unless the content excludes plots.
    render : callable
        Returns a warning in the terms of an interface; Python's by default.

    Returns
    -------
    str
        The page loads nothing. Its content security policy names the digest of its only script,
        so that no other script can run; names are escaped.
    """
    result = as_result(model)
    require_templates()
    from markupsafe import Markup

    content = content or ReportContent()
    tables = {table.name: display_table(table) for table in content.tables}
    missing = missing_section(content.headings, result)
    sections = [
        {
            "id": f"part-{number}",
            "heading": section.heading,
            "paragraphs": section.paragraphs,
            "tables": [tables[name] for name in section.tables],
        }
        for number, section in enumerate((*content.sections, *([missing] if missing else [])))
    ]
    certificate = result.identifiability
    support = {(a, b): share for a, b, share in content.support} if content.support else None
    directions = {(a, b): share for a, b, share in content.directions}
    n_samples = content.n_resampled
    script = read_asset("report.js")
    warnings = (*content.warnings, *content.misfits, *content.unstable_latents)
    return render_page(
        "report.html.jinja",
        names=(*result.item_names, *result.latent_names),
        title=content.title,
        drawing=draw_graph(result, support, directions) if len(result.latent_names) > 1 else None,
        findings=describe_findings(result, support, directions, n_samples),
        few_samples=n_samples if (n_samples or FEW_SAMPLES) < FEW_SAMPLES else None,
        empty_graph=describe_empty_graph(result),
        sections=sections,
        contents=_table_of_contents(sections),
        verdict=[
            sentence_case(f"{head.strip()} {text}".strip())
            for head, text in verdict_sentences(certificate)
        ],
        conditions=[
            (STATUS_MARKS[found.status], *describe_finding(found), found)
            for found in certificate.findings
        ],
        command=content.command,
        # The digest is that of the text between the tags.
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        concerns=[sentence_case(render(one)) for one in list_concerns(result, warnings)],
        no_verdict=explain_missing_verdict(result, content),
        **fit_variables(result, plots=plots and content.plots),
    )


def _table_of_contents(sections: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return ids and names of the sections that the navigation links to."""
    return [
        ("found", "Summary"),
        ("fitted", "Model and data"),
        ("graph-section", "Causal graph"),
        ("latents", "Latent distribution"),
        ("loadings", "Measurement model"),
        *((section["id"], section["heading"]) for section in sections),
        ("identifiability", "Identifiability"),
        ("convergence", "Convergence"),
        ("made", "Settings"),
    ]


def fit_variables(result: FitResult, *, plots: bool = True) -> dict[str, Any]:
    """Return the variables of the template that depend on the fit alone."""
    return {
        "result": result,
        "sentences": describe_fit(result),
        "has_knowledge": bool(describe_knowledge(result)),
        "edges": format_edges(result.graph),
        "n_directed": len(result.graph.directed_edges),
        "n_undirected": len(result.graph.undirected_edges),
        "families": count_families(result),
        "reasons": _family_reasons(result),
        "binary": all_binary(result),
        "latents": summarize_latents(result),
        "loading_note": describe_loadings(result),
        "interactions": list_interactions(result),
        "rows": _loading_rows(result),
        "listed_on_paper": _is_too_wide_for_paper(result.latent_names),
        "longest_open": _OPEN_TABLE_ITEMS,
        "longest_starts": _OPEN_STARTS,
        "has_dispersion": bool(np.isfinite(result.dispersion).any()),
        "dispersion": describe_dispersions(result),
        "nested": len(result.response_names) > len(result.item_names),
        "has_cutpoints": bool(np.isfinite(result.cutpoints).any()),
        "pictures": _draw_pictures(result) if plots else {},
        "settings": sorted((str(k), _format_setting(v)) for k, v in result.settings.items()),
        "versions": sorted(result.versions.items()),
    }


def _draw_pictures(result: FitResult) -> dict[str, str]:
    """Return the figures as data URIs."""
    figures: dict[str, tuple[Callable[[Axes], object], Size]] = {
        "q": (lambda ax: plot_q(result, ax), size_of_q(*result.q_matrix.shape)),
        "trace": (lambda ax: plot_trace(result, ax), TRACE_SIZE),
    }
    return {name: data_uri(render_png(draw, size)) for name, (draw, size) in figures.items()}


def _loading_rows(result: FitResult) -> list[dict[str, Any]]:
    """Return one entry per item, or per category of a nominal item; None where Q is 0."""
    q, strengths, dispersion = result.q_matrix, result.response_strengths, result.dispersion
    return [
        {
            "item": name,
            "family": result.families[j],
            "intercept": float(result.intercept[r]),
            "loadings": [float(strengths[r, k]) if q[j, k] else None for k in range(q.shape[1])],
            "dispersion": float(dispersion[j]) if np.isfinite(dispersion[j]) else None,
        }
        for r, (j, name) in enumerate(
            zip(result.responses.item, result.response_names, strict=True)
        )
    ]


def _is_too_wide_for_paper(latents: Sequence[str]) -> bool:
    """Return whether a printed page is too narrow for a column per latent."""
    widths = (min(max(len(name) + 1, _MIN_COLUMN), _MAX_COLUMN) for name in latents)
    return sum(widths) > _PRINTED_WIDTH


def _family_reasons(result: FitResult) -> list[tuple[str, str, int, tuple[str, ...]]]:
    """Return (family, reason, number of items, first names) for each family and reason."""
    pairs = list(zip(result.families, result.family_reasons, strict=True))
    out = []
    for (family, reason), count in Counter(pairs).most_common():
        names = [
            n for n, pair in zip(result.item_names, pairs, strict=True) if pair == (family, reason)
        ]
        out.append((family, reason, count, tuple(names[:_MAX_NAMES])))
    return out


def _format_setting(value: object) -> str:
    text = "default" if value is None else str(value)
    shortest = text[: _MAX_SETTING_LENGTH - 3] + "..."
    return text if len(text) <= _MAX_SETTING_LENGTH else shortest
