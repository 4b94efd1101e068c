"""The part of the report about what would happen if a latent were set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hidag.reporting import ReportParts, render_report
from hidag.reporting.diagnostic_sections import effects_panel
from hidag.reporting.sections import shown_table
from hidag.simulation import chain_dag, dag_from_parents, make_truth, random_law


def test_effects_are_in_the_page_with_their_ranges(as_result, monkeypatch):
    monkeypatch.setattr("hidag.reporting.diagnostic_sections.N_DRAWS", 10)
    truth = make_truth(random_law(chain_dag(3), rng=0), np.vstack([np.eye(3, dtype=int)] * 3))
    hostile = as_result(truth, latent_names=("<script>", "b", "c"))
    section, tables = effects_panel(hostile)
    assert "The data leave the direction of 2 edges open" in " ".join(section.paragraphs)
    assert [table.name for table in tables] == ["effects_on_latents", "effects_on_items"]
    least, most = tables[0].rows[0][2:4]
    assert min(abs(least), abs(most)) < 1e-9 < 0.2 < max(abs(least), abs(most))
    page = render_report(hostile, ReportParts(sections=(section,), tables=tables))
    assert "What if" in page
    assert "&lt;script&gt;" in page


def test_without_edges_nothing_follows_for_other_latents(as_result):
    law = random_law(dag_from_parents([(), ()]), rng=0)
    section, tables = effects_panel(as_result(make_truth(law, np.eye(2, dtype=int))))
    assert section.paragraphs[-1] == "No latent has an effect on another."
    assert [table.name for table in tables] == ["effects_on_items"]


def test_many_latents_have_effects_on_latents_only(as_result):
    law = random_law(chain_dag(21), rng=0)
    section, tables = effects_panel(as_result(make_truth(law, np.eye(21, dtype=int))))
    assert [table.name for table in tables] == ["effects_on_latents"]
    assert tables[0].header == ("cause", "effect", "least", "most")
    assert section.paragraphs[2:4] == (
        "There are no intervals here: intervals from the information need listed joint states, at "
        "most 1024, but there are 2^21; `hidag bootstrap` computes them by refits.",
        "Effects on items are left out for more than 20 latents; `hidag whatif --effects` computes "
        "them.",
    )


def test_intervals_that_take_a_while_are_left_to_a_command_that_makes_them(as_result):
    law = random_law(chain_dag(7), rng=0)
    fit = as_result(make_truth(law, np.vstack([np.eye(7, dtype=int)] * 2)))
    section, _ = effects_panel(fit)
    assert section.paragraphs[-1] == (
        "There are no intervals here: they take a while with so many joint states; `hidag whatif "
        "--effects` makes them, and `hidag bootstrap` by refits."
    )
    old, _ = effects_panel(replace(fit, missing_share=0.1))
    assert old.paragraphs[-1] == (
        "There are no intervals here: intervals from the information need the pattern of missing "
        "cells, but the version of hidag that saved the fit did not store it; `hidag bootstrap` "
        "computes them by refits."
    )


def test_a_graph_too_dense_is_left_to_the_command(as_result, monkeypatch):
    monkeypatch.setattr("hidag.causal.probability_queries.MAX_ENUMERATED_STATES", 1)
    monkeypatch.setattr("hidag.causal.probability_queries.MAX_TABLE_CELLS", 2)
    monkeypatch.setattr("hidag.causal.probability_queries.N_DRAWS", 100)
    law = random_law(chain_dag(3), rng=0)
    section, tables = effects_panel(as_result(make_truth(law, np.eye(3, dtype=int))))
    assert tables == ()
    assert section.paragraphs == (
        "The graph is so dense that effects take long to compute: hidag whatif does so.",
    )


def test_effects_on_items_in_tiny_units_are_in_the_page(as_result):
    truth = make_truth(
        random_law(chain_dag(2), rng=0), np.vstack([np.eye(2, dtype=int)] * 3), "gaussian"
    )
    plain = as_result(truth)
    own, unit = plain.parameters, np.array([1e-9, 1.0, 1.0, 1e12, 1.0, 1.0])
    fit = replace(
        plain,
        parameters=replace(
            own,
            intercept=own.intercept * unit,
            loadings=own.loadings * unit[:, None],
            dispersion=own.dispersion * unit**2,
        ),
    )
    before = {row[1] for row in effects_panel(plain)[1][1].rows}
    tables = effects_panel(fit)[1]
    assert {row[1] for row in tables[1].rows} == before
    shown = [" ".join(row) for row in shown_table(tables[1])["rows"]]
    for name, power in ((fit.item_names[0], "e-"), (fit.item_names[3], "e+")):
        assert all(power in row for row in shown if f" {name} " in row)
