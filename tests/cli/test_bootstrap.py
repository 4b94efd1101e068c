from __future__ import annotations

from hidag.explain.bootstrap_result import BootstrapResult
from hidag.report import read_parts

from .conftest import read_rows


def test_a_bootstrap_goes_on_and_puts_support_into_the_report(hidag, table, tmp_path):
    out = tmp_path / "fit"
    assert hidag("fit", table, "-k", 2, "--out", out).exit_code == 0
    words = ("bootstrap", out, table, "--jobs", 1, "--start", "fitted")
    ran = hidag(*words, "--resamples", 3)
    assert ran.exit_code == 0, ran.stderr
    first = BootstrapResult.load(out / "bootstrap.npz")
    assert first.n_refits == 3
    again = hidag(*words, "--resamples", 4)
    assert again.exit_code == 0, again.stderr
    more = BootstrapResult.load(out / "bootstrap.npz")
    assert more.n_refits == 4
    assert (more.loadings[:3] == first.loadings).all()
    edges = read_rows(out / "edge_support.csv")
    assert edges[0][:2] == ["one", "other"]
    law = read_rows(out / "law_intervals.csv")
    assert law[0] == ["latent", "level", "fit", "low", "high"]
    assert float(law[1][3]) <= float(law[1][4])
    effects = read_rows(out / "effect_intervals.csv")
    assert effects[0] == ["cause", "effect", "kind", "low", "high", "lower", "upper"]
    assert len(effects) == 1 + 2 * (1 + 8)
    parts = read_parts(out / "report.json")
    headings = [section.heading for section in parts.sections]
    assert headings == ["How sure it is", "Who is where", "What if", "How well it fits"]
    assert any("4 replicates, the graph of each" in text for text in parts.sections[2].paragraphs)
    assert [s.heading for s in parts.sections].count("How sure it is") == 1
    assert [pair[:2] for pair in parts.support] == [("Z1", "Z2")]
    page = (out / "report.html").read_text("utf-8")
    assert "How sure it is" in page
    assert "support in resampled tables" in page


def test_a_bootstrap_needs_the_table_that_was_fitted(hidag, table, tmp_path, answers):
    out = tmp_path / "fit"
    assert hidag("fit", table, "-k", 2, "--out", out, "--no-plots").exit_code == 0
    short = tmp_path / "short.csv"
    short.write_text("\n".join(table.read_text().splitlines()[:50]) + "\n")
    ran = hidag("bootstrap", out, short)
    assert ran.exit_code == 1
    assert (
        "bootstrap needs the table that was fitted, 400 rows and 8 items, got 49 and 8"
        in ran.stderr
    )
