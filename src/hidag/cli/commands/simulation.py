"""`hidag simulate`, `evaluate` and `demo`: data with a known truth, and fits compared with it."""

from __future__ import annotations

from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import hidag
from hidag.cli.console import say
from hidag.cli.folders import check_folder
from hidag.cli.options import FitFile, Json, option, parse_levels
from hidag.exceptions import DataError, HidagError
from hidag.files import Content, fill_folder
from hidag.formatting import plural

if TYPE_CHECKING:
    from hidag import FitResult
    from hidag.simulation import Simulation, Truth

app = typer.Typer()

#: truth.json is written last and marks a complete folder. It has the Q-matrix: a fit would read a
#: q.csv as given.
SIMULATION_FILES = ("responses.csv", "types.csv", "truth.json")


class Demo(StrEnum):
    """The demonstrations."""

    seesaw = "seesaw"
    assessment = "assessment"


@app.command(
    epilog="Example:\n\n`hidag simulate --model Chain-10 --q Q1 -n 3000 --seed 1 --out sim`"
)
def simulate(
    out: Path = option(..., "Folder for the data and the truth."),
    model: str = option(
        "Chain-5",
        "Latent graph: Chain-5, Tree-5, Model-5, Chain-10, Tree-10, Model-7, Model-8 or Model-13.",
    ),
    q: str = option(
        "Q1", "Q-matrix of the paper: Q1 (items of up to 3 latents) or Q2 (up to 5).", "--q"
    ),
    family: str = option("gaussian", "Type of all items: bernoulli, poisson, gaussian, lognormal."),
    design: str = option(
        "research-code", "Version of the design: text (as printed) or research-code (as run)."
    ),
    rows: int = option(3000, "Number of rows.", "--rows", "-n", least=1),
    levels: str = option(
        "2",
        "Number of levels of the latents, 2 in the paper: one for all, or one per latent "
        "(2,3,2,2,2).",
    ),
    missing: float = option(0.0, "Share of cells that are missing, such as 0.1."),
    seed: int = option(
        0, "Seed of the random numbers: the same seed gives the same data.", least=0
    ),
) -> None:
    """Simulate data from a design of the paper: responses.csv, types.csv and truth.json."""
    import numpy as np

    from hidag.reporting import format_edges

    level_numbers = parse_levels(levels)
    check_folder(out, SIMULATION_FILES, sign=SIMULATION_FILES[-1])
    # Separate seeds: a larger sample comes from the same model.
    truth_seed, row_seed = np.random.SeedSequence(seed).spawn(2)
    version: Any = design
    truth = hidag.design(model, q, family, design=version, levels=level_numbers, rng=truth_seed)
    files = simulation_files(hidag.simulate(truth, rows, rng=row_seed, missing=missing))
    fill_folder(out, files, SIMULATION_FILES)
    numbers = truth.law.space.levels
    shown = str(numbers[0]) if len(set(numbers)) == 1 else ",".join(map(str, numbers))
    more, typed = ("", "") if set(numbers) == {2} else (f", levels {shown}", f" --levels {shown}")
    sizes = f"{plural(truth.n_items, 'item')}, {plural(truth.n_latents, 'latent')}"
    say(f"{plural(rows, 'row')}, {sizes} of {model}, {q}, {family}{more}")
    say(f"true graph: {', '.join(format_edges(truth.cpdag)) or 'no edges'}")
    say(f"wrote {', '.join(SIMULATION_FILES)} into {out}")
    command = f"hidag fit {out} --latents {truth.n_latents}{typed} --out fit"
    say(f"next: {command} && hidag evaluate fit {out}")


def simulation_files(data: Simulation) -> dict[str, Content]:
    """Return the content of each of `SIMULATION_FILES`."""
    from hidag.cli.output_files import csv_content
    from hidag.simulation.truth import truth_json

    def shortest(value: float) -> str:
        """Return the shortest text that reads back as the same number."""
        return "" if value != value else str(int(value)) if value.is_integer() else repr(value)

    truth = data.truth
    types = zip(truth.item_names, truth.families, strict=True)
    return {
        "responses.csv": csv_content(truth.item_names, (map(shortest, r) for r in data.X.tolist())),
        "types.csv": csv_content(["item", "type"], types),
        "truth.json": truth_json(truth),
    }


@app.command(epilog="Example:\n\n`hidag evaluate fit/result.npz sim/truth.json`")
def evaluate(
    result: FitFile,
    truth: Path = typer.Argument(help="truth.json, or the folder that holds it."),
    json_: Json = False,
) -> None:
    """Compare a saved fit with the true model."""
    from hidag.cli.output_files import load_result, say_json
    from hidag.simulation.truth import read_truth

    true = read_truth(truth)
    evaluation = hidag.evaluate(_order_items(load_result(result), true), true)
    if json_:
        say_json(evaluation.to_dict())
    else:
        say(evaluation.summary())


def _order_items(result: FitResult, truth: Truth) -> FitResult:
    """Return the fit with its items in the order of the truth."""
    if result.item_names == truth.item_names:
        return result
    import numpy as np

    from hidag.results.fit_result import reorder_items

    index = {name: j for j, name in enumerate(result.item_names)}
    absent = [name for name in truth.item_names if name not in index]
    if absent or len(index) != truth.n_items:
        lacking = "; the fit lacks {absent!r} ({n_absent} items)" if absent else ""
        sizes = "but the fit has {n_fit} and the truth {n_truth}"
        template = f"the fit and the truth must have the same items, {sizes}{lacking}"
        counts = {"n_fit": len(index), "n_truth": truth.n_items, "n_absent": len(absent)}
        first = absent[0] if absent else None
        raise DataError("different-items", template, counts, absent=first)
    return reorder_items(result, np.array([index[name] for name in truth.item_names]))


@app.command()
def demo(
    which: Demo = typer.Argument(
        Demo.seesaw,
        help="seesaw: latent causes of images. assessment: skills behind the answers, counts and "
        "response times of a test.",
    ),
    out: Path | None = option(None, "Folder for the results.", shown="demo or demo-assessment"),
    seed: int = option(
        1, "Seed of the random numbers: the same seed gives the same demo.", least=0
    ),
) -> None:
    """Simulate data, fit them, and compare the estimate with the truth."""
    folder = out or Path("demo" if which is Demo.seesaw else f"demo-{which.value}")
    # Demonstrations are applications that simulate their data.
    for point in entry_points(group="hidag.commands", name="app"):
        for command in point.load().registered_commands:
            if command.callback.__name__ == which.value:
                command.callback(out=folder, seed=seed)
                return
    template, advice = "no installed package offers {name!r}", "install hidag again"
    raise HidagError("missing-entry-point", template, advice=advice, name=which.value)
