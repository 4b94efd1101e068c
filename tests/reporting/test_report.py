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
from hidag.latent import NetworkLaw, StateSpace
from hidag.reporting import ReportParts, Section, Table, read_parts, render_report, write_parts
from hidag.reporting.interactive_graph import graph_panel
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


PARTS = ReportParts(
    title="A <i>study</i>",
    warnings=("one thing",),
    sections=(Section("How well it fits", ("In a word: well.",), (), ("fit",)),),
    tables=(Table("fit", "Numbers", ("what", "value"), ((HOSTILE, 0.5), ("b", None))),),
    command="hidag fit t.csv",
    doubts=("another thing",),
    examined=True,
    support=(("a", "b", 1.0),),
    directions=(("b", "a", 0.8),),
    plots=False,
)


@pytest.fixture(scope="module")
def page(result):
    return render_report(result, PARTS)


def test_the_only_script_is_the_one_the_policy_names(page):
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.S)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "unsafe-eval" not in page
    assert re.findall(r'(?:src|href)="(?!data:|#)', page) == []


def test_names_are_text_wherever_they_stand(page):
    assert HOSTILE not in page
    assert "<i>study</i>" not in page
    assert page.count("&lt;script&gt;") >= 4


def test_parts_findings_and_the_command_are_there(page):
    for words in (
        "How well it fits",
        "In a word: well.",
        "Can it be identified?",
        "hidag fit t.csv",
        "One thing.",
        "Another thing.",
    ):
        assert words in page


def test_assumptions_carry_the_mark_that_the_verdict_speaks_of(page):
    assert "given the assumptions marked ? below" in page
    assert "<td>? assumed</td>" in page
    assert "<td>+ holds</td>" in page


def test_the_drawing_has_all_latents_and_edges(result, page):
    panel = graph_panel(result)
    assert [node.name for node in panel.nodes] == list(result.latent_names)
    assert len(panel.edges) == result.graph.n_edges
    assert not panel.has_support
    for edge in panel.edges:
        pair = panel.nodes[edge.source].name, panel.nodes[edge.target].name
        assert edge.arrow == (pair in result.graph.directed_edges)
    for node in panel.nodes:
        assert node.width / 2 <= node.x <= panel.width - node.width / 2
        for row in node.rows:
            assert sum(row.chances) == pytest.approx(1.0)
        assert sum(row.share for row in node.rows) == pytest.approx(1.0)
    assert page.count('<g class="node"') == 5
    assert page.count('<g class="edge"') == result.graph.n_edges


def test_a_small_graph_has_room_to_be_dragged(as_result):
    law = random_law(dag_from_parents([(), (0,)]), rng=0)
    panel = graph_panel(as_result(make_truth(law, np.eye(2, dtype=int))))
    assert panel.width >= 300
    assert panel.height >= 200
    xs, ys = ([getattr(node, axis) for node in panel.nodes] for axis in "xy")
    assert (min(xs) + max(xs)) / 2 == pytest.approx(panel.width / 2)
    assert (min(ys) + max(ys)) / 2 == pytest.approx(panel.height / 2)


def test_tables_over_undecided_directions_say_so(as_result):
    law = random_law(dag_from_parents([(), (0,)]), rng=0)
    result = as_result(make_truth(law, np.eye(2, dtype=int)), latent_names=("<one>", "two"))
    assert [node.undecided for node in graph_panel(result).nodes] == [("two",), ("<one>",)]
    page = render_report(result)
    assert page.count("This is its table in one of the graphs that fit equally well.") == 2
    assert "In others <bdi>&lt;one&gt;</bdi> may be on the other side" in page
    assert "given its causes" not in page


def test_tables_over_known_directions_need_no_caveat(as_result):
    law = random_law(dag_from_parents([(), (), (0, 1)]), rng=0)
    result = as_result(make_truth(law, np.eye(3, dtype=int)))
    assert all(node.undecided == () for node in graph_panel(result).nodes)
    page = render_report(result)
    assert "given its causes" in page
    assert "one of the graphs" not in page


def test_combinations_that_hardly_occur_are_pale(as_result):
    common, rare = np.array([0.5, 0.5]), np.array([0.999, 0.001])
    given = np.array([[[0.8, 0.2], [0.5, 0.5]], [[0.3, 0.7], [0.5, 0.5]]])
    law = NetworkLaw(StateSpace((2, 2, 2)), ((), (), (0, 1)), (common, rare, given))
    result = as_result(make_truth(law, np.eye(3, dtype=int)))
    rows = graph_panel(result).nodes[2].rows
    assert [row.share for row in rows] == pytest.approx([0.4995, 0.0005, 0.4995, 0.0005])
    assert [row.thin for row in rows] == [False, True, False, True]
    few = replace(result, weighted=True, n_counted=9.0)
    assert all(row.thin for row in graph_panel(few).nodes[2].rows)
    page = render_report(result)
    assert page.count('<tr class="thin">') == 2
    assert '<td class="n">50.0%</td><td class="n">0.800</td>' in page
    assert "Hardly any row is where lines are pale" in page


def test_support_is_found_in_either_order_of_a_pair(result):
    graph = result.graph
    a, b = [*graph.directed_edges, *graph.undirected_edges][0]
    shares = [
        next(
            e.support
            for e in graph_panel(result, {pair: 0.7}).edges
            if {result.latent_names[e.source], result.latent_names[e.target]} == {a, b}
        )
        for pair in ((a, b), (b, a))
    ]
    assert shares == [0.7, 0.7]


def test_edges_say_how_sure_their_direction_is(as_result):
    law = random_law(dag_from_parents([(), (), (0, 1)]), rng=0)
    result = as_result(make_truth(law, np.eye(3, dtype=int)), latent_names=("a", "b", "c"))
    parts = ReportParts(
        support=(("a", "c", 1.0), ("b", "c", 0.9)),
        directions=(("a", "c", 0.75), ("b", "c", 0.5)),
    )
    page = render_report(result, parts, plots=False)
    assert "joined in 100% of the resampled tables, in this direction in 75%." in page
    assert "least sure is that b causes c, which came back in 50%." in page


def test_parts_come_back_from_their_file(tmp_path):
    path = write_parts(PARTS, tmp_path / "report.json")
    assert read_parts(path) == PARTS
    earlier = json.loads(path.read_text())
    for name in ("examined", "directions", "doubts", "doubts_kept", "plots", "by_weights"):
        del earlier[name]
    path.write_text(json.dumps(earlier))
    unknown = {"directions": (), "doubts": (), "doubts_kept": False, "plots": True}
    assert read_parts(path) == replace(PARTS, **unknown)
    earlier["sections"][0]["tables"] = []
    path.write_text(json.dumps(earlier))
    assert not read_parts(path).examined
    path.write_text(json.dumps({"format": "other"}))
    with pytest.raises(FileError, match="was not written by hidag fit, or it is damaged; remove"):
        read_parts(path)


def test_the_page_is_green_only_if_the_fit_was_examined_and_nothing_was_found(result):
    calm = replace(result, converged=True, n_reached=2, information_ratio=0.9)
    green, grey = '<div class="good"', "How well the model describes the table was not examined"
    unknown = render_report(calm)
    assert green not in unknown
    assert grey in unknown
    fine = render_report(calm, ReportParts(examined=True))
    assert green in fine
    assert grey not in fine
    for parts in (PARTS, ReportParts(doubts=("another thing",))):
        worried = render_report(calm, parts)
        assert green not in worried
        assert grey not in worried
        assert worried.index("Another thing.") < worried.index("What was fitted")


def test_a_report_of_an_earlier_version_says_that_its_doubts_were_not_kept(result):
    calm = replace(result, converged=True, n_reached=2, information_ratio=0.9)
    earlier = render_report(calm, ReportParts(examined=True, doubts_kept=False), plots=False)
    assert "was not examined here" not in earlier
    assert "did not keep whether they cast doubt on the model" in earlier
    assert '<div class="good"' not in earlier


def test_statistics_judge_a_weighted_fit_only_if_they_count_rows_by_its_weights(result):
    calm = replace(result, converged=True, n_reached=2, information_ratio=0.9, weighted=True)
    green = '<div class="good"'
    once = render_report(calm, ReportParts(examined=True), plots=False)
    assert green not in once
    assert "Statistics of fit count every row once here, and so they do not judge a fit" in once
    assert green in render_report(calm, ReportParts(examined=True, by_weights=True), plots=False)


def test_latents_without_edges_have_their_tables(as_result):
    law = random_law(dag_from_parents([(), ()]), rng=0)
    page = render_report(as_result(make_truth(law, np.eye(2, dtype=int))), plots=False)
    assert page.count('<g class="edge"') == 0
    for k in range(2):
        assert f'<div id="node-{k}">' in page
    assert "Point at a latent for its probabilities. Latents can be dragged." in page
    assert "<summary>The latents' tables</summary>" in page


def test_a_single_latent_has_no_graph():
    rng = np.random.default_rng(0)
    z = rng.random((300, 1)) < 0.5
    fit = DCRL(1, family="bernoulli", random_state=0).fit(
        (rng.random((300, 4)) < np.where(z, 0.9, 0.1)) * 1
    )
    assert "there is no graph" in render_report(fit.result_)


def test_items_of_several_categories_are_counted_once(monkeypatch):
    monkeypatch.setattr("hidag.reporting.fit_report._OPEN_TABLE_ITEMS", 3)
    rng = np.random.default_rng(0)
    z = rng.random((300, 1)) < 0.5
    X = (rng.random((300, 4)) < np.where(z, 0.9, 0.1)).astype(float)
    colours = np.where(z[:, 0], rng.integers(0, 3, 300), rng.integers(2, 4, 300))
    fit = DCRL(1, family=["bernoulli"] * 4 + ["categorical"], random_state=0, n_starts=1).fit(
        np.column_stack([X, colours])
    )
    assert len(fit.result_.response_names) == 7
    assert "Table of the loadings of 5 items" in render_report(fit.result_, plots=False)


def test_lists_of_names_run_from_left_to_right_with_each_name_kept_in(as_result):
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


def test_thousands_are_grouped_wherever_things_are_counted(result):
    rows = tuple((f"pair {i}", 0.5) for i in range(1234))
    table = Table("pairs", "Pairs", ("pair", "p value"), rows)
    parts = ReportParts(sections=(Section("Pairs", (), (), ("pairs",)),), tables=(table,))
    page = render_report(result, parts, plots=False)
    assert " of 1,234 rows; all of them are in " in page
