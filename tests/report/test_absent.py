from __future__ import annotations

import numpy as np

from hidag.report import ReportParts, Section, render_report
from hidag.report.absent import absent_section
from hidag.simulate import chain_dag, make_truth, random_law

ALL = ("How sure it is", "Who is where", "What if", "How well it fits")


def test_nothing_is_said_where_nothing_is_left_out():
    assert absent_section(ALL, 2) is None
    assert absent_section([name for name in ALL if name != "What if"], 1) is None


def test_commands_are_named_for_what_is_left_out():
    section = absent_section(["What if", "How sure it is"], 2)
    assert section.paragraphs[0].endswith(
        "Who is where: `hidag classify`; How well it fits: `hidag goodness`."
    )


def test_commands_are_set_as_such_and_all_else_stays_text(as_result):
    result = as_result(make_truth(random_law(chain_dag(2), rng=0), np.eye(2, dtype=int)))
    words = "run `hidag fit --out <folder>` & see `x` or `hidag goodness`"
    page = render_report(result, ReportParts(sections=(Section("More", (words,)),)), plots=False)
    assert (
        "run <code>hidag fit --out &lt;folder&gt;</code> &amp; see `x` or "
        "<code>hidag goodness</code>"
    ) in page
    assert "`hidag" not in page


def test_the_page_of_a_bare_fit_says_what_it_lacks(as_result):
    result = as_result(make_truth(random_law(chain_dag(2), rng=0), np.eye(2, dtype=int)))
    page = render_report(result, plots=False)
    assert "<h2>What is not here</h2>" in page
    assert "What if: <code>hidag whatif --effects</code>" in page
    whole = ReportParts(sections=tuple(Section(name) for name in ALL))
    assert "What is not here" not in render_report(result, whole, plots=False)
