"""Parts of a fit as CSV files, and the list of files that a fit leaves behind."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.cli.commands.inspection import load_result
from hidag.cli.folders import FIT_SIGN, Writer, is_one_of
from hidag.cli.messages import render
from hidag.data.readers import find_part
from hidag.diagnostics.item_fit import COLUMNS as ITEM_COLUMNS
from hidag.diagnostics.pair_residuals import COLUMNS as PAIR_COLUMNS
from hidag.diagnostics.person_fit_statistics import COLUMNS as PERSON_COLUMNS
from hidag.diagnostics.predictive_checks import COLUMNS as CHECK_COLUMNS
from hidag.exceptions import FileError, HidagError
from hidag.inference.bootstrap import remove_refits
from hidag.latent.laws import NetworkLaw
from hidag.plotting.figure import render_png, size_of_graph, size_of_q
from hidag.plotting.graph import plot_graph
from hidag.plotting.q_matrix import plot_q
from hidag.reporting.content import ReportContent, save_content
from hidag.reporting.html_page import write_page
from hidag.reporting.model_description import all_binary
from hidag.reporting.report import render_report
from hidag.results import FitResult

#: The latent law is written state by state up to this many joint states.
LISTED_STATES = 1 << 12

#: All that a fit may write; the sign comes last and tells that the others are there.
FIT_FILES = (
    "q.csv",
    "loadings.csv",
    "latent_law.csv",
    "latent_tables.csv",
    "graph.json",
    "graph.dot",
    "posterior.csv",
    "trace.csv",
    "q.png",
    "graph.png",
    "report.json",
    "report.html",
    FIT_SIGN,
)


def fit_files(
    result: FitResult,
    values: NDArray[np.float64],
    *,
    content: ReportContent,
    plots: bool = True,
    ids: Sequence[object] | None = None,
) -> dict[str, Writer]:
    """Return a writer for each file of a fit, in the order of `FIT_FILES`.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
        The rows whose posteriors are written.
    content : ReportContent
        What the report says beyond the fit.
    plots : bool
        Whether there are pictures, in this report and in those made anew of it.
    ids : sequence, length N, optional
        Names of the rows; their numbers unless given.
    """
    content = replace(content, plots=plots)
    latents = list(result.latent_names)
    q, loadings = result.q_matrix, result.loadings
    writers: dict[str, Writer] = {
        "q.csv": partial(
            write_csv,
            header=["item", *latents],
            rows=([name, *q[j].tolist()] for j, name in enumerate(result.item_names)),
        ),
        "loadings.csv": partial(
            write_csv,
            header=[
                *("item", "family", "intercept", *result.terms.names(latents), "dispersion"),
                *(f"cutpoint_{c + 2}" for c in range(result.cutpoints.shape[1])),
            ],
            rows=(
                [name, result.families[j], number(result.intercept[r])]
                + [number(value) for value in loadings[r]]
                + [number(value) for value in (result.dispersion[j], *result.cutpoints[j])]
                for r, (j, name) in enumerate(
                    zip(result.responses.item, result.response_names, strict=True)
                )
            ),
        ),
        "graph.json": lambda path: path.write_text(result.graph.to_json() + "\n", "utf-8"),
        "graph.dot": lambda path: path.write_text(result.graph.to_dot(), "utf-8"),
        "posterior.csv": partial(
            write_csv,
            header=["row" if ids is None else "id", *_posterior_names(result)],
            rows=(
                [row + 1 if ids is None else ids[row], *(f"{p:.6f}" for p in chances)]
                for row, chances in enumerate(_posterior(result, values))
            ),
        ),
        "trace.csv": partial(
            write_csv,
            header=["step", "objective", "largest_move"],
            rows=([i + 1, *(number(v) for v in row)] for i, row in enumerate(result.trace)),
        ),
        "report.json": lambda path: save_content(content, path),
        "report.html": lambda path: write_page(render_report(result, content, render=render), path),
        FIT_SIGN: result.save,
    }
    if result.law.space.n_states <= LISTED_STATES:
        states = result.law.space.states()
        writers["latent_law.csv"] = partial(
            write_csv,
            header=[*latents, "probability"],
            rows=(
                [*state.tolist(), number(p)]
                for state, p in zip(states, result.law.probabilities, strict=True)
            ),
        )
    if isinstance(result.law, NetworkLaw):
        writers["latent_tables.csv"] = partial(
            write_csv,
            header=["latent", "level", "given", "probability"],
            rows=_table_rows(result.law, latents),
        )
    if plots:
        writers["q.png"] = lambda path: path.write_bytes(
            render_png(lambda ax: plot_q(result, ax), size_of_q(*q.shape))
        )
        writers["graph.png"] = lambda path: path.write_bytes(
            render_png(
                lambda ax: plot_graph(result.graph, ax), size_of_graph(result.graph), fill=True
            )
        )
    return {name: writers[name] for name in FIT_FILES if name in writers}


def _posterior_names(result: FitResult) -> list[str]:
    """Return the columns of the posterior: P(latent = 1), or one column for each level."""
    if all_binary(result):
        return list(result.latent_names)
    pairs = zip(result.latent_names, result.terms.levels, strict=True)
    return [f"{name}={level}" for name, m in pairs for level in range(m)]


def _posterior(result: FitResult, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities that go with `_posterior_names`, one row per row of the table."""
    if all_binary(result):
        return result.posterior(values)
    return np.hstack(result.posterior_levels(values))


def _table_rows(law: NetworkLaw, latents: Sequence[str]) -> Iterator[list[str]]:
    """Yield P(latent = level) for each configuration of its parents in the law's graph."""
    for k, (causes, table) in enumerate(zip(law.parents, law.tables, strict=True)):
        for levels in np.ndindex(*table.shape[:-1]):
            given = "; ".join(f"{latents[a]}={m}" for a, m in zip(causes, levels, strict=True))
            for level in range(1, table.shape[-1]):
                yield [latents[k], f"{level}", given, number(table[levels][level])]


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def number(value: float) -> str:
    """Return a number as CSV files hold it: ten digits, empty for NaN."""
    return "" if np.isnan(value) else f"{float(value):.10g}"


def jsonable(value: Any) -> Any:
    """Return NaN as null, which JSON has, all the way down."""
    if isinstance(value, dict):
        return {key: jsonable(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(entry) for entry in value]
    return None if isinstance(value, float) and value != value else value


# --- What was found out about an earlier fit, in a folder that a new fit is written into

#: What `hidag bootstrap` writes beside a fit; the last tells that the others are its own.
BOOTSTRAP_FILES = (
    "edge_support.csv", "q_support.csv", "intervals.csv", "law_intervals.csv",
    "effect_intervals.csv", "bootstrap.npz",
)  # fmt: skip
#: Refits stay in a folder of their own, so that more can be added.
RESAMPLES = "resamples"

#: What `hidag goodness` writes, with the first lines that tell its files from somebody else's;
#: the last one tells that the others are there.
GOODNESS_FILES = {
    "pairs.csv": PAIR_COLUMNS,
    "items.csv": ITEM_COLUMNS,
    "checks.csv": CHECK_COLUMNS,
    "persons.csv": PERSON_COLUMNS,
}


def is_another_fit(folder: Path, result: FitResult) -> bool:
    """Return whether a folder holds a fit whose refits are none of this one's."""
    try:
        old = load_result(folder)
    except HidagError:
        return True
    pairs = [
        (getattr(old, name), getattr(result, name))
        for name in ("intercept", "loadings", "q_matrix")
    ]
    return not all(np.array_equal(one, other) for one, other in pairs)


def remove_bootstrap(folder: Path, *, refits: bool) -> list[str]:
    """Remove what a bootstrap left beside a fit, and return the names of what is gone.

    Parameters
    ----------
    folder : Path
    refits : bool
        Whether its refits go as well: they take long, and are as good for the same fit made again.
    """
    gone = []
    # Without it, files of these names are somebody else's.
    if (folder / BOOTSTRAP_FILES[-1]).is_file():
        for name in BOOTSTRAP_FILES:
            if (folder / name).is_file():
                (folder / name).unlink()
                gone.append(name)
    if refits and remove_refits(folder / RESAMPLES):
        gone.append(RESAMPLES)
    return gone


def remove_goodness(folder: Path) -> list[str]:
    """Remove what `hidag goodness` wrote into a folder, and return the names of what is gone."""
    gone = goodness_files(folder)
    for name in gone:
        (folder / name).unlink()
    return gone


def goodness_files(folder: Path) -> list[str]:
    """Return the names of what `hidag goodness` wrote into a folder."""
    lines = {name: _first_line(folder / name) for name in GOODNESS_FILES}
    own = {name for name, columns in GOODNESS_FILES.items() if lines[name] == ",".join(columns)}
    # Earlier versions wrote what cannot be said about many latents as a table without columns.
    if list(GOODNESS_FILES)[-1] in own:
        own |= {name for name in GOODNESS_FILES if lines[name] == ""}
    return [name for name in GOODNESS_FILES if name in own]


def _first_line(file: Path) -> str | None:
    """Return the first line of a file; None if there is no such file, or it is no text."""
    try:
        with file.open(encoding="utf-8") as stream:
            return stream.readline().rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return None


# --- Single files that commands write: never over what they read, nor over part of a fit


def check_file(out: Path | None, inputs: Iterable[Path | None], *, own: Path | None = None) -> None:
    """Make sure, before any long work, that a file may be written.

    Parameters
    ----------
    out : Path or None
        The file that will be written; with None there is nothing to check.
    inputs : iterable of Path or None
        What the command reads: files, and folders with a fit or a table.
    own : Path, optional
        A file of a fit that the command itself is there to write.

    Raises
    ------
    FileError
        If the file is one of those read, by whatever name or link, or part of a fit, or there is
        no folder for it.
    """
    if out is None:
        return
    if not out.parent.is_dir():
        raise FileError(f"there is no folder {out.parent}; make it, or choose another --out")
    if is_one_of(out, [file for path in inputs if path is not None for file in files_read(path)]):
        raise FileError(
            f"the results would overwrite {out}, which this command reads; choose another file "
            "with --out"
        )
    # A link is followed: what it points at would be written over.
    target = out.resolve()
    if own is not None and target == own.resolve():
        return
    of_fit = (target.parent / FIT_SIGN).exists()
    if of_fit and target.name in (*FIT_FILES, *BOOTSTRAP_FILES, *goodness_files(target.parent)):
        raise FileError(
            f"the results would overwrite {out}, which belongs to the fit in {target.parent}; "
            "choose another file with --out"
        )


def files_read(path: Path) -> list[Path]:
    """Return the files that a command reads at a path: itself, or those of its folder."""
    if not path.is_dir():
        return [path]
    parts = [find_part(path, stem) for stem in ("responses", "types", "q")]
    if parts[0] is None:
        return [path / FIT_SIGN]
    return [part for part in parts if part is not None]
