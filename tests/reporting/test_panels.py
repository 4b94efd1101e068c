from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hidag import DCRL, bootstrap, classify, fit_statistics, standard_errors, validate_q
from hidag.reporting import Table
from hidag.reporting.content import display_table
from hidag.reporting.panels import (
    bootstrap_panel,
    classification_panel,
    goodness_of_fit_panel,
    q_validation_panel,
    standard_error_panel,
)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(7)
    first = rng.random(400) < 0.5
    second = rng.random(400) < np.where(first, 0.8, 0.25)
    chance = np.where(np.column_stack([first] * 4 + [second] * 4), 0.9, 0.12)
    table = (rng.random(chance.shape) < chance).astype(float)
    return DCRL(2, family="bernoulli", random_state=0).fit(table).result_, table


def test_goodness_of_fit_panel_lists_the_worst_first(fitted):
    found = fit_statistics(*fitted, n_tables=20)
    panel = goodness_of_fit_panel(found)
    tables = panel.tables
    assert f"RMSEA2 {found.absolute.rmsea:.4f}" in panel.paragraphs[1]
    assert panel.fit_assessed
    assert panel.section.tables == ("item_fit", "pair_fit", "checks")
    for table in tables:
        column = table.header.index("p value")
        chances = [row[column] for row in table.rows]
        assert chances == sorted(chances)
    assert len(tables[1].rows) == 25
    assert tables[1].caption.endswith("(25 of 28)")


def test_goodness_of_fit_panel_reports_the_effective_sample_size(fitted):
    result, table = fitted
    weights = np.random.default_rng(0).gamma(2.0, 1.0, len(table))
    found = fit_statistics(result, table, sample_weight=weights, n_tables=20)
    panel = goodness_of_fit_panel(found)
    worth = f"400 rows (effective sample size {found.n_effective:,.1f}), 3,200 observed cells"
    assert worth in panel.paragraphs[0]
    used = f"400 rows (effective sample size {found.absolute.n_effective:,.1f}) without missing"
    assert used in panel.paragraphs[1]
    assert all("n effective" in table.header for table in panel.tables)
    plain = goodness_of_fit_panel(fit_statistics(result, table, n_tables=20))
    assert plain.paragraphs[0].endswith(" (400 rows, 3,200 observed cells).")
    assert plain.paragraphs[1].endswith(" (400 rows without missing cells).")
    assert not any("n effective" in table.header for table in plain.tables)


def test_classification_panel_names_latents_with_low_accuracy(fitted):
    found = classify(*fitted)
    panel = classification_panel(found)
    tables = panel.tables
    assert [row[0] for row in tables[0].rows] == ["Z1", "Z2", "(profile)"]
    assert sum(row[1] for row in tables[1].rows) == 400
    inaccurate = [row[0] for row in tables[0].rows[:2] if row[1] < 0.8]
    warned = [text for text in panel.paragraphs if "do not base decisions" in text]
    assert bool(warned) == bool(inaccurate)


def test_classification_panel_has_no_table_of_profiles_if_none_is_common(fitted):
    found = classify(*fitted)
    digits = np.array([[i >> k & 1 for k in range(9)] for i in range(400)])
    panel = classification_panel(dataclasses.replace(found, profiles=digits))
    assert [table.name for table in panel.tables] == ["placement"]
    assert panel.section.tables == ("placement",)
    assert panel.paragraphs[-1] == "All 400 rows have different profiles."


def test_standard_error_panel_has_the_latent_distribution_and_the_items(fitted):
    found = standard_errors(*fitted)
    panel = standard_error_panel(found)
    tables = panel.tables
    assert panel.heading == "Uncertainty"
    assert [table.name for table in tables] == ["share_errors", "errors"]
    assert [row[0] for row in tables[0].rows] == ["Z1", "Z1", "Z2", "Z2"]
    assert len(tables[1].rows) == sum(row[0] == "coefficient" for row in found.table.rows)
    assert "from 400 rows" in panel.paragraphs[0]


@pytest.mark.parametrize("wrong", [False, True])
def test_q_validation_panel_lists_changes_that_the_data_support(fitted, wrong):
    result, table = fitted
    q = result.q_matrix.copy()
    if wrong:
        q[0] = 1 - q[0]
    given = DCRL(2, q_matrix=q, family="bernoulli", random_state=0).fit(table).result_
    panel = q_validation_panel(validate_q(given, table))
    assert panel.heading == "Q-matrix validation"
    if wrong:
        assert "support changes of 2 of 16 entries" in panel.paragraphs[0]
        assert {row[0] for row in panel.tables[0].rows} == {"item_0"}
    else:
        assert "support no change of the 16 entries" in panel.paragraphs[0]
        assert panel.tables == ()


@pytest.mark.parametrize(("n_refits", "level"), [(6, "71%"), (30, "90%")])
def test_captions_give_the_attained_level_of_few_samples(fitted, n_refits, level):
    few = bootstrap(*fitted, n_resamples=2, start="fitted", random_state=0)
    again = np.arange(n_refits) % 2
    arrays = {
        field.name: getattr(few, field.name)[again]
        for field in dataclasses.fields(few)
        if isinstance(getattr(few, field.name), np.ndarray) and field.name != "in_sum"
    }
    tables = bootstrap_panel(dataclasses.replace(few, **arrays)).tables
    captions = [table.caption for table in tables if "intervals" in table.name]
    assert captions == [
        f"Latent distribution with {level} intervals",
        f"Item parameters with {level} intervals",
    ]


def test_small_p_values_are_not_rounded_to_zero():
    table = Table("t", "", ("p",), ((0.0,), (0.00012,), (0.25,), (2e-15,), (float("nan"),)))
    assert display_table(table)["rows"] == [["0"], ["0.00012"], ["0.250"], ["2e-15"], [""]]


def test_rounding_errors_are_displayed_as_zero():
    table = Table("t", "", ("expected correlation",), ((-5.5e-18,), (1e-4,), (-0.25,)))
    assert display_table(table)["rows"] == [["0"], ["0.0001"], ["-0.250"]]
