from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from hidag import CPDAG, DCRL
from hidag.exceptions import FileError
from hidag.reporting import ReportContent, format_edges, render_report, write_report
from hidag.reporting.fit_description import (
    count_families,
    describe_fit,
    list_concerns,
)
from hidag.simulation import design, simulate
from hidag.strategy.observed_likelihood.edge_tests import EdgeTest

HOSTILE = ('<script>alert("1")</script>', '"><img src=x onerror=alert(1)>', "\u202eRTL & 'quotes'")


@pytest.fixture(scope="module")
def result():
    data = simulate(design("Tree-5", rng=1), 400, rng=2, missing=0.02)
    return DCRL(5, random_state=0, n_starts=2).fit(data.X).result_


def page_of(result, *, title="A study", warnings=(), plots=True):
    return render_report(result, ReportContent(title, tuple(warnings)), plots=plots)


@pytest.fixture(scope="module")
def page(result):
    return page_of(result)


class _Outline(HTMLParser):
    """Open elements, images, headings and elements that would run or load something."""

    VOID = frozenset({"meta", "img", "br", "link", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.headings: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "img":
            self.images.append(dict(attrs))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "h2":
            self.headings.append(data)


def _outline(text: str) -> _Outline:
    parser = _Outline()
    parser.feed(text)
    parser.close()
    assert parser.stack == []
    return parser


def test_the_page_is_well_formed_and_self_contained(page):
    outline = _outline(page)
    assert outline.headings == [
        "Summary",
        "Model and data",
        "Causal graph",
        "Latent distribution",
        "Measurement model",
        "Not included",
        "Identifiability",
        "Item types",
        "Convergence",
        "Settings and versions",
    ]
    assert len(outline.images) == 2
    for image in outline.images:
        assert image["src"].startswith("data:image/png;base64,iVBOR")
        assert image["alt"]
    assert not outline.tags & {"link", "iframe", "object", "form"}
    assert not re.search(r"https?://", page)


def test_names_are_escaped(result):
    latents = (*HOSTILE, "Z4", "Z5")
    hostile = dataclasses.replace(
        result,
        item_names=(*HOSTILE, *result.item_names[3:]),
        latent_names=latents,
        graph=result.graph.rename(latents),
        settings={**result.settings, "family": HOSTILE[0]},
        family_reasons=(HOSTILE[1],) * len(result.item_names),
    )
    page = page_of(hostile, title=HOSTILE[0], warnings=[HOSTILE[1]])
    outline = _outline(page)
    assert not any(name.startswith("on") for name in outline.attributes)
    assert len(outline.images) == 2
    assert page.count("<script") == 1
    assert "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;" in page
    assert "<bdi>\ufffdRTL &amp; &#39;quotes&#39;</bdi>" in page


def test_describe_fit(result):
    sentences = describe_fit(result)
    share = f"{result.missing_share:.1%}"
    assert sentences[0] == (
        f"The data have 400 rows and 15 items, with {share} of the cells missing. The model has 5 "
        "binary latent variables."
    )
    assert sentences[1] == (
        "The Q-matrix (which latent each item measures) was estimated from the data."
    )
    assert sentences[2] == ("The latents of an item have additive effects (main effects only).")
    given = dataclasses.replace(result, q_given=np.array(result.q_matrix))
    assert describe_fit(given)[1] == ("The Q-matrix (which latent each item measures) was given.")
    partly = np.array(result.q_matrix)
    partly[0] = -1
    assert describe_fit(dataclasses.replace(result, q_given=partly))[1] == (
        "The Q-matrix (which latent each item measures) was given in part; 5 of 75 entries were "
        "estimated."
    )


def test_list_concerns(result):
    calm = dataclasses.replace(result, converged=True, n_reached=2, information_ratio=0.9)
    assert list_concerns(calm) == []
    # Usual for binary tests: reported, but no reason for a warning.
    ordinary = dataclasses.replace(calm, information_ratio=0.4)
    assert list_concerns(ordinary) == []
    assert (
        "The items carry 40% of the information about the dependences" in describe_fit(ordinary)[-1]
    )
    q = np.ones_like(result.q_matrix)
    q[:, 0] = 0
    q[0] = [1, 0, 0, 0, 0]
    q[1] = 0
    worried = dataclasses.replace(
        result,
        converged=False,
        n_iter=300,
        n_reached=1,
        information_ratio=0.08,
        missing_share=0.5,
        q_given=q,
    )
    unused, weak = result.item_names[1], result.latent_names[0]
    assert [str(one) for one in list_concerns(worried, ["something else"])] == [
        "the estimate did not converge in 300 iterations; fit again with a larger max_iter before "
        "interpreting the estimates",
        f"1 latent is measured by fewer than 3 items ({weak}) and may not be identified; use fewer "
        "latents or add items",
        f"1 item measures no latent ({unused})",
        "low information ratio (8%): the items are weakly informative about the dependences among "
        "the latents, so edges of the graph may be missing",
        "50% of the cells are missing; the model assumes that they are missing at random",
        "something else",
    ]


def test_warnings_come_first(result):
    page = page_of(dataclasses.replace(result, converged=False), plots=False)
    assert page.index("<strong>Warnings</strong>") < page.index("<h2>Model and data</h2>")
    assert "<img" not in page


def test_edges_in_words():
    graph = CPDAG.from_edges("ABCD", [("A", "C"), ("B", "C")], [("A", "D")])
    assert format_edges(graph) == ["A -> C", "B -> C", "A - D"]


def test_edge_tests_are_listed(result):
    tests = (
        EdgeTest(("Z1", "<b>"), 3.0, 12.34, 8.0, True),
        EdgeTest(("Z1", "Z3"), 1.0, 2.0, 8.0, False),
    )
    page = page_of(dataclasses.replace(result, edge_tests=tests), plots=False)
    assert "<bdi>Z1</bdi>, <bdi>&lt;b&gt;</bdi>" in page
    assert '<td class="n">12.3</td><td class="n">8.0</td><td>kept</td>' in page
    assert "<td>dropped</td>" in page
    plain = page_of(dataclasses.replace(result, edge_tests=()), plots=False)
    assert "Likelihood-ratio tests" not in plain


def test_a_likelihood_search_is_described(result):
    tests = (EdgeTest(("Z1", "Z2"), 1.2, 0.5, 0.9, True),)
    found = dataclasses.replace(result, graph_by_likelihood=True, edge_tests=tests)
    assert "the search was continued with the likelihood" in describe_fit(found)[-1]
    assert "likelihood" not in describe_fit(result)[-1]
    assert "<summary>Likelihood-ratio tests of the edges" in page_of(found, plots=False)
    plain = dataclasses.replace(result, edge_tests=tests)
    tested = page_of(plain, plots=False)
    assert "<summary>Likelihood-ratio tests of the weakest edges" in tested
    assert "The threshold is negative if" in tested


def test_family_counts(result):
    assert count_families(result) == [("gaussian", 15, "continuous measurements")]


def test_a_single_latent(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 300)
    X = (rng.random((300, 5)) < np.where(z, 0.85, 0.2)[:, None]).astype(float)
    fit = DCRL(1, random_state=0, n_starts=1).fit(X).result_
    text = write_report(fit, tmp_path / "one.html").read_text("utf-8")
    assert "There is a single latent, so there is no graph." in text
    assert len(_outline(text).images) == 2


def test_pages_are_written_atomically(result, tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("x")
    with pytest.raises(FileError, match=r"cannot write .*summary.html: Not a directory; choose"):
        write_report(result, blocker / "summary.html", plots=False)
    path = write_report(result, tmp_path / "summary.html", plots=False)
    assert path.read_text("utf-8").endswith("</html>")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "summary.html"]


def test_long_lists_of_starts_are_collapsed(result):
    many = dataclasses.replace(result, starts=result.starts * 10)
    assert "<summary>All 20 starts</summary>" in page_of(many, plots=False)
    assert "starts</summary>" not in page_of(result, plots=False)
