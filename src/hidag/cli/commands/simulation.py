"""`hidag simulate`, `evaluate` and `demo`: data with a known truth, and fits compared with it."""

from __future__ import annotations

import time
from dataclasses import replace
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import hidag
from hidag.cli.commands.fit import fit_source, typed_command
from hidag.cli.console import say, say_columns, show_warning
from hidag.cli.folders import FIT_FILES, FIT_SIGN, check_folder
from hidag.cli.messages import render
from hidag.cli.options import FitFile, Json, option, parse_levels
from hidag.exceptions import DataError, HidagError
from hidag.files import Content, fill_folder
from hidag.formatting import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag import CPDAG, FitResult
    from hidag.metrics.evaluation import Evaluation
    from hidag.simulation import Simulation, Truth

app = typer.Typer()

#: truth.json is written last and marks a complete folder. It has the Q-matrix: a fit would read a
#: q.csv as given.
SIMULATION_FILES = ("responses.csv", "types.csv", "truth.json")
N_ROWS, MISSING = 1500, 0.04
SKILLS = ("Reading", "Arithmetic", "Word problems", "Fluency")
#: Two causes of one skill, which has an effect itself: all directions are identified.
PARENTS = ((), (), (0, 1), (2,))
COMPARISONS = ("graph_and_truth.png", "q_and_truth.png")


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
    if which is Demo.assessment:
        run_assessment(out or Path("demo-assessment"), seed)
        return
    for point in entry_points(group="hidag.functions", name="demo_seesaw"):
        point.load()(out or Path("demo"), seed=seed)
        return
    template, advice = "no installed package offers {name!r}", "install hidag again"
    raise HidagError("missing-entry-point", template, advice=advice, name="demo_seesaw")


def run_assessment(out: Path, seed: int) -> None:
    """Run `hidag demo assessment`."""
    import numpy as np

    from hidag.cli.data_source import read_source
    from hidag.cli.output_files import fit_files
    from hidag.cli.result_text import say_types
    from hidag.reporting import assemble_report
    from hidag.reporting.fit_description import list_concerns

    start = time.monotonic()
    data_folder, times = out / "data", "seconds_*=lognormal"
    check_folder(data_folder, SIMULATION_FILES, sign=SIMULATION_FILES[-1])
    check_folder(out, (*FIT_FILES, *COMPARISONS), sign=FIT_SIGN)
    row_seed, fit_seed = np.random.SeedSequence(seed).generate_state(2)
    truth = assessment()
    files = simulation_files(hidag.simulate(truth, N_ROWS, rng=int(row_seed), missing=MISSING))
    # As a user's table, it comes without types; only times are declared below.
    del files["types.csv"]
    fill_folder(data_folder, files, SIMULATION_FILES)
    say(f"A simulated assessment: {N_ROWS:,} pupils, {truth.n_items} items, {MISSING:.0%} missing.")
    say(f"  hidag fit {data_folder} --latents {truth.n_latents} --family '{times}'\n")

    source = read_source(data_folder, family=[times])
    model = hidag.DCRL(
        truth.n_latents, family=source.family, n_starts=5, random_state=int(fit_seed)
    )
    result, values, issued = fit_source(source, model)
    # The truth is not used before this line.
    evaluation = hidag.evaluate(result, truth)
    graph = result.graph.permute(evaluation.permutation).rename(truth.latent_names)
    title = "A small assessment"
    content = assemble_report(result, values, title=title, warnings=issued, render=render)
    written = fit_files(result, values, replace(content, command=typed_command()))
    figures = _comparison_figures(result, truth, evaluation, graph)
    fill_folder(out, {**figures, **written}, (*FIT_FILES, *COMPARISONS))
    for concern in list_concerns(result, issued):
        show_warning(concern)
    say_types(result)
    _say_comparison(result, truth, evaluation, graph)
    say(f"\n{time.monotonic() - start:.0f} seconds; open {out / 'report.html'}, or the figures")
    for name in COMPARISONS:
        say(f"  {out / name}")


def assessment() -> Truth:
    """Return the true model: four skills, measured by answers, counts and times."""
    import numpy as np

    from hidag.latent.laws import NetworkLaw
    from hidag.latent.state_space import StateSpace
    from hidag.simulation.truth import Truth

    tables = (
        np.array([0.45, 0.55]),
        np.array([0.5, 0.5]),
        np.array([[[0.9, 0.1], [0.55, 0.45]], [[0.5, 0.5], [0.12, 0.88]]]),
        np.array([[0.8, 0.2], [0.25, 0.75]]),
    )
    items: list[tuple[str, str, float, dict[int, float]]] = []
    for k, skill in enumerate(("read", "sum", "story", "fluent")):
        items += [(f"{skill}_{i + 1}", "bernoulli", -1.2, {k: 2.8}) for i in range(3)]
        items.append((f"points_{skill}", "poisson", 0.4, {k: 1.3}))
        items.append((f"seconds_{skill}", "lognormal", 3.4, {k: -0.9}))
    items += [
        ("story_4", "bernoulli", -1.8, {0: 1.9, 2: 1.9}),
        ("points_essay", "poisson", 0.3, {0: 0.9, 3: 0.7}),
        ("seconds_test", "lognormal", 4.2, {1: -0.5, 3: -0.6}),
    ]
    names, families, intercepts, slopes = zip(*items, strict=True)
    loadings = np.array([[one.get(k, 0.0) for k in range(len(SKILLS))] for one in slopes])
    law = NetworkLaw(StateSpace.binary(len(SKILLS)), PARENTS, tables)
    dispersion = np.full(len(items), 0.16)
    model = (loadings != 0).astype(np.int8), np.array(intercepts), loadings, dispersion
    return Truth(*model, families, law, item_names=names, latent_names=SKILLS)


def _say_comparison(result: FitResult, truth: Truth, evaluation: Evaluation, graph: CPDAG) -> None:
    from hidag.cli.result_text import format_q, say_convergence
    from hidag.reporting import format_edges

    order = list(evaluation.permutation)
    flips = [" (levels reversed)" if flip else "" for flip in evaluation.flips]
    say("\nestimated latents and the true skills")
    for k, skill in enumerate(truth.latent_names):
        say(f"  {result.latent_names[order[k]]} is {skill}{flips[k]}")
    say("\nQ: estimate and truth")
    ours = format_q(result.q_matrix[:, order].tolist(), truth.item_names, truth.latent_names)
    true = format_q(truth.q_matrix.tolist(), ("",) * truth.n_items, truth.latent_names)
    margin = min(len(line) - len(line.lstrip()) for line in true)
    pairs = zip(ours, true, strict=True)
    say_columns([[left, "|", right[margin:]] for left, right in pairs], indent="  ")
    say("\ngraph: estimate and truth")
    found, expected = format_edges(graph), format_edges(truth.cpdag)
    edges = dict.fromkeys([*expected, *found])
    rows = [
        [edge if edge in found else "", "|", edge if edge in expected else ""] for edge in edges
    ]
    say_columns(rows, indent="  ")
    say()
    say_convergence(result)
    say(evaluation.summary().split("\n")[0])


def _comparison_figures(
    result: FitResult, truth: Truth, evaluation: Evaluation, graph: CPDAG
) -> dict[str, Content]:
    import numpy as np

    from hidag.cli.output_files import png_content
    from hidag.plotting import plot_graph, plot_q, size_of_graph, size_of_q

    order = np.array(evaluation.permutation, dtype=np.intp)
    signs = np.where(evaluation.flips, -1.0, 1.0)
    loadings = result.parameters.reordered(latents=order).loadings * signs
    size, q_size = size_of_graph(graph, truth=truth.cpdag), size_of_q(*loadings.shape)

    def draw_q(ax: Axes) -> Axes:
        names = truth.item_names, truth.latent_names
        return plot_q(
            loadings, ax, truth=truth.q_matrix, item_names=names[0], latent_names=names[1]
        )

    draw = (
        png_content(lambda ax: plot_graph(graph, ax, truth=truth.cpdag), size, fill=True),
        png_content(draw_q, q_size),
    )
    return dict(zip(COMPARISONS, draw, strict=True))
