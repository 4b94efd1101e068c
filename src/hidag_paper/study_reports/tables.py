"""Tables of a study and their comparison with the published means, independent of the format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hidag_paper.baselines import BASELINES
from hidag_paper.studies.catalogue import study_named
from hidag_paper.studies.cells import Cell
from hidag_paper.studies.methods import CALIBRATED, FITTED_METHODS, OURS
from hidag_paper.studies.study_folder import StudyFolder
from hidag_paper.studies.summary import (
    PAPERS_RULE,
    Estimate,
    Published,
    Summary,
    compare_with_paper,
    summarise,
)
from hidag_paper.study_reports.formatted import (
    NOTHING,
    StudyTable,
    format_estimate,
    format_number,
)
from hidag_paper.study_reports.paper_shape import agreement, paper_table

#: Standard errors of fewer tables are unreliable.
FEW_TABLES = 5
_REFERENCE_NOTES = (
    ("truth-started", "the same for fits started at the truth"),
    ("true latents", "SHD of the graph estimated from the true latents"),
)
Line = Mapping[tuple[str, str | None], Summary]


def study_tables(
    summaries: Sequence[Summary], rules: Sequence[str], shows: str
) -> tuple[StudyTable, ...]:
    """Return the tables by cell, or with several rules a table by rule for each method."""
    if len(rules) > 1:
        return tuple(_by_rule(summaries, m, rules, shows) for m in _methods(summaries))
    methods = _methods(summaries)
    tables = [_ours_by_cell(summaries)] if OURS in methods else []
    return tuple(tables if methods == [OURS] else [*tables, _all_methods_by_cell(summaries)])


def _ours_by_cell(summaries: Sequence[Summary]) -> StudyTable:
    """Return a row per cell: our mean, the published mean and the references."""
    ours = ("cell", "runs", "ours (s.e.)", "graph", "Q")
    headings = (*ours, "published", "truth-started", "true latents", "CPU s")
    rows = [
        (
            summary.cell.name,
            _runs(summary),
            format_estimate(summary.shd),
            format_number(summary.shd_graph.mean),
            format_number(summary.shd_q.mean),
            format_number(summary.published),
            format_number(summary.truth_started.mean),
            format_number(summary.true_latents.mean),
            format_number(summary.cpu_seconds),
        )
        for summary in _of(summaries, OURS)
    ]
    notes = (
        ("ours", "mean SHD of graph and Q with its Monte Carlo standard error; its two parts"),
        *_REFERENCE_NOTES,
        *_few_runs_note(_of(summaries, OURS)),
    )
    return StudyTable("Mean SHD", headings, tuple(rows), notes)


def _all_methods_by_cell(summaries: Sequence[Summary]) -> StudyTable:
    """Return a row per cell and a column per method, with its published mean if any."""
    methods = _methods(summaries)
    # The published means of the paper's own method are in the first table.
    published = [
        method
        for method in methods
        if method not in FITTED_METHODS
        and any(s.published == s.published for s in _of(summaries, method))
    ]
    headings = ["cell"]
    for method in methods:
        headings += [f"{method} (s.e.)", *([f"published {method}"] if method in published else [])]
    rows = []
    for cell, line in _lines(summaries).items():
        by_method = {method: summary for (method, _), summary in line.items()}
        row = [cell.name]
        for method in methods:
            found = by_method.get(method)
            row.append(NOTHING if found is None else _with_failures(found))
            if method in published:
                row.append(NOTHING if found is None else format_number(found.published))
        rows.append(tuple(row))
    notes = tuple((name, one.summary) for name, one in BASELINES.items() if name in methods)
    return StudyTable(
        "Mean SHD of all methods on the same tables", tuple(headings), tuple(rows), notes
    )


def _by_rule(
    summaries: Sequence[Summary], method: str, rules: Sequence[str], shows: str
) -> StudyTable:
    """Return a row per cell and a column per rule for one method."""
    own = _of(summaries, method)
    published = shows == "distance" and any(s.published == s.published for s in own)
    headings = ["cell", "runs"]
    for rule in rules:
        headings.append(f"{rule} (s.e.)")
        if published and _has_published_column(rule, rules):
            headings.append(f"published {PAPERS_RULE if rule == CALIBRATED else rule}")
    ours = method == OURS
    headings += ["Q (s.e.)"] if shows == "rate" else []
    headings += ["truth-started"] if ours and shows == "distance" else []
    headings += ["true latents"] if ours else []
    rows = []
    for cell, line in _lines(own).items():
        by_rule = {rule: summary for (_, rule), summary in line.items()}
        any_rule = next(iter(by_rule.values()))
        row = [cell.name, _runs(any_rule)]
        for rule in rules:
            summary = by_rule.get(rule)
            value = Estimate()
            if summary is not None:
                value = summary.graph_rate if shows == "rate" else summary.shd
            row.append(format_estimate(value))
            if published and _has_published_column(rule, rules):
                row.append(NOTHING if summary is None else format_number(summary.published))
        row += [format_estimate(any_rule.q_rate)] if shows == "rate" else []
        row += [format_number(any_rule.truth_started.mean)] if ours and shows == "distance" else []
        reference = any_rule.true_latents_rate if shows == "rate" else any_rule.true_latents
        row += [format_number(reference.mean)] if ours else []
        rows.append(tuple(row))
    title, notes = _rate_notes(method) if shows == "rate" else _distance_notes(method)
    return StudyTable(title, tuple(headings), tuple(rows), (*notes, *_few_runs_note(own)))


def _has_published_column(rule: str, rules: Sequence[str]) -> bool:
    """Whether a rule has published numbers of its own; the calibrated size shares those of N."""
    return rule != CALIBRATED or PAPERS_RULE not in rules


def _rate_notes(method: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    notes = [("Q", "share of tables with the exact Q; it does not depend on f(N)")]
    if method == OURS:
        notes.append(("true latents", "share of exact CPDAGs estimated from the true latents"))
    return f"{method}: share of tables with the exact CPDAG, by f(N)", tuple(notes)


def _distance_notes(method: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    notes = [
        ("N, 2N, 3N", "mean SHD of graph and Q with f(N) rows drawn, and its standard error"),
        (CALIBRATED, "no rows drawn: expected counts with an effective sample size"),
    ]
    if method == OURS:
        notes += _REFERENCE_NOTES
    return (
        f"{method}: mean SHD by f(N), the number of rows drawn from the fitted distribution",
        tuple(notes),
    )


def _few_runs_note(summaries: Sequence[Summary]) -> tuple[tuple[str, str], ...]:
    """Return a note if standard errors are based on few tables."""
    if all(summary.n_done >= FEW_TABLES for summary in summaries):
        return ()
    return (("s.e.", f"unreliable with fewer than {FEW_TABLES} runs"),)


def _with_failures(summary: Summary) -> str:
    failed = f", {summary.n_failed} of {summary.n_done} failed" if summary.n_failed else ""
    return format_estimate(summary.shd) + failed


def _runs(summary: Summary) -> str:
    runs = str(summary.n_done)
    if summary.n_done < summary.n_asked:
        runs += f" of {summary.n_asked}"
    if summary.n_failed:
        runs += f", {summary.n_failed} failed"
    return runs


def _lines(summaries: Sequence[Summary]) -> dict[Cell, Line]:
    out: dict[Cell, dict[tuple[str, str | None], Summary]] = {}
    for summary in summaries:
        out.setdefault(summary.cell, {})[summary.method, summary.rule] = summary
    return dict(out)


def _of(summaries: Sequence[Summary], method: str) -> list[Summary]:
    return [summary for summary in summaries if summary.method == method]


def _methods(summaries: Sequence[Summary]) -> list[str]:
    return list(dict.fromkeys(summary.method for summary in summaries))


@dataclass(frozen=True)
class StudyReport:
    """Content of the report on a study.

    Attributes
    ----------
    title, about : str
        Title of the study, and its design and seed.
    shows : {"distance", "rate"}
    summaries : tuple of Summary
    tables : tuple of StudyTable
    like_paper : tuple of StudyTable
        In the shape of the paper's table; for files, as it is too wide for a terminal.
    comparison : tuple of str
        Comparison with the published means.
    warnings : tuple of str
        Failed fits and mixed versions.
    """

    title: str
    about: str
    shows: str
    summaries: tuple[Summary, ...]
    tables: tuple[StudyTable, ...]
    like_paper: tuple[StudyTable, ...]
    comparison: tuple[str, ...]
    warnings: tuple[str, ...]


def study_report(
    folder: StudyFolder,
    *,
    wanted: Sequence[Cell] | None = None,
    published: Published | None = None,
) -> StudyReport:
    """Return the report on a folder.

    Parameters
    ----------
    folder : StudyFolder
    wanted : sequence of Cell, optional
        Default: all.
    published : mapping, optional
        Default: those of the folder.
    """
    settings, rows = folder.settings, folder.rows()
    study = study_named(str(settings["study"]))
    # The published numbers are those of the research-code design.
    known = folder.published if published is None else published
    known = known if settings["design"] == "research-code" else {}
    found = summarise(rows, folder.asked, known, study.rules)
    if wanted is not None:
        found = [summary for summary in found if summary.cell in wanted]
    like_paper = []
    if study.shows == "distance" and any(s.published == s.published for s in found):
        like_paper.append(paper_table(found, settings["design"]))
    return StudyReport(
        title=study.title,
        about=f"{settings['study']}, design {settings['design']}, seed {settings['seed']}",
        shows=study.shows,
        summaries=tuple(found),
        tables=study_tables(found, study.rules, study.shows),
        comparison=_comparison(found) if study.shows == "distance" else (),
        like_paper=tuple(like_paper),
        warnings=(*_failures(found), *_mixed_sources(rows, folder)),
    )


def _comparison(summaries: Sequence[Summary]) -> tuple[str, ...]:
    """Return the comparison of our means with the published ones, by rule."""
    groups: dict[tuple[str, str | None], list[Summary]] = {}
    for summary in summaries:
        groups.setdefault((summary.method, summary.rule), []).append(summary)
    out: list[str] = []
    ours = [key for key in groups if key[0] == OURS]
    for key in ours:
        found = compare_with_paper(groups[key])
        if found.n_compared and len(ours) > 1:
            out.append(
                f"f(N) {key[1]}: {found.at_or_below} of {found.n_compared} cells at or below "
                f"published, {found.at_or_below_half} at or below half of it; above: "
                f"{_names(found.above)}"
            )
        elif found.n_compared:
            out += [
                f"cells at or below published:  {found.at_or_below} of {found.n_compared}",
                f"cells at or below half of it: {found.at_or_below_half} of {found.n_compared}",
                f"cells above:                  {_names(found.above)}",
            ]
    out += agreement(summaries)
    if not out:
        out.append("no comparison: the paper has no numbers for these cells")
    overall = compare_with_paper(summaries)
    if overall.failed:
        out.append(f"cells with failed fits, not compared: {_names(overall.failed)}")
    if overall.unfinished:
        out.append(f"cells with missing runs: {_names(overall.unfinished)}")
    return tuple(out)


def _failures(summaries: Sequence[Summary]) -> tuple[str, ...]:
    out = []
    for summary in summaries:
        method = "" if summary.method == OURS else f" by {summary.method}"
        for reason in summary.reasons:
            out.append(
                f"{summary.cell.name}: {summary.n_failed} of {summary.n_done} fits{method} failed "
                f"and are excluded from the means: {reason}"
            )
    return tuple(dict.fromkeys(out))


def _mixed_sources(rows: Sequence[Mapping[str, object]], folder: StudyFolder) -> tuple[str, ...]:
    if len({row.get("source") for row in rows}) < 2:
        return ()
    return (
        f"the rows of {folder.path} come from different versions of the source code; use a new "
        "folder for results of one version",
    )


def _names(summaries: Sequence[Summary]) -> str:
    names = dict.fromkeys(summary.cell.name for summary in summaries)
    return f"{len(names)}: " + ", ".join(names) if names else "none"
