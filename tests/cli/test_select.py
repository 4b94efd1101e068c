from __future__ import annotations

import json

import pytest

from .conftest import read_rows


def test_select_prints_a_table_and_writes_it(hidag, table, tmp_path):
    out = tmp_path / "numbers"
    ran = hidag("select", table, "--latents", "1..3", "--folds", 0, "--out", out, "--seed", 1)
    assert ran.exit_code == 0, ran.stderr
    assert "recommended: 2 latents: BIC is smaller than for" in ran.stdout
    assert "fitting 2 latents" in ran.stdout
    assert sorted(p.name for p in out.iterdir()) == [
        "selection.csv",
        "selection.json",
        "selection.png",
        "selection.svg",
    ]
    rows = read_rows(out / "selection.csv")
    assert rows[0][:3] == ["latents", "eigenvalue", "noise"]
    # Three latents had learned a stronger penalty than two, and were fitted with theirs too.
    assert [row[0] for row in rows[1:]] == ["1", "2", "3", "3"]
    strengths = [row[rows[0].index("penalty_strength")] for row in rows[1:]]
    assert strengths[3] == strengths[1] != strengths[2]
    found = json.loads((out / "selection.json").read_text("utf-8"))
    assert (found["recommended"], found["votes"]["EBIC"]) == (2, 2)


def test_select_without_fits_as_json(hidag, table):
    ran = hidag("select", table, "--fits", "none", "--json")
    assert ran.exit_code == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert (found["recommended"], found["decided_by"]) == (2, "correlations")


def test_fit_with_a_selected_number_of_latents_gives_the_reason(hidag, table):
    ran = hidag("fit", table, "--latents", "auto", "--seed", 1)
    assert ran.exit_code == 0, ran.stderr
    assert (
        "number of latents: 2, as parallel analysis and factor BIC both select 2; the largest "
        "spectral gap is after 2"
    ) in ran.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("select", "--latents", "8..2"),
            "--latents must be a range such as 2..8 or numbers separated by commas, got '8..2'",
        ),
        (
            ("select", "--latents", "2..9"),
            "--latents has 9, but each latent needs at least one of the 8 items; use at most 3, "
            "the number that 8 items can identify",
        ),
        (
            ("select", "--penalty-strengths", "1,much"),
            "--penalty-strengths must be numbers or auto, separated by commas, got '1,much'",
        ),
        (
            ("select", "--folds", "-1"),
            "--folds must be a whole number of at least 0, got -1",
        ),
    ],
)
def test_bad_options_get_a_sentence(hidag, table, words, sentence):
    ran = hidag(words[0], table, *words[1:])
    assert ran.exit_code == 1
    assert ran.stderr.strip() == f"hidag: {sentence}"
