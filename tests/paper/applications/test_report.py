from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

from hidag import DCRL
from hidag.exceptions import FileError, SettingError
from hidag.reporting.content import Table
from hidag.results import load
from hidag.simulation import design, simulate
from hidag_paper.applications import ApplicationReport, ReportFigure, ReportSection
from hidag_paper.commands.application import run_application

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def result():
    data = simulate(design("Chain-5", rng=1), 300, rng=2)
    return DCRL(5, family="gaussian", random_state=0, n_starts=1).fit(data.X).result_


def make_report(result, **changes):
    figure = ReportFigure.on_axes("line", "A line.", lambda ax: ax.plot([0, 1], [0, 1]), (3, 2))
    table = Table("shares", "Shares.", ("what", "share"), ((HOSTILE, 0.25), ("b", math.nan)))
    parts = {
        "name": "trial",
        "title": "A trial",
        "findings": ("Something was found.",),
        "cautions": ("Few rows.",),
        "result": result,
        "seed": 7,
        "settings": {"seed": 7, "rows": None},
        "sections": (ReportSection("First", ("A paragraph.",), (figure,), (table,)),),
        "numbers": {"rate": np.float64(0.5), "lost": math.inf, "row": np.arange(2)},
    }
    return ApplicationReport(**{**parts, **changes})


def test_folder_contains_figures_tables_fit_page_and_summary(result, tmp_path, capsys):
    run_application(lambda: make_report(result), tmp_path / "out")
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {
        *("line.png", "line.svg", "shares.csv", "result.npz", "page.html", "summary.json")
    }
    summary = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert summary["adjacency"] == result.graph.adjacency.tolist()
    assert summary["q_matrix"] == result.q_matrix.tolist()
    assert summary["latent_names"] == list(result.latent_names)
    assert (summary["seed"], summary["rate"], summary["lost"], summary["row"]) == (
        7,
        0.5,
        None,
        [0, 1],
    )
    assert set(summary["files"]) == written
    assert load(tmp_path / "out" / "result.npz").graph == result.graph
    with (tmp_path / "out" / "shares.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == [["what", "share"], [HOSTILE, "0.25"], ["b", ""]]
    assert "Something was found." in capsys.readouterr().out


def test_second_run_replaces_the_first(result, tmp_path):
    run_application(lambda: make_report(result), tmp_path)
    other = make_report(result, sections=())
    run_application(lambda: other, tmp_path)
    assert not (tmp_path / "line.png").exists()
    assert not (tmp_path / "shares.csv").exists()


def test_other_files_are_not_overwritten(result, tmp_path):
    (tmp_path / "page.html").write_text("mine")
    with pytest.raises(FileError, match="which no earlier run has written"):
        run_application(lambda: make_report(result), tmp_path)
    assert (tmp_path / "page.html").read_text() == "mine"


def test_edited_summary_removes_no_other_files(result, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("1")
    folder = tmp_path / "out"
    run_application(lambda: make_report(result), folder)
    (folder / "summary.json").write_text(json.dumps({"files": ["../mine.csv"]}))
    run_application(lambda: make_report(result), folder)
    assert mine.exists()


def test_same_report_gives_the_same_bytes(result, tmp_path):
    for name in ("a", "b"):
        run_application(lambda: make_report(result), tmp_path / name)
    for name in ("line.png", "line.svg", "page.html", "summary.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_names_are_escaped_and_numbers_rounded(result):
    page = make_report(result).render(command="hidag app trial")
    assert "<script" not in page
    assert "0.250" in page
    assert "nan" not in page
    assert "hidag app trial" in page


def test_names_of_tables_are_unique(result):
    twice = (Table("t", "", (), ()), Table("t", "", (), ()))
    with pytest.raises(SettingError, match="name of each table must be unique, but t is repeated"):
        make_report(result, sections=(ReportSection("First", tables=twice),))
