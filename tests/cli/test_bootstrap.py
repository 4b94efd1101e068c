from __future__ import annotations

from dataclasses import replace

import numpy as np

from hidag import load
from hidag.files import write_file
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.reporting import add_bootstrap, load_content, render_report

from .conftest import read_rows


def test_a_bootstrap_resumes_and_adds_support_to_the_report(hidag, table, tmp_path):
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
    result = load(out / "result.npz")
    content = load_content(out / "report.json", result)
    assert content.headings[0] == "Uncertainty"
    assert content.headings.count("Uncertainty") == 1
    interventions = content.sections[content.headings.index("Interventions")]
    assert any(
        "which includes the uncertainty about the graph" in text
        for text in interventions.paragraphs
    )
    assert np.shape(content.edge_probabilities) == (2, 2)
    page = (out / "report.html").read_text("utf-8")
    assert "Uncertainty" in page
    assert '<option value="probability">' in page
    assert content.n_resampled == 4
    assert "averages over 4 bootstrap samples; so few are hardly informative." in page
    # Z2 -> Z1 for certain in three of four refits.
    arrow = np.array([[0.0, 0.0], [1.0, 0.0]])
    turned = replace(more, arrows=np.stack([arrow, arrow, arrow, arrow.T]))
    content = add_bootstrap(content, result, turned)
    assert content.edge_probabilities == ((0.0, 0.25), (0.75, 0.0))
    # A latent that most samples do not reproduce is a warning; another bootstrap replaces it.
    assert content.unstable_latents == ()
    lost = replace(more, agreement=np.array([[1.0, 0.2], [1.0, 0.95], [0.99, 0.1], [1.0, 0.0]]))
    content = add_bootstrap(content, result, lost)
    assert content.unstable_latents == (
        "bootstrap samples often do not reproduce 1 latent: Z2 (reproduced in 1 of 4); the "
        "interpretation of this latent may not generalize to other samples",
    )
    assert load_content(write_file(tmp_path / "content.json", content.to_json()), result) == content
    assert "Z2 (reproduced in 1 of 4)" in render_report(result, content)
    assert add_bootstrap(content, result, turned).unstable_latents == ()


def test_an_empty_title_does_not_change_the_title(hidag, table, tmp_path):
    out = tmp_path / "fit"
    assert hidag("fit", table, "-k", 2, "--out", out, "--no-plots").exit_code == 0
    before = (out / "report.html").read_text("utf-8")
    for title in ("", "  "):
        assert hidag("report", out, "--title", title).exit_code == 0
        assert (out / "report.html").read_text("utf-8") == before
    assert hidag("report", out, "--title", "Moods").exit_code == 0
    assert "<title>Moods</title>" in (out / "report.html").read_text("utf-8")


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


def test_another_fit_in_the_folder_removes_the_bootstrap_of_the_first(hidag, table, tmp_path):
    out = tmp_path / "fit"
    words = ("bootstrap", out, table, "--jobs", 1, "--start", "fitted", "--resamples", 3)
    assert hidag("fit", table, "-k", 2, "--out", out).exit_code == 0
    before = {path.name for path in out.iterdir()}
    assert hidag(*words).exit_code == 0
    (out / "resamples" / "notes.txt").write_text("mine")
    ran = hidag("fit", table, "-k", 1, "--out", out)
    assert ran.exit_code == 0, ran.stderr
    assert (
        "removed the bootstrap of the previous fit: edge_support.csv, "
        "q_support.csv, intervals.csv, law_intervals.csv, effect_intervals.csv, bootstrap.npz, "
        "resamples"
    ) in ran.stdout
    assert {path.name for path in out.iterdir()} == {*before, "resamples"}
    assert [path.name for path in (out / "resamples").iterdir()] == ["notes.txt"]
    again = hidag(*words)
    assert again.exit_code == 0, again.stderr


def test_the_same_fit_again_keeps_its_refits(hidag, table, tmp_path):
    out = tmp_path / "fit"
    fit = ("fit", table, "-k", 2, "--out", out)
    assert hidag(*fit).exit_code == 0
    words = ("bootstrap", out, table, "--jobs", 1, "--start", "fitted", "--resamples", 3)
    assert hidag(*words).exit_code == 0
    kept = {path.name for path in (out / "resamples").iterdir()}
    assert hidag(*fit).exit_code == 0
    assert not (out / "bootstrap.npz").exists()
    assert {path.name for path in (out / "resamples").iterdir()} == kept
    assert hidag(*words).exit_code == 0


def test_files_that_no_bootstrap_wrote_stay(hidag, table, tmp_path):
    out = tmp_path / "fit"
    assert hidag("fit", table, "-k", 2, "--out", out).exit_code == 0
    (out / "intervals.csv").write_text("mine")
    (out / "resamples").mkdir()
    ran = hidag("fit", table, "-k", 1, "--out", out)
    assert ran.exit_code == 0, ran.stderr
    assert (out / "intervals.csv").read_text() == "mine"
    assert (out / "resamples").is_dir()
    assert "removed" not in ran.stdout


def test_few_refits_give_no_intervals_and_replace_earlier_results(hidag, table, tmp_path):
    out = tmp_path / "fit"
    words = ("bootstrap", out, table, "--jobs", 1, "--start", "fitted", "--resamples")
    assert hidag("fit", table, "-k", 2, "--out", out).exit_code == 0
    first = hidag(*words, 3)
    assert "replaced the results" not in first.stdout
    assert "Item parameters with 50% intervals" in (out / "report.html").read_text("utf-8")
    ran = hidag(*words, 1)
    assert ran.exit_code == 0, ran.stderr
    assert (
        "1 refit gives no intervals, because their coverage would be 0%; 3 refits give intervals "
        "of 50%, and 90% needs 19\n"
    ) in ran.stdout
    assert ran.stdout.endswith(
        "replaced the results of an earlier bootstrap of 3 refits; removed intervals.csv, "
        "law_intervals.csv, effect_intervals.csv\n"
    )
    page = (out / "report.html").read_text("utf-8")
    assert "with 0% intervals" not in page
    assert "from 3 refits" not in page
