"""ECPE application, on simulated data and, where available, the real data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hidag.exceptions import DataError
from hidag.files.writing import write_file
from hidag_paper.applications.ecpe import HIERARCHY, item_responses, read_ecpe, run_ecpe
from hidag_paper.commands.application import report_files

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "ecpe"
SKILLS = ("Morphosyntactic", "Cohesive", "Lexical")
Q = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1], [0, 0, 1], [1, 0, 0]] * 3)


def write_test(folder: Path, skills=SKILLS, with_q: bool = True) -> Path:
    """Write a small test of the same kind, with a hierarchy behind it."""
    rng = np.random.default_rng(5)
    profile = rng.choice(4, size=600, p=[0.3, 0.15, 0.2, 0.35])
    states = np.array(HIERARCHY)[profile]
    chance = 0.2 + 0.7 * (states @ Q.T) / Q.sum(axis=1)
    names = [f"E{j + 1}" for j in range(len(Q))]
    answers = (rng.random(chance.shape) < chance).astype(int)
    pd.DataFrame(answers, columns=names).to_csv(folder / "responses.csv", index=False)
    if with_q:
        table = pd.DataFrame(Q, columns=list(skills))
        table.insert(0, "item", names)
        table.to_csv(folder / "q.csv", index=False)
    return folder


def em_with_profiles(answers: np.ndarray, q: np.ndarray) -> float:
    """Return the log-likelihood of the hierarchy's model by an EM of a few lines."""
    own = q[:, None, :] * np.array(HIERARCHY)[None]
    same = (own[:, :, None, :] == own[:, None, :, :]).all(axis=3).astype(float)
    chance = 0.2 + 0.6 * own.sum(axis=2) / q.sum(axis=1, keepdims=True)
    shares, before, value = np.full(4, 0.25), -np.inf, -1e300
    while value - before > 1e-7:
        before = value
        logs = answers @ np.log(chance) + (1 - answers) @ np.log1p(-chance) + np.log(shares)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        total = weights.sum(axis=1, keepdims=True)
        value = float((np.log(total) + logs.max(axis=1, keepdims=True)).sum())
        weights /= total
        shares = weights.mean(axis=0)
        right = np.einsum("jp,jpq->jq", answers.T @ weights, same)
        chance = right / np.einsum("p,jpq->jq", weights.sum(axis=0), same)
    return value


def test_a_small_test_with_a_hierarchy(tmp_path):
    report = run_ecpe(write_test(tmp_path), seed=3)
    summary = report.summary()
    assert summary["latent_names"] == list(SKILLS)
    assert summary["q_matrix"] == Q.tolist()
    assert summary["share_of_hierarchy"] > 0.85
    answers = pd.read_csv(tmp_path / "responses.csv").to_numpy()
    assert summary["log_likelihood_of_hierarchy"] == pytest.approx(
        em_with_profiles(answers, Q), abs=0.02
    )
    files = report_files(report)
    models = next(table for table in report.tables if table.name == "models")
    line = next(
        row for row in models.rows if row[0] == "all interactions, profiles of the hierarchy only"
    )
    # A chance for each state of an item's own skills that occurs, and three shares.
    assert line[2] == sum(len(np.unique(np.array(HIERARCHY) * row, axis=0)) for row in Q) + 3
    assert {"profiles.csv", "models.csv", "items.csv", "edge_tests.csv"} <= set(files)
    assert {f"{p}.{e}" for p in ("profiles", "graph", "items") for e in ("png", "svg")} <= set(
        files
    )
    write_file(tmp_path / "page.html", files["page.html"])
    assert "Templin and Bradshaw (2014" in (tmp_path / "page.html").read_text("utf-8")
    shown = item_responses(report.result)
    assert [item.item for item in shown] == ["E1", "E3", "E6", "E8", "E11", "E13"]
    assert shown[0].states == ("-", "C", "M", "M+C")
    # Nobody has morphosyntactic rules without cohesive ones.
    assert shown[0].common == (True, True, False, True)


def test_folder_without_q_raises(tmp_path):
    with pytest.raises(DataError) as caught:
        read_ecpe(write_test(tmp_path, with_q=False))
    assert str(caught.value) == (
        f"the ECPE application needs a Q-matrix, but {tmp_path} has no q.csv; put q.csv beside "
        "responses.csv, with a row per item and a column per skill"
    )


def test_other_skills_raise(tmp_path):
    with pytest.raises(DataError) as caught:
        read_ecpe(write_test(tmp_path, skills=("A", "B", "C")))
    assert str(caught.value) == (
        "the Q-matrix of the ECPE must have the skills Morphosyntactic, Cohesive, Lexical, in this "
        f"order, but {tmp_path / 'q.csv'} has A, B, C; use hidag fit for another test"
    )


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason="the ecpe data are not here")
def test_the_grammar_test_is_a_chain_and_a_hierarchy():
    report = run_ecpe(DATA, seed=11)
    summary = report.summary()
    assert summary["log_likelihood"] == pytest.approx(-42738.56, abs=0.02)
    assert summary["chain_found"]
    shares = summary["profile_shares"]
    for profile, share in {"000": 0.303, "001": 0.124, "011": 0.182, "111": 0.350}.items():
        assert shares[profile] == pytest.approx(share, abs=0.002)
    answers = pd.read_csv(DATA / "responses.csv").to_numpy()
    assert summary["log_likelihood_of_hierarchy"] == pytest.approx(
        em_with_profiles(answers, np.array(summary["q_matrix"])), abs=0.01
    )
    assert report.findings[2].endswith(
        "BIC prefers the hierarchy, as Templin and Bradshaw (2014) concluded."
    )
