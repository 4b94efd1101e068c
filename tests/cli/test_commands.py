from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hidag import __version__
from hidag.cli.console import clean, columns, one_line
from hidag.cli.messages import join_command
from hidag.cli.result_text import format_q, shorten_names
from hidag.simulation import design
from hidag.simulation.truth import read_truth, truth_json

from .conftest import read_rows, write_rows

COMMAND = [sys.executable, "-c", "from hidag.cli import main; main()"]
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def test_version_and_help(hidag):
    assert hidag("--version").stdout == f"hidag {__version__}\n"
    ran = hidag("--help")
    assert ran.exit_code == 0
    for word in ("fit", "simulate", "evaluate", "info", "demo", "hidag demo"):
        assert word in ran.stdout
    assert "hidag fit answers.csv --latents 3 --out fit" in hidag("fit", "--help").stdout


def test_simulate_fit_evaluate(hidag, tmp_path):
    sim, fit = tmp_path / "sim", tmp_path / "fit"
    words = ("--model", "Chain-5", "--q", "Q1", "--family", "gaussian", "--seed", 1, "-n", 1500)
    ran = hidag("simulate", *words, "--out", sim)
    assert ran.exit_code == 0, ran.stderr
    assert sorted(p.name for p in sim.iterdir()) == ["responses.csv", "truth.json", "types.csv"]
    assert "true graph: Z1 - Z2, Z2 - Z3, Z3 - Z4, Z4 - Z5" in ran.stdout
    rows = read_rows(sim / "responses.csv")
    assert (len(rows), len(rows[0])) == (1501, 15)
    assert hidag("fit", sim, "-k", 5, "--out", fit, "--no-plots").exit_code == 0
    text = hidag("evaluate", fit, sim)
    assert text.exit_code == 0, text.stderr
    assert text.stdout.startswith("SHD ")
    found = json.loads(hidag("evaluate", fit / "result.npz", sim / "truth.json", "--json").stdout)
    assert found["shd"] == found["shd_graph"] + found["shd_q"]
    assert found["shd_q"] <= 2
    shown = hidag("info", fit)
    assert shown.exit_code == 0
    assert "The data have 1,500 rows and 15 items. The model has 5 binary latent variables." in (
        shown.stdout
    )
    assert "seed 0, hidag " in shown.stdout


def test_the_same_seed_draws_the_same_data_and_missing_cells_are_empty(hidag, tmp_path):
    for name, words in {"a": (), "b": (), "c": ("--missing", 0.2)}.items():
        words = ("--seed", 4, "-n", 50, "--family", "poisson", *words)
        assert hidag("simulate", "--out", tmp_path / name, *words).exit_code == 0
    same = [(tmp_path / n / "responses.csv").read_bytes() for n in "ab"]
    assert same[0] == same[1]
    cells = np.array(read_rows(tmp_path / "c" / "responses.csv")[1:])
    assert 0.1 < np.mean(cells == "") < 0.3


def test_items_in_another_order_are_evaluated_by_name(hidag, tmp_path):
    sim = tmp_path / "sim"
    assert hidag("simulate", "--out", sim, "--seed", 1, "-n", 800).exit_code == 0
    rows = read_rows(sim / "responses.csv")
    turned = write_rows(tmp_path / "turned.csv", rows[0][::-1], [row[::-1] for row in rows[1:]])
    found = {}
    for name, path in {"a": sim / "responses.csv", "b": turned}.items():
        out = tmp_path / name
        words = ("--family", "gaussian", "--out", out, "--no-plots")
        assert hidag("fit", path, "-k", 5, *words).exit_code == 0
        found[name] = json.loads(hidag("evaluate", out, sim, "--json").stdout)
    assert found["a"]["shd"] == found["b"]["shd"]
    assert found["a"]["rmse_loadings"] == pytest.approx(found["b"]["rmse_loadings"])


def test_evaluate_and_info_refuse_other_files(hidag, table, tmp_path):
    ran = hidag("info", table)
    assert ran.exit_code == 1
    assert ran.stderr == (
        f"hidag: '{table}' is not a saved hidag fit, or it is truncated or damaged (it is no zip "
        "archive); save it again\n"
    )
    fit = tmp_path / "fit"
    assert hidag("fit", table, "-k", 2, "--out", fit, "--no-plots").exit_code == 0
    assert hidag("evaluate", fit, table).stderr == (
        f"hidag: {table} is not a truth written by hidag simulate, or it is truncated ("
        "Expecting value: line 1 column 1 (char 0)); write it again\n"
    )
    assert hidag("evaluate", fit, tmp_path).stderr == (
        f"hidag: no truth at {tmp_path / 'truth.json'}: expected a truth.json written by hidag "
        "simulate\n"
    )
    sim = tmp_path / "sim"
    assert hidag("simulate", "--out", sim, "-n", 50).exit_code == 0
    assert hidag("evaluate", fit, sim).stderr == (
        "hidag: the fit and the truth must have the same items, but the fit has 8 and the truth "
        "15; the fit lacks 'X1' (15 items)\n"
    )


def test_a_truth_reads_back_exactly(tmp_path):
    truth = design("Model-8", "Q2", "lognormal", rng=3)
    (tmp_path / "truth.json").write_text(truth_json(truth), "utf-8")
    again = read_truth(tmp_path)
    for name in ("q_matrix", "intercept", "loadings", "dispersion"):
        np.testing.assert_array_equal(getattr(again, name), getattr(truth, name))
    assert again.dag == truth.dag
    assert again.families == truth.families
    for ours, theirs in zip(again.law.tables, truth.law.tables, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_info_lists_versions(hidag):
    lines = hidag("info").stdout.splitlines()
    assert lines[0].split() == ["hidag", __version__]
    assert {line.split()[0] for line in lines} >= {"python", "numpy", "pyarrow", "families"}


def test_the_demo_of_an_assessment_finds_the_graph_of_its_truth(hidag, tmp_path):
    out = tmp_path / "demo"
    ran = hidag("demo", "assessment", "--out", out)
    assert ran.exit_code == 0, ran.stderr
    for words in (
        "types (5 given, 18 inferred)",
        "poisson     5  counts",
        "  Reading -> Word problems     |  Reading -> Word problems\n",
        "  Word problems -> Fluency     |  Word problems -> Fluency\n",
        "0 latent pairs",
    ):
        assert words in ran.stdout
    for name in ("report.html", "graph_and_truth.png", "q_and_truth.png", "result.npz"):
        assert (out / name).stat().st_size > 0
    # No truth where a fit would look for it.
    assert sorted(p.name for p in (out / "data").iterdir()) == ["responses.csv", "truth.json"]


def test_as_a_process_errors_go_to_stderr_without_traceback(tmp_path):
    ran = subprocess.run(
        [*COMMAND, "fit", str(tmp_path / "nothing"), "-k", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr == f"hidag: there is no folder {tmp_path / 'nothing'}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_interruption_is_exit_code_130(tmp_path):
    rng = np.random.default_rng(0)
    table = tmp_path / "long.csv"
    rows = [["no", *row] for row in rng.integers(0, 2, (4000, 29)).tolist()]
    rows[0][0] = "yes"
    write_rows(table, [f"x{j}" for j in range(30)], rows)
    out = tmp_path / "fit"
    words = ["fit", table, "-k", "9", "--starts", "100", "--tol", "1e-12", "--out", out]
    process = subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # type: ignore[arg-type,return-value]
    )
    # What was read is said just before the fit; on a busy machine that may take its time.
    assert process.stdout is not None
    assert process.stdout.readline() == "yes or true is read as 1 and no or false as 0 in x0\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors == "hidag: interrupted\n"
    assert not out.exists()


def test_help_needs_no_heavy_package():
    code = (
        "import sys; sys.argv = ['hidag', '--version']\n"
        "from hidag.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numba', 'matplotlib', 'sklearn', 'scipy'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_words_on_the_terminal():
    assert clean("a\x1b[31mb\tc\nd") == "a\ufffd[31mb\ufffdc\nd"
    assert clean("a\u202eb\u2067c") == "a\ufffdb\ufffdc"
    assert one_line("first:\n  second\nthird; \n fourth") == "first: second; third; fourth"
    assert columns([["a", "1"], ["bb", "22"]], right=(1,)) == ["a    1", "bb  22"]


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "ecpe").is_dir(), reason="the data sets are not here")
@pytest.mark.parametrize(
    ("folder", "n_items", "edge"),
    [("ecpe", 28, "Cohesive - Lexical"), ("holzinger_swineford", 9, "Visual - Textual")],
)
def test_real_folders(hidag, folder, n_items, edge):
    ran = hidag("fit", DATA / folder, "--seed", 1)
    assert ran.exit_code == 0, ran.stderr
    assert f"{n_items} items" in ran.stdout
    assert edge in ran.stdout


def test_the_demo_finds_the_graph_of_the_seesaw(hidag, tmp_path):
    out = tmp_path / "demo"
    ran = hidag("demo", "--seed", 3, "--out", out)
    assert ran.exit_code == 0, ran.stderr
    assert "The estimated graph is the true graph, Z1, Z2 -> Z3 -> Z4.\n" in ran.stdout
    assert "graph among the latents\n  Z1 -> Z3\n  Z2 -> Z3\n  Z3 -> Z4\n" in ran.stdout
    for name in ("page.html", "scenes.png", "effects.svg", "graph.png", "result.npz"):
        assert (out / name).stat().st_size > 0


def test_a_demo_that_does_not_exist_is_refused(hidag, tmp_path):
    ran = hidag("demo", "juggling", "--out", tmp_path)
    assert ran.exit_code == 2
    for word in ("juggling", "seesaw", "assessment"):
        assert f"'{word}'" in ran.stderr


def test_long_names_with_a_common_start_remain_distinct():
    names = [f"During the past 30 days, did you feel {word}" for word in ("sad", "calm")]
    lines = format_q([[1], [1]], names, ["Z1"])[1:]
    assert [line.split("...")[0] for line in lines] == ["During the"] * 2
    assert lines[0].split()[-2:] == ["sad", "1"]
    assert lines[1].split()[-2:] == ["calm", "1"]


def test_a_command_can_be_typed_again_and_hides_nothing():
    words = ["hidag", "fit", "t.csv", "--require", "\u202eevil->b"]
    typed = join_command(words)
    assert typed == "hidag fit t.csv --require ''$'\\u202e''evil->b'"
    assert join_command(words[:3]) == "hidag fit t.csv"


def test_the_help_of_fit_begins_with_the_most_common_options(hidag):
    text = hidag("fit", "--help").stdout
    titles = ["Options", "Items and Q", "Estimation", "Latents and graph", "Output"]
    places = [text.index(f"─ {title} ─") for title in titles]
    assert places == sorted(places)
    first = text[places[0] : places[1]]
    words = {word for word in first.split() if word.startswith("--")}
    assert words >= {"--latents", "--levels", "--out", "--seed", "--help"}
    assert "--effects" not in first


def test_the_package_itself_is_a_command():
    reported = subprocess.run(
        [sys.executable, "-m", "hidag", "--version"], capture_output=True, text=True, check=True
    )
    assert reported.stdout.startswith("hidag ")


def test_shortened_names_are_distinct():
    names = [f"symptom number {j:03d} (yes/no)" for j in (15, 225, 345)]
    assert shorten_names([*names, "short", names[0]]) == [*names, "short", names[0]]
    long = ["a" * 30 + str(j) + "b" * 30 for j in range(2)]
    assert shorten_names(["x" * 60]) == ["xxxxxxxxxxx...xxxxxxxxxx"]
    assert len(set(shorten_names(long))) == 2
