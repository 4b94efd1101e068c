from __future__ import annotations

from hidag.reporting.content import Section
from hidag.reporting.html_page import name_isolator, render_page


def test_direction_overrides_become_visible():
    isolate = name_isolator(["Z1", "\u202eevil"])
    assert isolate("of \u202eevil and Z1") == "of \ufffdevil and Z1"
    assert isolate("\u202eevil\u202c") == "\ufffdevil\ufffd"
    assert isolate("a file \u2067name\x07") == "a file \ufffdname\ufffd"


def test_right_to_left_names_are_isolated_inside_sentences():
    isolate = name_isolator(["Z1", "\u05d0", "\u05d0 \u05d1", "\u202e\u05d2"])
    assert isolate("\u05d0, \u05d0 \u05d1.") == "\u2068\u05d0\u2069, \u2068\u05d0 \u05d1\u2069."
    assert isolate("\u05d0") == "\u05d0"
    assert isolate("of \u202e\u05d2") == "of \u2068\ufffd\u05d2\u2069"
    assert isolate("Z1 and 10 %") == "Z1 and 10 %"


def test_names_are_isolated_on_pages_but_not_in_commands(as_result):
    from hidag.reporting import ReportContent, render_report
    from hidag.simulation import design

    name, other = "\u202eevil", "\u05d0"
    truth = design("Chain-5", rng=1)
    result = as_result(truth, latent_names=(name, other, "C", "D", "E"))
    page = render_report(
        result,
        ReportContent(
            sections=(Section("Found", (f"Placements on {name}, {other} are poor.",)),),
            command=f"hidag fit t.csv --require '{name}->{other}'",
        ),
    )
    assert "\u202e" not in page
    assert "Placements on \ufffdevil, \u2068\u05d0\u2069 are poor." in page
    assert (
        "<code><bdi>hidag fit t.csv --require &#39;\ufffdevil-&gt;\u05d0&#39;</bdi></code>" in page
    )
    assert "<bdi>\ufffdevil</bdi>" in page
    assert f"<bdi>{other}</bdi>" in page


def test_other_pages_show_hidden_characters():
    assert "<h1>a\ufffdb</h1>" in render_page("page.html.jinja", title="a\u202eb")
