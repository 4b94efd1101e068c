from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

from hidag import DCRL
from hidag.exceptions import FileError, SettingError
from hidag.reporting.sections import Section, Table
from hidag.results import load
from hidag.simulation import design, simulate
from hidag_paper.applications import Outcome, Picture, render_outcome
from hidag_paper.commands.application import run_application

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def result():
    data = simulate(design("Chain-5", rng=1), 300, rng=2)
    return DCRL(5, family="gaussian", random_state=0, n_starts=1).fit(data.X).result_


def outcome(result, **changes):
    parts = {
        "name": "trial",
        "title": "A trial",
        "findings": ("Something was found.",),
        "cautions": ("Few rows.",),
        "result": result,
        "seed": 7,
        "settings": {"seed": 7, "rows": None},
        "sections": (Section("First", ("A paragraph.",), ("line",), ("shares",)),),
        "pictures": (
            Picture.on_axes("line", "A line.", lambda ax: ax.plot([0, 1], [0, 1]), (3, 2)),
        ),
        "tables": (
            Table("shares", "Shares.", ("what", "share"), ((HOSTILE, 0.25), ("b", math.nan))),
        ),
        "numbers": {"rate": np.float64(0.5), "lost": math.inf, "row": np.arange(2)},
    }
    return Outcome(**{**parts, **changes})


def test_a_folder_holds_pictures_tables_the_fit_a_page_and_a_summary(result, tmp_path, capsys):
    run_application(lambda: outcome(result), tmp_path / "out")
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


def test_a_second_run_leaves_nothing_of_the_first(result, tmp_path):
    run_application(lambda: outcome(result), tmp_path)
    other = outcome(result, pictures=(), tables=(), sections=())
    run_application(lambda: other, tmp_path)
    assert not (tmp_path / "line.png").exists()
    assert not (tmp_path / "shares.csv").exists()


def test_files_that_no_application_wrote_stay(result, tmp_path):
    (tmp_path / "page.html").write_text("mine")
    with pytest.raises(FileError, match="which no earlier run has written"):
        run_application(lambda: outcome(result), tmp_path)
    assert (tmp_path / "page.html").read_text() == "mine"


def test_an_edited_summary_removes_nothing_elsewhere(result, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("1")
    folder = tmp_path / "out"
    run_application(lambda: outcome(result), folder)
    (folder / "summary.json").write_text(json.dumps({"files": ["../mine.csv"]}))
    run_application(lambda: outcome(result), folder)
    assert mine.exists()


def test_the_same_outcome_gives_the_same_bytes(result, tmp_path):
    for name in ("a", "b"):
        run_application(lambda: outcome(result), tmp_path / name)
    for name in ("line.png", "line.svg", "page.html", "summary.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_names_are_escaped_and_numbers_rounded(result):
    page = render_outcome(outcome(result), command="hidag app trial")
    assert "<script" not in page
    assert "0.250" in page
    assert "nan" not in page
    assert "hidag app trial" in page


def test_sections_show_what_is_there(result):
    with pytest.raises(SettingError, match="a section shows the table other, which is not there"):
        outcome(result, sections=(Section("First", tables=("other",)),))
    with pytest.raises(SettingError, match="each table needs a name of its own, but t is there tw"):
        outcome(result, sections=(), tables=(Table("t", "", (), ()), Table("t", "", (), ())))
