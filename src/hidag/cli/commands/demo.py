"""`hidag demo`: simulated data, a fit with default settings, and a comparison with the truth."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hidag.exceptions import HidagError

if TYPE_CHECKING:
    from hidag.cli.folders import Writer
    from hidag.metrics.evaluation import Evaluation
    from hidag.results import FitResult
    from hidag.simulation.truth import Truth
    from hidag.structure.graphs import CPDAG

app = typer.Typer()

#: Entry points of functions that other packages offer to commands.
_FUNCTIONS = "hidag.functions"
N_ROWS = 1500
MISSING = 0.04
SKILLS = ("Reading", "Arithmetic", "Word problems", "Fluency")
#: Two causes of one skill, which has an effect itself: all directions are identified.
PARENTS = ((), (), (0, 1), (2,))
COMPARISONS = ("graph_and_truth.png", "q_and_truth.png")


class Demo(StrEnum):
    """The demonstrations."""

    seesaw = "seesaw"
    assessment = "assessment"


@app.command()
def demo(
    which: Annotated[
        Demo,
        typer.Argument(
            help="seesaw: latent causes of images. assessment: skills behind the answers, counts "
            "and response times of a test."
        ),
    ] = Demo.seesaw,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for results and figures.", show_default="demo or demo-assessment"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same demo.")] = 1,
) -> None:
    """Simulate data, fit them, and compare the estimate with the truth."""
    if which is Demo.seesaw:
        _registered_function("demo_seesaw")(out or Path("demo"), seed=seed)
    else:
        run_assessment(out or Path("demo-assessment"), seed)


def _registered_function(name: str) -> Any:
    """Return the function that a package registered under this name."""
    from importlib.metadata import entry_points

    for point in entry_points(group=_FUNCTIONS, name=name):
        return point.load()
    raise HidagError(
        "missing-entry-point",
        "no installed package offers {name!r}",
        advice="install hidag again",
        name=name,
    )


def run_assessment(out: Path, seed: int) -> None:
    """Run `hidag demo assessment`."""
    import time
    from dataclasses import replace

    import numpy as np

    from hidag.cli.commands.fit import fit_source, typed_command
    from hidag.cli.commands.simulation import SIMULATION_FILES, simulation_files
    from hidag.cli.console import say, show_warning
    from hidag.cli.data_source import read_source
    from hidag.cli.folders import FIT_SIGN, check_folder, fill_folder
    from hidag.cli.messages import render
    from hidag.cli.output_files import FIT_FILES, fit_files
    from hidag.cli.result_text import say_types
    from hidag.metrics.evaluation import evaluate
    from hidag.reporting import assemble_report, list_concerns
    from hidag.simulation.truth import simulate

    start = time.monotonic()
    data_folder = out / "data"
    check_folder(data_folder, SIMULATION_FILES, sign=SIMULATION_FILES[-1])
    check_folder(out, (*FIT_FILES, *COMPARISONS), sign=FIT_SIGN)
    row_seed, fit_seed = np.random.SeedSequence(seed).generate_state(2)
    truth = assessment()
    files = simulation_files(simulate(truth, N_ROWS, rng=int(row_seed), missing=MISSING))
    # As a user's table, it comes without types; only times are declared below.
    del files["types.csv"]
    fill_folder(data_folder, files, SIMULATION_FILES)
    say(f"A simulated assessment: {N_ROWS:,} pupils, {truth.n_items} items, {MISSING:.0%} missing.")
    say(f"  hidag fit {data_folder} --latents {truth.n_latents} --family 'seconds_*=lognormal'\n")

    source = read_source(data_folder, None, None)
    result, values, issued = fit_source(
        source,
        truth.n_latents,
        ("seconds_*=lognormal",),
        {"random_state": int(fit_seed), "n_starts": 5},
    )
    for concern in list_concerns(result, issued):
        show_warning(concern)
    say_types(result)

    # The truth is not used before this line.
    evaluation = evaluate(result, truth)
    _say_comparison(result, truth, evaluation)
    content = assemble_report(
        result, values, title="A small assessment", warnings=issued, render=render
    )
    written = fit_files(result, values, replace(content, command=typed_command()))
    figures = _comparison_figures(result, truth, evaluation)
    fill_folder(out, {**figures, **written}, (*FIT_FILES, *COMPARISONS))
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
    loadings = np.zeros((len(items), len(SKILLS)))
    for j, (_, _, _, slopes) in enumerate(items):
        for k, slope in slopes.items():
            loadings[j, k] = slope
    return Truth(
        (loadings != 0).astype(np.int8),
        np.array([item[2] for item in items]),
        loadings,
        np.full(len(items), 0.16),
        tuple(item[1] for item in items),
        NetworkLaw(StateSpace.binary(len(SKILLS)), PARENTS, tables),
        item_names=tuple(item[0] for item in items),
        latent_names=SKILLS,
    )


def _say_comparison(result: FitResult, truth: Truth, evaluation: Evaluation) -> None:
    from hidag.cli.console import columns, say
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
    for line in columns([[left, "|", right[margin:]] for left, right in pairs]):
        say(f"  {line}")
    say("\ngraph: estimate and truth")
    estimated = format_edges(_matched_graph(result, truth, evaluation))
    expected = format_edges(truth.cpdag)
    rows = [
        [edge if edge in estimated else "", "|", edge if edge in expected else ""]
        for edge in dict.fromkeys([*expected, *estimated])
    ]
    for line in columns(rows):
        say(f"  {line}")
    say()
    say_convergence(result)
    say(evaluation.summary().split("\n")[0])


def _matched_graph(result: FitResult, truth: Truth, evaluation: Evaluation) -> CPDAG:
    """Return the estimated graph with the names of the skills."""
    return result.graph.permute(evaluation.permutation).rename(truth.latent_names)


def _comparison_figures(
    result: FitResult, truth: Truth, evaluation: Evaluation
) -> dict[str, Writer]:
    import numpy as np

    from hidag.plotting.figure import render_png, size_of_graph, size_of_q
    from hidag.plotting.graph import plot_graph
    from hidag.plotting.q_matrix import plot_q

    graph = _matched_graph(result, truth, evaluation)
    order = np.array(evaluation.permutation, dtype=np.intp)
    signs = np.where(evaluation.flips, -1.0, 1.0)
    loadings = result.parameters.reordered(latents=order).loadings * signs
    graph_figure = render_png(
        lambda ax: plot_graph(graph, ax, truth=truth.cpdag),
        size_of_graph(graph, truth=truth.cpdag),
        fill=True,
    )
    q_figure = render_png(
        lambda ax: plot_q(
            loadings,
            ax,
            truth=truth.q_matrix,
            item_names=truth.item_names,
            latent_names=truth.latent_names,
        ),
        size_of_q(*loadings.shape),
    )
    return {
        COMPARISONS[0]: lambda path: path.write_bytes(graph_figure),
        COMPARISONS[1]: lambda path: path.write_bytes(q_figure),
    }
