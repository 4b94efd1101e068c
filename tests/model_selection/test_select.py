"""hidag.select: criteria, recommendation and margin."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import hidag
from hidag import DCRL, design, select, simulate
from hidag.data import read_table
from hidag.exceptions import SettingError
from hidag.fitting.information_criteria import criteria_of
from hidag.model_selection import Candidate, Selection, number_search
from hidag.model_selection.candidates import Table, folds_of
from hidag.model_selection.factor_count import FactorCount
from hidag.model_selection.selection import COLUMNS
from hidag.plotting import plot_selection, render_figure
from hidag.plotting.selection import SIZE
from hidag.simulation import Truth, chain_dag, random_law

QUICK = {"family": "gaussian", "random_state": 0, "n_starts": 1}


def counted(k: int, most: int = 7) -> FactorCount:
    """Return a count in which parallel analysis selects k and factor BIC 1."""
    eigenvalues = np.where(np.arange(1, most + 1) <= k, 1.0, 0.1)
    return FactorCount(eigenvalues, np.full(most, 0.5), np.abs(np.arange(most + 1.0) - 1), 100.0)


@pytest.fixture(scope="module")
def values():
    return np.array(simulate(design("Chain-5", "Q1", "gaussian", rng=5), 400, rng=6).X)


@pytest.fixture(scope="module")
def found(values):
    return select(values, range(2, 7), folds=2, **QUICK)


def test_all_criteria_and_the_recommendation_are_right(found):
    assert found.recommended == 5
    assert found.votes == dict.fromkeys(
        (
            "spectral gap",
            "parallel analysis",
            "factor BIC",
            "AIC",
            "BIC",
            "EBIC",
            "cross-validation",
        ),
        5,
    )
    assert found.runner_up == 6
    assert found.margin > 5
    assert found.result.q_matrix.shape == (15, 5)
    assert found.verdict().startswith(f"5 latents: BIC is smaller than for 6 by {found.margin:.1f}")


def test_only_numbers_near_the_answer_are_fitted(found):
    assert sorted(found.fitted) == [4, 5, 6]
    rows = found.rows()
    assert [row["latents"] for row in rows] == [2, 3, 4, 5, 6, 6]
    assert tuple(rows[0]) == COLUMNS
    assert [np.isfinite(row["ebic"]) for row in rows] == [False, False] + 4 * [True]
    assert rows[3]["held_out_behind"] == 0
    assert rows[2]["held_out_behind"] > 3 * rows[2]["held_out_error"] > 0


def test_six_latents_are_also_fitted_with_the_penalty_of_five(found):
    # The penalty estimated with six latents is stronger, which could decide alone.
    five, learned, again = found.candidates[1:]
    assert learned.strength > five.strength == again.penalty_strength == again.strength
    assert (learned.n_latents, learned.penalty_strength, again.n_latents) == (6, None, 6)
    assert found.margin == min(learned.bic, again.bic) - five.bic
    # That fit only serves the comparison.
    assert [one.at_common_strength for one in found.candidates] == [False, False, False, True]
    assert found.result_with(6) is learned.result
    assert found.result_with(2) is None


def test_results_have_the_names_of_the_items(values):
    frame = pd.DataFrame(values, columns=[f"item {j}" for j in range(15)])
    chosen = select(frame, [5], folds=0, **QUICK).result
    assert chosen.item_names == tuple(frame.columns)


def test_the_selection_is_json_serializable(found):
    text = json.dumps(found.to_dict(), allow_nan=False)
    again = json.loads(text)
    assert (again["recommended"], again["decided_by"], again["n_folds"]) == (5, "bic", 2)


def test_the_order_of_rows_and_columns_does_not_matter(values):
    rng = np.random.default_rng(1)
    turned = values[np.ix_(rng.permutation(len(values)), rng.permutation(15))]
    one, two = (select(x, [4, 5], folds=2, **QUICK) for x in (values, turned))
    assert [c.ebic for c in one.candidates] == [c.ebic for c in two.candidates]
    assert [c.mean_held_out for c in one.candidates] == [c.mean_held_out for c in two.candidates]
    behind = [[a.held_out_behind(found.candidates[0]) for a in found.candidates]
              for found in (one, two)]  # fmt: skip
    assert behind[0] == behind[1]


def test_without_fits_the_correlations_decide(values):
    found = hidag.select(values, family="gaussian", fits="none")
    assert (found.recommended, found.candidates, found.result) == (5, (), None)
    assert found.latents == (0, 1, 2, 3, 4, 5, 6, 7)
    assert found.verdict() == (
        "5 latents, from the correlations: parallel analysis and factor BIC both select 5; the "
        "largest spectral gap is after 5."
    )
    assert found.margin == found.count.factor_bic[found.runner_up]


def test_the_verdict_mentions_the_end_of_the_range(values):
    found = select(values, [2, 3], fits="none", family="gaussian")
    assert found.recommended == 3
    assert found.verdict().endswith("This is the largest number that could be selected.")


def test_several_penalty_strengths_are_compared(values):
    found = select(values, [5], penalty_strengths=(None, 200.0), folds=0, **QUICK)
    learned, strong = found.candidates
    assert strong.result.penalty_strength_used == 200.0
    assert strong.result.q_matrix.sum() < learned.result.q_matrix.sum()
    assert found.fitted[5] is learned


def test_a_failed_fit_is_a_row_with_its_reason(values):
    found = select(values, [4, 5], method="em", law="no such law", **QUICK)
    assert all(one.reason.code == "invalid-setting" for one in found.candidates)
    assert found.recommended == 5
    assert found.to_dict()["decided_by"] == "correlations"


def with_bic(one: Candidate, n_latents: int, more: float) -> Candidate:
    """Return the candidate as one of another number whose criteria are so much larger."""
    shifted = {name: getattr(one.criteria, name) + more for name in ("aic", "bic", "ebic")}
    return Candidate(n_latents, None, criteria=replace(one.criteria, **shifted), result=one.result)


@pytest.mark.parametrize(
    ("other", "more", "chosen", "verdict"),
    [
        (6, 2.0, 5, "5 latents: BIC is smaller than for 6 by 2.0, a near tie."),
        (
            6,
            -40.0,
            5,
            "5 latents: parallel analysis and factor BIC select 5, and fits may not raise this "
            "number, although BIC is smaller for 6 by 40.0. Other criteria differ: AIC selects 6, "
            "BIC selects 6, EBIC selects 6.",
        ),
        (
            4,
            -9.0,
            5,
            "5 latents: parallel analysis and factor BIC select 5, and BIC is smaller for 4 by "
            "only 9.0, a near tie. Other criteria differ: AIC selects 4, BIC selects 4, "
            "EBIC selects 4.",
        ),
        (
            4,
            -11.0,
            4,
            "4 latents: BIC is smaller than for 5 by 11.0. Other criteria differ: spectral gap "
            "selects 5, parallel analysis selects 5, factor BIC selects 5.",
        ),
    ],
)
def test_the_count_stands_up_to_a_near_tie(found, other, more, chosen, verdict):
    five = replace(found.fitted[5], held_out=None)
    judged = Selection(found.latents, found.count, (five, with_bic(five, other, more)), 0)
    assert (judged.recommended, judged.verdict()) == (chosen, verdict)


def weakly(one: Candidate, q_matrix: np.ndarray) -> Candidate:
    """Return the candidate with a low information ratio."""
    # Latents with three levels do not initialize neighbours.
    law = SimpleNamespace(space=SimpleNamespace(levels=(3,)))
    result = SimpleNamespace(
        q_matrix=q_matrix, information_ratio=0.05, penalty_strength_used=3.0, law=law
    )
    return replace(one, result=result, held_out=None)


def test_with_low_information_fits_may_raise_the_count(found):
    q = np.kron(np.eye(6, dtype=np.int8), np.ones((2, 1), dtype=np.int8))
    five = weakly(found.fitted[5], q[:, :5])
    six = weakly(with_bic(five, 6, -40.0), q)
    judged = Selection(found.latents, found.count, (five, six), 0)
    assert (judged.recommended, judged.runner_up, judged.margin) == (6, 5, pytest.approx(40.0))
    assert judged.verdict().startswith(
        "6 latents: BIC is smaller than for 5 by 40.0. The information ratio is 5%, so that fits "
        "decide, and BIC uses this share of the rows."
    )
    # One of six latents has a single item: the fit counts for five.
    judged = Selection(found.latents, found.count, (five, weakly(six, q[:-1])), 0)
    assert (judged.recommended, judged.runner_up) == (5, None)
    assert judged.verdict().startswith("5 latents: all fits have items for this number only; ")


def test_the_recommended_number_is_fitted(monkeypatch):
    values = np.array(simulate(design("Chain-5", "Q1", "bernoulli", rng=5), 60, rng=6).X)
    asked = []

    def fake(table, model, k, strength):
        asked.append(k)
        q = np.zeros((15, k), dtype=np.int8)
        # The best fit is one of six latents of which three have items.
        q[:, : 3 if k == 6 else k] = 1
        criteria = criteria_of(0.0 if k == 6 else -10.0 - k, 20, 0.0, 60.0)
        return weakly(Candidate(k, strength, criteria=criteria), q)

    monkeypatch.setattr(Table, "candidate", fake)
    monkeypatch.setattr(number_search, "count_table_factors", lambda *args, **kwargs: counted(5))
    found = select(values, range(1, 8), family="bernoulli", folds=0)
    assert asked == [4, 5, 6, 7, 3]
    assert (found.recommended, found.result.q_matrix.shape[1]) == (3, 3)
    asked.clear()
    # The nearest allowed number is recommended.
    found = select(values, range(4, 7), family="bernoulli", folds=0)
    assert (found.recommended, asked) == (4, [4, 5, 6])


@pytest.mark.filterwarnings("ignore")
def test_select_and_auto_agree_on_a_table_of_weak_items():
    rng = np.random.default_rng(1)
    q = np.eye(3, dtype=np.int8)[np.arange(15) % 3]
    law = random_law(chain_dag(3), rng=rng)
    truth = Truth(q, np.full(15, -0.5), 1.0 * q, np.ones(15), ("bernoulli",) * 15, law)
    values = np.array(simulate(truth, 3000, rng=rng).X)
    quick = {**QUICK, "family": "bernoulli"}
    found = select(values, folds=0, **quick)
    auto = DCRL("auto", **quick).fit(values).result_
    assert found.compared.low_information
    assert "the information ratio is 7%" in auto.n_latents_reason
    assert found.recommended == len(auto.latent_names) == 3
    assert auto.q_matrix.shape == found.result.q_matrix.shape == (15, 3)


def test_equal_rows_are_in_different_folds():
    table = Table(read_table(np.zeros((9, 2))), ("gaussian",) * 2)
    assert np.bincount(folds_of(table, 3)).tolist() == [3, 3, 3]


@pytest.mark.parametrize("fits", ["near", "none"])
def test_independent_items_have_no_latent(fits):
    values = np.random.default_rng(1).normal(size=(400, 9))
    found = select(values, fits=fits, **QUICK)
    assert (found.recommended, found.result) == (0, None)
    assert found.verdict().startswith(
        "0 latents: the items are independent, no latent is supported."
    )
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["recommended"] == 0
    rows = {row["latents"]: row for row in found.rows()}
    assert np.isnan(rows[0]["eigenvalue"])
    assert rows[0]["factor_bic"] == 0
    if fits == "near":
        normal = -0.5 * 400 * (np.log(2 * np.pi * values.var(axis=0)) + 1).sum()
        assert rows[0]["log_likelihood"] == pytest.approx(normal)
        assert rows[0]["bic"] == pytest.approx(-2 * normal + 18 * np.log(400))
        assert rows[0]["bic"] < rows[1]["bic"]
        assert len(plot_selection(found, Figure(figsize=SIZE))) >= 2
    # A range without 0 recommends its nearest number, and says what the correlations are.
    other = select(values, range(1, 3), fits="none", **QUICK)
    assert other.recommended == 1
    assert "The correlations are consistent with independent items." in other.verdict()


def test_a_failed_fit_is_replaced_by_a_refit_from_its_neighbours(found):
    five = replace(found.fitted[5], held_out=None)
    refit = replace(with_bic(five, 5, -10.5), from_neighbour=True)
    refit = replace(refit, result=replace(five.result, seed=99))
    chosen = Selection(found.latents, found.count, (five, refit), 0)
    assert chosen.result is refit.result
    tied = replace(refit, criteria=with_bic(five, 5, -9.5).criteria)
    assert Selection(found.latents, found.count, (five, tied), 0).result is five.result


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"latents": 3},
            "latents must be several whole numbers, such as range(2, 9), got 3",
        ),
        (
            {"latents": []},
            "latents must be one or more whole numbers of at least 0, got []",
        ),
        (
            {"latents": [2, -1]},
            "latents must be one or more whole numbers of at least 0, got [2, -1]",
        ),
        (
            {"latents": [2, 16]},
            "latents has 16, but each latent needs at least one of the 15 items; use at most 7, "
            "the number that 15 items can identify",
        ),
        ({"fits": "some"}, "fits must be 'near', 'all' or 'none', got 'some'"),
        ({"folds": -1}, "folds must be a whole number of at least 0, got -1"),
        (
            {"penalty_strengths": ()},
            "penalty_strengths must have at least one entry; use [None] to estimate the strength",
        ),
        (
            {"n_latents": 3},
            "select compares numbers of latents and penalties, so that n_latents cannot be set for "
            "all fits; omit n_latents",
        ),
    ],
)
def test_invalid_settings_raise(values, settings, sentence):
    with pytest.raises(SettingError) as caught:
        select(values, **{"family": "gaussian", "fits": "none", **settings})
    assert str(caught.value) == sentence


def test_the_picture_marks_the_recommended_number(found):
    panels = plot_selection(found, Figure(figsize=SIZE))
    assert len(panels) == 3
    for ax in panels:
        assert any(np.all(np.asarray(line.get_xdata()) == 5) for line in ax.lines)
    assert render_figure(lambda figure: plot_selection(found, figure), SIZE).startswith(b"\x89PNG")


def test_the_verdict_names_the_larger_count_and_few_rows(found):
    five = replace(found.fitted[5], held_out=None)
    # Parallel analysis selects one factor.
    noise = np.where(np.arange(len(found.count.noise)) == 0, 0.0, np.inf)
    count = replace(found.count, noise=noise)
    few = replace(five, criteria=replace(five.criteria, n_rows=9.0))
    verdict = Selection(found.latents, count, (few, with_bic(few, 4, -9.0)), 0).verdict()
    assert verdict.startswith(
        "5 latents: factor BIC selects 5, and BIC is smaller for 4 by only 9.0, a near tie. 9 rows "
        "are too few for a reliable selection. Other criteria differ:"
    )
