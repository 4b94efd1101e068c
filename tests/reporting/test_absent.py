from __future__ import annotations

import numpy as np
import pytest

from hidag.reporting import ReportParts, Section, render_report
from hidag.reporting.fit_report import absent_section
from hidag.simulation import chain_dag, make_truth, random_law

ALL = ("How sure it is", "Who is where", "What if", "How well it fits")


def chain(as_result, n_latents):
    law = random_law(chain_dag(n_latents), rng=0)
    return as_result(make_truth(law, np.eye(n_latents, dtype=int)))


def test_nothing_is_said_where_nothing_is_left_out(as_result):
    assert absent_section(ALL, chain(as_result, 2)) is None
    without_effects = [name for name in ALL if name != "What if"]
    assert absent_section(without_effects, chain(as_result, 1)) is None


def test_commands_are_named_for_what_is_left_out(as_result):
    section = absent_section(["What if", "How sure it is"], chain(as_result, 2))
    assert section.paragraphs[0].endswith(
        "Who is where: `hidag classify`; How well it fits: `hidag goodness`."
    )


@pytest.mark.parametrize(
    ("n_latents", "widest", "told"),
    [
        (13, 1, "`hidag bootstrap`, or `hidag errors`"),
        (14, 1, "`hidag bootstrap`."),
        (14, 1 << 12, "`hidag bootstrap`, or `hidag errors`"),
    ],
)
def test_no_command_is_named_that_refuses(as_result, n_latents, widest, told, configure):
    configure("network_em", max_clique_cells=widest)
    (words,) = absent_section(ALL[1:], chain(as_result, n_latents)).paragraphs
    assert told in words


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
