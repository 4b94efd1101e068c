"""`hidag simulate`: data of a design, and the truth in a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hidag.cli.console import say
from hidag.cli.folders import Writer, check_folder, fill_folder
from hidag.cli.output_files import write_csv
from hidag.formatting import plural
from hidag.reporting.fit_description import format_edges
from hidag.simulation.designs import design
from hidag.simulation.truth import Simulation, write_truth
from hidag.simulation.truth import simulate as draw

SIMULATION_FILES = ("responses.csv", "types.csv", "truth.json")


def run_simulate(
    out: Path,
    model: str,
    q: str,
    family: str,
    version: str,
    levels: int | list[int],
    rows: int,
    missing: float,
    seed: int,
) -> None:
    """Carry out `hidag simulate`."""
    check_folder(out, SIMULATION_FILES, sign=SIMULATION_FILES[-1])
    # Tables and rows have seeds of their own: more rows of the same model are the same model.
    for_truth, for_rows = np.random.SeedSequence(seed).spawn(2)
    chosen: Any = version
    truth = design(model, q, family, design=chosen, levels=levels, rng=for_truth)
    data = draw(truth, rows, rng=for_rows, missing=missing)
    fill_folder(out, simulation_files(data), SIMULATION_FILES)
    many = _levels_in_words(truth.law.space.levels)
    say(
        f"{plural(rows, 'row')}, {plural(truth.n_items, 'item')}, "
        f"{plural(truth.n_latents, 'latent')} of {model}, {q}, {family}"
        + ("" if many is None else f", levels {many}")
    )
    say(f"true graph: {', '.join(format_edges(truth.cpdag)) or 'no edges'}")
    say(f"wrote {', '.join(SIMULATION_FILES)} into {out}")
    asked = f"--latents {truth.n_latents}" + ("" if many is None else f" --levels {many}")
    say(f"next: hidag fit {out} {asked} --out fit && hidag evaluate fit {out}")


def _levels_in_words(levels: tuple[int, ...]) -> str | None:
    """Return levels as the option takes them; None where all latents are binary."""
    if set(levels) == {2}:
        return None
    return str(levels[0]) if len(set(levels)) == 1 else ",".join(str(m) for m in levels)


def simulation_files(data: Simulation) -> dict[str, Writer]:
    """Return a writer for each file. Q is in the truth only: a fit would use a q.csv."""
    truth = data.truth
    return {
        "responses.csv": lambda path: write_csv(
            path,
            truth.item_names,
            (["" if np.isnan(v) else _shortest(v) for v in row] for row in data.X.tolist()),
        ),
        "types.csv": lambda path: write_csv(
            path, ["item", "type"], zip(truth.item_names, truth.families, strict=True)
        ),
        "truth.json": lambda path: write_truth(truth, path),
    }


def _shortest(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return str(int(value)) if value.is_integer() else repr(value)
