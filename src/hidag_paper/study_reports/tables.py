"""Tables of a study, free of any format: headings, cells as text, and what the headings mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from hidag_paper.baselines import BASELINES
from hidag_paper.studies.catalogue import study_named
from hidag_paper.studies.cells import Cell
from hidag_paper.studies.methods import CALIBRATED, FITTED_METHODS, OURS
from hidag_paper.studies.study_folder import StudyFolder
from hidag_paper.studies.summary import (
    PAPERS_RULE,
    Estimate,
    Published,
    Standing,
    Summary,
    stand,
    summarise,
)

#: A standard error of fewer tables is itself hardly known.
FEW_TABLES = 5
#: What stands where there is no number.
NOTHING = "-"
_YARDSTICK_NOTES = (
    ("truth-started", "the same of Stage I begun at the truth"),
    ("true latents", "of the graph alone, searched on the latents themselves"),
)
Line = Mapping[tuple[str, str | None], Summary]


@dataclass(frozen=True)
class StudyTable:
    """A table as text.

    Attributes
    ----------
    title : str
    headings : tuple of str
        The first is of the lines' names, the others of numbers.
    rows : tuple of tuple of str
    notes : tuple of (str, str)
        A heading and what it means.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[tuple[str, str], ...]


def shown(value: float) -> str:
    """Return a number as tables have it."""
    return NOTHING if isnan(value) else f"{value:.2f}"


def shown_estimate(estimate: Estimate) -> str:
    """Return a mean with its standard error as tables have them."""
    return f"{shown(estimate.mean)} ({shown(estimate.error)})"


def study_tables(
    summaries: Sequence[Summary], rules: Sequence[str], shows: str
) -> tuple[StudyTable, ...]:
    """Return the tables of a study: by cell, or for each method by rule where there are several."""
    if len(rules) > 1:
        return tuple(_by_rule(summaries, m, rules, shows) for m in _methods(summaries))
    return tuple(_by_cell(summaries))


def _by_cell(summaries: Sequence[Summary]) -> list[StudyTable]:
    methods = _methods(summaries)
    out = [_ours_by_cell(summaries)] if OURS in methods else []
    return out if methods == [OURS] else [*out, _all_methods_by_cell(summaries)]


def _ours_by_cell(summaries: Sequence[Summary]) -> StudyTable:
    """Return a line per cell: ours, the published mean and the yardsticks."""
    headings = (
        "cell",
        "runs",
        "ours (s.e.)",
        "graph",
        "Q",
        "published",
        "truth-started",
        "true latents",
        "CPU s",
    )
    rows = [
        (
            summary.cell.name,
            _runs(summary),
            shown_estimate(summary.shd),
            shown(summary.shd_graph.mean),
            shown(summary.shd_q.mean),
            shown(summary.published),
            shown(summary.truth_started.mean),
            shown(summary.true_latents.mean),
            shown(summary.cpu_seconds),
        )
        for summary in _of(summaries, OURS)
    ]
    notes = (
        ("ours", "mean SHD of graph and Q together, its Monte-Carlo standard error; its two parts"),
        *_YARDSTICK_NOTES,
        *_of_few(_of(summaries, OURS)),
    )
    return StudyTable("Mean SHD", headings, tuple(rows), notes)


def _all_methods_by_cell(summaries: Sequence[Summary]) -> StudyTable:
    """Return a line per cell and a column for each method, with its published mean if any."""
    methods = _methods(summaries)
    # The research code's settings are the paper's own method, whose means stand beside ours.
    beside = [
        method
        for method in methods
        if method not in FITTED_METHODS
        and any(s.published == s.published for s in _of(summaries, method))
    ]
    headings = ["cell"]
    for method in methods:
        headings += [f"{method} (s.e.)", *([f"published {method}"] if method in beside else [])]
    rows = []
    for cell, line in _lines(summaries).items():
        by_method = {method: summary for (method, _), summary in line.items()}
        row = [cell.name]
        for method in methods:
            found = by_method.get(method)
            row.append(NOTHING if found is None else _with_failures(found))
            if method in beside:
                row.append(NOTHING if found is None else shown(found.published))
        rows.append(tuple(row))
    notes = tuple((name, one.summary) for name, one in BASELINES.items() if name in methods)
    return StudyTable(
        "Mean SHD of all methods on the same tables", tuple(headings), tuple(rows), notes
    )


def _by_rule(
    summaries: Sequence[Summary], method: str, rules: Sequence[str], shows: str
) -> StudyTable:
    """Return a line per cell and a column per rule for one method."""
    mine = _of(summaries, method)
    beside = shows == "distance" and any(s.published == s.published for s in mine)
    headings = ["cell", "runs"]
    for rule in rules:
        headings.append(f"{rule} (s.e.)")
        if beside and _has_own_column(rule, rules):
            headings.append(f"published {PAPERS_RULE if rule == CALIBRATED else rule}")
    ours = method == OURS
    headings += ["Q (s.e.)"] if shows == "rate" else []
    headings += ["truth-started"] if ours and shows == "distance" else []
    headings += ["true latents"] if ours else []
    rows = []
    for cell, line in _lines(mine).items():
        by_rule = {rule: summary for (_, rule), summary in line.items()}
        any_rule = next(iter(by_rule.values()))
        row = [cell.name, _runs(any_rule)]
        for rule in rules:
            summary = by_rule.get(rule)
            value = Estimate()
            if summary is not None:
                value = summary.graph_rate if shows == "rate" else summary.shd
            row.append(shown_estimate(value))
            if beside and _has_own_column(rule, rules):
                row.append(NOTHING if summary is None else shown(summary.published))
        row += [shown_estimate(any_rule.q_rate)] if shows == "rate" else []
        row += [shown(any_rule.truth_started.mean)] if ours and shows == "distance" else []
        seen = any_rule.true_latents_rate if shows == "rate" else any_rule.true_latents
        row += [shown(seen.mean)] if ours else []
        rows.append(tuple(row))
    title, notes = _of_rates(method) if shows == "rate" else _of_distances(method)
    return StudyTable(title, tuple(headings), tuple(rows), (*notes, *_of_few(mine)))


def _has_own_column(rule: str, rules: Sequence[str]) -> bool:
    """Whether published numbers stand beside a rule; a calibrated size shares those of N."""
    return rule != CALIBRATED or PAPERS_RULE not in rules


def _of_rates(method: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    notes = [("Q", "share of tables whose Q is found without error; it does not depend on f(N)")]
    if method == OURS:
        notes.append(("true latents", "the first share, of a search on the latents themselves"))
    return f"{method}: share of tables whose CPDAG is found without error, by f(N)", tuple(notes)


def _of_distances(method: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    notes = [
        ("N, 2N, 3N", "mean SHD of graph and Q together with so many rows drawn, its error"),
        (CALIBRATED, "nothing drawn: expected counts of the size that the items warrant"),
    ]
    if method == OURS:
        notes += _YARDSTICK_NOTES
    return f"{method}: mean SHD by f(N), the rows drawn from the fitted law", tuple(notes)


def _of_few(summaries: Sequence[Summary]) -> tuple[tuple[str, str], ...]:
    """Return a note where standard errors are of too few tables to be believed."""
    if all(summary.n_done >= FEW_TABLES for summary in summaries):
        return ()
    return (("s.e.", f"says little of fewer than {FEW_TABLES} runs: two that agree have 0.00"),)


def _with_failures(summary: Summary) -> str:
    failed = f", {summary.n_failed} of {summary.n_done} failed" if summary.n_failed else ""
    return shown_estimate(summary.shd) + failed


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


# --- What the folder of a study says: tables, how they stand against the paper, what to


@dataclass(frozen=True)
class StudyReport:
    """All that a report says of a folder, in words and numbers.

    Attributes
    ----------
    title, about : str
        The study, and its design and seed.
    shows : {"distance", "rate"}
    summaries : tuple of Summary
    tables : tuple of StudyTable
    standing : tuple of str
        How means stand against the published ones, a sentence a line.
    warnings : tuple of str
        What a reader has to know before believing a number.
    """

    title: str
    about: str
    shows: str
    summaries: tuple[Summary, ...]
    tables: tuple[StudyTable, ...]
    standing: tuple[str, ...]
    warnings: tuple[str, ...]


def study_report(
    folder: StudyFolder,
    *,
    wanted: Sequence[Cell] | None = None,
    published: Published | None = None,
) -> StudyReport:
    """Return what a folder's files say.

    Parameters
    ----------
    folder : StudyFolder
    wanted : sequence of Cell, optional
        Only these.
    published : mapping, optional
        In place of the folder's own.
    """
    settings, rows = folder.settings, folder.rows()
    study = study_named(str(settings["study"]))
    # The published numbers were obtained with the research code's design and with no other.
    known = folder.published if published is None else published
    known = known if settings["design"] == "research-code" else {}
    found = summarise(rows, folder.asked, known, study.rules)
    if wanted is not None:
        found = [summary for summary in found if summary.cell in wanted]
    return StudyReport(
        title=study.title,
        about=f"{settings['study']}, design {settings['design']}, seed {settings['seed']}",
        shows=study.shows,
        summaries=tuple(found),
        tables=study_tables(found, study.rules, study.shows),
        standing=_standings(found) if study.shows == "distance" else (),
        warnings=(*_failures(found), *_mixed_sources(folder, rows)),
    )


def _standings(summaries: Sequence[Summary]) -> tuple[str, ...]:
    """Return how each of our ways of fitting stands against the published means."""
    groups: dict[tuple[str, str | None], list[Summary]] = {}
    for summary in summaries:
        groups.setdefault((summary.method, summary.rule), []).append(summary)
    out: list[str] = []
    ours = [key for key in groups if key[0] == OURS]
    for key in ours:
        found = stand(groups[key])
        if found.n_compared and len(ours) > 1:
            out.append(
                f"f(N) {key[1]}: {found.at_or_below} of {found.n_compared} cells at or below "
                f"published, {found.at_or_below_half} at or below half of it; above: "
                f"{_names(found.above)}"
            )
        elif found.n_compared:
            out += _standing(found)
    if not out:
        out.append("no cell was compared with a published number: the paper has none for these")
    everyone = stand(summaries)
    if everyone.failed:
        out.append(f"cells with failed fits, not compared: {_names(everyone.failed)}")
    if everyone.unfinished:
        out.append(f"cells with runs to come: {_names(everyone.unfinished)}")
    return tuple(out)


def _standing(found: Standing) -> list[str]:
    return [
        f"cells at or below published:  {found.at_or_below} of {found.n_compared}",
        f"cells at or below half of it: {found.at_or_below_half} of {found.n_compared}",
        f"cells above:                  {_names(found.above)}",
    ]


def _failures(summaries: Sequence[Summary]) -> tuple[str, ...]:
    out = []
    for summary in summaries:
        method = "" if summary.method == OURS else f" by {summary.method}"
        for reason in summary.reasons:
            out.append(
                f"{summary.cell.name}: {summary.n_failed} of {summary.n_done} fits{method} failed "
                f"and are not in the means: {reason}"
            )
    return tuple(dict.fromkeys(out))


def _mixed_sources(folder: StudyFolder, rows: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    if len({row.get("source") for row in rows}) < 2:
        return ()
    return (
        f"the rows of {folder.path} were made by different states of the library's source; run the "
        "study into a new folder for numbers of one of them",
    )


def _names(summaries: Sequence[Summary]) -> str:
    names = dict.fromkeys(summary.cell.name for summary in summaries)
    return f"{len(names)}: " + ", ".join(names) if names else "none"
