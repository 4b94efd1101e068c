"""Tables with the rows and columns of the paper's tables, our means and the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hidag.formatting import join_names
from hidag.simulation.designs import Design, design
from hidag_paper.studies.cells import PAPER_ITEMS
from hidag_paper.studies.methods import CALIBRATED, OURS, PAPER_METHODS, SATURATED
from hidag_paper.studies.summary import PAPERS_RULE, Summary
from hidag_paper.study_reports.formatted import (
    NOTHING,
    StudyTable,
    format_estimate,
    format_number,
)

#: Within this many standard errors of the published mean a mean agrees with it.
AGREEMENT = 2.0
_NOTES = {
    OURS: "the estimator with its default settings; its law is already restricted to a graph, so "
    "rows drawn from it bring no edges of their own, whatever f(N)",
    SATURATED: "the estimator with a free probability for each joint state, the law of the paper",
    "printed": "Algorithms S.1 and S.2 as the paper prints them",
    "research-code": "the same as the research code ran them",
    "graph alone": "differences of the latent graph without those of Q",
}


@cache
def _n_edges(model: str, q: str, version: Design) -> int:
    return design(model, q, "gaussian", design=version, rng=0).n_edges


def paper_table(summaries: Sequence[Summary], version: Design) -> StudyTable:
    """Return the table in the shape of the paper's: graph, Q and f(N) by family and N."""
    own = [s for s in summaries if s.cell.items == PAPER_ITEMS]
    columns = list(dict.fromkeys((s.cell.family, s.cell.n) for s in own))
    places: dict[tuple[str, str, str], dict[str, dict[tuple[str, int], str]]] = {}
    named: dict[str, str] = {}
    for s in own:
        rule = "" if s.rule in (None, CALIBRATED) else str(s.rule)
        lines = places.setdefault((s.cell.model, s.cell.q, rule or PAPERS_RULE), {})
        at = (s.cell.family, s.cell.n)
        published = "published" + ("" if _is_papers(s.method) else f" {s.method}")
        if s.published == s.published:
            lines.setdefault(published, {})[at] = f"{s.published:g}"
        calibrated = s.rule == CALIBRATED and s.method in (OURS, SATURATED)
        several = any(other.rule not in (None, CALIBRATED) for other in own)
        name = f"{s.method}, calibrated" if calibrated and several else s.method
        lines.setdefault(name, {})[at] = format_estimate(s.shd)
        named.setdefault(s.method, _NOTES.get(s.method, ""))
        if s.method in PAPER_METHODS:
            lines.setdefault(f"{s.method}, graph alone", {})[at] = format_estimate(s.shd_graph)
            named["graph alone"] = _NOTES["graph alone"]
    rows = [
        (model, q, str(_n_edges(model, q, version)), rule, name, *(
            cells.get(at, NOTHING) for at in columns
        ))
        for (model, q, rule), lines in places.items()
        for name, cells in sorted(lines.items(), key=lambda line: "published" not in line[0])
    ]  # fmt: skip
    headings = ("model", "Q", "#edges", "f(N)", "mean SHD of", *(f"{f} {n}" for f, n in columns))
    notes = tuple((name, text) for name, text in named.items() if text)
    return StudyTable("In the shape of the paper's table", headings, tuple(rows), notes)


def _is_papers(method: str) -> bool:
    return method in (OURS, SATURATED, *PAPER_METHODS)


def agreement(summaries: Sequence[Summary]) -> tuple[str, ...]:
    """Return how many cells of the paper's own procedure agree with the published means."""
    out = []
    groups: dict[tuple[str, str | None], list[Summary]] = {}
    for s in summaries:
        if s.method in PAPER_METHODS and s.comparable:
            groups.setdefault((s.method, s.rule), []).append(s)
    for (method, rule), found in groups.items():
        outside = {"graph and Q": [], "graph alone": []}  # type: dict[str, list[str]]
        for s in found:
            for name, value in (("graph and Q", s.shd), ("graph alone", s.shd_graph)):
                if not abs(value.mean - s.published) <= AGREEMENT * value.error:
                    far = f"{s.cell.name} {format_number(value.mean)}/{format_number(s.published)}"
                    outside[name].append(far)
        for name, far_cells in outside.items():
            text = f"{method}{f' f(N) = {rule}' if rule else ''}, {name}: "
            text += f"{len(found) - len(far_cells)} of {len(found)} cells within {AGREEMENT:g} "
            text += "standard errors of the published mean"
            out.append(text + (f"; not {join_names(far_cells, limit=30)}" if far_cells else ""))
    return tuple(out)
