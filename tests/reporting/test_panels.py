from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hidag import DCRL, bootstrap, classify, fit_statistics, standard_errors, validate_q
from hidag.reporting import Table
from hidag.reporting.diagnostic_sections import (
    bootstrap_panel,
    errors_panel,
    fit_panel,
    placement_panel,
    q_panel,
)
from hidag.reporting.sections import shown_table


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(7)
    first = rng.random(400) < 0.5
    second = rng.random(400) < np.where(first, 0.8, 0.25)
    chance = np.where(np.column_stack([first] * 4 + [second] * 4), 0.9, 0.12)
    table = (rng.random(chance.shape) < chance).astype(float)
    return DCRL(2, family="bernoulli", random_state=0).fit(table).result_, table


def test_the_panel_of_fit_has_the_numbers_and_the_worst_first(fitted):
    found = fit_statistics(*fitted, n_tables=20)
    section, tables = fit_panel(found)
    assert f"RMSEA2 {found.absolute.rmsea:.4f}" in section.paragraphs[1]
    assert section.tables == tuple(table.name for table in tables)
    assert section.tables == ("item_fit", "pair_fit", "checks")
    for table in tables:
        column = table.header.index("p value")
        chances = [row[column] for row in table.rows]
        assert chances == sorted(chances)
    assert len(tables[1].rows) == 25
    assert tables[1].caption.endswith("(25 of 28)")


def test_the_panel_of_fit_says_what_weights_make_of_the_rows(fitted):
    result, table = fitted
    weights = np.random.default_rng(0).gamma(2.0, 1.0, len(table))
    found = fit_statistics(result, table, sample_weight=weights, n_tables=20)
    section, tables = fit_panel(found)
    worth = f"400 rows (worth {found.n_effective:,.1f} of equal weight) and 3,200 observed cells"
    assert worth in section.paragraphs[0]
    used = f"400 rows (worth {found.absolute.n_effective:,.1f} of equal weight) without a missing"
    assert used in section.paragraphs[1]
    assert all("n effective" in table.header for table in tables)
    plain, tables = fit_panel(fit_statistics(result, table, n_tables=20))
    assert plain.paragraphs[0].endswith("; 400 rows and 3,200 observed cells were used.")
    assert plain.paragraphs[1].endswith("; 400 rows without a missing cell.")
    assert not any("n effective" in table.header for table in tables)


def test_the_panel_of_placements_names_latents_in_doubt(fitted):
    found = classify(*fitted)
    section, tables = placement_panel(found)
    assert [row[0] for row in tables[0].rows] == ["Z1", "Z2", "(profile)"]
    assert sum(row[1] for row in tables[1].rows) == 400
    in_doubt = [row[0] for row in tables[0].rows[:2] if row[1] < 0.8]
    said = [words for words in section.paragraphs if "should not decide" in words]
    assert bool(said) == bool(in_doubt)


def test_the_panel_of_placements_has_no_table_of_profiles_where_none_is_common(fitted):
    found = classify(*fitted)
    digits = np.array([[i >> k & 1 for k in range(9)] for i in range(400)])
    section, tables = placement_panel(dataclasses.replace(found, profiles=digits))
    assert [table.name for table in tables] == ["placement"]
    assert section.tables == ("placement",)
    assert section.paragraphs[-1] == "All 400 rows have profiles of their own: none is common."


def test_the_panel_of_errors_has_the_shares_and_the_items(fitted):
    found = standard_errors(*fitted)
    section, tables = errors_panel(found)
    assert section.heading == "How sure it is"
    assert [table.name for table in tables] == ["share_errors", "errors"]
    assert [row[0] for row in tables[0].rows] == ["Z1", "Z1", "Z2", "Z2"]
    assert len(tables[1].rows) == sum(row[0] == "coefficient" for row in found.table.rows)
    assert "from 400 rows" in section.paragraphs[0]


@pytest.mark.parametrize("wrong", [False, True])
def test_the_panel_of_a_given_q_says_what_the_data_would_change(fitted, wrong):
    result, table = fitted
    q = result.q_matrix.copy()
    if wrong:
        q[0] = 1 - q[0]
    given = DCRL(2, q_matrix=q, family="bernoulli", random_state=0).fit(table).result_
    section, tables = q_panel(validate_q(given, table))
    assert section.heading == "Is Q right"
    if wrong:
        assert "would change 2 of 16 entries" in section.paragraphs[0]
        assert {row[0] for row in tables[0].rows} == {"item_0"}
    else:
        assert "would change none of the 16 entries" in section.paragraphs[0]
        assert tables == ()


@pytest.mark.parametrize(("n_refits", "level"), [(6, "71%"), (30, "90%")])
def test_captions_give_the_level_that_so_few_refits_reach(fitted, n_refits, level):
    few = bootstrap(*fitted, n_resamples=2, start="fitted", random_state=0)
    again = np.arange(n_refits) % 2
    arrays = {
        field.name: getattr(few, field.name)[again]
        for field in dataclasses.fields(few)
        if isinstance(getattr(few, field.name), np.ndarray)
    }
    _, tables = bootstrap_panel(dataclasses.replace(few, **arrays))
    captions = [table.caption for table in tables if "intervals" in table.name]
    assert captions == [
        f"How common each level of each latent is, with {level} intervals",
        f"Intercepts and loadings with {level} intervals",
    ]


def test_small_chances_are_not_shown_as_none():
    table = Table("t", "", ("p",), ((0.0,), (0.00012,), (0.25,), (2e-15,), (float("nan"),)))
    assert shown_table(table)["rows"] == [["0"], ["0.00012"], ["0.250"], ["2e-15"], [""]]


def test_what_rounding_leaves_of_zero_is_zero():
    table = Table("t", "", ("expected correlation",), ((-5.5e-18,), (1e-4,), (-0.25,)))
    assert shown_table(table)["rows"] == [["0"], ["0.0001"], ["-0.250"]]
