"""`hidag demo assessment`: fitted as a newcomer would, then held against its truth."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from hidag.cli.commands.fit import fit_source, typed_command
from hidag.cli.commands.simulate import SIMULATION_FILES, simulation_files
from hidag.cli.console import columns, say, show_warning
from hidag.cli.data_source import read_source
from hidag.cli.folders import FIT_SIGN, Writer, check_folder, fill_folder
from hidag.cli.output_files import FIT_FILES, fit_files
from hidag.cli.result_text import q_lines, say_numbers, say_types
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.metrics.evaluation import Evaluation, evaluate
from hidag.plotting.figure import render_png, size_of_graph, size_of_q
from hidag.plotting.graph import plot_graph
from hidag.plotting.q_matrix import plot_q
from hidag.reporting.assembly import assemble_report
from hidag.reporting.fit_description import format_edges, list_concerns
from hidag.results import FitResult
from hidag.simulation.truth import Truth, simulate
from hidag.structure.graphs import CPDAG

N_ROWS = 1500
MISSING = 0.04
SKILLS = ("Reading", "Arithmetic", "Word problems", "Fluency")
#: Two causes of one skill, which in turn speeds up the work: all directions can be told.
PARENTS = ((), (), (0, 1), (2,))
COMPARISONS = ("graph_and_truth.png", "q_and_truth.png")


def run_assessment(out: Path, seed: int) -> None:
    """Carry out `hidag demo assessment`."""
    begun = time.monotonic()
    data_folder = out / "data"
    check_folder(data_folder, SIMULATION_FILES, sign=SIMULATION_FILES[-1])
    check_folder(out, (*FIT_FILES, *COMPARISONS), sign=FIT_SIGN)
    for_rows, for_fit = np.random.SeedSequence(seed).generate_state(2)
    truth = assessment()
    data = simulate(truth, N_ROWS, rng=int(for_rows), missing=MISSING)
    files = simulation_files(data)
    # The newcomer's table comes without types; only times are declared, below.
    del files["types.csv"]
    fill_folder(data_folder, files, SIMULATION_FILES)
    say(f"A simulated assessment: {N_ROWS:,} pupils, {truth.n_items} items, {MISSING:.0%} missing.")
    say(f"  hidag fit {data_folder} --latents {truth.n_latents} --family 'seconds_*=lognormal'\n")

    source = read_source(data_folder, None, None)
    result, values, warnings = fit_source(
        source,
        truth.n_latents,
        ("seconds_*=lognormal",),
        {"random_state": int(for_fit), "n_starts": 5},
    )
    for sentence in list_concerns(result, warnings):
        show_warning(sentence)
    say_types(result)

    # The truth is looked at only from here on.
    evaluation = evaluate(result, truth)
    _say_comparison(result, truth, evaluation)
    pictures = _comparison_pictures(result, truth, evaluation)
    content = assemble_report(result, values, title="A small assessment", warnings=warnings)
    written = fit_files(result, values, content=replace(content, command=typed_command()))
    fill_folder(out, {**pictures, **written}, (*FIT_FILES, *COMPARISONS))
    say(f"\n{time.monotonic() - begun:.0f} seconds; open {out / 'report.html'}, or look at")
    for name in COMPARISONS:
        say(f"  {out / name}")


def assessment() -> Truth:
    """Return the truth: four skills, and answers, error counts and times that measure them."""
    n_latents = len(SKILLS)
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
    loadings = np.zeros((len(items), n_latents))
    for j, (_, _, _, slopes) in enumerate(items):
        for k, slope in slopes.items():
            loadings[j, k] = slope
    return Truth(
        (loadings != 0).astype(np.int8),
        np.array([item[2] for item in items]),
        loadings,
        np.full(len(items), 0.16),
        tuple(item[1] for item in items),
        NetworkLaw(StateSpace.binary(n_latents), PARENTS, tables),
        item_names=tuple(item[0] for item in items),
        latent_names=SKILLS,
    )


def _say_comparison(result: FitResult, truth: Truth, evaluation: Evaluation) -> None:
    order = list(evaluation.permutation)
    flips = [" (levels reversed)" if flip else "" for flip in evaluation.flips]
    say("\nfound latents, and the skills they turned out to be")
    for k, skill in enumerate(truth.latent_names):
        say(f"  {result.latent_names[order[k]]} is {skill}{flips[k]}")
    say("\nQ: found, and the truth")
    found = q_lines(result.q_matrix[:, order].tolist(), truth.item_names, truth.latent_names)
    true = q_lines(truth.q_matrix.tolist(), ("",) * truth.n_items, truth.latent_names)
    margin = min(len(line) - len(line.lstrip()) for line in true)
    sides = zip(found, true, strict=True)
    for line in columns([[ours, "|", theirs[margin:]] for ours, theirs in sides]):
        say(f"  {line}")
    say("\ngraph among the latents: found, and the truth")
    ours, theirs = format_edges(_named(result, truth, evaluation)), format_edges(truth.cpdag)
    rows = [
        [edge if edge in ours else "", "|", edge if edge in theirs else ""]
        for edge in dict.fromkeys([*theirs, *ours])
    ]
    for line in columns(rows):
        say(f"  {line}")
    say()
    say_numbers(result)
    say(evaluation.summary().split("\n")[0])


def _named(result: FitResult, truth: Truth, evaluation: Evaluation) -> CPDAG:
    """Return the graph that was found, under the names of the skills it was matched with."""
    return result.graph.permute(evaluation.permutation).rename(truth.latent_names)


def _comparison_pictures(
    result: FitResult, truth: Truth, evaluation: Evaluation
) -> dict[str, Writer]:
    graph = _named(result, truth, evaluation)
    order = list(evaluation.permutation)
    signs = np.where(evaluation.flips, -1.0, 1.0)
    parameters = result.parameters.reordered(latents=np.array(order, dtype=np.intp))
    loadings = parameters.loadings * signs

    def draw(path: Path, picture: bytes) -> None:
        path.write_bytes(picture)

    return {
        COMPARISONS[0]: partial(
            draw,
            picture=render_png(
                lambda ax: plot_graph(graph, ax, truth=truth.cpdag),
                size_of_graph(graph, truth=truth.cpdag),
                fill=True,
            ),
        ),
        COMPARISONS[1]: partial(
            draw,
            picture=render_png(
                lambda ax: plot_q(
                    loadings,
                    ax,
                    truth=truth.q_matrix,
                    item_names=truth.item_names,
                    latent_names=truth.latent_names,
                ),
                size_of_q(*loadings.shape),
            ),
        ),
    }
