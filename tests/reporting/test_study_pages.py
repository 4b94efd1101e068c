from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

from hidag_paper.studies import STUDIES, Cell, Plan, read_folder
from hidag_paper.studies.study_folder import open_folder
from hidag_paper.study_reports.pages import latex_page, study_files
from hidag_paper.study_reports.tables import study_report

BASELINE = "mixture-oracle"
CELLS = tuple(
    Cell(model, "Q1", "gaussian", n) for model in ("Chain-5", "Tree-5") for n in (100, 1000)
)


def made_up_folder(path, study, methods):
    """A folder with rows that nobody had to run."""
    plan = Plan(study, CELLS, 3, methods=methods)
    published = {(CELLS[0], "dcrl", "N"): 4.5, (CELLS[0], "mixture-oracle", ""): 20.0}
    folder = open_folder(path, plan, published)
    for task in plan.tasks():
        cell, ours = task.address.cell, task.method == "ours"
        failed = task.method == BASELINE and cell == CELLS[1]
        rules = STUDIES[study].rules if task.method != BASELINE else (None,)
        rows = []
        for place, rule in enumerate(rules):
            graph = task.address.replicate + place + (0 if ours else 10) - (cell.n > 100)
            row = {
                "address": task.address.name,
                "method": task.method,
                "rule": rule,
                "cell": cell.name,
                "replicate": task.address.replicate,
                "status": "failed" if failed else "ok",
                "reason": "ValueError: 5 % & $_{x}" if failed else None,
                "source": "abc",
            }
            if not failed:
                row |= {"shd": max(graph, 0) + 1, "shd_graph": max(graph, 0), "shd_q": 1}
            if ours:
                row |= {"truth_started_shd": 1, "true_latents_shd_graph": 0, "cpu_seconds": 2.0}
            rows.append(row)
        folder.add(task.name, rows)
    return folder


def test_a_report_needs_the_files_alone(tmp_path) -> None:
    made_up_folder(tmp_path / "study", "table1", ("ours", BASELINE))
    report = study_report(read_folder(tmp_path / "study"))
    files = study_files(report)
    assert set(files) == {
        *("report.md", "report.tex", "report.html", "cells.csv"),
        *("shd-Q1.png", "shd-Q1.svg"),
    }
    assert study_files(report) == files
    assert files["shd-Q1.png"].startswith(b"\x89PNG")
    ElementTree.fromstring(files["shd-Q1.svg"])


def test_all_pages_have_the_numbers_of_the_table(tmp_path) -> None:
    folder = made_up_folder(tmp_path / "study", "table1", ("ours", BASELINE))
    report = study_report(folder)
    ours, everybody = report.tables
    # Replicates have graph distances 0, 1 and 2, and one wrong entry of Q each.
    assert dict(zip(ours.headings, ours.rows[0], strict=True)) == {
        "cell": "Chain-5/Q1/gaussian/100",
        "runs": "3",
        "ours (s.e.)": "2.00 (0.58)",
        "graph": "1.00",
        "Q": "1.00",
        "published": "4.50",
        "truth-started": "1.00",
        "true latents": "0.00",
        "CPU s": "2.00",
    }
    assert everybody.headings == (
        "cell",
        "ours (s.e.)",
        "mixture-oracle (s.e.)",
        "published mixture-oracle",
    )
    assert everybody.rows[0][2:] == ("12.00 (0.58)", "20.00")
    assert everybody.rows[1][2:] == ("- (-), 3 of 3 failed", "-")
    files = study_files(report)
    for name in ("report.md", "report.tex", "report.html"):
        text = files[name].decode()
        for row in (*ours.rows, *everybody.rows):
            assert all(cell in text for cell in row)
        assert "cells at or below half of it: 1 of 1" in text
    lines = list(csv.DictReader(files["cells.csv"].decode().splitlines()))
    assert len(lines) == 8
    assert (lines[0]["method"], lines[0]["shd"], lines[0]["published"]) == ("ours", "2", "4.5")
    assert lines[0]["shd_error"].startswith("0.577350")


def test_text_is_escaped_in_every_format(tmp_path) -> None:
    report = study_report(made_up_folder(tmp_path / "study", "table1", ("ours", BASELINE)))
    assert r"5 \% \& \$\_\{x\}" in latex_page(report, [])
    page = study_files(report)["report.html"].decode()
    assert "5 % &amp; $_{x}" in page
    assert not re.search(r"https?://", page)
    HTMLParser().feed(page)


def test_rules_are_columns_and_methods_tables(tmp_path) -> None:
    folder = made_up_folder(tmp_path / "study", "table-s1", ("ours", "saturated"))
    report = study_report(folder)
    ours, saturated = report.tables
    assert ours.headings == (
        *("cell", "runs", "N (s.e.)", "published N", "2N (s.e.)", "published 2N", "3N (s.e.)"),
        *("published 3N", "calibrated (s.e.)", "truth-started", "true latents"),
    )
    assert ours.rows[0][2:6] == ("2.00 (0.58)", "4.50", "3.00 (0.58)", "-")
    assert saturated.headings[-1] == "calibrated (s.e.)"
    assert report.comparison[0] == (
        "f(N) N: 1 of 1 cells at or below published, 1 at or below half of it; above: none"
    )
    assert {"shd-Q1-ours.png", "shd-Q1-saturated.svg"} <= set(study_files(report))


def test_consistency_shows_shares_of_tables(tmp_path) -> None:
    folder = made_up_folder(tmp_path / "study", "consistency", ("saturated", "ours"))
    report = study_report(folder)
    _, ours = report.tables
    assert ours.headings[2] == "sqrt N (s.e.)"
    # Of graph distances 0, 1, 2 one is none; with more rows 0, 0, 1, of which two are.
    assert ours.rows[0][2:4] == ("0.33 (0.33)", "0.00 (0.00)")
    assert ours.rows[1][2:4] == ("0.67 (0.33)", "0.33 (0.33)")
    assert ours.rows[0][-2:] == ("0.00 (0.00)", "1.00")
    assert report.comparison == ()
    assert "recovery.svg" in study_files(report)


def test_a_study_without_rows_has_a_page(tmp_path) -> None:
    folder = open_folder(tmp_path / "study", Plan("table1", CELLS[:1], 2))
    report = study_report(folder)
    assert report.tables[0].rows[0][:3] == ("Chain-5/Q1/gaussian/100", "0 of 2", "- (-)")
    assert report.comparison[-1] == "cells with missing runs: 1: Chain-5/Q1/gaussian/100"
    assert "report.html" in study_files(report)
