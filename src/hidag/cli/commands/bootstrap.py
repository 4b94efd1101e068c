"""`hidag bootstrap`: how sure a saved fit is, and its report anew with that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from hidag.causal.causal_effects import AverageEffects, average_effects
from hidag.cli.commands.inspection import load_result
from hidag.cli.console import collected_warnings, counting_bar, say
from hidag.cli.data_source import weights_beside
from hidag.cli.folders import check_folder, fill_folder
from hidag.cli.output_files import BOOTSTRAP_FILES, RESAMPLES, files_read, number, write_csv
from hidag.cli.read_options import read_again
from hidag.exceptions import HidagError
from hidag.inference.bootstrap import BootstrapProgress, bootstrap
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.inference.intervals import MIN_REPLICATES
from hidag.reporting.diagnostic_sections import (
    LATENTS_WITH_ITEMS,
    MOST_CHOICES,
    Panel,
    bootstrap_panel,
    effects_panel,
)
from hidag.reporting.fit_report import write_report
from hidag.reporting.misfit import lost_latents
from hidag.reporting.sections import EFFECTS_HEADING, ReportParts, read_parts, write_parts
from hidag.results import FitResult


@dataclass(frozen=True)
class BootstrapOrder:
    """What the user asked for; attributes as the options of the command."""

    fit: Path
    table: Path
    resamples: int
    kind: str
    start: str
    jobs: int
    seed: int
    weights: str | None = None
    missing: tuple[str, ...] = ()


def run_bootstrap(order: BootstrapOrder) -> None:
    """Carry out `hidag bootstrap`."""
    result = load_result(order.fit)
    folder = order.fit if order.fit.is_dir() else order.fit.parent
    beside = () if order.weights is None else (order.weights,)
    rows, labels = read_again(result, order.table, beside, order.missing)
    weights = weights_beside(labels, order.weights, rows)
    check_folder(folder, BOOTSTRAP_FILES, files_read(order.table), sign=BOOTSTRAP_FILES[-1])
    with collected_warnings(), counting_bar() as draw:
        found = bootstrap(
            result,
            rows,
            n_resamples=order.resamples,
            kind=order.kind,
            start=order.start,
            sample_weight=weights,
            n_jobs=order.jobs,
            random_state=order.seed,
            observer=_observer(draw),
            folder=folder / RESAMPLES,
        )
    effects = bootstrapped_effects(result, found)
    enough = found.n_refits >= MIN_REPLICATES
    tables = (
        found.edge_table(),
        found.q_table(),
        found.coefficient_table() if enough else [],
        found.law_table() if enough else [],
        [] if effects is None else effects.rows(),
    )
    writers = {
        name: partial(
            write_csv,
            header=tuple(table[0]),
            rows=[
                [number(c) if isinstance(c, float) else c for c in row.values()] for row in table
            ],
        )
        for name, table in zip(BOOTSTRAP_FILES, tables, strict=False)
        if table
    }
    files: dict[str, Callable[[Path], object]] = {**writers, BOOTSTRAP_FILES[-1]: found.save}
    before = refits_before(folder)
    gone = [name for name in BOOTSTRAP_FILES if name not in files and (folder / name).exists()]
    fill_folder(folder, files, BOOTSTRAP_FILES)
    say(found.summary())
    page = folder / "report.html"
    kept = folder / "report.json"
    parts = read_parts(kept) if kept.is_file() else ReportParts()
    # Without intervals too: those of an earlier bootstrap are not this one's.
    if effects is not None or EFFECTS_HEADING in [part.heading for part in parts.sections]:
        parts = _with_panel(parts, effects_panel(result, effects), first=False)
    parts = with_bootstrap(parts, found)
    write_parts(parts, kept)
    write_report(result, page, parts)
    say(f"\nwrote {', '.join(files)} into {folder}; the report {page} says how sure it is")
    if before is not None:
        also = f", and {', '.join(gone)} removed" if gone else ""
        refits = "1 refit" if before == 1 else f"{before} refits"
        say(f"what an earlier bootstrap of {refits} had said is replaced there{also}")


def refits_before(folder: Path) -> int | None:
    """Return how many refits an earlier bootstrap in a folder has; None where there is none."""
    try:
        return BootstrapResult.load(folder / BOOTSTRAP_FILES[-1]).n_refits
    except (HidagError, OSError):
        return None


def bootstrapped_effects(result: FitResult, found: BootstrapResult) -> AverageEffects | None:
    """Return average effects with the refits' intervals; None where there can be none."""
    if found.n_refits < MIN_REPLICATES or len(result.latent_names) < 2 or not found.joint.shape[1]:
        return None
    items = len(result.latent_names) <= LATENTS_WITH_ITEMS
    return average_effects(result, items=items, replicates=found, limit=MOST_CHOICES)


def with_bootstrap(parts: ReportParts, found: BootstrapResult) -> ReportParts:
    """Return the parts of a report with what a bootstrap adds, in place of an earlier one's."""
    pairs = found.edge_table()
    return replace(
        _with_panel(parts, bootstrap_panel(found), first=True),
        support=tuple((row["one"], row["other"], float(row["joined"])) for row in pairs),
        directions=tuple(_directions(pairs)),
        n_resampled=found.n_refits,
        not_found_again=lost_latents(found),
    )


def _directions(pairs: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, float]]:
    """Yield cause, effect and the share of refits with that direction, of the fit's arrows."""
    for row in pairs:
        one, other = row["one"], row["other"]
        if row["fit"] == "->":
            yield one, other, float(row["one_causes_other"])
        elif row["fit"] == "<-":
            yield other, one, float(row["other_causes_one"])


def _with_panel(parts: ReportParts, panel: Panel, *, first: bool) -> ReportParts:
    """Return the parts with a panel in the place of one with its heading, else first or last."""
    section, tables = panel
    headings = [part.heading for part in parts.sections]
    old = {
        name for part in parts.sections if part.heading == section.heading for name in part.tables
    }
    sections = [part for part in parts.sections if part.heading != section.heading]
    end = 0 if first else len(sections)
    place = headings.index(section.heading) if section.heading in headings else end
    sections.insert(place, section)
    return replace(
        parts,
        sections=tuple(sections),
        tables=(*tables, *(t for t in parts.tables if t.name not in old)),
    )


def _observer(
    draw: Callable[[str, int, int], None] | None,
) -> Callable[[BootstrapProgress], None] | None:
    if draw is None:
        return None
    return lambda progress: draw("refits", progress.n_done, progress.n_resamples)
