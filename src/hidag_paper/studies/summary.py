"""Summaries of a study by cell, method and rule, and comparison with the published means."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan, sqrt
from pathlib import Path
from statistics import fmean, stdev

from hidag.exceptions import Advice, FileError, Setting
from hidag_paper.studies.catalogue import STUDIES
from hidag_paper.studies.cells import Cell
from hidag_paper.studies.methods import CALIBRATED, FITTED_METHODS, PAPER_METHODS
from hidag_paper.studies.rows import Row

#: Published mean SHD by cell, method and f(N), which is "" for methods without it.
Published = Mapping[tuple[Cell, str, str], float]

#: Folder of the published tables.
PAPER_TABLES = Path(__file__).parent / "paper_tables"
#: Name of the paper's method in its tables, and the f(N) that it recommends.
PAPERS_METHOD, PAPERS_RULE = "dcrl", "N"


def published_mean(published: Published, cell: Cell, method: str, rule: str | None) -> float | None:
    """Return the published mean to compare with, or None.

    The estimator is compared with the paper's method with the same f(N), or f(N) = N for the
    calibrated size; a baseline with the published numbers of the same name.
    """
    if method in (*FITTED_METHODS, *PAPER_METHODS):
        published_rule = PAPERS_RULE if rule in (CALIBRATED, None) else str(rule)
        return published.get((cell, PAPERS_METHOD, published_rule))
    return published.get((cell, method, ""))


def read_published(
    folder: Path = PAPER_TABLES, studies: Iterable[str] = tuple(STUDIES)
) -> dict[tuple[Cell, str, str], float]:
    """Read the published mean SHD of each cell, method and f(N).

    Parameters
    ----------
    folder : Path
        With a file for each table and the columns model, q, family, n, method, f_n, mean_shd.
        Default: the tables of the paper.
    studies : iterable of str
        Studies whose tables are read.
    """
    out: dict[tuple[Cell, str, str], float] = {}
    for name in studies:
        file = STUDIES[name].published
        if file is not None:
            out |= _read_table(folder / file)
    return out


def _read_table(path: Path) -> dict[tuple[Cell, str, str], float]:
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            return {
                (
                    Cell(row["model"], row["q"], row["family"], int(row["n"])),
                    row["method"],
                    row["f_n"],
                ): float(row["mean_shd"])
                for row in csv.DictReader(stream)
            }
    except OSError as error:
        raise FileError(
            "unreadable-file",
            "cannot read published numbers from {path}: {reason}",
            advice=Advice(
                "published-folder",
                "{setting} must be the folder that contains this file",
                {"setting": Setting("published")},
            ),
            path=path,
            reason=error.strerror or str(error),
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(
            "column-names",
            "{path} must have the columns model, q, family, n, method, f_n and mean_shd",
            path=path,
        ) from error


#: Tolerance for rounding errors of means.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Estimate:
    """A mean over runs with its Monte Carlo standard error; NaN with too few runs."""

    mean: float = nan
    error: float = nan


@dataclass(frozen=True)
class Summary:
    """Summary of the runs of a method in a cell; means are over the successful fits.

    Attributes
    ----------
    cell : Cell
    method : str
    rule : str or None
        Rule for f(N); None for methods without it.
    n_asked, n_done, n_failed : int
        Runs requested, completed, and without an estimate.
    shd, shd_graph, shd_q : Estimate
        Composite SHD and its two parts.
    graph_rate, q_rate : Estimate
        Share of runs with the exact CPDAG and the exact Q; failed fits count as wrong.
    published : float
        Published mean SHD, or NaN.
    truth_started, true_latents : Estimate
        Composite SHD of the fit started at the truth; SHD of the search on the true latents.
    true_latents_rate : Estimate
        Share of tables with the exact CPDAG by the search on the true latents.
    tv_law, rmse_loadings, cpu_seconds : float
    reasons : tuple of str
        Distinct reasons of failed fits.
    """

    cell: Cell
    method: str
    rule: str | None
    n_asked: int
    n_done: int
    n_failed: int
    shd: Estimate
    shd_graph: Estimate
    shd_q: Estimate
    graph_rate: Estimate
    q_rate: Estimate
    published: float
    truth_started: Estimate
    true_latents: Estimate
    true_latents_rate: Estimate
    tv_law: float
    rmse_loadings: float
    cpu_seconds: float
    reasons: tuple[str, ...] = ()

    @property
    def comparable(self) -> bool:
        """Whether there is a published mean and no fit failed, which would bias the mean."""
        return self.published == self.published and self.n_done > 0 and self.n_failed == 0

    @property
    def at_or_below(self) -> bool:
        """Whether the mean is at or below the published one."""
        return self.comparable and self.shd.mean <= self.published + _ROUNDING

    @property
    def at_or_below_half(self) -> bool:
        """Whether the mean is at or below half the published one."""
        return self.comparable and self.shd.mean <= self.published / 2 + _ROUNDING


@dataclass(frozen=True)
class Comparison:
    """Comparison of summaries with the published means.

    Attributes
    ----------
    n_compared : int
        Cells with a published mean, runs, and no failed fit.
    at_or_below, at_or_below_half : int
    above : tuple of Summary
    failed : tuple of Summary
        Cells with failed fits, which are not compared.
    unfinished : tuple of Summary
        Cells with fewer runs than requested.
    """

    n_compared: int
    at_or_below: int
    at_or_below_half: int
    above: tuple[Summary, ...]
    failed: tuple[Summary, ...]
    unfinished: tuple[Summary, ...]


def summarise(
    rows: Iterable[Row],
    asked: Mapping[tuple[Cell, str], int] | None = None,
    published: Published | None = None,
    rules: Sequence[str] = (),
) -> list[Summary]:
    """Summarise each cell, method and rule, in the order of the request.

    Parameters
    ----------
    rows : iterable of dict
        Of duplicate keys the first row counts.
    asked : mapping from (cell, method) to int, optional
        Requested replicates. Default: the number of rows.
    published : mapping, optional
    rules : sequence of str
        Order of the rules; others follow.
    """
    groups: dict[tuple[Cell, str], dict[str | None, dict[str, Row]]] = defaultdict(dict)
    for row in rows:
        by_rule = groups[Cell.named(row["cell"]), row["method"]]
        by_rule.setdefault(row["rule"], {}).setdefault(row["address"], row)
    out = []
    for cell, method in dict.fromkeys([*(asked or {}), *groups]):
        found = groups.get((cell, method), {})
        for rule in sorted(found or [None], key=lambda name: _rule_order(name, rules)):
            runs = sorted(found.get(rule, {}).values(), key=lambda row: int(row["replicate"]))
            n_asked = max(0 if asked is None else asked.get((cell, method), 0), len(runs))
            mean = published_mean(published or {}, cell, method, rule)
            mean = nan if mean is None else mean
            out.append(_summarise(cell, method, rule, runs, n_asked, mean))
    return out


def compare_with_paper(summaries: Sequence[Summary]) -> Comparison:
    """Compare summaries with the published means."""
    compared = [summary for summary in summaries if summary.comparable]
    return Comparison(
        n_compared=len(compared),
        at_or_below=sum(summary.at_or_below for summary in compared),
        at_or_below_half=sum(summary.at_or_below_half for summary in compared),
        above=tuple(summary for summary in compared if not summary.at_or_below),
        failed=tuple(summary for summary in summaries if summary.n_failed),
        unfinished=tuple(s for s in summaries if s.n_done < s.n_asked),
    )


def _summarise(
    cell: Cell, method: str, rule: str | None, runs: Sequence[Row], n_asked: int, published: float
) -> Summary:
    fits = [row for row in runs if row["status"] == "ok"]
    failed = [row for row in runs if row["status"] != "ok"]
    return Summary(
        cell=cell,
        method=method,
        rule=rule,
        n_asked=n_asked,
        n_done=len(runs),
        n_failed=len(failed),
        shd=_estimate(_values(fits, "shd")),
        shd_graph=_estimate(_values(fits, "shd_graph")),
        shd_q=_estimate(_values(fits, "shd_q")),
        graph_rate=_estimate([float(row["shd_graph"] == 0) for row in runs]),
        q_rate=_estimate([float(row["shd_q"] == 0) for row in runs]),
        published=published,
        truth_started=_estimate(_values(runs, "truth_started_shd")),
        true_latents=_estimate(_values(runs, "true_latents_shd_graph")),
        true_latents_rate=_estimate(
            [float(value == 0) for value in _values(runs, "true_latents_shd_graph")]
        ),
        tv_law=_estimate(_values(fits, "tv_law")).mean,
        rmse_loadings=_estimate(_values(fits, "rmse_loadings")).mean,
        cpu_seconds=_estimate(_values(fits, "cpu_seconds")).mean,
        reasons=tuple(dict.fromkeys(str(row["reason"]) for row in failed)),
    )


def _values(rows: Iterable[Row], name: str) -> list[float]:
    """Return the values of a column that are not missing."""
    return [float(row[name]) for row in rows if row.get(name) is not None]


def _estimate(values: Sequence[float]) -> Estimate:
    if not values:
        return Estimate()
    error = stdev(values) / sqrt(len(values)) if len(values) > 1 else nan
    return Estimate(fmean(values), error)


def _rule_order(rule: str | None, rules: Sequence[str]) -> tuple[int, str]:
    return (rules.index(rule), "") if rule in rules else (len(rules), rule or "")
