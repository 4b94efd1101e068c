"""Files of the command line: CSV tables, the folder of a fit, and checks before writing."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.cli import folders
from hidag.cli.console import say
from hidag.cli.data_source import files_read
from hidag.cli.folders import BOOTSTRAP_FILES, FIT_FILES, FIT_SIGN, overwrite_error
from hidag.cli.messages import render
from hidag.diagnostics.goodness_of_fit import CHECK_COLUMNS
from hidag.diagnostics.item_fit import COLUMNS as ITEM_COLUMNS
from hidag.diagnostics.pair_residuals import COLUMNS as PAIR_COLUMNS
from hidag.diagnostics.person_fit_statistics import COLUMNS as PERSON_COLUMNS
from hidag.exceptions import FileError, HidagError
from hidag.files import Content, complete_folder, write_file
from hidag.formatting import plural, protect_cell
from hidag.inference.result_tables import Table
from hidag.latent.laws import NetworkLaw
from hidag.plotting.figure import Size, render_png, size_of_graph, size_of_q
from hidag.plotting.graph import plot_claims
from hidag.plotting.q_matrix import plot_q
from hidag.reporting.content import ReportContent
from hidag.reporting.fit_description import all_binary
from hidag.reporting.report import render_report
from hidag.results import FitResult, load, without_nan
from hidag.results.claims import claimed_graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Joint states up to which latent_law.csv is written.
LISTED_STATES = 1 << 12

#: Files of `hidag goodness` with their columns, which identify them.
GOODNESS_FILES = {"pairs.csv": PAIR_COLUMNS, "items.csv": ITEM_COLUMNS}
GOODNESS_FILES |= {"checks.csv": CHECK_COLUMNS, "persons.csv": PERSON_COLUMNS}


def load_result(path: Path) -> FitResult:
    """Return the fit in a file, or in the folder that holds its result.npz."""
    complete_folder(path if path.is_dir() else path.parent)
    file = path / FIT_SIGN if path.is_dir() else path
    if not file.exists():
        folder = "the folder {path} holds no fit ({file})"
        template = folder if path.is_dir() else "there is no fit {path}"
        advice = "give a folder that hidag fit --out wrote"
        raise FileError("no-fit", template, advice=advice, path=path, file=FIT_SIGN)
    return load(file)


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file; floats have ten digits, and NaN is an empty cell."""
    write_file(path, csv_content(header, rows))


def format_cell(cell: Any) -> Any:
    """Return a float with ten digits, empty for NaN; text so that spreadsheets show it as it is."""
    if isinstance(cell, str):
        return protect_cell(cell)
    if not isinstance(cell, float):
        return cell
    return "" if np.isnan(cell) else f"{float(cell):.10g}"


def csv_content(header: Iterable[str], rows: Iterable[Iterable[object]]) -> Content:
    """Return the content of a CSV file, as of `write_csv`."""

    def write(path: Path) -> None:
        names = list(header)
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(map(protect_cell, names))
            for row in rows:
                pairs = zip(names, row, strict=True)
                # A spreadsheet would read the digits of a profile as a number.
                writer.writerow([f"'{c}" if n == "profile" else format_cell(c) for n, c in pairs])

    return write


def dict_content(rows: Sequence[Mapping[str, object]], names: Sequence[str] = ()) -> Content:
    """Return rows as CSV, with the columns of the first row by default."""
    header = tuple(names or rows[0])
    return csv_content(header, ([row.get(name, "") for name in header] for row in rows))


def png_content(draw: Callable[[Axes], object], size: Size, *, fill: bool = False) -> Content:
    """Return a figure."""
    return lambda path: path.write_bytes(render_png(draw, size, fill=fill))


def save_table(path: Path, table: Table) -> None:
    """Write a table of results into a file that the user named."""
    write_csv(path, table.columns, table.rows)


def present_table(table: Table, out: Path | None, printed: str | list[dict[str, Any]]) -> None:
    """Print results, as text or as JSON, and write the table if a file was named."""
    if out is not None:
        save_table(out, table)
    if isinstance(printed, str):
        say(printed)
        if out is not None:
            say(f"\nwrote {plural(len(table), 'row')} into {out}")
    else:
        say_json(printed)


def say_json(content: Any) -> None:
    """Print results as JSON, null for NaN."""
    say(json.dumps(without_nan(content), indent=1))


def fit_files(
    result: FitResult,
    values: NDArray[np.float64],
    content: ReportContent,
    ids: Sequence[object] | None = None,
) -> dict[str, Content]:
    """Return the content of each file of a fit, in order; ``ids`` replace row numbers."""
    latents, q, law, graph = list(result.latent_names), result.q_matrix, result.law, result.graph
    q_rows = ([name, *q[j].tolist()] for j, name in enumerate(result.item_names))
    trace = ([i + 1, *map(float, row)] for i, row in enumerate(result.trace))
    files: dict[str, Content] = {
        "q.csv": csv_content(["item", *latents], q_rows),
        "loadings.csv": csv_content(*_loading_table(result)),
        "graph.json": _graph_json(result) + "\n",
        "graph.dot": graph.to_dot(),
        "posterior.csv": csv_content(*_posterior_table(result, values, ids)),
        "trace.csv": csv_content(["step", "objective", "largest_move"], trace),
        "report.json": content.to_json(),
        "report.html": render_report(result, content, render=render),
        FIT_SIGN: result.save,
    }
    if law.space.n_states <= LISTED_STATES:
        states = zip(law.space.states(), law.probabilities, strict=True)
        rows = ([*state.tolist(), float(p)] for state, p in states)
        files["latent_law.csv"] = csv_content([*latents, "probability"], rows)
    if isinstance(law, NetworkLaw):
        header = ["latent", "level", "given", "probability"]
        files["latent_tables.csv"] = csv_content(header, _conditional_rows(law, latents))
    if content.plots:
        files["q.png"] = png_content(lambda ax: plot_q(result, ax), size_of_q(*q.shape))
        size = size_of_graph(claimed_graph(result.claims(), result.latent_names), legend=True)
        files["graph.png"] = png_content(lambda ax: plot_claims(result, ax), size, fill=True)
    return {name: files[name] for name in FIT_FILES if name in files}


def _graph_json(result: FitResult) -> str:
    """Return the best graph as JSON, with the probabilities of edges if they were computed."""
    content = json.loads(result.graph.to_json())
    if not np.isnan(result.edge_probabilities).all():
        content["edge_probabilities"] = without_nan(result.edge_probabilities.tolist())
    return json.dumps(content, indent=1, ensure_ascii=False)


def _loading_table(result: FitResult) -> tuple[list[str], Iterator[list[object]]]:
    """Return the header and the rows of loadings.csv."""
    header = ["item", "family", "intercept", *result.terms.names(result.latent_names), "dispersion"]
    header += [f"cutpoint_{c + 2}" for c in range(result.cutpoints.shape[1])]
    responses = zip(result.responses.item, result.response_names, strict=True)
    parts = (result.intercept[:, None], result.loadings)
    items = np.column_stack([result.dispersion, result.cutpoints])[result.responses.item]
    numbers = np.hstack([*parts, items]).tolist()
    rows = ([name, result.families[j], *numbers[r]] for r, (j, name) in enumerate(responses))
    return header, rows


def _posterior_table(
    result: FitResult, values: NDArray[np.float64], ids: Sequence[object] | None
) -> tuple[list[str], Iterator[list[object]]]:
    """Return the header and the rows of posterior.csv: P(latent = 1), or one column per level."""
    if all_binary(result):
        names, table = list(result.latent_names), result.posterior(values)
    else:
        levels = zip(result.latent_names, result.terms.levels, strict=True)
        names = [f"{name}={level}" for name, m in levels for level in range(m)]
        table = np.hstack(result.posterior_levels(values))
    rows = (
        [row + 1 if ids is None else ids[row], *(f"{p:.6f}" for p in probabilities)]
        for row, probabilities in enumerate(table)
    )
    return ["row" if ids is None else "id", *names], rows


def _conditional_rows(law: NetworkLaw, latents: Sequence[str]) -> Iterator[list[object]]:
    """Yield P(latent = level) for each configuration of its parents."""
    for k, (parents, table) in enumerate(zip(law.parents, law.tables, strict=True)):
        for levels in np.ndindex(*table.shape[:-1]):
            given = "; ".join(f"{latents[a]}={m}" for a, m in zip(parents, levels, strict=True))
            for level in range(1, table.shape[-1]):
                yield [latents[k], level, given, float(table[levels][level])]


def is_another_fit(folder: Path, result: FitResult) -> bool:
    """Return whether a folder holds no fit with the same estimates."""
    try:
        old = load_result(folder)
    except HidagError:
        return True
    return old.digest != result.digest


def goodness_files(folder: Path) -> list[str]:
    """Return the names of the files that `hidag goodness` wrote into a folder."""
    lines = {name: _first_line(folder / name) for name in GOODNESS_FILES}
    return [name for name, columns in GOODNESS_FILES.items() if lines[name] == ",".join(columns)]


def _first_line(file: Path) -> str | None:
    """Return the first line of a file; None if there is no such text file."""
    try:
        with file.open(encoding="utf-8") as stream:
            return stream.readline().rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return None


def check_file(out: Path | None, inputs: Iterable[Path | None], *, own: Path | None = None) -> None:
    """Check, before any long computation, that a file may be written, if any.

    Neither the inputs nor files of a fit are overwritten, except the command's own.
    """
    if out is None:
        return
    if not out.parent.is_dir():
        template, advice = "there is no folder {folder}", "create it, or choose another --out"
        raise FileError("no-folder", template, advice=advice, folder=out.parent)
    read = [file for path in inputs if path is not None for file in files_read(path)]
    if folders.is_one_of(out, read):
        raise overwrite_error("overwrites-input", out, "this command reads", "file")
    # Links are followed: their target would be overwritten.
    target = out.resolve()
    if own is not None and target == own.resolve():
        return
    of_fit = (target.parent / FIT_SIGN).exists()
    if of_fit and target.name in (*FIT_FILES, *BOOTSTRAP_FILES, *goodness_files(target.parent)):
        origin = f"belongs to the fit in {target.parent}"
        raise overwrite_error("overwrites-fit", out, origin, "file")
