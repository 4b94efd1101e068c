"""Certificates and support of edges on the pages of the applications."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, design, simulate
from hidag_paper.applications.claims import arrows_into, claims_section, support_table


@pytest.fixture(scope="module")
def fit():
    data = simulate(design("Chain-5", "Q1", "gaussian", rng=1), 500, rng=2)
    return DCRL(5, family="gaussian", random_state=0).fit(data.X).result_


def test_the_section_has_both_certificates(fit) -> None:
    section = claims_section(fit, "One more.")
    certificates, support = section.tables
    assert section.paragraphs[0].startswith("Q alone, generic: guaranteed")
    assert section.paragraphs[-1] == "One more."
    status = {row[0]: row[2:] for row in certificates.rows}
    assert status["blocks"] == ("holds", "holds")
    assert status["monotone"][0] == "undecided"
    assert status["positive-law"][0] == "undecided"
    assert support.header[3:] == ("edge", "->", "<-")


def test_support_is_the_sum_of_both_directions(fit) -> None:
    rows = support_table(fit).rows
    names = list(fit.latent_names)
    joined = {
        (i, j) for i in range(5) for j in range(i) if fit.graph.adjacency[[i, j], [j, i]].any()
    }
    assert len(rows) >= len(joined)
    for one, other, _, edge, forward, backward in rows:
        assert edge == pytest.approx(forward + backward)
        assert forward == fit.edge_probabilities[names.index(one), names.index(other)]
    phrase = arrows_into(fit, names[0], (names[1],))
    assert f"{fit.edge_probabilities[1, 0]:.2f}" in phrase
    assert np.isfinite(fit.edge_probabilities).all()
