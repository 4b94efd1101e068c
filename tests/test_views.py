"""Every result shows itself: one line, text, a view in notebooks, tables and a figure."""

from __future__ import annotations

import inspect
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest

import hidag
from hidag.exceptions import SettingError
from hidag.plotting.dispatch import FIT_FIGURES
from hidag.results.methods import FitMethods
from hidag.views import View

MAKE = {
    "fit": lambda model, X: model.result_,
    "graph": lambda model, X: model.graph_,
    "dag": lambda model, X: model.graph_.to_dag(),
    "law": lambda model, X: model.latent_law_,
    "classification": lambda model, X: model.classify(X),
    "fit statistics": lambda model, X: model.fit_statistics(X),
    "person fit": lambda model, X: model.person_fit(X),
    "standard errors": lambda model, X: model.standard_errors(X),
    "what if": lambda model, X: model.what_if({"Z1": 1}),
    "average effects": lambda model, X: model.average_effects(),
    "bootstrap": lambda model, X: model.bootstrap(X, n_resamples=2, start="fitted"),
    "evaluation": lambda model, X: hidag.evaluate(model, TRUTH),
    "certificate": lambda model, X: hidag.check_identifiability(model),
    "selection": lambda model, X: hidag.select(X, range(3, 6), fits="none"),
    "validation": lambda model, X: given(X).validate_q(X, n_resamples=1),
    "truth": lambda model, X: TRUTH,
    "simulation": lambda model, X: hidag.simulate(TRUTH, 20, rng=1),
}
TRUTH = hidag.design("Chain-5", "Q1", "gaussian", design="research-code", rng=1)


@pytest.fixture(scope="module")
def data():
    return hidag.simulate(TRUTH, 400, rng=2).to_frame(library="pandas")


def given(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hidag.DCRL(5, q_matrix=TRUTH.q_matrix, random_state=0).fit(X)


@pytest.fixture(scope="module")
def model(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hidag.DCRL(5, family="gaussian", random_state=0).fit(data)


@pytest.mark.parametrize("name", MAKE)
def test_results_show_themselves(name, model, data) -> None:
    found = MAKE[name](model, data)
    assert isinstance(found, View)
    assert "\n" not in repr(found)
    assert len(repr(found)) < 160
    assert found.summary()
    page = found._repr_html_()
    assert page.count("<table") >= 1
    assert len(page) < 20_000
    assert isinstance(found.to_frame(), pd.DataFrame)
    for table in found._frames:
        columns, rows = found.content(table)
        assert found.to_frame(table, library="polars").shape == (len(rows), len(columns))
    axes = found.plot()
    assert axes.get_figure() is not None
    plt.close("all")


def test_frames_are_of_the_library_of_the_data(model, data) -> None:
    assert isinstance(model.q_frame_, pd.DataFrame)
    frame = pl.DataFrame({name: data[name].to_numpy() for name in data.columns})
    assert isinstance(model.classify(frame).to_frame(), pl.DataFrame)
    assert list(model.q_frame_.columns) == ["item", *model.latent_names_]
    assert list(model.loadings_frame_["item"]) == list(data.columns)


def test_a_wrong_table_or_kind_lists_the_right_ones(model) -> None:
    with pytest.raises(SettingError, match="'latents', 'edges', 'q'"):
        model.to_frame("edge")
    with pytest.raises(SettingError, match="'graph', 'items', 'q'"):
        model.plot("dag")


@pytest.mark.parametrize("kind", FIT_FIGURES)
@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_figures_of_a_fit_are_files(kind, ending, model, tmp_path) -> None:
    if ending == "pdf" and kind != "graph":
        return
    options = {"item": 0} if kind == "item" else {}
    path = hidag.plotting.save_plot(model, tmp_path / f"one.{ending}", kind, **options)
    assert path.stat().st_size > 1000


def test_expected_responses_agree_with_the_rows_classified(model, data) -> None:
    table = model.to_frame("items")
    present = model.predict_proba(data)
    for row in table.itertuples():
        k = model.latent_names_.index(row.latent)
        weights = present[:, k]
        assert np.average(data[row.item], weights=weights) == pytest.approx(row.present, abs=0.25)


def test_the_summary_states_edges_items_and_warnings(model) -> None:
    text = model.summary()
    assert "400 rows" in text
    assert "is measured by" in text
    assert "absent  present" in text
    assert all(len(line) < 100 for line in text.splitlines())


def test_notebooks_show_the_fit_of_an_estimator(model) -> None:
    bundle = model._repr_mimebundle_()
    assert "<svg" in bundle["text/html"]
    assert bundle["text/plain"] == repr(model)
    assert "<svg" not in hidag.DCRL(3)._repr_mimebundle_()["text/html"]


def test_methods_of_a_fit_are_the_public_functions(model, data, tmp_path) -> None:
    functions = {name for name, _ in inspect.getmembers(FitMethods, inspect.isfunction)}
    wanted = {"bootstrap", "classify", "fit_statistics", "person_fit", "standard_errors",
              "validate_q", "what_if", "average_effects"}  # fmt: skip
    assert wanted <= functions & set(hidag.__all__)
    assert model.report(tmp_path / "r.html", data, plots=False).exists()


def test_latents_can_be_renamed(data) -> None:
    model = given(data)
    result = model.rename({"Z1": "depression"})
    assert model.latent_names_[0] == result.graph.names[0] == "depression"
    assert "depression" in model.summary()
    with pytest.raises(SettingError, match="'Z1' is not a latent"):
        model.rename({"Z1": "pain"})
    with pytest.raises(SettingError, match="must differ"):
        model.rename({"Z2": "depression"})
