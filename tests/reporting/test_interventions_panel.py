"""The panel of average effects of interventions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hidag.reporting import ReportContent, render_report
from hidag.reporting.content import display_table
from hidag.reporting.panels import interventions_panel
from hidag.simulation import chain_dag, dag_from_parents, make_truth, random_law


def test_effects_are_on_the_page_with_their_ranges(as_result, monkeypatch):
    monkeypatch.setattr("hidag.reporting.panels.N_DRAWS", 10)
    truth = make_truth(random_law(chain_dag(3), rng=0), np.vstack([np.eye(3, dtype=int)] * 3))
    hostile = as_result(truth, latent_names=("<script>", "b", "c"))
    panel = interventions_panel(hostile)
    tables = panel.tables
    assert "do not identify the direction of 2 edges" in " ".join(panel.paragraphs)
    assert [table.name for table in tables] == ["effects_on_latents", "effects_on_items"]
    least, most = tables[0].rows[0][2:4]
    assert min(abs(least), abs(most)) < 1e-9 < 0.2 < max(abs(least), abs(most))
    page = render_report(hostile, ReportContent().with_panel(panel))
    assert "<h2>Interventions</h2>" in page
    assert "&lt;script&gt;" in page


def test_without_edges_no_latent_has_an_effect_on_another(as_result):
    law = random_law(dag_from_parents([(), ()]), rng=0)
    panel = interventions_panel(as_result(make_truth(law, np.eye(2, dtype=int))))
    assert panel.paragraphs[-1] == "No latent has an effect on another latent."
    assert [table.name for table in panel.tables] == ["effects_on_items"]


def test_many_latents_have_effects_on_latents_only(as_result):
    law = random_law(chain_dag(21), rng=0)
    panel = interventions_panel(as_result(make_truth(law, np.eye(21, dtype=int))))
    assert [table.name for table in panel.tables] == ["effects_on_latents"]
    assert panel.tables[0].header == ("cause", "effect", "least", "most")
    assert panel.paragraphs[2:4] == (
        "No intervals: intervals from the information need listed joint states, at "
        "most 1024, but there are 2^21; `hidag bootstrap` computes bootstrap intervals.",
        "Effects on items are omitted with more than 20 latents; `hidag whatif --effects` computes "
        "them.",
    )


def test_slow_intervals_are_left_to_a_command(as_result):
    law = random_law(chain_dag(7), rng=0)
    fit = as_result(make_truth(law, np.vstack([np.eye(7, dtype=int)] * 2)))
    assert interventions_panel(fit).paragraphs[-1] == (
        "No intervals: they take long with so many joint states; `hidag whatif --effects` computes "
        "them, and `hidag bootstrap` computes bootstrap intervals."
    )
    assert interventions_panel(replace(fit, missing_share=0.1)).paragraphs[-1] == (
        "No intervals: intervals from the information need the pattern of missing "
        "cells, which the result does not store; `hidag bootstrap` computes bootstrap intervals."
    )


def test_a_dense_graph_is_left_to_a_command(as_result, monkeypatch):
    monkeypatch.setattr("hidag.causal.probability_queries.MAX_ENUMERATED_STATES", 1)
    monkeypatch.setattr("hidag.causal.probability_queries.MAX_TABLE_CELLS", 2)
    monkeypatch.setattr("hidag.causal.probability_queries.N_DRAWS", 100)
    law = random_law(chain_dag(3), rng=0)
    panel = interventions_panel(as_result(make_truth(law, np.eye(3, dtype=int))))
    assert panel.tables == ()
    assert panel.paragraphs == (
        "The graph is too dense to compute effects quickly; `hidag whatif` computes them.",
    )


def test_effects_on_items_in_tiny_units_are_not_omitted(as_result):
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
    before = {row[1] for row in interventions_panel(plain).tables[1].rows}
    tables = interventions_panel(fit).tables
    assert {row[1] for row in tables[1].rows} == before
    shown = [" ".join(row) for row in display_table(tables[1])["rows"]]
    for name, power in ((fit.item_names[0], "e-"), (fit.item_names[3], "e+")):
        assert all(power in row for row in shown if f" {name} " in row)
