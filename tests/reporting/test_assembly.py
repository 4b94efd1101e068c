"""Which panels the full report has, with few and with many joint states."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import hidag
from hidag import DCRL
from hidag.exceptions import ConvergenceWarning, HidagWarning
from hidag.reporting import assemble_report, render_report
from hidag.simulation import chain_dag, design, make_truth, random_law, simulate

GREEN = '<div class="good"'
NEVER = "not computed beyond 2^13 joint states"
CLOSELY = f"{NEVER} if the treewidth is too large"


@pytest.fixture(scope="module")
def many_states(as_result):
    """A fit of 14 latents, and a table with two pairs of nearly identical items."""
    q = np.vstack([np.eye(14, dtype=int)] * 3)
    truth = make_truth(random_law(chain_dag(14), rng=0), q, "bernoulli")
    values = np.array(simulate(truth, 300, rng=1).X, dtype=np.float64)
    copied = np.random.default_rng(2).random(300) < 0.6
    for one, other in ((0, 5), (8, 12)):
        values[copied, other] = values[copied, one]
    return replace(as_result(truth), q_given=q), values


def assembled(fitted, **more):
    """Return the contents of a report, its page and the text of each section."""
    content = assemble_report(*fitted, **more)
    text = {section.heading: " ".join(section.paragraphs) for section in content.sections}
    return content, render_report(fitted[0], content, plots=False), text


def test_predictive_checks_alone_do_not_assess_the_fit(many_states, monkeypatch, configure):
    monkeypatch.setattr("hidag.reporting.panels.find_misfits", lambda found: ())
    configure("network_em", max_clique_cells=1)
    content, page, text = assembled(many_states)
    assert "Predictive checks: " in text["Goodness of fit"]
    reason = (
        "Only predictive checks were computed, which are insensitive to residual associations of "
        f"items; statistics of item pairs are {CLOSELY}."
    )
    claimed = replace(content, fit_assessed=True)
    for one in (page, render_report(many_states[0], claimed, plots=False)):
        assert GREEN not in one
        assert reason in one
    assert not content.fit_assessed


def test_the_page_names_no_command_that_would_fail(many_states, monkeypatch, configure):
    monkeypatch.setattr("hidag.reporting.assembly.MAX_STATISTICS_WORK", 0)
    configure("network_em", max_clique_cells=1)
    _, page, text = assembled(many_states)
    assert text["Uncertainty"] == (
        f"Standard errors are {CLOSELY}; `hidag bootstrap` computes bootstrap intervals and adds "
        "them to this report."
    )
    assert text["Goodness of fit"] == (
        "Predictive checks were not computed: they take longer than the fit; `hidag fit "
        "--statistics` computes them with the fit, and `hidag goodness` afterwards. Other fit "
        f"statistics are {CLOSELY}."
    )
    assert f"Tests of the given Q-matrix are {CLOSELY}." in page
    for command in ("hidag standard-errors", "hidag validate-q"):
        assert command not in page
    assert "Goodness of fit was not assessed." in page
    text = assembled(many_states, statistics=False)[2]
    assert "they were not requested; `hidag goodness` computes them." in text["Goodness of fit"]


def test_residual_associations_are_found_with_many_states(many_states):
    content, page, text = assembled(many_states)
    assert content.fit_assessed
    assert GREEN not in page
    assert "a residual correlation that the model does not reproduce, most of all X1 and X6" in page
    assert {"pair_fit", "item_fit"} <= {table.name for table in content.tables}
    assert "M2 enumerates 2^14 joint states" in text["Goodness of fit"]
    assert text["Q-matrix validation"] == (
        "Tests of the given Q-matrix take longer than the fit; `hidag validate-q` computes them."
    )


def test_slow_standard_errors_name_their_command(many_states, monkeypatch):
    monkeypatch.setattr("hidag.reporting.assembly.MAX_ERROR_WORK", 0)
    text = assembled(many_states)[2]
    assert text["Uncertainty"].startswith(
        "Standard errors take longer than the fit; `hidag standard-errors"
    )


def test_predictive_checks_need_no_sum_over_states(as_result):
    truth = make_truth(random_law(chain_dag(24), rng=0), np.eye(24, dtype=int), "bernoulli")
    fit = (as_result(truth), np.array(simulate(truth, 200, rng=1).X, dtype=np.float64))
    assert "checks" in [table.name for table in assembled(fit)[0].tables]


@pytest.fixture(scope="module")
def model():
    X = simulate(design("Chain-5", family="gaussian", rng=1), 300, rng=2).X
    return DCRL(5, family="gaussian", random_state=0, n_starts=1).fit(X), X


def headings(path):
    return re.findall(r"<h2>(.*?)</h2>", path.read_text("utf-8"))


def test_one_call_writes_the_full_report(model, tmp_path):
    fitted, X = model
    bootstrap = hidag.bootstrap(fitted, X, n_resamples=2, start="fitted", random_state=0)
    path = hidag.write_report(
        fitted, tmp_path / "report.html", X, bootstrap=bootstrap, title="A study", plots=False
    )
    panels = ["Uncertainty", "Classification", "Interventions", "Goodness of fit"]
    assert [heading for heading in headings(path) if heading in panels] == panels
    assert "<title>A study</title>" in path.read_text("utf-8")
    assert "The model was refitted to 2 samples" in path.read_text("utf-8")
    alone = headings(hidag.write_report(fitted.result_, tmp_path / "alone.html", plots=False))
    assert [heading for heading in alone if heading in panels] == ["Interventions"]
    assert "Not included" in alone


def test_warnings_that_follow_from_the_result_are_not_repeated(model):
    result = replace(model[0].result_, converged=False)
    repeated = ConvergenceWarning("not-converged", "the estimate did not converge")
    other = HidagWarning("other", "another {thing}", thing="warning")
    content = assemble_report(result, warnings=[repeated, other])
    assert content.warnings == ("another warning",)
    assert render_report(result, content, plots=False).count("did not converge") == 1
