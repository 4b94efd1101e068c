"""TIMSS: printed Q and graph, simulated data, errors of the folder, and the page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hidag.cli.app import app
from hidag.exceptions import DataError, FileError, SettingError
from hidag.metrics import evaluate_graph
from hidag.structure import CPDAG
from hidag_paper.applications import timss, timss_data
from hidag_paper.applications.timss import draw_skills
from hidag_paper.applications.timss_data import (
    SKILLS,
    printed_graph,
    printed_q,
    read_accuracy_and_times,
    read_times,
    simulate_times,
)

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"


@pytest.fixture
def folder():
    if not (DATA / "timss2019_rt").is_dir():
        pytest.skip("the TIMSS data are not here")
    return DATA


def test_the_printed_design_is_as_the_paper_describes_it():
    q = printed_q()
    assert q.shape == (29, 7)
    assert (q[:, :4].sum(axis=1) == 1).all()
    assert (q[:, 4:].sum(axis=1) == 1).all()
    assert q.sum(axis=0).tolist() == [8, 9, 7, 5, 8, 15, 6]
    graph = printed_graph()
    assert graph.is_valid()
    assert graph.directed_edges == [("Algebra", "Number"), ("DataProb", "Number")]
    assert len(graph.undirected_edges) == 5


def test_simulated_times_have_missing_cells_and_depend_on_the_seed():
    one, same, other = simulate_times(4), simulate_times(4), simulate_times(5)
    np.testing.assert_array_equal(one.values, same.values)
    assert one.values.shape == (620, 29)
    assert 0.01 < np.isnan(one.values).mean() < 0.03
    assert not np.array_equal(one.values, other.values, equal_nan=True)


@pytest.mark.parametrize("seed", [1, 2])
def test_graph_of_simulated_times_is_found(seed):
    found = timss_data.fit_timss(simulate_times(seed), seed, n_starts=30).result_
    compared = evaluate_graph(found.graph, printed_graph())
    assert compared.n_missing + compared.n_extra <= 2


def test_command_writes_figures_tables_and_page(tmp_path, monkeypatch):
    quick = timss_data.fit_timss

    def few(table, seed, *, law="saturated", n_starts=2):
        return quick(table, seed, law=law, n_starts=2)

    monkeypatch.setattr(timss, "fit_timss", few)
    monkeypatch.setattr(timss_data, "fit_timss", few)
    monkeypatch.setattr(timss_data, "N_RIVAL_FITS", 1)
    asked = ["app", "timss", "--simulated", "--bootstrap", "2", "--seeds", "2", "--seed", "3"]
    ran = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output
    summary = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert summary["latent_names"] == list(SKILLS)
    assert summary["q_matrix"] == printed_q().tolist()
    assert np.shape(summary["adjacency"]) == (7, 7)
    assert np.shape(summary["support"]) == (7, 7)
    assert len(summary["log_likelihood_by_seed"]) == 2
    assert summary["seed"] == 3
    assert set(summary["files"]) == {path.name for path in (tmp_path / "out").iterdir()}
    page = (tmp_path / "out" / "page.html").read_text("utf-8")
    assert "Identifiability" in page
    assert "These are simulated times, not those of TIMSS" in page
    assert "2 refits give no intervals" in page
    edges = (tmp_path / "out" / "edges.csv").read_text("utf-8").splitlines()
    assert len(edges) >= 8
    assert edges[0].startswith("skill,other skill,paper,fit")


def test_invalid_folders_raise(tmp_path):
    with pytest.raises(SettingError, match="q must be 'official' or 'printed', got 'mine'"):
        read_times(tmp_path, "mine")
    with pytest.raises(FileError, match="must hold a table named responses"):
        read_times(tmp_path, "printed")
    (tmp_path / "responses.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(DataError, match="must contain the 29 items of booklet 14, got 2"):
        read_times(tmp_path, "printed")
    head = ",".join(f"i{j}" for j in range(29))
    (tmp_path / "responses.csv").write_text(f"{head}\n" + f"{','.join(['0'] * 29)}\n" * 2)
    with pytest.raises(DataError, match="must be positive seconds"):
        read_times(tmp_path, "printed")
    with pytest.raises(FileError, match="there is no file"):
        read_times(tmp_path, "official")
    ran = CliRunner().invoke(app, ["app", "timss"])
    assert ran.exit_code == 1
    assert "either the folder of the TIMSS tables or --simulated is required" in ran.output


def test_no_edge_of_the_figure_crosses_another_skill():
    from matplotlib.figure import Figure
    from matplotlib.patches import Ellipse, FancyArrowPatch

    dense = CPDAG(np.ones((7, 7), dtype=np.int8) - np.eye(7, dtype=np.int8), SKILLS)
    figure = Figure(figsize=(9, 4.6))
    ax = figure.subplots()
    draw_skills(ax, dense, np.full((7, 7), 0.5), printed_graph())
    figure.canvas.draw()
    ellipses = [p for p in ax.patches if isinstance(p, Ellipse)]
    lines = [p for p in ax.patches if isinstance(p, FancyArrowPatch)]
    assert (len(ellipses), len(lines)) == (7, 21)
    for line in lines:
        points = line.get_path().interpolated(30).vertices
        inside = sum(
            bool((((points - e.center) / [e.width / 2, e.height / 2]) ** 2).sum(axis=1).min() < 0.9)
            for e in ellipses
        )
        assert inside <= 2  # the two it joins


@pytest.mark.data
@pytest.mark.parametrize(("q", "best"), [("official", -18306.82), ("printed", -18298.34)])
def test_the_best_optimum_is_reached(folder, q, best):
    table = read_times(folder, q)
    found = timss_data.fit_timss(table, 11).result_
    assert table.log_likelihood(found) == pytest.approx(best, abs=0.05)
    if q == "printed":
        np.testing.assert_array_equal(found.graph.adjacency, printed_graph().adjacency)


@pytest.mark.data
def test_accuracy_and_times_are_read_together(folder):
    table = read_accuracy_and_times(folder, "printed")
    assert table.values.shape == (435, 58)
    assert set(table.families) == {"binary", "normal"}
    assert read_accuracy_and_times(folder / "timss2019_rt", "printed") is not None
