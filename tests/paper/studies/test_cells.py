from __future__ import annotations

import csv

import numpy as np
import pytest

from hidag.exceptions import FileError, SettingError
from hidag_paper.studies import STUDIES, Address, Cell, plan_study, read_published, select_cells
from hidag_paper.studies.runs import simulate_table
from hidag_paper.studies.summary import published_mean


def test_cell_and_its_name() -> None:
    cell = Cell("Chain-10", "Q1", "bernoulli", 3000)
    assert cell.name == "Chain-10/Q1/bernoulli/3000"
    assert Cell.named(cell.name) == cell
    other = Cell("Chain-5", "Q1", "gaussian", 1000, "distinct")
    assert other.name == "Chain-5/Q1/gaussian/1000/distinct"
    assert Cell.named(other.name) == other


def test_the_tables_have_the_papers_cells() -> None:
    assert len([cell for cell in plan_study("table1").cells if cell.items == "paper"]) == 9
    assert len(plan_study("table2").cells) == 90
    assert plan_study("table-s1").cells == plan_study("table2").cells
    assert [cell.name for cell in plan_study("table1").cells[:2]] == [
        "Chain-5/Q1/gaussian/1000",
        "Chain-5/Q1/gaussian/5000",
    ]


@pytest.mark.parametrize("name", ["table1", "table2", "table-s1"])
def test_every_cell_of_a_table_has_a_published_number(name) -> None:
    known = read_published(studies=[name])
    for cell in plan_study(name).cells:
        for rule in STUDIES[name].rules:
            expected = cell.items == "paper"
            assert (published_mean(known, cell, "ours", rule) is not None) == expected
    cell = Cell("Chain-10", "Q1", "bernoulli", 3000)
    if name == "table-s1":
        found = [published_mean(known, cell, "ours", rule) for rule in ("N", "2N", "3N")]
        assert found == [5.55, 5.966, 7.852]
        assert published_mean(known, cell, "ours", "calibrated") == 5.55


@pytest.mark.parametrize(
    ("patterns", "n_cells"),
    [
        ([], 90),
        (["Chain-10"], 18),
        (["Q2/poisson"], 15),
        (["Chain-*/Q1/*/3000"], 3),
        (["Chain-10/Q1", "Chain-10/*/bernoulli/*"], 12),
    ],
)
def test_select_cells_by_part_of_name_or_pattern(patterns, n_cells) -> None:
    assert len(select_cells(plan_study("table2").cells, patterns)) == n_cells


def test_complete_name_selects_one_cell() -> None:
    cells = plan_study("table1").cells
    name = "Tree-5/Q1/gaussian/1000"
    assert [cell.name for cell in select_cells(cells, [name])] == [name]
    assert len(select_cells(cells, ["Tree-5/Q1/gaussian/1000/"])) == 2
    assert len(select_cells(cells, ["Tree-5"])) == 9


def test_other_levels() -> None:
    plan = plan_study("table2", models=["Tree-5"], families=["poisson"], q=["Q2"], n=[400, 800])
    assert [cell.name for cell in plan.cells] == ["Tree-5/Q2/poisson/400", "Tree-5/Q2/poisson/800"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"cells": ["Chian"]},
            "no cell matches 'Chian'; the 27 cells have names such as "
            "'Chain-5/Q1/gaussian/1000' and 'Model-5/Q1/gaussian/10000/distinct-quiet'",
        ),
        (
            {"families": ["gamma"]},
            "families must be one of gaussian, lognormal, poisson, poisson-identity, bernoulli, "
            "got 'gamma'",
        ),
        ({"q": ["Q3"]}, "q must be one of Q1, Q2, got 'Q3'"),
        ({"n": [1]}, "n must be at least 2 rows, got 1"),
        ({"replicates": 0}, "replicates must be a whole number of at least 1, got 0"),
        ({"design": "mine"}, "design must be one of text, research-code, got 'mine'"),
        ({"seed": -1}, f"seed must be from 0 to {2**63 - 1}, got -1"),
        ({"seed": 2**63}, f"seed must be from 0 to {2**63 - 1}, got {2**63}"),
        ({"items": ["odd"]}, "items must be one of paper, distinct, distinct-quiet, got 'odd'"),
        ({"methods": []}, "methods must not be empty"),
        ({"families": []}, "cells must not be empty"),
    ],
)
def test_invalid_plans_raise(settings, sentence) -> None:
    with pytest.raises(SettingError) as caught:
        plan_study("table1", **settings)
    assert str(caught.value) == sentence


def test_seeds_depend_on_root_and_address_only() -> None:
    cell = Cell("Chain-5", "Q1", "gaussian", 300)
    address = Address("table1", cell, 4)
    assert address.name == "table1/Chain-5/Q1/gaussian/300/4"
    assert address.seeds(0).fit == address.seeds(0).fit
    others = [
        Address("table2", cell, 4).seeds(0),
        Address("table1", Cell("Chain-5", "Q1", "gaussian", 301), 4).seeds(0),
        Address("table1", cell, 5).seeds(0),
        address.seeds(1),
    ]
    seeds = {s.fit for s in [address.seeds(0), *others]}
    assert len(seeds) == 5
    draws = {int(np.random.default_rng(s.rows).integers(1 << 60)) for s in others}
    assert len(draws) == 4


def test_addresses_do_not_depend_on_other_cells() -> None:
    everything = plan_study("table2", replicates=2).addresses()
    few = plan_study("table2", cells=["Model-7/Q2"], replicates=2).addresses()
    assert set(few) < set(everything)


def test_published_mean_of_method_and_rule(tmp_path) -> None:
    rows = [
        ["model", "q", "family", "n", "method", "f_n", "mean_shd", "replicates"],
        ["Chain-5", "Q1", "gaussian", "1000", "dcrl", "N", "0.38", "100"],
        ["Chain-5", "Q1", "gaussian", "1000", "dcrl", "2N", "0.99", "100"],
        ["Chain-5", "Q1", "gaussian", "1000", "mixture-oracle", "", "23.66", "100"],
    ]
    with (tmp_path / "study1_shd.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    cell = Cell("Chain-5", "Q1", "gaussian", 1000)
    known = read_published(tmp_path, ["table1"])
    assert published_mean(known, cell, "ours", "calibrated") == 0.38
    assert published_mean(known, cell, "ours", "2N") == 0.99
    assert published_mean(known, cell, "mixture-oracle", None) == 23.66
    assert published_mean(known, cell, "another", None) is None
    assert published_mean(known, Cell("Chain-5", "Q1", "gaussian", 7), "ours", "N") is None
    with pytest.raises(FileError) as caught:
        read_published(tmp_path, ["table2"])
    assert str(caught.value) == (
        f"cannot read published numbers from {tmp_path / 'study2_shd.csv'}: No such file or "
        "directory; published must be the folder that contains this file"
    )
    (tmp_path / "study2_shd.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FileError) as caught:
        read_published(tmp_path, ["table2"])
    assert str(caught.value) == (
        f"{tmp_path / 'study2_shd.csv'} must have the columns model, q, family, n, method, f_n and "
        "mean_shd"
    )


def test_quick_plan_is_small() -> None:
    for name, study in STUDIES.items():
        plan = plan_study(name, quick=True)
        assert plan.replicates < study.replicates
        assert len(plan.tasks()) * 4 < len(plan_study(name).tasks())
    wider = plan_study("table2", quick=True, n=[400], replicates=3)
    assert {cell.n for cell in wider.cells} == {400}
    assert wider.replicates == 3


def test_unknown_method_raises() -> None:
    with pytest.raises(SettingError) as caught:
        plan_study("consistency", methods=["guess"])
    assert str(caught.value) == (
        "methods must be one of ours, saturated, printed, research-code, got 'guess'"
    )


def test_distinct_slopes_give_distinct_means() -> None:
    cell = Cell("Chain-5", "Q1", "gaussian", 50, "distinct-quiet")
    truth = simulate_table(cell, "text", Address("table1", cell, 0).seeds(0)).truth
    assert np.allclose(truth.dispersion, 0.01)
    widest = int(truth.q_matrix.sum(axis=1).argmax())
    slopes = truth.loadings[widest][truth.q_matrix[widest] == 1]
    sums = {round(float(slopes @ bits), 9) for bits in np.ndindex(2, 2, 2)}
    assert len(sums) == 8
    paper = Cell("Chain-5", "Q1", "gaussian", 50)
    even = simulate_table(paper, "text", Address("table1", paper, 0).seeds(0)).truth
    assert np.ptp(even.loadings[widest][even.q_matrix[widest] == 1]) == 0
