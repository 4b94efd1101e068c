"""A study's rows as one line per cell, method and rule, and how they stand against the paper."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan, sqrt
from pathlib import Path
from statistics import fmean, stdev

from hidag.exceptions import FileError
from hidag_paper.studies.catalogue import STUDIES
from hidag_paper.studies.cells import Cell
from hidag_paper.studies.methods import CALIBRATED, FITTED_METHODS
from hidag_paper.studies.rows import Row

# --- Published numbers: the means that the paper prints, as CSV files that come with the

#: Published mean SHD by cell, method and f(N); "" where a method has no f(N).
Published = Mapping[tuple[Cell, str, str], float]

#: Where the paper's tables lie.
PAPER_TABLES = Path(__file__).parent / "paper_tables"
#: What the paper's tables call its own method, and the f(N) that it recommends.
PAPERS_METHOD, PAPERS_RULE = "dcrl", "N"


def published_beside(
    published: Published, cell: Cell, method: str, rule: str | None
) -> float | None:
    """Return the published mean that one of our means is to stand beside, if there is one.

    A fit of ours stands beside the paper's own method with the same f(N); with a calibrated number
    of rows, beside f(N) = N. A baseline stands beside the published numbers of its name.
    """
    if method in FITTED_METHODS:
        beside = PAPERS_RULE if rule in (CALIBRATED, None) else str(rule)
        return published.get((cell, PAPERS_METHOD, beside))
    return published.get((cell, method, ""))


def read_published(
    folder: Path = PAPER_TABLES, studies: Iterable[str] = tuple(STUDIES)
) -> dict[tuple[Cell, str, str], float]:
    """Return the published mean SHD of each cell, method and f(N).

    Parameters
    ----------
    folder : Path
        With a file for each table, whose columns are model, q, family, n, method, f_n, mean_shd;
        the paper's own unless given.
    studies : iterable of str
        Whose tables are read.
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
            f"cannot read published numbers from {path}: {error.strerror or error}; --published "
            "takes the folder that holds this file"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"{path} is not a table of published numbers: expected the columns model, q, family, "
            "n, method, f_n and mean_shd"
        ) from error


# ---

#: Means of whole numbers that are equal on paper may differ by this much in floating point.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Estimate:
    """A mean over runs with its Monte-Carlo standard error; NaN where there are too few runs."""

    mean: float = nan
    error: float = nan


@dataclass(frozen=True)
class Summary:
    """What the runs of a method in a cell say; means are over the fits that succeeded.

    Attributes
    ----------
    cell : Cell
    method : str
    rule : str or None
        How many rows were drawn from the fitted law; None for methods that draw none.
    n_asked, n_done, n_failed : int
        Runs asked for, in the folder, and of these without an estimate.
    shd, shd_graph, shd_q : Estimate
        Composite SHD and its two parts.
    graph_rate, q_rate : Estimate
        Share of the runs whose CPDAG, and whose Q, is without error. A failed fit found neither.
    published : float
        Published mean SHD; NaN where there is none.
    truth_started, true_latents : Estimate
        Composite SHD of Stage I begun at the truth; SHD of a search on the true latents.
    true_latents_rate : Estimate
        Share of the tables whose CPDAG a search on the true latents finds.
    tv_law, rmse_loadings, cpu_seconds : float
    reasons : tuple of str
        Why fits failed, each once.
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
        """Whether it can be held against a published mean: there is one, and no fit failed.

        The fits that succeed are the easy ones, so a mean over them would flatter.
        """
        return self.published == self.published and self.n_done > 0 and self.n_failed == 0

    @property
    def at_or_below(self) -> bool:
        """Whether our mean is at or below the published one."""
        return self.comparable and self.shd.mean <= self.published + _ROUNDING

    @property
    def at_or_below_half(self) -> bool:
        """Whether our mean is at or below half the published one."""
        return self.comparable and self.shd.mean <= self.published / 2 + _ROUNDING


@dataclass(frozen=True)
class Standing:
    """How summaries stand against the published numbers.

    Attributes
    ----------
    n_compared : int
        Those with a published number, runs, and no failed fit.
    at_or_below, at_or_below_half : int
    above : tuple of Summary
    failed : tuple of Summary
        Those with failed fits, which are not compared.
    unfinished : tuple of Summary
        Those with fewer runs than were asked for.
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
    """Return a summary of each cell, method and rule, in the order of asking.

    Parameters
    ----------
    rows : iterable of dict
        If a key occurs twice, its first row counts.
    asked : mapping from (cell, method) to int, optional
        Replicates asked for; as many as there are rows unless given.
    published : mapping, optional
    rules : sequence of str
        In this order; others come after them as they occur.
    """
    groups: dict[tuple[Cell, str], dict[str | None, dict[str, Row]]] = defaultdict(dict)
    for row in rows:
        by_rule = groups[Cell.named(row["cell"]), row["method"]]
        by_rule.setdefault(row["rule"], {}).setdefault(row["address"], row)
    out = []
    for cell, method in dict.fromkeys([*(asked or {}), *groups]):
        found = groups.get((cell, method), {})
        for rule in sorted(found or [None], key=lambda name: _place(name, rules)):
            runs = sorted(found.get(rule, {}).values(), key=lambda row: int(row["replicate"]))
            wanted = len(runs) if asked is None else asked.get((cell, method), 0)
            beside = published_beside(published or {}, cell, method, rule)
            out.append(
                _summarise(
                    cell,
                    method,
                    rule,
                    runs,
                    max(wanted, len(runs)),
                    nan if beside is None else beside,
                )
            )
    return out


def stand(summaries: Sequence[Summary]) -> Standing:
    """Return how summaries stand against the published numbers."""
    compared = [summary for summary in summaries if summary.comparable]
    return Standing(
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
    """Return what rows have under a name, where they have anything."""
    return [float(row[name]) for row in rows if row.get(name) is not None]


def _estimate(values: Sequence[float]) -> Estimate:
    if not values:
        return Estimate()
    error = stdev(values) / sqrt(len(values)) if len(values) > 1 else nan
    return Estimate(fmean(values), error)


def _place(rule: str | None, rules: Sequence[str]) -> tuple[int, str]:
    return (rules.index(rule), "") if rule in rules else (len(rules), rule or "")
