from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, classify, fit_statistics
from hidag.report import Table
from hidag.report.panels import fit_panel, placement_panel
from hidag.report.parts import shown_table


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
        column = table.header.index("p_value")
        chances = [row[column] for row in table.rows]
        assert chances == sorted(chances)
    assert len(tables[1].rows) == 25
    assert tables[1].caption.endswith("(25 of 28)")


def test_the_panel_of_placements_names_latents_in_doubt(fitted):
    found = classify(*fitted)
    section, tables = placement_panel(found)
    assert [row[0] for row in tables[0].rows] == ["Z1", "Z2", "(profile)"]
    assert sum(row[1] for row in tables[1].rows) == 400
    in_doubt = [row[0] for row in tables[0].rows[:2] if row[1] < 0.8]
    said = [words for words in section.paragraphs if "should not decide" in words]
    assert bool(said) == bool(in_doubt)


def test_small_chances_are_not_shown_as_none():
    table = Table("t", "", ("p",), ((0.0,), (0.00012,), (0.25,), (float("nan"),)))
    assert shown_table(table)["rows"] == [["0.000"], ["0.00012"], ["0.250"], [""]]
