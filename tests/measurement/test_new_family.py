"""The family of docs/how_to_add_a_family.md is first class everywhere after registration."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import hidag
from hidag import DCRL
from hidag.cli.app import app
from hidag.data import check_values, read_table, resolve_families
from hidag.diagnostics import classify, fit_statistics, person_fit
from hidag.exceptions import DataError
from hidag.identifiability import check_identifiability
from hidag.inference import bootstrap, standard_errors
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement.families import ITEM_TYPES, family_named, item_type
from hidag.plotting import plot_item_response, plot_loadings, plot_responses
from hidag.reporting import render_report
from hidag.simulation import Truth, simulate

PAGE = Path(__file__).parents[2] / "docs" / "how_to_add_a_family.md"
FAMILIES = ("geometric", "bernoulli", "geometric", "gaussian", "geometric", "poisson") * 2
NAMES = [f"item{j}" for j in range(len(FAMILIES))]


@pytest.fixture(scope="module")
def page():
    """Run the page, and forget its family afterwards."""
    names: dict = {"__name__": "page"}
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S))
    exec(compile(code, PAGE.name, "exec"), names)
    yield names
    del ITEM_TYPES["geometric"]
    item_type.cache_clear()
    family_named.cache_clear()


@pytest.fixture(scope="module")
def truth(page):
    law = NetworkLaw(
        StateSpace.binary(2),
        ((), (0,)),
        (np.array([0.5, 0.5]), np.array([[0.75, 0.25], [0.3, 0.7]])),
    )
    n_items = len(FAMILIES)
    q = np.repeat(np.eye(2, dtype=np.int8), n_items // 2, axis=0)
    return Truth(q, np.full(n_items, -0.5), 2.0 * q, np.full(n_items, 0.6), FAMILIES, law)


@pytest.fixture(scope="module")
def table(truth):
    return simulate(truth, 1200, rng=1, missing=0.05).X


@pytest.fixture(scope="module")
def fit(table):
    return DCRL(2, family=list(FAMILIES), random_state=0).fit(table)


def test_the_page_names_at_most_three_files():
    text = PAGE.read_text("utf-8").split("## The density")[0]
    rows = re.findall(r"^\| (?!what|---)(.*) \|$", text, re.M)
    assert 1 <= len(rows) <= 3


def test_the_page_recovers_its_effects(page):
    np.testing.assert_allclose(page["model"].loadings_, 2.0, atol=0.4)


def test_mixed_items_are_recovered(truth, fit):
    assert hidag.evaluate(fit, truth).shd_q == 0


def test_values_are_checked(page):
    data = read_table(np.array([[0.0, 1.5], [1.0, 2.0], [3.0, 4.0]]), names=["a", "b"])
    with pytest.raises(DataError) as caught:
        check_values(data, ["geometric", "geometric"])
    assert caught.value.code == "unsuitable-values"
    assert caught.value.params["item"] == "b"
    assert resolve_families(data, {"a": "waiting-count"}).families[0] == "geometric"


def test_automatic_types_ask_the_family(page, monkeypatch):
    monkeypatch.setattr(page["Geometric"], "recognize", classmethod(lambda cls, x: "looks so"))
    choice = resolve_families(read_table(np.arange(6.0)[:, None], names=["a"]), "auto")
    assert choice.families == ("geometric",)
    assert choice.reasons == ("looks so",)


def test_a_saved_fit_answers_as_before(fit, table, tmp_path):
    again = hidag.load(fit.result_.save(tmp_path / "fit.npz"))
    assert again.families == fit.result_.families
    assert classify(again, table).to_rows() == classify(fit, table).to_rows()


def test_fit_statistics_and_person_fit(fit, table):
    found = fit_statistics(fit, table, n_tables=5)
    assert found.summary()
    # Under the right model standardized log-likelihoods are standard normal.
    lz = np.array([row["lz"] for row in person_fit(fit, table, n_tables=1).to_rows()], dtype=float)
    assert abs(np.nanmean(lz)) < 0.15
    assert abs(np.nanstd(lz) - 1.0) < 0.2


def test_standard_errors_cover_the_truth(truth, fit, table):
    rows = standard_errors(fit, table, level=0.999).to_rows()
    items = {f"item_{j}" for j, family in enumerate(FAMILIES) if family == "geometric"}
    own = [row for row in rows if row["kind"] == "coefficient" and row["of"] in items]
    assert len(own) == 2 * len(items)
    for row in own:
        true = -0.5 if row["term"] == "intercept" else 2.0
        assert row["lower"] < true < row["upper"]


def test_bootstrap_runs(fit, table):
    assert bootstrap(fit, table, n_resamples=2, random_state=0, start="fitted").summary()


def test_certificate_states_the_condition(page):
    found = check_identifiability(np.eye(2).repeat(3, axis=0), families=["geometric"] * 6)
    assert found.finding("analytic-families").status == "holds"


def test_plots_and_report(fit):
    plot_loadings(fit.result_)
    plot_responses(fit.result_)
    plot_item_response(fit.result_, 0)
    assert "numbers of failures before a success" in render_report(fit, plots=False)


def test_commands(page, truth, table, tmp_path):
    run = CliRunner().invoke
    path, out = tmp_path / "table.csv", tmp_path / "fit"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(NAMES)
        writer.writerows([["" if np.isnan(x) else repr(float(x)) for x in row] for row in table])
    families = [f"--family={name}={f}" for name, f in zip(NAMES, FAMILIES, strict=True)]
    ran = run(app, ["fit", str(path), "-k", "2", *families, "--seed", "0", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    for command in (
        ["info", out],
        ["standard-errors", out, path],
        ["goodness", out, path],
        ["classify", out, path],
        ["whatif", out, "--do", "Z1=1"],
        ["report", out, "--out", tmp_path / "page.html"],
    ):
        ran = run(app, [str(word) for word in command])
        assert ran.exit_code == 0, (command, ran.output)
    assert "geometric" in (tmp_path / "page.html").read_text("utf-8")
