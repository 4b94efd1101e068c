"""`hidag simulate` and `hidag evaluate`: data with a known truth, and a fit compared with it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hidag.cli.options import FitFile, Json, parse_levels
from hidag.exceptions import DataError

if TYPE_CHECKING:
    from hidag.cli.folders import Writer
    from hidag.results import FitResult
    from hidag.simulation.truth import Simulation, Truth

app = typer.Typer()

#: truth.json is written last and marks a complete folder. It has the Q-matrix: a fit would read a
#: q.csv as given.
SIMULATION_FILES = ("responses.csv", "types.csv", "truth.json")


@app.command(
    epilog="Example:\n\n`hidag simulate --model Chain-10 --q Q1 -n 3000 --seed 1 --out sim`"
)
def simulate(
    out: Annotated[Path, typer.Option(help="Folder for the data and the truth.")],
    model: Annotated[
        str,
        typer.Option(
            help="Chain-5, Tree-5, Model-5, Chain-10, Tree-10, Model-7, Model-8 or Model-13."
        ),
    ] = "Chain-5",
    q: Annotated[str, typer.Option("--q", help="Q-matrix: Q1 or Q2.")] = "Q1",
    family: Annotated[
        str, typer.Option(help="bernoulli, poisson, poisson-identity, gaussian or lognormal.")
    ] = "gaussian",
    design: Annotated[
        str, typer.Option(help="text (as printed) or research-code (as run).")
    ] = "research-code",
    rows: Annotated[int, typer.Option("--rows", "-n", min=1, help="Number of rows.")] = 3000,
    levels: Annotated[
        str,
        typer.Option(
            help="Levels per latent: one number for all, or one per latent (2,3,2,2,2). The paper "
            "has binary latents only; the tables for more levels are hidag's own."
        ),
    ] = "2",
    missing: Annotated[float, typer.Option(help="Share of missing cells.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same data.")] = 0,
) -> None:
    """Simulate data from a design of the paper: responses.csv, types.csv and truth.json."""
    import numpy as np

    from hidag.cli.console import say
    from hidag.cli.folders import check_folder, fill_folder
    from hidag.formatting import plural
    from hidag.reporting import format_edges
    from hidag.simulation.designs import design as make_design
    from hidag.simulation.truth import simulate as draw

    level_numbers, version = parse_levels(levels), design
    check_folder(out, SIMULATION_FILES, sign=SIMULATION_FILES[-1])
    # Separate seeds: a larger sample comes from the same model.
    truth_seed, row_seed = np.random.SeedSequence(seed).spawn(2)
    chosen: Any = version
    truth = make_design(model, q, family, design=chosen, levels=level_numbers, rng=truth_seed)
    fill_folder(
        out, simulation_files(draw(truth, rows, rng=row_seed, missing=missing)), SIMULATION_FILES
    )
    numbers = truth.law.space.levels
    option = str(numbers[0]) if len(set(numbers)) == 1 else ",".join(map(str, numbers))
    binary = set(numbers) == {2}
    say(
        f"{plural(rows, 'row')}, {plural(truth.n_items, 'item')}, "
        f"{plural(truth.n_latents, 'latent')} of {model}, {q}, {family}"
        + ("" if binary else f", levels {option}")
    )
    say(f"true graph: {', '.join(format_edges(truth.cpdag)) or 'no edges'}")
    say(f"wrote {', '.join(SIMULATION_FILES)} into {out}")
    more = "" if binary else f" --levels {option}"
    say(
        f"next: hidag fit {out} --latents {truth.n_latents}{more} --out fit && hidag evaluate fit "
        f"{out}"
    )


def simulation_files(data: Simulation) -> dict[str, Writer]:
    """Return a writer for each of `SIMULATION_FILES`."""
    from hidag.cli.output_files import write_csv
    from hidag.simulation.truth import write_truth

    truth = data.truth
    rows = (["" if v != v else _shortest(v) for v in row] for row in data.X.tolist())
    types = zip(truth.item_names, truth.families, strict=True)
    return {
        "responses.csv": lambda path: write_csv(path, truth.item_names, rows),
        "types.csv": lambda path: write_csv(path, ["item", "type"], types),
        "truth.json": lambda path: write_truth(truth, path),
    }


def _shortest(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return str(int(value)) if value.is_integer() else repr(value)


@app.command(epilog="Example:\n\n`hidag evaluate fit/result.npz sim/truth.json`")
def evaluate(
    result: FitFile,
    truth: Annotated[Path, typer.Argument(help="truth.json, or the folder that holds it.")],
    json_: Json = False,
) -> None:
    """Compare a saved fit with the true model."""
    from hidag.cli.console import say
    from hidag.cli.output_files import load_result
    from hidag.metrics.evaluation import evaluate as compare
    from hidag.results import without_nan
    from hidag.simulation.truth import read_truth

    true = read_truth(truth)
    evaluation = compare(_order_items(load_result(result), true), true)
    if json_:
        say(json.dumps(without_nan(evaluation.to_dict()), indent=1))
    else:
        say(evaluation.summary())


def _order_items(result: FitResult, truth: Truth) -> FitResult:
    """Return the fit with its items in the order of the truth."""
    if result.item_names == truth.item_names:
        return result
    import numpy as np

    index = {name: j for j, name in enumerate(result.item_names)}
    absent = [name for name in truth.item_names if name not in index]
    if absent or len(index) != truth.n_items:
        raise DataError(
            "different-items",
            "the fit and the truth must have the same items, but the fit has {n_fit} and the truth "
            "{n_truth}" + ("; the fit lacks {absent!r} ({n_absent} items)" if absent else ""),
            n_fit=len(index),
            n_truth=truth.n_items,
            absent=absent[0] if absent else None,
            n_absent=len(absent),
        )
    order = np.array([index[name] for name in truth.item_names], dtype=np.intp)
    # A nominal item has several rows of coefficients.
    rows = np.concatenate([np.flatnonzero(result.responses.item == j) for j in order])
    families = result.item_families
    return replace(
        result,
        item_names=truth.item_names,
        parameters=result.parameters.reordered(items=rows),
        item_families=tuple(families[j] for j in order) if families else (),
        q_given=None if result.q_given is None else result.q_given[order],
        family_reasons=tuple(result.family_reasons[j] for j in order),
    )
