"""What the folder of a study says: tables, how they stand against the paper, what to beware of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hidag.report.study_tables import StudyTable, study_tables
from hidag.studies import (
    OURS,
    Published,
    Standing,
    StudyFolder,
    Summary,
    stand,
    study_named,
    summarise,
)
from hidag.studies.cells import Cell


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
