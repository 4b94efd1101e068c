"""More joint states than can be listed: the whole estimator, from table to files."""

from __future__ import annotations

import json
import pickle
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

import hidag
from hidag import DCRL, evaluate
from hidag.cli.app import app
from hidag.exceptions import GraphError, HidagWarning, SettingError
from hidag.fitting.information_criteria import information_criteria
from hidag.plotting import plot_graph, plot_trace
from hidag.reporting import write_report
from hidag.simulation import chain_dag, make_truth, random_law, simulate
from hidag.strategy.labels import same_class

K, N = 18, 300
#: A number that is none, as people would see it; names such as "dominance" may go by.
NO_NUMBER = re.compile(r"\b(nan|NaN|inf|None)\b")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    truth = make_truth(
        random_law(chain_dag(K), rng=rng), np.vstack([np.eye(K)] * 3), "gaussian", rng=rng
    )
    return truth, np.array(simulate(truth, N, rng=rng).X)


@pytest.fixture(scope="module")
def fitted(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HidagWarning)
        return DCRL(K, family="gaussian", max_iter=60, random_state=0).fit(table[1])


@pytest.fixture(scope="module")
def unsummed(fitted):
    """The fit as it would be if its latents hung together too closely for small sums."""
    (start,) = fitted.result_.starts
    none = {"log_likelihood": np.nan, "objective": np.nan}
    return replace(fitted.result_, starts=(replace(start, objective=np.nan),), **none)


@pytest.fixture(scope="module")
def saved(unsummed, tmp_path_factory):
    return unsummed.save(tmp_path_factory.mktemp("saved") / "fit.npz")


def test_it_is_fitted_by_sampling(table, fitted):
    assert fitted.result_.method == "saem"
    assert evaluate(fitted, table[0]).shd_q <= 4
    assert fitted.graph_.adjacency.shape == (K, K)
    assert same_class(fitted.graph_, fitted.latent_law_)
    assert 0 < fitted.result_.information_ratio <= 1
    assert 1 <= fitted.result_.graph_rows <= N


def test_rows_are_predicted_and_drawn(table, fitted):
    X = table[1][:40].copy()
    X[0] = np.nan
    chances, states = fitted.predict_proba(X), fitted.predict(X)
    assert chances.shape == states.shape == (40, K)
    assert np.isfinite(chances).all()
    assert ((chances > 0.5) == states)[1:].mean() > 0.97
    np.testing.assert_array_equal(fitted.transform(X), chances)
    np.testing.assert_array_equal(fitted.predict_proba(X[5:9]), chances[5:9])
    # Nothing was seen of the first row: only the law speaks.
    np.testing.assert_allclose(chances[0], fitted.latent_law_.marginals()[:, 1], atol=0.15)
    values, drawn = fitted.sample(50, random_state=0)
    assert values.shape == (50, 3 * K)
    assert drawn.shape == (50, K)


def test_the_likelihood_is_the_sum_of_the_rows_log_densities(table, fitted):
    densities = fitted.score_samples(table[1])
    assert densities.shape == (N,)
    assert fitted.log_likelihood_ == pytest.approx(densities.sum(), abs=1e-6)
    assert fitted.score(table[1]) == pytest.approx(densities.mean())


def test_a_fit_has_criteria_statistics_and_standard_errors(table, fitted):
    criteria = information_criteria(fitted.result_)
    assert criteria.bic == pytest.approx(
        -2 * fitted.log_likelihood_ + np.log(N) * criteria.n_parameters
    )
    found = hidag.fit_statistics(fitted.result_, table[1], n_tables=2)
    assert found.criteria.bic == pytest.approx(criteria.bic)
    assert 0 < found.criteria.entropy < 1
    chances = np.array(found.pairs.column("p_value"))
    # A true model: few pairs of 1,431 are below .05 beyond what chance gives.
    assert np.mean(chances < 0.05) < 0.1
    errors = hidag.standard_errors(fitted.result_, table[1], kind="scores")
    assert errors.n_parameters == criteria.n_parameters


def test_row_densities_are_refused_if_the_treewidth_is_too_large(table, fitted, configure):
    configure("network_em", max_clique_cells=1)
    sentence = (
        "row densities need a sum over 2^18 latent states, and the treewidth of Q and graph is too "
        "large for a junction tree; use a sparser Q or graph, or fewer latents"
    )
    for ask in (fitted.score_samples, fitted.score):
        with pytest.raises(SettingError) as caught:
            ask(table[1])
        assert str(caught.value) == sentence


def test_saving_and_loading_keep_everything(table, fitted, saved):
    again = hidag.load(saved)
    assert np.isnan(again.log_likelihood)
    assert np.isnan(again.objective)
    assert np.isnan(again.starts[0].objective)
    assert again.information_ratio == fitted.result_.information_ratio
    assert again.graph_rows == fitted.result_.graph_rows
    assert again.law.parents == fitted.latent_law_.parents
    for one, other in zip(again.law.tables, fitted.latent_law_.tables, strict=True):
        assert np.array_equal(one, other)
    rows = table[1][:10]
    assert np.array_equal(again.posterior(rows), fitted.predict_proba(rows))
    assert np.array_equal(again.most_probable_states(rows), fitted.predict(rows))


def test_the_header_is_json_for_readers_that_know_no_nan(saved):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    with np.load(saved) as stored:
        header = json.loads(stored["header"].tobytes(), parse_constant=refuse)
    assert header["log_likelihood"] is None
    assert header["information_ratio"] > 0


def test_scikit_learn_conventions(table, fitted):
    assert clone(fitted).get_params() == fitted.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(table[1][:5]), fitted.predict(table[1][:5]))


def test_figures_and_page_show_no_missing_number(fitted, unsummed, tmp_path):
    assert plot_graph(fitted.result_.graph) is not None
    assert plot_trace(fitted.result_) is not None
    page = tmp_path / "report.html"
    write_report(unsummed, page)
    text = re.sub(r"<(style|script|svg).*?</\1>|<[^>]*>", " ", page.read_text("utf-8"), flags=re.S)
    text = re.sub(r"data:\S+", " ", text)
    assert "the log-likelihood was not computed" in text
    found = [text[m.start() - 40 : m.end() + 20] for m in NO_NUMBER.finditer(text)]
    assert found == []


def test_the_command_fits_and_shows_no_missing_number(table, tmp_path, configure):
    configure("network_em", max_clique_cells=1)
    names = ",".join(f"item{j}" for j in range(3 * K))
    data = tmp_path / "table.csv"
    np.savetxt(data, table[1], delimiter=",", header=names, comments="")
    out = tmp_path / "out"
    words = ["fit", str(data), "--latents", str(K), "--out", str(out), "--seed", "0"]
    ran = CliRunner().invoke(app, [*words, "--max-iter", "60", "--no-plots"])
    assert ran.exit_code == 0, ran.stderr
    assert "the log-likelihood is not computed" in ran.stdout
    assert NO_NUMBER.findall(ran.stdout + ran.stderr) == []
    for path in Path(out).glob("*.csv"):
        assert NO_NUMBER.findall(path.read_text("utf-8")) == [], path.name
    assert not (out / "latent_law.csv").exists()
    saved = hidag.load(out / "result.npz")
    assert np.isnan(saved.log_likelihood)
    # The law is still there to be read: one line per latent and configuration of its parents.
    lines = (out / "latent_tables.csv").read_text("utf-8").splitlines()
    assert lines[0] == "latent,level,given,probability"
    assert len(lines) - 1 == sum(2 ** len(causes) for causes in saved.law.parents)
    child = next(k for k, causes in enumerate(saved.law.parents) if len(causes) == 1)
    cause = saved.law.parents[child][0]
    names = saved.latent_names
    wanted = f"{names[child]},1,{names[cause]}=1,{saved.law.tables[child][1, 1]:.10g}"
    assert wanted in lines


def test_an_impossible_search_is_refused_before_estimation(table, monkeypatch):
    def work(*_, **__):
        raise AssertionError("Stage I was started")

    monkeypatch.setattr("hidag.fitting.stages.estimate_measurement", work)
    with pytest.raises(GraphError) as caught:
        DCRL(K, family="gaussian", search="exact").fit(table[1])
    assert str(caught.value) == (
        "search='exact' takes at most 12 variables, because it lists all their subsets, got 18; "
        "use search='xges'"
    )
