"""No command writes over what it reads, nor over part of a fit."""

from __future__ import annotations

import os

import pytest

from .conftest import ITEMS, write_rows

QUICK = ("--latents", 1, "--no-plots", "--no-statistics")


@pytest.fixture(scope="module")
def fitted(hidag, answers, tmp_path_factory):
    """A table, a known Q and a fit; tests leave all three as they are."""
    folder = tmp_path_factory.mktemp("fitted")
    table = write_rows(folder / "answers.csv", ITEMS, answers.tolist())
    rows = [[name, int(j < 4), int(j >= 4)] for j, name in enumerate(ITEMS)]
    q = write_rows(folder / "known_q.csv", ["item", "Verbal", "Spatial"], rows)
    ran = hidag("fit", table, "--q", q, "--no-plots", "--no-statistics", "--out", folder / "fit")
    assert ran.exit_code == 0, ran.stderr
    return folder / "fit", table, q


def _refused(hidag, kept, sentence, *words):
    before = kept.read_bytes()
    ran = hidag(*words)
    assert ran.stderr == f"hidag: {sentence}\n"
    assert ran.exit_code == 1
    assert kept.read_bytes() == before


def _read_here(out):
    return (
        f"the results would overwrite {out}, which this command reads; choose another file with "
        "--out"
    )


@pytest.mark.parametrize("command", ["classify", "standard-errors"])
def test_results_do_not_overwrite_the_table(hidag, fitted, command):
    fit, table, _ = fitted
    _refused(hidag, table, _read_here(table), command, fit, table, "--out", table)


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_to_the_table_is_the_table(hidag, fitted, tmp_path, link):
    fit, table, _ = fitted
    link(table, tmp_path / "same.csv")
    out = tmp_path / "same.csv"
    _refused(hidag, table, _read_here(out), "classify", fit, table, "--out", out)


def test_the_table_of_a_folder_is_not_overwritten(hidag, fitted, tmp_path):
    fit, table, _ = fitted
    inside = tmp_path / "responses.csv"
    inside.write_bytes(table.read_bytes())
    _refused(hidag, inside, _read_here(inside), "classify", fit, tmp_path, "--out", inside)


def test_validation_overwrites_neither_table_nor_q(hidag, fitted):
    _, table, q = fitted
    for kept in (table, q):
        _refused(
            hidag, kept, _read_here(kept), "validate-q", table, "--q", q, "--out", kept
        )  # fmt: skip


@pytest.mark.parametrize(
    "words", [("whatif", "--do", "Verbal=1"), ("report",), ("export",), ("export", "--items")]
)
def test_commands_on_a_fit_do_not_overwrite_it(hidag, fitted, words):
    fit, _, _ = fitted
    out = fit / "result.npz"
    command, *options = words
    _refused(hidag, out, _read_here(out), command, fit, *options, "--out", out)


def test_commands_do_not_overwrite_other_files_of_a_fit(hidag, fitted):
    fit, table, _ = fitted
    for name, words in (
        ("q.csv", ("export", fit)),
        ("report.html", ("whatif", fit, "--effects")),
        ("posterior.csv", ("classify", fit, table)),
    ):
        out = fit / name
        sentence = (
            f"the results would overwrite {out}, which belongs to the fit in {fit}; choose another "
            "file with --out"
        )
        _refused(hidag, out, sentence, *words, "--out", out)


def test_commands_do_not_overwrite_fit_statistics(hidag, fitted):
    fit, table, _ = fitted
    assert hidag("goodness", fit, table, "--out", fit).exit_code == 0
    out = fit / "persons.csv"
    sentence = (
        f"the results would overwrite {out}, which belongs to the fit in {fit}; choose another "
        "file with --out"
    )
    _refused(hidag, out, sentence, "classify", fit, table, "--out", out)


def test_a_report_may_be_written_over_its_own_page_only(hidag, fitted, tmp_path):
    fit, _, _ = fitted
    assert hidag("report", fit).exit_code == 0
    other = tmp_path / "other"
    other.mkdir()
    for name in ("result.npz", "report.html"):
        (other / name).write_bytes((fit / name).read_bytes())
    page = other / "report.html"
    sentence = (
        f"the results would overwrite {page}, which belongs to the fit in {other}; choose another "
        "file with --out"
    )
    _refused(hidag, page, sentence, "report", fit, "--out", other)


def test_simulated_data_do_not_overwrite_a_table_of_that_name(hidag, tmp_path):
    table = write_rows(tmp_path / "responses.csv", ["a"], [[1]])
    sentence = (
        f"the results would overwrite {table}, which no earlier run has written; choose another "
        "folder with --out"
    )
    _refused(hidag, table, sentence, "simulate", "-n", 20, "--out", tmp_path)
    assert hidag("simulate", "-n", 20, "--out", tmp_path / "new").exit_code == 0
    assert hidag("simulate", "-n", 30, "--out", tmp_path / "new").exit_code == 0


@pytest.mark.parametrize("words", [(), ("--no-q",)])
@pytest.mark.parametrize("inside", ["", "responses.csv"])
def test_a_fit_is_not_written_where_its_q_would_be_read_as_given(
    hidag, tmp_path, answers, words, inside
):
    write_rows(tmp_path / "responses.csv", ITEMS, answers[:120].tolist())
    ran = hidag("fit", tmp_path / inside, *QUICK, *words, "--out", tmp_path)
    assert ran.exit_code == 1
    assert ran.stderr == (
        f"hidag: the results must not be written into {tmp_path}, which holds the table "
        "responses.csv, because their q.csv would be read there as a given Q-matrix; choose "
        "another folder with --out\n"
    )
    assert [file.name for file in tmp_path.iterdir()] == ["responses.csv"]


def test_a_q_file_that_is_ignored_is_not_read(hidag, tmp_path, answers):
    write_rows(tmp_path / "responses.csv", ITEMS, answers[:120].tolist())
    (tmp_path / "q.csv").write_text("nothing of use\n")
    assert hidag("fit", tmp_path, *QUICK).exit_code == 1
    ran = hidag("fit", tmp_path, *QUICK, "--no-q")
    assert ran.exit_code == 0, ran.stderr


def test_an_empty_out_is_refused(hidag, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    for words in (("--out", ""), ("--out=",)):
        reported = hidag("fit", table, "-k", 2, *words)
        assert reported.exit_code == 2
        assert "it is empty; name a folder or a file" in " ".join(reported.output.split())
    assert sorted(tmp_path.iterdir()) == before


def test_a_refused_fit_leaves_no_folder(hidag, table, tmp_path):
    reported = hidag("fit", table, "-k", 2, "--family", "nonsense", "--out", tmp_path / "a" / "b")
    assert reported.exit_code == 1
    assert not (tmp_path / "a").exists()
