"""The report of a fit: one HTML page with the model, diagnostics, inference and interventions."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hidag.causal.exports import network_law
from hidag.causal.probability_queries import (
    MEAN,
    ConditionedLaw,
    condition_law,
    edge_strengths,
    tabulate_outcomes,
)
from hidag.files import write_file
from hidag.fitting.settings import NOT_STORED
from hidag.formatting import sentence_case
from hidag.identifiability.certificate import STATUS_MARKS, describe_finding, verdict_sentences
from hidag.measurement.families import item_type
from hidag.plotting.figure import render_png, size_of_q
from hidag.plotting.graph import graph_layout
from hidag.plotting.layered_layout import curve
from hidag.plotting.q_matrix import plot_q
from hidag.plotting.selection import TRACE_SIZE, plot_trace
from hidag.plotting.style import display_name
from hidag.reporting import fit_description as about
from hidag.reporting import html_page
from hidag.reporting.assembly import assemble_report, missing_section
from hidag.reporting.content import ReportContent, display_table
from hidag.reporting.findings import describe_empty_graph, describe_findings
from hidag.results import AnyFit, FitResult, as_result
from hidag.results.claims import Claim, claim_level_of, claimed_graph

if TYPE_CHECKING:
    from hidag.inference.bootstrap_result import BootstrapResult
    from hidag.latent.laws import NetworkLaw

#: Longer tables of items and lists of starts are collapsed.
_OPEN_TABLE_ITEMS, _OPEN_STARTS = 60, 12
#: Characters of a printed page for loadings, and the least and most that a column of them takes.
_PRINTED_WIDTH, _MIN_COLUMN, _MAX_COLUMN = 70, 7, 20
#: Characters of a setting, and items named for each type and reason.
_MAX_SETTING_LENGTH, _MAX_NAMES = 160, 8
#: Ids and names of sections that the navigation links to, before and after the panels.
_FIRST_SECTIONS = (
    ("found", "Summary"), ("fitted", "Model and data"), ("graph-section", "Causal graph"),
    ("latents", "Latent distribution"), ("loadings", "Measurement model"),
)  # fmt: skip
_LAST_SECTIONS = (
    ("identifiability", "Identifiability"), ("convergence", "Convergence"), ("made", "Settings"),
)  # fmt: skip
#: Margin of the drawing, so that nodes can be dragged a little.
_MARGIN = 14.0
#: Minimum size, so that nodes of a small graph can be dragged; pages scale it by 1.5.
_MIN_WIDTH, _MIN_HEIGHT = 320.0, 214.0
#: Larger conditional tables are in the files only.
_MAX_CONFIGURATIONS = 64
#: Expected number of rows below which a line of a conditional table is marked as unreliable.
_FEW_ROWS = 5.0


def write_report(
    model: AnyFit,
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

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = hidag.write_report(model, pathlib.Path(folder) / "report.html", plots=False)
    ...     path.stat().st_size > 10_000
    True
    """
    result = as_result(model)
    html_page.require_templates()
    about_fit: dict[str, Any] = {"sample_weight": sample_weight, "bootstrap": bootstrap}
    content = assemble_report(result, X, statistics=statistics, title=title, **about_fit)
    return write_file(path, render_report(result, content, plots=plots))


def render_report(
    model: AnyFit,
    content: ReportContent | None = None,
    *,
    plots: bool = True,
    render: Callable[[Any], str] = str,
) -> str:
    """Return the report of a fit as the text of a self-contained HTML page.

    The page loads nothing. Its content security policy names the digest of its only script, so that
    no other script can run; names are escaped.

    Parameters
    ----------
    model : FitResult or DCRL
    content : ReportContent, optional
        Contents beyond the fit, as :func:`assemble_report` returns them.
    plots : bool
        Whether to draw the Q-matrix and the trace, unless the content excludes plots.
    render : function of a warning
        Returns it in the terms of an interface; Python's by default.
    """
    result = as_result(model)
    content = content or ReportContent()
    tables = {table.name: display_table(table) for table in content.tables}
    missing = missing_section(content.headings, result)
    parts = enumerate((*content.sections, *([missing] if missing else [])))
    sections: list[dict[str, Any]] = [
        vars(one) | {"id": f"part-{number}", "tables": [tables[name] for name in one.tables]}
        for number, one in parts
    ]
    n_samples, names = content.n_resampled, result.latent_names
    probabilities = np.array(content.edge_probabilities) if content.edge_probabilities else None
    claims = result.claims(probabilities)
    script = html_page.read_asset("report.js")
    warnings = (*content.warnings, *content.misfits, *content.unstable_latents)
    return html_page.render_page(
        "report.html.jinja",
        names=(*result.item_names, *names),
        title=content.title,
        drawing=draw_graph(result, claims) if len(names) > 1 else None,
        findings=describe_findings(result, probabilities, n_samples),
        edges=claims,
        level=claim_level_of(result.settings),
        empty_graph=describe_empty_graph(result),
        sections=sections,
        contents=[*_FIRST_SECTIONS, *((s["id"], s["heading"]) for s in sections), *_LAST_SECTIONS],
        verdict=[
            sentence_case(f"{head.strip()} {text}".strip())
            for head, text in verdict_sentences(result.identifiability)
        ],
        conditions=[
            (STATUS_MARKS[found.status], *describe_finding(found), found)
            for found in result.identifiability.findings
        ],
        command=content.command,
        # The digest is that of the text between the tags.
        script=script,
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        concerns=[sentence_case(render(one)) for one in about.list_concerns(result, warnings)],
        no_verdict=about.explain_missing_verdict(result, content),
        **fit_variables(result, plots=plots and content.plots),
    )


def fit_variables(result: FitResult, *, plots: bool = True) -> dict[str, Any]:
    """Return the variables of the template that depend on the fit alone."""
    figures = {"q": (plot_q, size_of_q(*result.q_matrix.shape)), "trace": (plot_trace, TRACE_SIZE)}
    pictures = {
        name: html_page.data_uri(render_png(partial(draw, result), size))
        for name, (draw, size) in figures.items()
        if plots
    }
    widths = (min(max(len(name) + 1, _MIN_COLUMN), _MAX_COLUMN) for name in result.latent_names)
    return {
        "result": result,
        "sentences": about.describe_fit(result),
        "has_knowledge": bool(about.describe_knowledge(result)),
        "n_undirected": len(result.graph.undirected_edges),
        "families": about.count_families(result),
        "reasons": _family_reasons(result),
        "binary": about.all_binary(result),
        "latents": about.summarize_latents(result),
        "loading_note": about.describe_loadings(result),
        "interactions": about.list_interactions(result),
        "rows": _loading_rows(result),
        "responses": _response_rows(result),
        "errors": _guess_and_slip(result),
        "listed_on_paper": sum(widths) > _PRINTED_WIDTH,
        "longest_open": _OPEN_TABLE_ITEMS,
        "longest_starts": _OPEN_STARTS,
        "has_dispersion": bool(np.isfinite(result.dispersion).any()),
        "dispersion": about.describe_dispersions(result),
        "nested": len(result.response_names) > len(result.item_names),
        "has_cutpoints": bool(np.isfinite(result.cutpoints).any()),
        "pictures": pictures,
        "settings": sorted((str(k), _format_setting(v)) for k, v in result.settings.items()),
        "versions": sorted(result.versions.items()),
    }


def _response_rows(result: FitResult) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the columns and rows of what items do: means, or probabilities without a mean."""
    columns, rows = result.content("items")
    with_mean = {row[0] for row in rows if row[2] == MEAN}
    return columns[3:], [row for row in rows if row[2] == MEAN or row[0] not in with_mean]


def _guess_and_slip(result: FitResult) -> list[tuple[str, float, float]]:
    """Return the binary items of a DINA or DINO model with their guess and slip."""
    if not result.effects.conjunctive:
        return []
    items = [j for j, name in enumerate(result.families) if item_type(name).is_binary]
    outcomes = tabulate_outcomes(result, items)
    return [(o.item, float(o.table.flat[0]), 1.0 - float(o.table.flat[-1])) for o in outcomes]


def _loading_rows(result: FitResult) -> list[dict[str, Any]]:
    """Return one entry per item, or per category of a nominal item; None where Q is 0."""
    q, strengths, dispersion = result.q_matrix, result.response_strengths, result.dispersion
    responses = zip(result.responses.item, result.response_names, strict=True)
    return [
        {
            "item": name,
            "family": result.families[j],
            "intercept": float(result.intercept[r]),
            "loadings": [float(strengths[r, k]) if q[j, k] else None for k in range(q.shape[1])],
            "dispersion": float(dispersion[j]) if np.isfinite(dispersion[j]) else None,
        }
        for r, (j, name) in enumerate(responses)
    ]


def _family_reasons(result: FitResult) -> list[tuple[str, str, int, tuple[str, ...]]]:
    """Return (family, reason, number of items, first names) for each family and reason."""
    names: dict[tuple[str, str], list[str]] = {}
    pairs = zip(result.families, result.family_reasons, strict=True)
    for name, pair in zip(result.item_names, pairs, strict=True):
        names.setdefault(pair, []).append(name)
    ordered = sorted(names.items(), key=lambda entry: -len(entry[1]))
    return [(*pair, len(items), tuple(items[:_MAX_NAMES])) for pair, items in ordered]


def _format_setting(value: object) -> str:
    value = value.get(NOT_STORED, value) if isinstance(value, Mapping) else value
    text = "default" if value is None else str(value)
    return text if len(text) <= _MAX_SETTING_LENGTH else text[: _MAX_SETTING_LENGTH - 3] + "..."


def draw_graph(
    result: FitResult,
    claims: Sequence[Claim] | None = None,
) -> dict[str, Any]:
    """Return size, nodes and edges of the drawing of a fit's graph, for the template.

    Edges are the claims, those of the fit by default. Centres and paths have y growing downwards;
    labels are names shortened to the boxes; strengths are absolute correlations in the fitted law.
    """
    stated = result.claims() if claims is None else tuple(claims)
    graph = claimed_graph(stated, result.latent_names)
    layout, law, best = graph_layout(graph), network_law(result), result.graph.adjacency
    claim_of = {frozenset((claim.one, claim.other)): claim for claim in stated}
    n_rows = result.n_samples if np.isnan(result.n_counted) else result.n_counted
    a, inference = graph.adjacency, condition_law(law)
    strengths = edge_strengths(result, graph)
    width = max(layout.width + 2 * _MARGIN, _MIN_WIDTH)
    height = max(layout.height + 2 * _MARGIN, _MIN_HEIGHT)
    left, top = (width - layout.width) / 2, (height - layout.height) / 2
    edges = []
    for (i, j), route in layout.routes.items():
        source, target, points = (i, j, route) if a[i, j] else (j, i, route[::-1])
        names = graph.names[source], graph.names[target]
        claim = claim_of[frozenset(names)]
        steps = curve([(x + left, layout.height - y + top) for x, y in points])
        path = " ".join(k + " ".join(f"{x:.1f},{y:.1f}" for x, y in part) for k, part in steps)
        edge: dict[str, Any] = {"source": source, "target": target, "path": path}
        edge |= {"directed": claim.directed, "claim": claim}
        edge["strength"] = strengths[(graph.names[min(i, j)], graph.names[max(i, j)])]
        edges.append(edge)
    nodes = []
    for k, name in enumerate(graph.names):
        (x, y), size = layout.centres[k].tolist(), layout.sizes[k].tolist()
        node: dict[str, Any] = {"name": name, "label": display_name(name)}
        node |= {
            "levels": range(result.terms.levels[k]),
            "x": x + left,
            "y": layout.height - y + top,
        }
        node |= {"width": size[0], "height": size[1]}
        node["rows"] = _conditional_table(law, k, graph.names, inference, n_rows)
        # Neighbours joined by an undirected edge.
        node["undecided"] = [
            graph.names[c] for c in np.flatnonzero((best[k] == 1) & (best[:, k] == 1))
        ]
        nodes.append(node)
    known = bool(edges) and not any(np.isnan(claim.adjacency) for claim in stated)
    drawn = {"nodes": nodes, "edges": edges, "has_probabilities": known}
    return {"width": width, "height": height, **drawn}


def _conditional_table(
    law: NetworkLaw, latent: int, names: tuple[str, ...], inference: ConditionedLaw, n_rows: float
) -> list[dict[str, Any]]:
    """Return P(latent | parents), one row per configuration of parents; empty if too many.

    Rows are sparse if few rows of the data are expected there.
    """
    table, parents = law.tables[latent], law.parents[latent]
    if table[..., 0].size > _MAX_CONFIGURATIONS:
        return []
    shares = inference.marginal(parents) if parents else np.array(1.0)
    rows = []
    for levels in np.ndindex(*table.shape[:-1]):
        given = [(names[c], level) for c, level in zip(parents, levels, strict=True)]
        share, sparse = float(shares[levels]), bool(shares[levels] * n_rows < _FEW_ROWS)
        row = {"given": given, "share": share, "sparse": sparse}
        rows.append(row | {"probabilities": table[levels].tolist()})
    return rows
