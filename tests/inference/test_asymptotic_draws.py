"""Draws around a fit: as wide as standard errors from the table, where they can be right."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from hidag import DCRL, Knowledge, load, standard_errors, survey_weights
from hidag.causal import average_effects
from hidag.cli.app import app
from hidag.exceptions import HidagWarning
from hidag.inference import draw_asymptotic
from hidag.inference.asymptotic_draws import try_draw_asymptotic
from hidag.latent import NetworkLaw
from hidag.reporting.panels import interventions_panel

from ..fitted_models import two_latents
from .test_pattern_standard_errors import CHANCES, saturated_items

Q = np.array([[1, 0]] * 6 + [[0, 1]] * 6)


def a_table(n_rows=1500, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.random(n_rows) < 0.5
    second = rng.random(n_rows) < np.where(first, 0.75, 0.3)
    on = np.repeat(np.column_stack([first, second]), 6, axis=1)
    return (rng.random(on.shape) < np.where(on, 0.85, 0.15)).astype(float)


def booklets(table, n_both):
    """Return rows of which few have items of both blocks."""
    out = table.copy()
    half = (len(out) - n_both) // 2
    out[:half, 6:] = np.nan
    out[half : 2 * half, :6] = np.nan
    return out


def fitted(table, weights=None):
    model = DCRL(2, family="bernoulli", q_matrix=Q, law="network", n_starts=1, tol=1e-7,
                 knowledge=Knowledge(required=[("Z1", "Z2")]), random_state=0)  # fmt: skip
    return model.fit(table, sample_weight=weights).result_


def gaps(table, share=0.3):
    out = table.copy()
    out[np.random.default_rng(3).random(out.shape) < share] = np.nan
    return out


@pytest.mark.parametrize("missing", ["none", "booklets", "cells"])
@pytest.mark.parametrize("weighted", [False, True])
def test_draws_have_the_spread_of_standard_errors(missing, weighted):
    table = a_table()
    if missing != "none":
        table = booklets(table, 150) if missing == "booklets" else gaps(table)
    weights = np.random.default_rng(1).exponential(size=len(table)) ** 1.5 if weighted else None
    fit = fitted(table, weights)
    kind = "sandwich" if weighted else "louis"
    found = standard_errors(fit, table, sample_weight=weights, kind=kind)
    draws = list(draw_asymptotic(fit, 400, random_state=2))
    for given in (0, 1):
        row = found.table.where(kind="probability", of="Z2", term=f"1 | Z1={given}").to_dicts()[0]
        spread = np.std([draw.law.tables[1][given, 1] for draw in draws])
        # Expected and observed information differ, and weights have a part in chance.
        assert spread == pytest.approx(row["standard_error"], rel=0.25)
    slope = found.table.where(kind="coefficient", of="item_0", term="Z1").to_dicts()[0]
    spread = np.std([draw.loadings[0, 0] for draw in draws])
    assert spread == pytest.approx(slope["standard_error"], rel=0.25)


@pytest.mark.parametrize("weights_are", ["survey_weights", "repeats"])
def test_weights_mean_the_same_to_draws_and_to_all_kinds_of_standard_errors(weights_are):
    table, weights = a_table(600), None
    counts = np.random.default_rng(1).integers(1, 4, 600)
    if weights_are == "repeats":
        table = np.repeat(table, counts, axis=0)
    else:
        weights = survey_weights(counts)
    fit = fitted(table, weights)
    spreads = [np.std([draw.loadings[0, 0] for draw in draw_asymptotic(fit, 400)])]
    for kind in ("louis", "scores", "sandwich"):
        found = standard_errors(fit, table, sample_weight=weights, kind=kind).table
        (slope,) = found.where(kind="coefficient", of="item_0", term="Z1").to_dicts()
        spreads.append(slope["standard_error"])
    # The counts themselves mean errors one and a half times as large to some as to others.
    assert max(spreads) < 1.15 * min(spreads)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3])
def test_the_order_of_rows_and_columns_only_permutes_the_draws(share):
    rng = np.random.default_rng(5)
    table = gaps(np.tile(a_table(2000), (1, 2)), share)
    table[:, 12:] = np.where(rng.random((2000, 12)) < 0.2, 1 - table[:, 12:], table[:, 12:])
    rows, columns = rng.permutation(2000), rng.permutation(24)
    q = np.tile(Q, (2, 1))
    one, other = (
        DCRL(2, family="bernoulli", q_matrix=loads, n_starts=1, random_state=0).fit(x).result_
        for x, loads in ((table, q), (table[rows][:, columns], q[columns]))
    )
    for ours, theirs in zip(draw_asymptotic(one, 3), draw_asymptotic(other, 3), strict=True):
        np.testing.assert_array_equal(ours.intercept[columns], theirs.intercept)
        np.testing.assert_array_equal(ours.law.probabilities, theirs.law.probabilities)


@pytest.mark.filterwarnings("ignore::hidag.exceptions.IdentifiabilityWarning")
def test_effects_between_items_never_observed_together_have_no_interval(tmp_path):
    fit = fitted(booklets(a_table(), 0))
    words = (
        "the latent distribution or coefficients are not identified in 1 direction, for instance "
        "because a latent has too few items or no row has the items of two latents"
    )
    with pytest.warns(HidagWarning) as caught:
        draws = draw_asymptotic(fit, 60)
    assert str(caught[0].message) == (
        f"{words}; draws do not vary there, and average_effects reports no interval for effects "
        "that depend on them"
    )
    found = average_effects(fit, replicates=draws, fix_graph=True)
    reason = "no interval: it depends on parameters that are not identified"
    for row in found.rows():
        crosses = row["cause"] == "Z1" and row["effect"] in ("Z2", *fit.item_names[6:])
        assert ("reason" in row) == crosses
        assert row.get("reason", reason) == reason
        assert np.isfinite(row["low"])
        assert np.isnan(row["upper"]) == crosses
    sentence = f"{words}; 7 effects have no interval"
    assert str(found.interval_note()) == sentence
    panel = interventions_panel(fit)
    assert f"{sentence[0].upper()}{sentence[1:]}." in panel.paragraphs
    assert all("lower" in table.header for table in panel.tables)
    asked = CliRunner().invoke(app, ["whatif", str(fit.save(tmp_path / "fit.npz")), "--effects"])
    assert sentence in asked.output
    assert asked.output.count("  no interval\n") == 7
    as_json = CliRunner().invoke(app, ["whatif", str(tmp_path / "fit.npz"), "--effects", "--json"])
    assert json.loads(as_json.output)["some_without_interval"] == sentence


@pytest.mark.filterwarnings("ignore::hidag.exceptions.IdentifiabilityWarning")
def test_identified_effects_have_the_intervals_of_a_complete_design():
    whole = booklets(a_table(3000), 1000)
    apart = whole.copy()
    apart[-1000:, 6:] = np.nan
    both = [
        average_effects(fit, replicates=try_draw_asymptotic(fit, 200)[0], fix_graph=True)
        for fit in (fitted(whole), fitted(apart))
    ]
    # The same 2,000 rows have the first half; what the others have adds little.
    widths = [(found.upper - found.lower)[0, 2:8] for found in both]
    np.testing.assert_allclose(widths[0], widths[1], rtol=0.15)


def test_a_latent_without_items_is_unidentified():
    fit = fitted(a_table(400))
    loadings = np.array(fit.parameters.loadings)
    loadings[:, 1] = 0.0
    alone = NetworkLaw(fit.law.space, ((), ()), (np.array([0.4, 0.6]), np.array([0.3, 0.7])))
    idle = replace(fit, parameters=replace(fit.parameters, loadings=loadings), law=alone)
    draws, _ = try_draw_asymptotic(idle, 20)
    assert draws.unidentified.n_unidentified >= 1
    # Posterior and prior differ by rounding, which is no reason to err without bounds.
    assert np.ptp([draw.law.tables[1][1] for draw in draws]) < 1e-6


@pytest.mark.parametrize(
    ("weighted", "sentence"),
    [
        (
            False,
            "intervals from the information need the pattern of missing cells, which the result "
            "does not store",
        ),
        (
            True,
            "intervals from the information need the variation of the weights, which the result "
            "does not store",
        ),
    ],
)
def test_missing_cells_or_weights_without_their_patterns_have_no_intervals(
    weighted, sentence, tmp_path
):
    table = a_table(400)
    fit = fitted(table if weighted else gaps(table), np.full(400, 0.5) if weighted else None)
    assert try_draw_asymptotic(fit, 2)[1] is None
    path = replace(fit, seen_rows=None).save(tmp_path / "fit.npz")
    assert load(path).seen_rows is None
    draws, obstacle = try_draw_asymptotic(load(path), 2)
    assert draws is None
    assert str(obstacle) == f"{sentence}; pass the replicates of a bootstrap instead"
    asked = CliRunner().invoke(app, ["whatif", str(path), "--effects"])
    said = f"{sentence}; hidag bootstrap computes bootstrap intervals"
    assert f"no intervals: {said}" in asked.output
    as_json = CliRunner().invoke(app, ["whatif", str(path), "--effects", "--json"])
    assert json.loads(as_json.output)["no_intervals"] == said


def test_a_complete_table_without_its_patterns_has_the_same_intervals():
    fit = fitted(a_table(400))
    ours, theirs = (
        [draw.law.probabilities for draw in draw_asymptotic(one, 3)]
        for one in (fit, replace(fit, seen_rows=None))
    )
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("effects", ["dina", "dino"])
def test_draws_keep_the_form_of_the_items(effects):
    result = two_latents(("bernoulli",) * 18, effects=effects, n_samples=1500)
    states = result.law.space.states()
    upper = states.all(axis=1) if effects == "dina" else states.any(axis=1)
    rng = np.random.default_rng(0)
    table = result.sample_items(result.law.sample(1500, rng), rng)
    means = np.array([draw.item_means(states)[:, 2] for draw in draw_asymptotic(result, 400)])
    rows = standard_errors(result, table).patterns.where(item="X3").to_dicts()
    for group, name in ((~upper, "guess"), (upper, "1 - slip")):
        assert np.ptp(means[:, group], axis=1).max() < 1e-12
        error = next(row["standard_error"] for row in rows if row["called"] == name)
        assert means[:, group].std(axis=0) == pytest.approx(error, rel=0.2)


def test_boundary_coefficients_are_fixed_in_draws():
    chances = CHANCES.copy()
    chances[4, 3] = 1 - 1e-9
    # Three of each: otherwise two latents with interactions are not identified.
    items = saturated_items(chances).parameters
    thrice = np.tile(np.arange(6), 3)
    result = saturated_items(chances)
    result = replace(
        result,
        parameters=items.reordered(items=thrice),
        item_names=tuple(f"X{j + 1}" for j in range(18)),
        family_reasons=("given",) * 18,
        q_given=result.q_given[thrice],
    )
    states = result.law.space.states()
    means = np.array([draw.item_means(states)[:, 4] for draw in draw_asymptotic(result, 50)])
    np.testing.assert_allclose(means[:, 3], 1.0, atol=1e-8)
    assert (means[:, :3].std(axis=0) > 0.01).all()
