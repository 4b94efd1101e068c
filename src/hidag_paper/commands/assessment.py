"""The demonstration `hidag demo assessment`: skills behind the answers of a small test."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import hidag
from hidag.cli.commands.fit import fit_source, typed_command
from hidag.cli.commands.simulation import SIMULATION_FILES, simulation_files
from hidag.cli.console import say, say_columns, show_warning
from hidag.cli.data_source import read_source
from hidag.cli.folders import FIT_FILES, FIT_SIGN, check_folder
from hidag.cli.messages import render
from hidag.cli.output_files import fit_files, png_content
from hidag.cli.result_text import format_q, say_convergence, say_types
from hidag.files import Content, fill_folder
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.plotting import plot_graph, plot_q, size_of_graph, size_of_q
from hidag.reporting import assemble_report, format_edges
from hidag.reporting.fit_description import list_concerns
from hidag.simulation import Truth

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag import CPDAG, FitResult
    from hidag.metrics.evaluation import Evaluation

N_ROWS, MISSING = 1500, 0.04
SKILLS = ("Reading", "Arithmetic", "Word problems", "Fluency")
#: Two causes of one skill, which has an effect itself: all directions are identified.
PARENTS = ((), (), (0, 1), (2,))
COMPARISONS = ("graph_and_truth.png", "q_and_truth.png")


def run_assessment(out: Path, seed: int) -> None:
    """Run `hidag demo assessment`, writing into a folder."""
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
