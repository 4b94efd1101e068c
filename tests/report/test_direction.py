from __future__ import annotations

import pytest

from hidag.report.direction import closed, keeper_of
from hidag.report.page import render_page
from hidag.report.parts import Section


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain", "plain"),
        ("\u202eabc", "\u202eabc\u202c"),
        ("a\u202bb\u202cc", "a\u202bb\u202cc"),
        ("a\u202cb\u2069c", "abc"),
        ("\u2067a\u202eb\u2069c", "\u2067a\u202eb\u2069c"),
        ("\u202ea\u2067b\u202cc", "\u202ea\u2067bc\u2069\u202c"),
    ],
)
def test_what_a_text_opens_it_ends(text, wanted):
    assert closed(text) == wanted


def test_names_inside_sentences_are_kept_apart_and_alone_left_as_they_are():
    keep = keeper_of(["Z1", "\u202eevil", "\u202eevil twin", "\u05d0"])
    assert keep("of \u202eevil and Z1") == "of \u2068\u202eevil\u202c\u2069 and Z1"
    assert keep("\u202eevil twin, Z1") == "\u2068\u202eevil twin\u202c\u2069, Z1"
    assert keep("\u05d0, \u05d0.") == "\u2068\u05d0\u2069, \u2068\u05d0\u2069."
    assert keep("\u202eevil") == "\u202eevil"
    assert keep("a file \u202ename") == "a file \u202ename\u202c"
    assert keep("Z1 and 10 %") == "Z1 and 10 %"


def test_pages_keep_them_apart_and_commands_can_be_copied(as_result):
    from hidag.report import ReportParts, render_report
    from hidag.simulate import design

    name = "\u202eevil"
    truth = design("Chain-5", rng=1)
    result = as_result(truth, latent_names=(name, "B", "C", "D", "E"))
    page = render_report(
        result,
        ReportParts(
            sections=(Section("Found", (f"Placements on {name}, B are poor.",)),),
            command=f"hidag fit t.csv --require '{name}->B'",
        ),
    )
    assert f"Placements on \u2068{name}\u202c\u2069, B are poor." in page
    assert f"<code><bdi>hidag fit t.csv --require &#39;{name}-&gt;B&#39;</bdi></code>" in page
    assert f"<bdi>{name}</bdi>" in page


def test_other_pages_close_what_texts_open():
    page = render_page("page.html.jinja", title="a\u202eb")
    assert "<h1>a\u202eb\u202c</h1>" in page
