"""The recipes of docs/how_to_add.md work as they are, with the conformance tests they name."""

from __future__ import annotations

import re

import pytest

from .pages import ROOT, python_blocks

PAGE = ROOT / "docs" / "how_to_add.md"


@pytest.fixture(scope="module")
def page():
    """Run the code of the page, and undo its registrations afterwards."""
    from hidag.measurement.penalties import SHAPES
    from hidag.reporting import assembly
    from hidag.strategy import exploratory
    from hidag.strategy.observed_likelihood import edge_tests
    from hidag.strategy.problem import STARTS
    from hidag.structure.graph_search import SEARCHES
    from hidag.structure.scores import SCORES

    panels, start_points = assembly.PANELS, exploratory.start_points
    rule, supports_edge = STARTS["confirmatory"], edge_tests.supports_edge
    names: dict = {"__name__": "page"}
    try:
        exec(compile(python_blocks(PAGE), PAGE.name, "exec"), names)
        yield names
    finally:
        assembly.PANELS, exploratory.start_points = panels, start_points
        SHAPES.pop("midway", None)
        SCORES.pop("sparse-bic", None)
        SEARCHES.pop("forest", None)
        STARTS["confirmatory"], edge_tests.supports_edge = rule, supports_edge


HEADINGS = (
    "A penalty", "A score", "A report panel", "A start", "A search", "The number of starts",
    "An edge test",
)  # fmt: skip


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_recipe_names_at_most_three_files(heading) -> None:
    section = PAGE.read_text("utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    table = "\n".join(line for line in section.splitlines() if line.startswith("|"))
    assert 2 <= len(set(re.findall(r"`((?:src|tests)/[\w./]+)`", table))) <= 3


def test_the_penalty_satisfies_its_conformance_tests(page) -> None:
    from ..laws import test_penalty_laws as laws

    for strength, threshold in [(7.0, 0.05), (1.0, 2.0), (30.0, 0.4)]:
        laws.test_shape_conditions("midway", strength, threshold)
    laws.test_one_coordinate_is_solved_globally("midway")
    laws.test_pieces_integrate_to_the_penalty("midway")
    laws.test_derivative_is_the_slope_of_the_value("midway")
    laws.test_descent_is_its_plain_python_body("midway")


def test_the_penalty_finds_the_support(page) -> None:
    from hidag import evaluate

    assert evaluate(page["sparse"], page["truth"]).shd_q == 0


def test_the_score_satisfies_its_conformance_test(page, monkeypatch) -> None:
    from ..laws import test_graph_scores as laws

    monkeypatch.setitem(laws.SCORE_EQUIVALENT, "sparse-bic", True)
    for fractional in (False, True):
        laws.test_every_named_score("sparse-bic", fractional)
    assert len(page["graph"].undirected_edges) == 1


def test_the_panel_is_in_the_report(page) -> None:
    assert page["content"].sections[-1].heading == "Missing data"
    assert "Shares of missing cells by item." in page["page"]
    assert any(table.name == "missing" for table in page["content"].tables)


def test_the_start_is_used(page) -> None:
    from hidag import evaluate

    labels = [record.label for record in page["started"].result_.starts]
    assert labels[-1] == "clusters of items"
    assert len(labels) == 3
    assert evaluate(page["started"], page["truth"]).shd_q == 0


def test_the_search_is_available_everywhere(page) -> None:
    from ..structure import test_search as tests

    tests.test_reported_score_is_the_graphs("forest", "bic")
    assert max(map(len, page["forest"].to_dag().parents)) <= 1


def test_the_number_of_starts_is_that_of_the_rule(page) -> None:
    assert len(page["given"].result_.starts) == 3


def test_the_edge_test_decides(page) -> None:
    found = page["tested"].edge_tests
    assert found
    assert all(test.kept == (test.likelihood_loss > 2.0 * test.saved) for test in found)
