"""A study's rows as one line per cell, and how the cells stand against the published numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan, sqrt
from statistics import fmean, stdev

from hidag.studies.cells import Cell
from hidag.studies.rows import Row

#: Means of whole numbers that are equal on paper may differ by this much in floating point.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class CellSummary:
    """What a cell's runs say; means are over the fits that succeeded, NaN where there are none.

    Attributes
    ----------
    cell : Cell
    n_asked, n_done, n_failed : int
        Runs asked for, in the file, and of these without a fit.
    shd, shd_graph, shd_q : float
        Mean composite SHD and its two parts.
    error : float
        Monte-Carlo standard error of ``shd``; NaN with fewer than two fits.
    published : float
        Published mean; NaN where there is none.
    truth_started, true_latents : float
        Mean composite SHD of Stage I begun at the truth; mean SHD of a search on the true latents.
    tv_law, rmse_loadings : float
    cpu_seconds : float
        Of a fit.
    reasons : tuple of str
        Why fits failed, each once.
    """

    cell: Cell
    n_asked: int
    n_done: int
    n_failed: int
    shd: float
    error: float
    shd_graph: float
    shd_q: float
    published: float
    truth_started: float
    true_latents: float
    tv_law: float
    rmse_loadings: float
    cpu_seconds: float
    reasons: tuple[str, ...] = ()

    @property
    def comparable(self) -> bool:
        """Whether it can be held against a published mean: there is one, and no fit failed.

        The fits that succeed are the easy ones, so a mean over them would flatter.
        """
        return self.published == self.published and self.n_done > 0 and self.n_failed == 0

    @property
    def at_or_below(self) -> bool:
        """Whether our mean is at or below the published one."""
        return self.comparable and self.shd <= self.published + _ROUNDING

    @property
    def at_or_below_half(self) -> bool:
        """Whether our mean is at or below half the published one."""
        return self.comparable and self.shd <= self.published / 2 + _ROUNDING


@dataclass(frozen=True)
class Standing:
    """How cells stand against the published numbers.

    Attributes
    ----------
    n_compared : int
        Cells with a published number, runs, and no failed fit.
    at_or_below, at_or_below_half : int
    above : tuple of Cell
    failed : tuple of Cell
        Cells with failed fits, which are not compared.
    unfinished : tuple of Cell
        Cells with fewer runs than were asked for.
    """

    n_compared: int
    at_or_below: int
    at_or_below_half: int
    above: tuple[Cell, ...]
    failed: tuple[Cell, ...]
    unfinished: tuple[Cell, ...]


def summarise(
    rows: Iterable[Row],
    asked: Mapping[Cell, int] | None = None,
    published: Mapping[Cell, float] | None = None,
) -> list[CellSummary]:
    """Return a summary of each cell that was asked for or has rows, in the order of asking.

    Parameters
    ----------
    rows : iterable of dict
        If an address occurs twice, its first row counts.
    asked : mapping from cell to int, optional
        Replicates asked for; as many as there are rows unless given.
    published : mapping from cell to float, optional
    """
    by_cell: dict[Cell, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        by_cell[Cell.named(row["cell"])].setdefault(row["address"], row)
    cells = dict.fromkeys([*(asked or {}), *by_cell])
    known = published or {}
    out = []
    for cell in cells:
        runs = sorted(by_cell[cell].values(), key=lambda row: int(row["replicate"]))
        n_asked = len(runs) if asked is None else max(asked.get(cell, 0), len(runs))
        out.append(_summarise_cell(cell, runs, n_asked, known.get(cell, nan)))
    return out


def stand(summaries: Sequence[CellSummary]) -> Standing:
    """Return how cells stand against the published numbers."""
    compared = [summary for summary in summaries if summary.comparable]
    return Standing(
        n_compared=len(compared),
        at_or_below=sum(summary.at_or_below for summary in compared),
        at_or_below_half=sum(summary.at_or_below_half for summary in compared),
        above=tuple(summary.cell for summary in compared if not summary.at_or_below),
        failed=tuple(summary.cell for summary in summaries if summary.n_failed),
        unfinished=tuple(s.cell for s in summaries if s.n_done < s.n_asked),
    )


def _summarise_cell(cell: Cell, runs: Sequence[Row], n_asked: int, published: float) -> CellSummary:
    fits = [row for row in runs if row["status"] == "ok"]
    failed = [row for row in runs if row["status"] != "ok"]
    distances = [float(row["shd"]) for row in fits]
    return CellSummary(
        cell=cell,
        n_asked=n_asked,
        n_done=len(runs),
        n_failed=len(failed),
        shd=_mean(fits, "shd"),
        error=stdev(distances) / sqrt(len(distances)) if len(distances) > 1 else nan,
        shd_graph=_mean(fits, "shd_graph"),
        shd_q=_mean(fits, "shd_q"),
        published=published,
        truth_started=_mean(runs, "truth_started_shd"),
        true_latents=_mean(runs, "true_latents_shd_graph"),
        tv_law=_mean(fits, "tv_law"),
        rmse_loadings=_mean(fits, "rmse_loadings"),
        cpu_seconds=_mean(fits, "cpu_seconds"),
        reasons=tuple(dict.fromkeys(str(row["reason"]) for row in failed)),
    )


def _mean(rows: Iterable[Row], name: str) -> float:
    """Return the mean of what rows have under a name; NaN where none has anything."""
    values = [float(row[name]) for row in rows if row.get(name) is not None]
    return fmean(values) if values else nan
