"""`hidag check`: the certificate of a Q-matrix in a file."""

from __future__ import annotations

import json

from .conftest import ITEMS, write_rows


def test_the_certificate_is_printed(hidag, q_file):
    ran = hidag("check", q_file)
    assert ran.exit_code == 0
    assert ran.stdout.startswith("Identifiability of 8 items on 2 binary latents, main effects\n")
    assert "Verbal: item0 | item1 | item2" in ran.stdout
    assert ran.stderr == ""


def test_a_verdict_of_no_is_no_failure(hidag, tmp_path):
    path = write_rows(tmp_path / "q.csv", ["item", "A", "B"], [["x", 1, 1], ["y", 0, 1]])
    ran = hidag("check", tmp_path, "--effects", "all", "--families", "bernoulli")
    assert ran.exit_code == 0
    assert "Every item of A loads on B too" in ran.stdout
    as_json = hidag("check", path, "--json")
    assert json.loads(as_json.stdout)["generic"] is False


def test_levels_and_types(hidag, q_file, tmp_path):
    types = write_rows(
        tmp_path / "types.csv", ["item", "type"], [[name, "binary"] for name in ITEMS]
    )
    ran = hidag("check", q_file, "--levels", "2,3", "--families", types)
    assert ran.exit_code == 0
    assert "4 more items" not in ran.stdout
    assert "latent Spatial has only items item4, item5, item6 and item7, which Q1 and Q2" in (
        ran.stdout.replace("\n   ", "")
    )
    per_item = ",".join(["bernoulli"] * 7 + ["censored-lognormal(1, 2)"])
    assert hidag("check", q_file, "--families", per_item).exit_code == 0


def test_bad_input_is_one_sentence(hidag, q_file, tmp_path):
    two = write_rows(tmp_path / "two.csv", ["item", "A"], [["x", 2]])
    for words, sentence in [
        (
            (two,),
            "identifiability is checked for a Q-matrix of ones and zeros, but the entry of item "
            "'x' for latent 'A' is 2 (1 of 1 entries); use 1 if the item loads on the latent "
            "and 0 otherwise",
        ),
        (
            (q_file, "--levels", "many"),
            "--levels must be a whole number from 2 up, or one per latent separated by commas "
            "(2,3,2), got 'many'",
        ),
        (
            (q_file, "--effects", "some"),
            "--effects must be main, auto, all, ",
        ),
        (
            (q_file, "--families", "bernoulli,poisson"),
            "--families must be one name, or a list of one name for each of the 8 items, got "
            "bernoulli,poisson",
        ),
        ((tmp_path / "no.csv",), f"there is no file {tmp_path / 'no.csv'}"),
    ]:
        ran = hidag("check", *words)
        assert ran.exit_code == 1
        assert ran.stderr.startswith(f"hidag: {sentence}")
        assert ran.stderr.count("\n") == 1
    empty = tmp_path / "folder"
    empty.mkdir()
    assert hidag("check", empty).stderr == (
        f"hidag: the folder {empty} holds no q.csv; name the file with the Q-matrix\n"
    )
