"""A survey with labels instead of numbers is fitted and reported by one command."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

from hidag import load

GRADES = ("never", "at times", "often", "always")
REGIONS = ("north", "south", "east")
WORDS = ["--words", "q*=never<at times<often<always", "--words", "region=north,south,east"]


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Return a CSV of two traits: grades in words, a region, yes and no, and names of rows."""
    rng = np.random.default_rng(0)
    first = rng.random(400) < 0.5
    second = rng.random(400) < np.where(first, 0.8, 0.2)
    file = tmp_path_factory.mktemp("survey") / "survey.csv"
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["person", "q1", "q2", "q3", "q4", "q5", "q6", "region", "owns"])
        for i in range(400):
            traits = [first[i]] * 3 + [second[i]] * 3
            shown = np.digitize(rng.logistic(size=6) + 4.0 * np.array(traits) - 2.0, [-2, 0, 2])
            words = [GRADES[grade] if rng.random() < 0.95 else "" for grade in shown]
            place = REGIONS[int(second[i])] if rng.random() < 0.8 else "East"
            owns = "yes" if rng.random() < 0.2 + 0.6 * first[i] else "no"
            writer.writerow([f"p{i}", *words, place, owns])
    return file


@pytest.fixture(scope="module")
def run(hidag):
    """Run a command that works; give what it says."""

    def done(*words: object) -> str:
        found = hidag(*words)
        assert found.exit_code == 0, found.stderr
        return found.stdout

    return done


@pytest.fixture
def refused(hidag):
    """Run a command that does not; give the sentence."""

    def done(*words: object) -> str:
        found = hidag(*words)
        assert found.exit_code == 1, found.exception
        assert found.stderr.startswith("hidag: ")
        return found.stderr[len("hidag: ") :].rstrip("\n")

    return done


@pytest.fixture(scope="module")
def fitted(survey, run, tmp_path_factory):
    out = tmp_path_factory.mktemp("fit") / "fit"
    return out, run("fit", survey, "--latents", 2, "--id", "person", *WORDS, "--out", out)


def test_a_fit_stores_the_labels(fitted) -> None:
    out, said = fitted
    assert "0 never, 1 at times, 2 often, 3 always in q1, q2, q3 and 3 more" in said
    result = load(out / "result.npz")
    assert result.families[:6] == ("ordinal(4)",) * 6
    assert result.families[6].startswith("categorical(")
    assert tuple(result.answer_words["region"]) == tuple(REGIONS)
    asked = {name for name in result.response_names if name.startswith("region=")}
    assert asked < {f"region={word}" for word in REGIONS}
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "0 never, 1 at times, 2 often, 3 always" in page
    assert "region=south" in page


def test_later_commands_read_and_print_labels(fitted, survey, run, tmp_path) -> None:
    out, _ = fitted
    people = tmp_path / "people.csv"
    run("classify", out, survey, "--out", people)
    assert len(people.read_text().splitlines()) == 401
    reported = run("whatif", out, "--given", "region=SOUTH", "--given", "q1=always")
    assert "given: region = SOUTH, q1 = always" in reported
    assert "P(=at times)" in reported
    as_numbers = json.loads(run("whatif", out, "--given", "region=1", "--given", "q1=3", "--json"))
    in_words = json.loads(
        run("whatif", out, "--given", "region=south", "--given", "q1=always", "--json")
    )
    assert in_words["rows"] == as_numbers["rows"]
    assert "{ never, at_times, often, always }" in run("export", out, "--items")
    run("goodness", out, survey, "--tables", "20", "--out", tmp_path / "goodness")
    files = (tmp_path / "goodness").glob("*.csv")
    assert any("share of east" in file.read_text() for file in files)


def test_a_table_of_labels_is_an_error_that_names_the_options(survey, refused) -> None:
    sentence = refused("fit", survey, "--latents", "2", "--id", "person")
    assert sentence.endswith(
        "or list the labels with --words 'q*=always,at times,never,often' --words "
        "region=East,north,south, separated by < from low to high if they are ordered; leave out a "
        "column that is not an item with --drop q1, or with --id q1 if it identifies rows"
    )


@pytest.mark.parametrize("text", ["region", "=a,b", "region=north", "region="])
def test_an_incomplete_option_is_an_error(survey, refused, text: str) -> None:
    assert refused("fit", survey, "--latents", "2", "--words", text) == (
        "--words takes COLUMN=LABELS, separated by commas, or by < if they are ordered, such "
        f"as 'mood=low<middle<high', got {text!r}"
    )


def test_unknown_columns_and_unlisted_labels_are_errors(survey, refused) -> None:
    sentence = refused("fit", survey, "--latents", "2", "--words", "regin=north,south")
    assert "did you mean 'region'?" in sentence
    sentence = refused(
        "fit", survey, "--latents", "2", "--drop", "person,q*", "--words", "region=north,south"
    )
    assert "must hold one of 'north', 'south', but has 'East'" in sentence


def test_parquet_is_read_like_text(survey, run, refused, tmp_path) -> None:
    table = tmp_path / "survey.parquet"
    frame = pyarrow.csv.read_csv(survey)
    region = frame.column_names.index("region")
    encoded = frame.column(region).dictionary_encode()
    pyarrow.parquet.write_table(frame.set_column(region, "region", encoded), table)
    about = ["--latents", 2, "--id", "person", "--no-plots"]
    said = run("fit", table, *about, *WORDS)
    assert (
        said.split("log-likelihood")[1]
        == (run("fit", survey, *about, *WORDS).split("log-likelihood")[1])
    )
    sentence = refused("fit", table, *about)
    assert "recode the text as numbers, list its labels with --words q1=LABELS" in sentence


def test_values_without_a_label_are_printed_as_numbers(survey, run, tmp_path):
    out = tmp_path / "fit"
    about = ["--latents", 2, "--id", "person", "--no-plots", "--family", "q1=ordinal(5)"]
    run("fit", survey, *about, *WORDS, "--out", out)
    assert load(out / "result.npz").families[0] == "ordinal(5)"
    reported = run("whatif", out, "--do", "Z1=1", "--out", tmp_path / "answer.csv")
    assert "intervention in the whole population: Z1 = 1" in reported
    rows = (tmp_path / "answer.csv").read_text()
    assert "q1,P(=always)" in rows
    assert "q1,P(=4)" in rows
