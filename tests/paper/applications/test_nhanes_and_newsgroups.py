"""NHANES and newsgroups: simulated folders from files to page, and reading of the real data."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hidag.cli.app import app
from hidag.exceptions import DataError
from hidag_paper.applications.newsgroups import read_counts
from hidag_paper.applications.nhanes import item_families, read_survey

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"


def write(path: Path, header: list[str], rows) -> None:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)


@pytest.fixture(scope="module")
def survey(tmp_path_factory) -> Path:
    """Two states, items of four kinds, gaps, weights of which some are zero."""
    folder = tmp_path_factory.mktemp("survey")
    rng = np.random.default_rng(5)
    n = 350
    one = rng.random(n) < 0.4
    two = rng.random(n) < np.where(one, 0.7, 0.3)
    columns = {
        "BMI": ("normal", np.exp(3.2 + 0.5 * one + 0.15 * rng.normal(size=n))),
        "BPDia": ("normal", 70 + 4.0 * one + 16 * rng.normal(size=n)),
        "Diabetes": ("binary", rng.random(n) < np.where(one, 0.7, 0.1)),
        "HealthGen": ("ordinal", rng.binomial(3, np.where(one, 0.2, 0.8))),
        "Depressed": ("ordinal", rng.binomial(2, np.where(two, 0.8, 0.1))),
        "SleepTrouble": ("binary", rng.random(n) < np.where(two, 0.8, 0.15)),
        "BadDays": (
            "count",
            rng.poisson(np.where(two, 12.0, 1.5) * rng.standard_gamma(1.0, size=n)),
        ),
    }
    values = np.column_stack([np.asarray(x, float) for _, x in columns.values()])
    values[rng.random(values.shape) < 0.05] = np.nan
    values[:3, 1] = 0.0
    write(
        folder / "responses.csv",
        list(columns),
        [["" if np.isnan(v) else f"{v:g}" for v in row] for row in values],
    )
    write(folder / "types.csv", ["item", "type"], [[c, kind] for c, (kind, _) in columns.items()])
    weights = rng.uniform(0.5, 3.0, n) * 1000
    weights[:10] = 0
    write(
        folder / "covariates.csv",
        ["Age", "Male", "WTMEC2YR"],
        zip(rng.integers(20, 80, n), rng.integers(0, 2, n), weights, strict=True),
    )
    return folder


def test_weights_sum_to_the_effective_sample_size(survey):
    read = read_survey(survey)
    assert len(read.weights) == 340
    assert (read.n_unweighted, read.n_zero) == (10, 3)
    assert read.weights.sum() == pytest.approx(read.weights.sum() ** 2 / (read.weights**2).sum())
    assert read.weights.sum() < 340
    families = item_families(read)
    assert (families["BMI"], families["BPDia"]) == ("lognormal", "gaussian")


def test_nhanes_from_folder_to_page(survey, tmp_path):
    out = tmp_path / "out"
    words = ["app", "nhanes", str(survey), "--out", str(out), "--latents", "2", "--seed", "3"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.stderr
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    assert (summary["n_latents"], summary["seed"], summary["n_rows"]) == (2, 3, 340)
    assert np.array(summary["q_matrix"]).shape == (7, 2)
    # The counts are overdispersed.
    assert summary["fit_settings"]["family"][6] == "negative-binomial"
    assert sum("Depressed" in name or "BadDays" in name for name in summary["latent_names"]) == 1
    page = (out / "page.html").read_text("utf-8")
    for heading in ("Number of latents", "Age and sex, not used in the fits"):
        assert heading in page
    assert (out / "misfit.csv").exists()
    for name in ("graph", "effects", "agreement", "number_of_latents"):
        assert (out / f"{name}.png").exists()
        assert (out / f"{name}.svg").exists()


@pytest.fixture(scope="module")
def news(tmp_path_factory) -> Path:
    """Two subjects, twelve words, counts as triplets."""
    folder = tmp_path_factory.mktemp("news")
    rng = np.random.default_rng(6)
    n = 300
    sport = rng.random(n) < 0.5
    long = rng.random(n) < 0.5
    mean = np.full((n, 12), 0.4)
    mean[:, :5] = np.where(sport, 2.5, 0.2)[:, None]
    mean[:, 5:10] = np.where(long, 2.0, 0.3)[:, None]
    counts = rng.poisson(mean)
    rows, cols = np.nonzero(counts)
    write(
        folder / "responses_sparse.csv.gz",
        ["row", "col", "count"],
        zip(rows, cols, counts[rows, cols], strict=True),
    )
    write(folder / "vocabulary.csv", ["col", "word"], [[j, f"word{j}"] for j in range(12)])
    write(
        folder / "labels.csv",
        ["row", "group_id", "group", "super"],
        [
            [i, int(s), "rec.hockey" if s else "sci.space", "rec" if s else "sci"]
            for i, s in enumerate(sport)
        ],
    )
    return folder


def test_newsgroups_from_folder_to_page(news, tmp_path):
    out = tmp_path / "out"
    words = ["app", "newsgroups", str(news), "--out", str(out), "--latents", "2"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.stderr
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    assert (summary["n_latents"], summary["family"]) == (2, "poisson")
    assert summary["subject_accuracy"] > 0.9
    assert summary["most_frequent_subject"] < 0.65
    for name in ("graph", "words", "groups"):
        assert (out / f"{name}.png").exists()
    rows = (out / "groups.csv").read_text("utf-8").splitlines()
    assert rows[0].startswith("newsgroup,documents,")
    assert len(rows) == 3


def test_counts_are_read_without_labels(news, tmp_path):
    table = read_counts(news)
    (tmp_path / "vocabulary.csv").write_text((news / "vocabulary.csv").read_text())
    (tmp_path / "responses_sparse.csv.gz").write_bytes(
        (news / "responses_sparse.csv.gz").read_bytes()
    )
    assert np.array_equal(read_counts(tmp_path).values, table.values)


def test_incomplete_folders_raise(survey, news, tmp_path):
    for name in ("responses.csv", "types.csv"):
        (tmp_path / name).write_text((survey / name).read_text())
    write(tmp_path / "covariates.csv", ["Age"], [[30]] * 350)
    with pytest.raises(DataError) as caught:
        read_survey(tmp_path)
    assert str(caught.value) == (
        "covariates.csv must have the column WTMEC2YR with the survey weights, but it has Age"
    )
    write(tmp_path / "vocabulary.csv", ["col", "word"], [[0, "a"]])
    write(tmp_path / "responses_sparse.csv.gz", ["row", "col", "count"], [[0, 0, 1], [1, 4, 2]])
    with pytest.raises(DataError) as caught:
        read_counts(tmp_path)
    assert str(caught.value) == (
        "responses_sparse.csv.gz refers to word 4, but vocabulary.csv has 1 words, numbered from 0"
    )
    ran = CliRunner().invoke(app, ["app", "nhanes", str(tmp_path / "nowhere"), "--out", "x"])
    assert ran.exit_code == 1
    assert "there is no folder" in ran.stderr


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "nhanes_mixed").is_dir(), reason="the data are not there")
def test_the_real_survey_is_read():
    read = read_survey(DATA / "nhanes_mixed")
    assert read.observations.n_items == 18
    assert 6000 < read.weights.sum() < 7000
    kinds = {family.split("(")[0] for family in item_families(read).values()}
    assert kinds == {"gaussian", "lognormal", "bernoulli", "ordinal", "poisson"}


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "newsgroups20_counts").is_dir(), reason="the data are not there")
def test_the_real_counts_are_read():
    assert read_counts(DATA / "newsgroups20_counts").values.shape == (5883, 653)
