from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from hidag import CPDAG, DCRL
from hidag.exceptions import FileError
from hidag.files import write_file
from hidag.latent import NetworkLaw, StateSpace
from hidag.reporting import ReportContent, Section, Table, load_content, render_report
from hidag.reporting.report import draw_graph
from hidag.simulation import dag_from_parents, design, make_truth, random_law, simulate

HOSTILE = '<script>alert("1")</script>'


@pytest.fixture(scope="module")
def result():
    data = simulate(design("Tree-5", rng=1), 1500, rng=2)
    names = (HOSTILE, "a & b", "\u202eRTL", "Z4", "Z5")
    return (
        DCRL(5, family="gaussian", random_state=0, n_starts=2, latent_names=names)
        .fit(data.X)
        .result_
    )


CONTENT = ReportContent(
    title="A <i>study</i>",
    warnings=("one thing",),
    sections=(Section("Goodness of fit", ("It fits well.",), (), ("fit",)),),
    tables=(Table("fit", "Numbers", ("what", "value"), ((HOSTILE, 0.5), ("b", None))),),
    command="hidag fit t.csv",
    misfits=("another thing",),
    fit_assessed=True,
    edge_probabilities=tuple((0.1,) * 5 for _ in range(5)),
    plots=False,
)


@pytest.fixture(scope="module")
def page(result):
    return render_report(result, CONTENT)


def test_the_policy_names_the_only_script(page):
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.S)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "unsafe-eval" not in page
    assert re.findall(r'(?:src|href)="(?!data:|#)', page) == []


def test_names_are_escaped(page):
    assert HOSTILE not in page
    assert "<i>study</i>" not in page
    assert page.count("&lt;script&gt;") >= 4


def test_sections_warnings_and_the_command_are_on_the_page(page):
    for text in (
        "Goodness of fit",
        "It fits well.",
        "<h2>Identifiability</h2>",
        "hidag fit t.csv",
        "One thing.",
        "Another thing.",
    ):
        assert text in page


def test_assumptions_carry_the_mark_of_the_verdict(page):
    assert "given the assumptions marked ? below" in page
    assert "<td>? assumed</td>" in page
    assert "<td>+ holds</td>" in page


def test_the_drawing_has_all_latents_and_edges(result, page):
    drawing = draw_graph(result)
    assert [node["name"] for node in drawing["nodes"]] == list(result.latent_names)
    assert len(drawing["edges"]) == result.graph.n_edges
    assert drawing["has_probabilities"]
    for edge in drawing["edges"]:
        pair = drawing["nodes"][edge["source"]]["name"], drawing["nodes"][edge["target"]]["name"]
        assert edge["directed"] == (pair in result.graph.directed_edges)
    for node in drawing["nodes"]:
        assert node["width"] / 2 <= node["x"] <= drawing["width"] - node["width"] / 2
        for row in node["rows"]:
            assert sum(row["probabilities"]) == pytest.approx(1.0)
        assert sum(row["share"] for row in node["rows"]) == pytest.approx(1.0)
    assert page.count('<g class="node"') == 5
    assert page.count('<g class="edge"') == result.graph.n_edges


def test_a_small_graph_has_a_minimum_size(as_result):
    law = random_law(dag_from_parents([(), (0,)]), rng=0)
    drawing = draw_graph(as_result(make_truth(law, np.eye(2, dtype=int))))
    assert drawing["width"] >= 300
    assert drawing["height"] >= 200
    xs, ys = ([node[axis] for node in drawing["nodes"]] for axis in "xy")
    assert (min(xs) + max(xs)) / 2 == pytest.approx(drawing["width"] / 2)
    assert (min(ys) + max(ys)) / 2 == pytest.approx(drawing["height"] / 2)


def test_tables_over_undirected_edges_have_a_note(as_result):
    law = random_law(dag_from_parents([(), (0,)]), rng=0)
    result = as_result(make_truth(law, np.eye(2, dtype=int)), latent_names=("<one>", "two"))
    assert [node["undecided"] for node in draw_graph(result)["nodes"]] == [["two"], ["<one>"]]
    page = render_report(result)
    assert page.count("The table refers to one of the equivalent graphs") == 2
    assert "of the edge to <bdi>&lt;one&gt;</bdi> is not identified" in page
    assert "given its causes" not in page


def test_tables_over_directed_edges_have_no_note(as_result):
    law = random_law(dag_from_parents([(), (), (0, 1)]), rng=0)
    result = as_result(make_truth(law, np.eye(3, dtype=int)))
    assert all(node["undecided"] == [] for node in draw_graph(result)["nodes"])
    page = render_report(result)
    assert "given its causes" in page
    assert "equivalent graphs" not in page


def test_rare_combinations_are_marked(as_result):
    common, rare = np.array([0.5, 0.5]), np.array([0.999, 0.001])
    given = np.array([[[0.8, 0.2], [0.5, 0.5]], [[0.3, 0.7], [0.5, 0.5]]])
    law = NetworkLaw(StateSpace((2, 2, 2)), ((), (), (0, 1)), (common, rare, given))
    result = as_result(make_truth(law, np.eye(3, dtype=int)))
    rows = draw_graph(result)["nodes"][2]["rows"]
    assert [row["share"] for row in rows] == pytest.approx([0.4995, 0.0005, 0.4995, 0.0005])
    assert [row["sparse"] for row in rows] == [False, True, False, True]
    few = replace(result, weighted=True, n_counted=9.0)
    assert all(row["sparse"] for row in draw_graph(few)["nodes"][2]["rows"])
    page = render_report(result)
    assert page.count('<tr class="sparse">') == 2
    assert '<td class="n">50.0%</td><td class="n">0.800</td>' in page
    assert "Pale lines are based on fewer than 5 expected rows" in page


def test_edges_are_drawn_as_their_probabilities_demand(as_result):
    law = random_law(dag_from_parents([(), (), (0, 1)]), rng=0)
    result = as_result(make_truth(law, np.eye(3, dtype=int)), latent_names=("a", "b", "c"))
    p = ((0.0, 0.9, 0.55), (0.0, 0.0, 0.2), (0.35, 0.1, 0.0))
    page = render_report(result, ReportContent(edge_probabilities=p, n_resampled=50), plots=False)
    lines = set(re.findall(r'aria-label="([abc] \S+ [abc])"', page))
    assert lines == {"a -&gt; b", "a - c", "b - c"}
    assert page.count('opacity=".55"') == 1
    assert page.count('marker-end="url(#head)"') == 1
    assert "the probabilities of its edges were not computed" not in page
    assert "the probabilities of its edges were not computed" in render_report(result, plots=False)


def test_contents_are_read_back_from_their_file(result, tmp_path):
    path = write_file(tmp_path / "report.json", CONTENT.to_json())
    assert load_content(path, result) == CONTENT
    path.write_text(json.dumps({"format": "other"}))
    with pytest.raises(
        FileError,
        match=r"is not a report file of hidag fit, or it is damaged .unknown format.; remove",
    ):
        load_content(path, result)


def test_the_page_is_green_only_if_the_fit_was_assessed_without_misfit(result):
    calm = replace(result, converged=True, n_reached=2, information_ratio=0.9)
    green, grey = '<div class="good"', "Goodness of fit was not assessed."
    unknown = render_report(calm)
    assert green not in unknown
    assert grey in unknown
    fine = render_report(calm, ReportContent(fit_assessed=True))
    assert green in fine
    assert grey not in fine
    for content in (CONTENT, ReportContent(misfits=("another thing",))):
        worried = render_report(calm, content)
        assert green not in worried
        assert grey not in worried
        assert worried.index("Another thing.") < worried.index("Model and data")


def test_unweighted_statistics_do_not_assess_a_weighted_fit(result):
    calm = replace(result, converged=True, n_reached=2, information_ratio=0.9, weighted=True)
    green = '<div class="good"'
    once = render_report(calm, ReportContent(fit_assessed=True), plots=False)
    assert green not in once
    assert "The fit statistics ignore the sample weights that the fit used" in once
    assert green in render_report(
        calm, ReportContent(fit_assessed=True, weighted=True), plots=False
    )


def test_latents_without_edges_have_their_tables(as_result):
    law = random_law(dag_from_parents([(), ()]), rng=0)
    page = render_report(as_result(make_truth(law, np.eye(2, dtype=int))), plots=False)
    assert page.count('<g class="edge"') == 0
    for k in range(2):
        assert f'<div id="node-{k}">' in page
    assert "Point at or tap a latent for its probabilities. Latents can be dragged." in page
    assert "<summary>Probability tables of the latents</summary>" in page


def test_a_single_latent_has_no_graph():
    rng = np.random.default_rng(0)
    z = rng.random((300, 1)) < 0.5
    fit = DCRL(1, family="bernoulli", random_state=0).fit(
        (rng.random((300, 4)) < np.where(z, 0.9, 0.1)) * 1
    )
    assert "there is no graph" in render_report(fit.result_)


def test_items_of_several_categories_are_counted_once(monkeypatch):
    monkeypatch.setattr("hidag.reporting.report._OPEN_TABLE_ITEMS", 3)
    rng = np.random.default_rng(0)
    z = rng.random((300, 1)) < 0.5
    X = (rng.random((300, 4)) < np.where(z, 0.9, 0.1)).astype(float)
    colours = np.where(z[:, 0], rng.integers(0, 3, 300), rng.integers(2, 4, 300))
    fit = DCRL(1, family=["bernoulli"] * 4 + ["categorical"], random_state=0, n_starts=1).fit(
        np.column_stack([X, colours])
    )
    assert len(fit.result_.response_names) == 7
    assert "Intercepts and loadings of 5 items" in render_report(fit.result_, plots=False)


def test_lists_of_names_run_from_left_to_right_with_isolated_names(as_result):
    truth = make_truth(
        random_law(dag_from_parents([(), (0,)]), rng=0),
        np.vstack([np.eye(2, dtype=int)] * 3),
        "bernoulli",
    )
    plain = as_result(truth)
    names = ("كسور", "B")
    fit = replace(plain, latent_names=names, graph=CPDAG(plain.graph.adjacency, names))
    page = render_report(fit, plots=False)
    assert '<th scope="row" dir="ltr"><bdi>كسور</bdi> = 0</th>' in page
    cells = ", ".join(f"<bdi>{name}</bdi>" for name in fit.item_names[:8])
    assert f'<td dir="ltr">{cells}</td>' in page


def test_thousands_are_grouped(result):
    rows = tuple((f"pair {i}", 0.5) for i in range(1234))
    table = Table("pairs", "Pairs", ("pair", "p value"), rows)
    content = ReportContent(sections=(Section("Pairs", (), (), ("pairs",)),), tables=(table,))
    page = render_report(result, content, plots=False)
    assert " of 1,234 rows; all of them are in " in page


def test_a_name_that_looks_like_a_command_is_none(result):
    named = replace(result, item_names=("`hidag x`", *result.item_names[1:]))
    content = ReportContent(misfits=("item '`hidag x`' misfits; `hidag goodness` tests it",))
    page = render_report(named, content, plots=False)
    assert "<code>hidag x</code>" not in page
    assert "<code>hidag goodness</code>" in page
