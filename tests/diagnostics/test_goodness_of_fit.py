"""Goodness of fit: statistics, summaries, and invariance to the order of rows and items."""

from __future__ import annotations

from dataclasses import replace
from math import comb, log
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm

from hidag import DCRL
from hidag.diagnostics import fit_statistics, person_fit
from hidag.diagnostics.goodness_of_fit import (
    compute_criteria,
    run_predictive_checks,
    untested_pairs_note,
)
from hidag.fitting.information_criteria import log_number_of_q
from hidag.information.free_parameters import FreeParameters
from hidag.results import reorder_items

from ..fitted_models import FOUR_ITEMS_EACH, chain_of_three, drawn, two_latents

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def test_tied_items_stand_out_among_pairs(mixed):
    result, X = mixed
    found = fit_statistics(result, X, n_tables=20)
    rows = sorted(found.pairs.to_dicts(), key=lambda row: -abs(row["z"]))
    assert (rows[0]["first"], rows[0]["second"]) == ("item_1", "item_7")
    assert rows[0]["residual"] > 0.1
    names = {row["first"] for row in rows}
    assert {"item_5=0", "item_5=1"} & names or {"item_5=2"} & names
    seen = ~np.isnan(X)
    assert rows[0]["n_rows"] == int((seen[:, 1] & seen[:, 7]).sum())
    assert found.criteria.n_cells == int(seen.sum())
    assert found.notes[-1].code == "missing-at-random"
    text = found.summary()
    assert "item_1" in text
    assert "predictive checks" in text
    assert found.to_dict()["criteria"]["n_rows"] == 1500


def test_statistics_outside_the_prediction_interval_have_p_at_most_a_tenth():
    result = two_latents(("gaussian",) * 6)
    X, _ = drawn(result, 60, seed=4)
    outside = []
    for seed in range(8):
        rows = run_predictive_checks(result, X, n_tables=39, seed=seed).to_dicts()
        beyond = [not row["lower"] <= row["observed"] <= row["upper"] for row in rows]
        # The interval ends are the second smallest and second largest of 39 draws.
        assert beyond == [row["p_value"] <= 0.1 + 1e-9 for row in rows]
        outside += beyond
    assert any(outside)


def test_criteria_count_free_parameters(mixed):
    result, X = mixed
    found = compute_criteria(FreeParameters.of(result, X), X)
    assert found.log_likelihood == pytest.approx(result.log_likelihood, abs=1e-6)
    # Coefficients of the nine items, two variances, a cutpoint, two linked latents.
    assert found.n_parameters == (2 + 2 + 3 + 2 + 2 + 2 * 3 + 2 + 2 + 3) + (3 + 1) + 3
    assert found.bic - found.aic == pytest.approx(found.n_parameters * (np.log(1500) - 2))
    assert found.ebic == found.bic
    open_q = replace(result, q_given=None)
    ones = int(open_q.q_matrix.sum())
    assert log_number_of_q(open_q) == pytest.approx(log(comb(18, ones)))


def test_lognormal_items_are_labelled_as_logarithms():
    result = two_latents(("lognormal", "gaussian", "bernoulli") * 3)
    X, _ = drawn(result, 300, seed=0)
    found = fit_statistics(result, X, n_tables=2)
    assert found.items.column("item")[:4] == ["log(X1)", "X2", "X3", "log(X4)"]
    assert found.items.column("observed")[0] == pytest.approx(np.log(X[:, 0]).mean())
    assert found.pairs.column("first")[0] == "log(X1)"


def test_times_beyond_the_limit_are_censored():
    limit = 2.0
    result = two_latents((f"censored-lognormal({limit:g})", "gaussian", "bernoulli") * 3)
    cut, _ = drawn(result, 300, seed=0)
    rng = np.random.default_rng(1)
    beyond = np.where(np.arange(9) % 3 == 0, cut * rng.uniform(1, 9, cut.shape), cut)
    beyond = np.where(cut == limit, beyond, cut)
    assert beyond.max() > 3 * limit
    table = beyond.copy()
    found = fit_statistics(result, beyond, n_tables=5)
    np.testing.assert_equal(found.to_dict(), fit_statistics(result, cut, n_tables=5).to_dict())
    assert person_fit(result, beyond).table == person_fit(result, cut).table
    np.testing.assert_array_equal(beyond, table)
    assert found.items.column("item")[:2] == ["min(X1, 2)", "X2"]
    assert found.items.column("observed")[0] == pytest.approx(cut[:, 0].mean())
    assert found.checks.column("item")[0] == "X1"


@pytest.mark.parametrize("weighted", [False, True])
def test_permuting_rows_and_items_permutes_the_statistics_bit_for_bit(mixed, weighted):
    result, X = mixed
    rng = np.random.default_rng(1)
    order, rows = rng.permutation(9), rng.permutation(len(X))
    frame = pd.DataFrame(X, columns=result.item_names)
    weights = rng.uniform(0.3, 3.0, len(X)) if weighted else None
    one = fit_statistics(result, frame, sample_weight=weights, n_tables=10).to_dict()
    # The same fit with rows and items permuted.
    other = fit_statistics(
        reorder_items(result, order),
        frame.iloc[rows, order],
        sample_weight=None if weights is None else weights[rows],
        n_tables=10,
    ).to_dict()
    # Tables are in the order of the items that they were asked for.
    names = list(dict.fromkeys(row["item"] for row in other["checks"]))
    assert names == [*(result.item_names[j] for j in order), "(all items)"]
    firsts = [row["item"] for row in other["items"]]
    assert all(firsts.index(row["first"]) < firsts.index(row["second"]) for row in other["pairs"])
    keys = {
        "pairs": lambda row: sorted((row["first"], row["second"])),
        "items": lambda row: row["item"],
        "checks": lambda row: (row["item"], row["statistic"]),
    }
    for name, key in keys.items():
        for found in (one, other):
            found[name] = sorted(found[name], key=key)
            for row in found[name]:
                if name == "pairs":
                    row["first"], row["second"] = sorted((row["first"], row["second"]))
    np.testing.assert_equal(other, one)


@pytest.mark.data
def test_absolute_fit_of_ecpe_agrees_with_measr():
    path = DATA / "ecpe"
    if not path.is_dir():
        pytest.skip("the ecpe data are not here")
    table = pd.read_csv(path / "responses.csv")
    model = DCRL(
        3, effects="all", law="saturated", q_matrix=pd.read_csv(path / "q.csv"), random_state=0
    ).fit(table)
    found = fit_statistics(model.result_, table, n_tables=10)
    # The tests of the R package measr expect these of its estimate of the same model, whose main
    # effects it holds above zero: 507.1 on 325 degrees, .0138 (.0115 to .0161), .0316.
    assert found.absolute.m2 == pytest.approx(507.1, rel=0.02)
    assert found.absolute.degrees == 325
    assert found.absolute.rmsea == pytest.approx(0.0138, abs=0.0004)
    np.testing.assert_allclose(found.absolute.interval, (0.0115, 0.0161), atol=0.0004)
    assert found.absolute.srmsr == pytest.approx(0.0316, abs=0.0002)
    # 81 parameters: 74 of the items and 7 shares, each counted whether at the edge or not.
    assert found.criteria.n_parameters == 81
    assert found.criteria.aic == pytest.approx(2 * 42738.56 + 2 * 81, abs=0.1)


def test_p_values_allow_for_estimated_variances():
    result = chain_of_three(2.6, FOUR_ITEMS_EACH)
    X, _ = drawn(result, 300, seed=0)
    found = fit_statistics(result, X, n_tables=2)
    for chances, as_if_known in (
        (found.pairs.column("p_value"), 2.0 * norm.sf(np.abs(found.pairs.column("z")))),
        (
            found.items.column("p_value"),
            chi2.sf(found.items.column("chi_square"), found.items.column("degrees")),
        ),
    ):
        low = as_if_known < 0.2
        assert low.any()
        assert np.all(np.array(chances)[low] > as_if_known[low])


def test_summary_states_the_rejections_expected_under_the_model():
    result = chain_of_three(2.6, FOUR_ITEMS_EACH)
    X, _ = drawn(result, 600, seed=0)
    found = fit_statistics(result, X, n_tables=10)
    text = found.summary()
    assert "of 66 have p < 0.05, about 3 expected by chance" in text
    assert "of 12 have p < 0.05, less than one expected by chance" in text
    assert (
        "predictive checks (tables drawn from the fit): 0 of 14 have p < 0.05, few or none "
        "expected under a correct model: the fit reproduces most of them"
    ) in text
    assert untested_pairs_note(found.pairs) is None
