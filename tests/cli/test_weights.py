"""Rows of a survey count by their weights, and what cannot count them so says it."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import hidag as library

from .conftest import ITEMS, write_rows


@pytest.fixture(scope="module")
def weights(answers):
    return np.random.default_rng(3).gamma(4.0, 500.0, len(answers)).round(1)


@pytest.fixture(scope="module")
def survey(tmp_path_factory, answers, weights):
    rows = [[w, *row] for w, row in zip(weights, answers.tolist(), strict=True)]
    return write_rows(tmp_path_factory.mktemp("survey") / "t.csv", ["stands_for", *ITEMS], rows)


@pytest.fixture(scope="module")
def fitted(hidag, survey):
    out = survey.parent / "fit"
    known = [[name, int(j < 4), int(j >= 4)] for j, name in enumerate(ITEMS)]
    q_file = write_rows(survey.parent / "known.csv", ["item", "Verbal", "Spatial"], known)
    ran = hidag("fit", survey, "--q", q_file, "--weights", "stands_for", "--out", out)
    assert ran.exit_code == 0, ran.stderr
    return out, ran.stdout


def test_a_weighted_fit_uses_the_effective_sample_size(fitted, answers, weights):
    out, said = fitted
    worth = weights.sum() ** 2 / (weights**2).sum()
    assert (
        f"weights from column stands_for: {len(answers)} rows, effective sample size {worth:.0f}"
        in said
    )
    result = library.load(out / "result.npz")
    assert result.item_names == tuple(ITEMS)
    again = library.DCRL(
        len(result.latent_names), q_matrix=result.q_matrix, family=list(result.families),
        random_state=0,
    ).fit(answers, sample_weight=weights * worth / weights.sum())  # fmt: skip
    np.testing.assert_allclose(result.intercept, again.intercept_, atol=1e-3)
    page = (out / "report.html").read_text("utf-8")
    assert "Sample weights were used." in page
    assert "used sample weights but these statistics do not" not in page
    assert f"400 rows (effective sample size {worth:.1f})" in page
    assert "Q-matrix validation" in page
    assert "shares of profiles are unweighted averages over the rows" in page


def test_a_weighted_fit_has_weighted_fit_statistics(hidag, tmp_path, answers, monkeypatch):
    reported = []

    def misfits(found):
        reported.append(found.n_effective)
        return ("it fits badly",)

    monkeypatch.setattr("hidag.reporting.panels.find_misfits", misfits)
    rng = np.random.default_rng(0)
    weights = rng.gamma(4.0, 1.0, len(answers)).round(3)
    rows = [[w, *row] for w, row in zip(weights, answers.tolist(), strict=True)]
    table = write_rows(tmp_path / "t.csv", ["w", *ITEMS], rows)
    ran = hidag("fit", table, "--latents", 2, "--weights", "w", "--out", tmp_path / "fit")
    assert ran.exit_code == 0, ran.stderr
    assert reported == pytest.approx([weights.sum() ** 2 / (weights**2).sum()])
    assert "it fits badly" in ran.stderr
    report = tmp_path / "fit" / "report.html"
    assert "It fits badly" in report.read_text("utf-8")
    # Statistics that counted every row once do not assess a weighted fit.
    parts = json.loads((tmp_path / "fit" / "report.json").read_text("utf-8"))
    unweighted = {**parts, "weighted": False, "misfits": []}
    (tmp_path / "fit" / "report.json").write_text(json.dumps(unweighted), "utf-8")
    assert hidag("report", tmp_path / "fit").exit_code == 0
    page = report.read_text("utf-8")
    assert "The fit statistics ignore the sample weights" in page
    assert '<div class="good"' not in page


def test_commands_that_need_the_weights_require_them(hidag, fitted, survey):
    out, _ = fitted
    for command, what in (("bootstrap", "a bootstrap"), ("standard-errors", "standard errors")):
        refused = hidag(command, out, survey)
        assert refused.exit_code == 1
        assert refused.stderr == (
            f"hidag: the fit used row weights, and {what} without them would describe another fit; "
            "add --weights stands_for, as in the fit\n"
        )
    ran = hidag(
        "bootstrap", out, survey, "--weights", "stands_for", "-r", 2, "--start", "fitted",
        "--jobs", 1,
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    reported = hidag("goodness", out, survey, "--tables", 2).stdout
    assert (
        "the fit used sample weights but these statistics do not: likelihood and criteria are "
        "those of unweighted rows, and misfit may come from the weights; add --weights "
        "stands_for, as in the fit"
    ) in reported


def test_goodness_uses_the_weights_of_the_fit(hidag, fitted, survey, answers, weights):
    out, _ = fitted
    order = ("goodness", out, survey, "--weights", "stands_for", "--tables", 5)
    ran = hidag(*order)
    assert ran.exit_code == 0, ran.stderr
    worth = weights.sum() ** 2 / (weights**2).sum()
    assert f"400 rows (effective sample size {worth:.1f}), 3,200 observed cells" in ran.stdout
    assert ") without a missing cell" in ran.stdout
    assert "used sample weights but these statistics do not" not in ran.stdout
    assert f"person fit (lz) of {len(answers)} rows" in ran.stdout
    found = json.loads(hidag(*order, "--json").stdout)
    result = library.load(out / "result.npz")
    right = library.fit_statistics(result, answers, sample_weight=weights, n_tables=5)
    assert found["n_effective"] == pytest.approx(worth)
    assert found["criteria"]["log_likelihood"] == pytest.approx(result.log_likelihood, abs=1e-3)
    assert found["absolute"]["m2"] == pytest.approx(right.absolute.m2)
    assert found["absolute"]["n_effective"] == pytest.approx(right.absolute.n_effective)
    assert [row["n_effective"] for row in found["pairs"]] == pytest.approx([worth] * 28)
    files = survey.parent / "goodness"
    assert hidag(*order, "--out", files).exit_code == 0
    for name in ("pairs.csv", "items.csv", "checks.csv"):
        assert (files / name).read_text("utf-8").splitlines()[0].endswith(",n_rows,n_effective")
    assert "n_effective" not in (files / "persons.csv").read_text("utf-8")


def test_standard_errors_do_not_depend_on_the_scale_of_weights(
    hidag, fitted, survey, answers, weights
):
    out, _ = fitted
    ran = hidag("standard-errors", out, survey, "--weights", "stands_for", "--json")
    assert ran.exit_code == 0, ran.stderr
    result = library.load(out / "result.npz")
    scaled = weights * weights.sum() / (weights**2).sum()
    right = library.standard_errors(result, answers, sample_weight=scaled, kind="sandwich")
    reported = [row["standard_error"] for row in json.loads(ran.stdout)]
    np.testing.assert_allclose(reported, [row["standard_error"] for row in right.to_rows()])
    chosen = hidag("standard-errors", out, survey, "--weights", "stands_for", "--kind", "louis")
    worth = weights.sum() ** 2 / (weights**2).sum()
    assert f"by the observed information: {worth:.6g} rows" in chosen.stdout


def test_selection_and_q_validation_use_weights(hidag, fitted, survey, weights):
    worth = weights.sum() ** 2 / (weights**2).sum()
    words = f"effective sample size {worth:.0f}"
    chosen = hidag("select", survey, "--weights", "stands_for", "--fits", "none")
    assert chosen.exit_code == 0, chosen.stderr
    assert words in chosen.stdout
    q_file = survey.parent / "known.csv"
    judged = hidag("validate-q", survey, "--q", q_file, "--weights", "stands_for", "--json")
    assert judged.exit_code == 0, judged.stderr
    found = json.loads(judged.stdout)
    assert [row["penalty"] for row in found] == pytest.approx(
        [np.log(worth) + np.log(2)] * len(found)
    )


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        (
            "-1",
            "--weights w must be finite numbers >= 0, but row 1 (counting from 0) has -1 "
            "(1 of 3 rows)",
        ),
        (
            "",
            "column 'w' must hold a number in every row, but it has nothing in row 2 below the "
            "names (1 of 3 rows); fill it in, or use 0 to exclude a row",
        ),
        (
            "much",
            "column 'w' must hold a number in every row, but it has 'much' in row 2 below the "
            "names (1 of 3 rows); fill it in, or use 0 to exclude a row",
        ),
        (
            "1,016",
            "column 'w' must hold a number in every row, but it has '1,016' in row 2 below the "
            "names (1 of 3 rows); write 1016 if its commas separate thousands, 1.016 if they mark "
            "decimals",
        ),
        (
            "1,5",
            "column 'w' must hold a number in every row, but it has '1,5' in row 2 below the names "
            "(1 of 3 rows); write decimals with a point",
        ),
    ],
)
def test_invalid_weights_in_a_column_are_an_error(hidag, tmp_path, cell, sentence):
    rows = [["1", 0, 1], [cell, 1, 0], ["0", 1, 1]]
    table = write_rows(tmp_path / "t.csv", ["w", "a", "b"], rows)
    refused = hidag("fit", table, "--latents", 1, "--weights", "w")
    assert refused.exit_code == 1
    assert refused.stderr == f"hidag: {sentence}\n"


def test_settings_are_rendered_as_options_by_bootstrap(hidag, fitted, survey):
    out, _ = fitted
    refused = hidag("bootstrap", out, survey, "--weights", "stands_for", "-r", 0)
    assert refused.stderr == "hidag: --resamples must be a whole number of at least 1, got 0\n"


def test_resamples_of_another_bootstrap_are_an_error(hidag, fitted, survey):
    out, _ = fitted
    order = ("bootstrap", out, survey, "--weights", "stands_for", "-r", 2, "--jobs", 1)
    shutil.rmtree(out / "resamples", ignore_errors=True)
    assert hidag(*order, "--start", "fitted").exit_code == 0
    assert hidag(*order, "--start", "fitted", "--seed", 5).stderr == (
        f"hidag: {out / 'resamples'} holds resamples of another bootstrap (different seed); repeat "
        "the command with the former settings to resume, or remove that folder\n"
    )
