"""The report in a real browser, where Playwright and a Chromium are installed."""

from __future__ import annotations

import dataclasses
import shutil

import numpy as np
import pytest

from hidag import DCRL
from hidag.reporting import ReportContent, Section, Table, render_report, write_report
from hidag.simulation import design, simulate
from hidag_paper.applications import ApplicationReport, ReportSection

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")

HOSTILE = "<script>document.title='owned'</script>\"'\u202eabc"
SEEN = HOSTILE.replace("\u202e", "\ufffd")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    data = simulate(design("Tree-5", rng=1), 1500, rng=2)
    table = {f"item{j}": data.X[:, j] for j in range(1, data.X.shape[1])}
    frame = np.rec.fromarrays(list(table.values()), names=list(table))
    pandas = pytest.importorskip("pandas")
    columns = pandas.DataFrame({HOSTILE: data.X[:, 0], **{n: frame[n] for n in table}})
    result = (
        DCRL(5, family="gaussian", random_state=0, latent_names=("A", f"{HOSTILE}d", "C", "D", "E"))
        .fit(columns)
        .result_
    )
    pairs = [*result.graph.directed_edges, *result.graph.undirected_edges]
    probabilities = np.zeros((5, 5))
    for e, (a, b) in enumerate(pairs):
        i, j = result.latent_names.index(a), result.latent_names.index(b)
        probabilities[i, j] = (e + 1) / len(pairs)
    path = tmp_path_factory.mktemp("page") / "report.html"
    content = ReportContent(
        title="A study", edge_probabilities=tuple(map(tuple, probabilities.tolist()))
    )
    path.write_text(render_report(result, content), encoding="utf-8")
    return path, len(pairs)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as player:
        running = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


@pytest.fixture(params=[1280, 390])
def page(request, browser, report):
    opened = browser.new_page(viewport={"width": request.param, "height": 900})
    opened.complaints = []
    opened.on("console", lambda message: opened.complaints.append(message.text))
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.goto(report[0].as_uri())
    yield opened
    assert opened.complaints == []
    opened.close()


def test_the_page_has_no_console_messages_and_fits_the_screen(page):
    assert page.title() == "A study"
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"]
    assert SEEN in page.locator("#loadings").inner_text()


@pytest.fixture(scope="module")
def long_names(tmp_path_factory, as_result):
    """A page with one item in one long word and others in long sentences."""
    truth = design("Chain-5", rng=1)
    sentence = "How often did you feel so sad that nothing could cheer you up, as a rule"
    names = ("x" * 150, *(f"{sentence} ({j})?" for j in range(1, truth.n_items)))
    result = dataclasses.replace(as_result(truth), item_names=names)
    path = tmp_path_factory.mktemp("long") / "report.html"
    pairs = Table("pairs", "Pairs", ("first", "second", "p value"), ((names[0], names[1], 0.5),))
    content = ReportContent(sections=(Section("Pairs", (), (), ("pairs",)),), tables=(pairs,))
    path.write_text(render_report(result, content), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_wrap_within_a_maximum_width(browser, long_names, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(long_names.as_uri())
    unfold(page)
    unfold(page)
    table = page.locator("#coefficients table.sortable")
    room = page.locator("#coefficients .scroll").bounding_box()["width"]
    for row in table.locator("tbody th[scope=row]").all():
        box = row.bounding_box()
        assert 120 < box["width"] < 0.6 * room
        assert box["height"] < 250
    for head in table.locator("th button").all():
        head.click(timeout=2000)
    cells = page.locator("#part-0 tbody th, #part-0 tbody td").all()
    assert all(cell.bounding_box()["width"] < 0.6 * room for cell in cells)
    page.close()


def test_tables_of_models_use_a_wide_screen(browser, tmp_path, as_result):
    header = ("model", "log-likelihood", "parameters", "AIC", "BIC", "graph")
    graph = "Morphosyntactic - Cohesive; Cohesive - Lexical"
    rows = (("all effects (G-DINA, LCDM)", -42738.56, 81, 85639.12, 86123.5, graph),)
    report = ApplicationReport(
        name="trial",
        title="A trial",
        findings=(),
        result=as_result(design("Chain-5", rng=1)),
        seed=0,
        settings={},
        sections=(ReportSection("Models", tables=(Table("models", "Models", header, rows * 3),)),),
    )
    path = tmp_path / "page.html"
    path.write_text(report.render(), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(path.as_uri())
    box = page.locator(".scroll").first
    assert box.evaluate("e => e.scrollWidth <= e.clientWidth")
    page.close()


def test_tables_sort_and_filter(page):
    unfold(page)
    table = page.locator("#coefficients table.sortable")
    first = table.locator("tbody tr th").first
    table.locator("th button", has_text="intercept").click()
    values = [float(t) for t in table.locator("tbody tr td:nth-child(3)").all_inner_texts()]
    assert values == sorted(values)
    table.locator("th button", has_text="intercept").click()
    values = [float(t) for t in table.locator("tbody tr td:nth-child(3)").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    page.locator("#coefficients input[type=search]").fill("item11")
    assert table.locator("tbody tr:visible").count() == 1
    assert table.locator("tbody tr:visible th").inner_text() == "item11"
    assert first is not None


def test_the_threshold_hides_edges(page, report):
    n_edges = report[1]
    page.evaluate(
        "() => { const t = document.getElementById('threshold'); t.value = 55;"
        " t.dispatchEvent(new Event('input')); }"
    )
    kept = sum((e + 1) / n_edges >= 0.55 for e in range(n_edges))
    drawn = "edges => edges.filter(edge => getComputedStyle(edge).display !== 'none').length"
    assert page.locator("g.edge").evaluate_all(drawn) == kept
    assert page.locator("g.node:visible").count() == 5
    assert f"{kept} of {n_edges} edges" in page.locator("#threshold-value").inner_text()
    page.select_option("#measure", "strength")
    assert "edges" in page.locator("#threshold-value").inner_text()


def test_pointing_shows_tables_and_dragging_moves_nodes(page):
    node = page.locator("g.node").nth(1)
    node.scroll_into_view_if_needed()
    node.hover()
    panel = page.locator("#graph-panel")
    assert SEEN in panel.inner_text()
    assert "P(1)" in panel.inner_text()
    before = node.get_attribute("transform")
    box = node.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 25, box["y"] + box["height"] / 2 + 15, steps=3)
    page.mouse.up()
    assert node.get_attribute("transform") != before


@pytest.mark.parametrize("width", [1280, 900, 390])
def test_the_graph_keeps_its_size_while_tables_are_shown(browser, tmp_path, as_result, width):
    path = tmp_path / "report.html"
    # Latents with several causes have wide tables.
    write_report(as_result(design("Model-8", rng=1)), path)
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(path.as_uri())
    graph = page.locator("#graph")
    before = graph.bounding_box()
    for node in page.locator("#graph g.node").all():
        node.dispatch_event("pointerenter")
        assert page.locator("#graph-panel table").count() == 1
        now = graph.bounding_box()
        assert (now["x"], now["width"], now["height"]) == (
            before["x"],
            before["width"],
            before["height"],
        )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_a_tap_selects_a_node_or_edge(browser, report):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.goto(report[0].as_uri())
    panel = page.locator("#graph-panel")
    for k in (0, 2):
        page.locator("g.node").nth(k).tap()
        assert panel.locator("h3").inner_text() == page.locator("g.node").nth(k).get_attribute(
            "aria-label"
        )
    middle = page.evaluate(
        "() => { const line = document.querySelector('g.edge path.line');"
        " const at = line.getPointAtLength(line.getTotalLength() / 2);"
        " const on = at.matrixTransform(line.getScreenCTM()); return [on.x, on.y]; }"
    )
    page.touchscreen.tap(*middle)
    assert "Strength" in panel.inner_text()
    page.touchscreen.tap(5, 5)
    assert "Strength" in panel.inner_text()
    context.close()


@pytest.mark.parametrize("scripts", [True, False])
def test_collapsed_parts_are_printed(browser, report, scripts):
    context = browser.new_context(java_script_enabled=scripts)
    page = context.new_page()
    page.goto(report[0].as_uri())
    folded = page.locator("details.tables table").first
    assert not folded.is_visible()
    if scripts:
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert folded.bounding_box()["height"] > 50
        page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.bounding_box()["height"] > 50
    # Contents of the side panel are not printed.
    assert not page.locator("#edge-0").is_visible()
    context.close()


def test_dark_mode_has_figures_on_white(browser, report):
    page = browser.new_page(color_scheme="dark")
    page.goto(report[0].as_uri())
    ground = "element => getComputedStyle(element).backgroundColor"
    assert page.locator("body").evaluate(ground) == "rgb(20, 24, 31)"
    assert page.locator("img").first.evaluate(ground) == "rgb(255, 255, 255)"
    page.emulate_media(media="print")
    assert page.locator("body").evaluate(ground) == "rgb(255, 255, 255)"
    page.close()


#: A4 with margins of a centimetre, in the pixels of a style sheet.
PAPER = 718
#: Where each of some cells ends, and on how many lines its own text stands.
LINES = """cells => cells.map(cell => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  return [cell.getBoundingClientRect().right, text.getClientRects().length];
})"""


@pytest.mark.parametrize("name", ["Tree-5", "Tree-10", "Model-13"])
@pytest.mark.parametrize("latents", ["Z", "Reading between the lines, part "])
def test_printed_loadings_have_all_columns_and_unbroken_numbers(
    browser, tmp_path, as_result, name, latents
):
    result = as_result(design(name, rng=1))
    names = tuple(f"{latents}{k}" for k in range(len(result.latent_names)))
    result = dataclasses.replace(result, latent_names=names, graph=result.graph.rename(names))
    write_report(result, tmp_path / "report.html")
    page = browser.new_page(viewport={"width": PAPER, "height": 1000})
    page.goto((tmp_path / "report.html").as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER
    cells = page.locator("#coefficients td.n")
    assert cells.count() == result.q_matrix.sum() + 2 * len(result.item_names)
    places = cells.evaluate_all(LINES)
    assert max(right for right, _ in places) <= PAPER
    assert all(n_lines == 1 for _, n_lines in places)
    page.close()
