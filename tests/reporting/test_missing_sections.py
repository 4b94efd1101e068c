from __future__ import annotations

import numpy as np
import pytest

from hidag.reporting import ReportContent, Section, render_report
from hidag.reporting.assembly import missing_section
from hidag.simulation import chain_dag, make_truth, random_law

ALL = ("Uncertainty", "Classification", "Interventions", "Goodness of fit")


def chain(as_result, n_latents):
    law = random_law(chain_dag(n_latents), rng=0)
    return as_result(make_truth(law, np.eye(n_latents, dtype=int)))


def test_a_complete_report_has_no_section_about_missing_ones(as_result):
    assert missing_section(ALL, chain(as_result, 2)) is None
    without_effects = [name for name in ALL if name != "Interventions"]
    assert missing_section(without_effects, chain(as_result, 1)) is None


def test_missing_sections_name_their_commands(as_result):
    section = missing_section(["Interventions", "Uncertainty"], chain(as_result, 2))
    assert section.paragraphs[0].endswith(
        "Classification: `hidag classify`; Goodness of fit: `hidag goodness`."
    )


@pytest.mark.parametrize(
    ("n_latents", "widest", "command"),
    [
        (13, 1, "`hidag bootstrap`, or `hidag standard-errors`"),
        (14, 1, "`hidag bootstrap`."),
        (14, 1 << 12, "`hidag bootstrap`, or `hidag standard-errors`"),
    ],
)
def test_no_command_is_named_that_would_fail(as_result, n_latents, widest, command, configure):
    configure("network_em", max_clique_cells=widest)
    (text,) = missing_section(ALL[1:], chain(as_result, n_latents)).paragraphs
    assert command in text


def test_only_commands_are_set_as_code(as_result):
    result = as_result(make_truth(random_law(chain_dag(2), rng=0), np.eye(2, dtype=int)))
    words = "run `hidag fit --out <folder>` & see `x` or `hidag goodness`"
    page = render_report(result, ReportContent(sections=(Section("More", (words,)),)), plots=False)
    assert (
        "run <code>hidag fit --out &lt;folder&gt;</code> &amp; see `x` or "
        "<code>hidag goodness</code>"
    ) in page
    assert "`hidag" not in page


def test_the_page_of_a_fit_alone_lists_the_missing_sections(as_result):
    result = as_result(make_truth(random_law(chain_dag(2), rng=0), np.eye(2, dtype=int)))
    page = render_report(result, plots=False)
    assert "<h2>Not included</h2>" in page
    assert "Interventions: <code>hidag whatif --effects</code>" in page
    whole = ReportContent(sections=tuple(Section(name) for name in ALL))
    assert "Not included" not in render_report(result, whole, plots=False)
