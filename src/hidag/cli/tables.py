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

from hidag.cli.folders import FIT_SIGN, Writer
from hidag.latent import NetworkLaw
from hidag.plots import plot_graph, plot_q, render_png, size_of_graph, size_of_q
from hidag.report import ReportParts, all_binary, write_parts, write_report
from hidag.result import FitResult

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
    parts: ReportParts,
    plots: bool = True,
    ids: Sequence[object] | None = None,
) -> dict[str, Writer]:
    """Return a writer for each file of a fit, in the order of `FIT_FILES`.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
        The rows whose posteriors are written.
    parts : ReportParts
        What the report says beyond the fit.
    plots : bool
        Whether there are pictures, in this report and in those made anew of it.
    ids : sequence, length N, optional
        Names of the rows; their numbers unless given.
    """
    parts = replace(parts, plots=plots)
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
        "report.json": partial(_write_parts, parts=parts),
        "report.html": lambda path: write_report(result, path, parts),
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


def _write_parts(path: Path, *, parts: ReportParts) -> None:
    write_parts(parts, path)


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
