"""The page of a fit whose joint states are too many to list: what it cannot say, it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.cli.commands.report import report_parts
from hidag.reporting import render_report
from hidag.simulation import chain_dag, make_truth, random_law, simulate

GREEN = '<div class="good"'
NEVER = "not computed beyond 2^13 joint states"
CLOSELY = f"{NEVER} if the treewidth is too large"


@pytest.fixture(scope="module")
def fitted(as_result):
    """A fit of 14 latents, and a table with two pairs of items that are much alike."""
    q = np.vstack([np.eye(14, dtype=int)] * 3)
    truth = make_truth(random_law(chain_dag(14), rng=0), q, "bernoulli")
    values = np.array(simulate(truth, 300, rng=1).X, dtype=np.float64)
    alike = np.random.default_rng(2).random(300) < 0.6
    for one, other in ((0, 5), (8, 12)):
        values[alike, other] = values[alike, one]
    return replace(as_result(truth), q_given=q), values


def page_and_words(fitted, **more):
    parts = report_parts(*fitted, "Many", (), **more)
    words = {section.heading: " ".join(section.paragraphs) for section in parts.sections}
    return parts, render_report(fitted[0], parts, plots=False), words


def test_predictive_checks_alone_do_not_make_a_fit_a_good_one(fitted, monkeypatch, configure):
    # What they do find is told elsewhere.
    monkeypatch.setattr("hidag.cli.commands.report.misfits", lambda found: ())
    configure("network_em", max_clique_cells=1)
    parts, page, words = page_and_words(fitted)
    assert "The table beside tables drawn from the fit" in words["How well it fits"]
    said = (
        "Only predictive checks were made, which see little of how items go together; statistics "
        f"that do are {CLOSELY}."
    )
    for one in (page, render_report(fitted[0], replace(parts, examined=True), plots=False)):
        assert GREEN not in one
        assert said in one
    assert not parts.examined


def test_the_page_names_no_command_that_refuses(fitted, monkeypatch, configure):
    monkeypatch.setattr("hidag.cli.commands.report.WORK_OF_A_MOMENT", 0)
    configure("network_em", max_clique_cells=1)
    _, page, words = page_and_words(fitted)
    assert words["How sure it is"] == (
        f"Standard errors are {CLOSELY}; `hidag bootstrap` fits resampled tables, with its answer "
        "here."
    )
    assert words["How well it fits"] == (
        "The table was not compared with tables drawn from the fit here, as it takes longer than "
        "the fit; `hidag fit --statistics` does so, and `hidag goodness` for a fit that is there. "
        f"Other statistics of fit are {CLOSELY}."
    )
    assert f"What the data would change in the Q that was given is {CLOSELY}." in page
    for command in ("hidag errors", "hidag validate-q"):
        assert command not in page
    assert "was not examined here" in page
    _, page, words = page_and_words(fitted, statistics=False)
    assert "as the fit was asked not to; `hidag goodness` does so." in words["How well it fits"]


def test_pairs_that_are_alike_are_found_among_more_states_than_are_listed(fitted):
    parts, page, words = page_and_words(fitted)
    assert parts.examined
    assert GREEN not in page
    assert "pairs of items go together otherwise than the model says, most of all X1 and X6" in page
    assert {"pair_fit", "item_fit"} <= {table.name for table in parts.tables}
    assert "M2 takes 2^14 joint states listed" in words["How well it fits"]
    wait = "It takes longer than the fit to say; `hidag validate-q` does so."
    assert words["Is Q right"] == wait


def test_standard_errors_that_take_longer_than_the_fit_name_their_command(fitted, monkeypatch):
    monkeypatch.setattr("hidag.cli.commands.report.WORK_OF_ERRORS", 0)
    words = page_and_words(fitted)[2]
    assert words["How sure it is"].startswith("Standard errors take longer than the fit here")


def test_checks_are_made_by_default_whatever_the_number_of_joint_states(as_result):
    truth = make_truth(random_law(chain_dag(24), rng=0), np.eye(24, dtype=int), "bernoulli")
    fit = (as_result(truth), np.array(simulate(truth, 200, rng=1).X, dtype=np.float64))
    assert "checks" in [table.name for table in page_and_words(fit)[0].tables]
