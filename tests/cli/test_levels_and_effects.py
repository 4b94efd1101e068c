"""Latents with several levels and interactions from the command line."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import load

from .conftest import read_rows, write_rows

NAMES = [f"test{j}" for j in range(9)]


@pytest.fixture(scope="module")
def three_levels() -> np.ndarray:
    """A cause with three levels and a binary one that depends on it, five and four items."""
    rng = np.random.default_rng(11)
    first = rng.integers(0, 3, 600)
    second = rng.random(600) < np.array([0.15, 0.5, 0.85])[first]
    return np.column_stack([2.5 * first] * 5 + [2.5 * second] * 4) + rng.normal(size=(600, 9))


@pytest.fixture
def measured(tmp_path, three_levels):
    return write_rows(tmp_path / "measured.csv", NAMES, three_levels.round(4).tolist())


def test_a_fit_with_levels_writes_one_column_per_level(hidag, measured, tmp_path, three_levels):
    out = tmp_path / "fit"
    ran = hidag("fit", measured, "--levels", "3,2", "--out", out)
    assert ran.exit_code == 0, ran.stderr
    result = load(out / "result.npz")
    assert result.terms.levels == (3, 2)
    shares = result.law.marginals()
    lines = ran.stdout.splitlines()
    start = lines.index("latent distribution: probability of each level")
    assert [line.split() for line in lines[start + 1 : start + 4]] == [
        ["0", "1", "2"],
        ["Z1", *(f"{share:.3f}" for share in shares[0])],
        ["Z2", *(f"{share:.3f}" for share in shares[1, :2])],
    ]
    assert "yes/no" not in ran.stdout

    loadings = read_rows(out / "loadings.csv")
    assert loadings[0] == [*("item", "family", "intercept", "Z1>=1", "Z1>=2", "Z2", "dispersion")]
    posterior = read_rows(out / "posterior.csv")
    assert posterior[0] == ["row", "Z1=0", "Z1=1", "Z1=2", "Z2=0", "Z2=1"]
    written = np.array(posterior[1:], dtype=float)[:, 1:]
    expected = np.hstack(result.posterior_levels(three_levels.round(4)))
    np.testing.assert_allclose(written, expected, atol=1e-6)
    np.testing.assert_allclose(written[:, :3].sum(axis=1), 1.0, atol=1e-5)
    law = read_rows(out / "latent_law.csv")
    assert [row[:2] for row in law[1:]] == [[str(a), str(b)] for a in range(3) for b in range(2)]
    page = (out / "report.html").read_text("utf-8")
    assert "2 latent variables, 1 with 2 levels and 1 with 3 levels" in page

    again = hidag("info", out)
    assert "latent distribution: probability of each level" in again.stdout
    assert "The model has 2 latent variables, 1 with 2 levels and 1 with 3 levels." in again.stdout


def test_binary_fits_keep_their_columns(hidag, measured, tmp_path):
    out = tmp_path / "fit"
    ran = hidag("fit", measured, "-k", 2, "--levels", 2, "--out", out, "--no-plots")
    assert ran.exit_code == 0, ran.stderr
    assert read_rows(out / "posterior.csv")[0] == ["row", "Z1", "Z2"]
    assert "levels of the latents" not in ran.stdout
    assert "Interactions" not in ran.stdout


def conjunctive_study(folder, n_rows=1500):
    """Two skills; six pure items and three that need both of them."""
    rng = np.random.default_rng(5)
    skills = rng.random((n_rows, 2)) < 0.6
    both = skills.all(axis=1, keepdims=True)
    chance = np.where(np.hstack([skills, skills, skills, both, both, both]), 0.88, 0.15)
    answers = (rng.random(chance.shape) < chance).astype(int)
    q = [[1, 0], [0, 1]] * 3 + [[1, 1]] * 3
    folder.mkdir()
    write_rows(folder / "responses.csv", NAMES, answers.tolist())
    rows = [[name, *row] for name, row in zip(NAMES, q, strict=True)]
    write_rows(folder / "q.csv", ["item", "Add", "Carry"], rows)
    return folder


def test_interactions_are_listed_and_written(hidag, tmp_path):
    study = conjunctive_study(tmp_path / "study")
    out = tmp_path / "fit"
    ran = hidag("fit", study, "--effects", "ALL", "--law", "saturated", "--out", out, "--no-plots")
    assert ran.exit_code == 0, ran.stderr
    result = load(out / "result.npz")
    assert result.settings["effects"] == "all"
    assert (
        "Interactions of any order among the latents of an item were allowed (all of them, as Q is "
        "given); the model has 3 interactions in 3 items." in ran.stdout
    )
    header = read_rows(out / "loadings.csv")[0]
    assert header[3:-1] == ["Add", "Carry", "Add*Carry"]
    listed = [line.split() for line in ran.stdout.splitlines() if "Add*Carry" in line]
    assert [(line[0], line[2]) for line in listed] == [
        (NAMES[j], f"{result.loadings[j, 2]:.3f}") for j in (6, 7, 8)
    ]
    # Items that need both skills gain by the interaction, clearly so.
    assert result.loadings[6:, 2].min() > 1.5


def test_dina_and_an_order_reach_the_estimator(hidag, tmp_path):
    study = conjunctive_study(tmp_path / "study", n_rows=500)
    ran = hidag("fit", study, "--effects", "dina", "--law", "saturated")
    assert ran.exit_code == 0, ran.stderr
    assert (
        "An item with several latents responds only if all of them are present (DINA).\n"
        in ran.stdout
    )
    out = tmp_path / "fit"
    assert hidag("fit", study, "--effects", 2, "--out", out, "--no-plots").exit_code == 0
    assert load(out / "result.npz").settings["effects"] == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("-k", 2, "--levels", 1),
            "--levels must be 'auto', a whole number from 2 to 255, or 2 of them (one for each "
            "latent), also with equal steps ('4-linear'), got 1",
        ),
        (
            ("-k", 2, "--levels", "2,3,4"),
            "--levels must be 'auto', a whole number from 2 to 255, or 2 of them (one for each "
            "latent), also with equal steps ('4-linear'), got 2,3,4",
        ),
        (
            ("-k", 2, "--levels", "three"),
            "--levels must be a whole number from 2 up, or one per latent separated by commas "
            "(2,3,2), got 'three'",
        ),
        (
            ("-k", 2, "--effects", "dnia"),
            "--effects must be main, auto, all, acdm, gdina, dina, dino or the highest order "
            "of an interaction (1, 2, ...), got 'dnia'",
        ),
    ],
)
def test_wrong_levels_and_effects_are_refused_in_a_sentence(hidag, measured, words, sentence):
    ran = hidag("fit", measured, *words)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr == f"hidag: {sentence}\n"


def test_simulated_levels_are_found_again(hidag, tmp_path):
    sim, out = tmp_path / "sim", tmp_path / "fit"
    ran = hidag("simulate", "--model", "Chain-5", "--levels", "2,3,2,3,2", "-n", 1500, "--out", sim)
    assert ran.exit_code == 0, ran.stderr
    assert ", gaussian, levels 2,3,2,3,2\n" in ran.stdout
    assert f"next: hidag fit {sim} --latents 5 --levels 2,3,2,3,2 --out fit" in ran.stdout
    fitted = hidag("fit", sim, "--levels", "3,3,2,2,2", "--out", out, "--no-plots")
    assert fitted.exit_code == 0, fitted.stderr
    judged = hidag("evaluate", out, sim)
    assert judged.exit_code == 0, judged.stderr
    assert "0 entries of Q)" in judged.stdout
    wrong = hidag("simulate", "--levels", "3,2", "--out", tmp_path / "no")
    assert wrong.stderr == (
        "hidag: --levels must be a whole number from 2 up, or 5 of them (one for each latent of "
        "Chain-5), got 3,2\n"
    )


def test_fits_with_nominal_items_are_compared_with_truths_in_any_order(hidag, tmp_path):
    from hidag.cli.commands.simulation import _order_items
    from hidag.simulation.truth import read_truth

    sim, turned = tmp_path / "sim", tmp_path / "turned.csv"
    assert hidag("simulate", "--family", "poisson", "-n", 600, "--out", sim).exit_code == 0
    header, *rows = read_rows(sim / "responses.csv")
    # Counts beyond 3 are one category.
    first = [[str(min(int(row[0]), 3)), *row[1:]] for row in rows]
    write_rows(turned, header[::-1], [row[::-1] for row in first])
    write_rows(tmp_path / "straight.csv", header, first)
    types = ("--family", "poisson-identity", "--family", "X1=categorical")
    said = []
    for name in ("straight", "turned"):
        out = tmp_path / name
        ran = hidag("fit", tmp_path / f"{name}.csv", "-k", 5, *types, "--out", out, "--no-plots")
        assert ran.exit_code == 0, ran.stderr
        judged = hidag("evaluate", out, sim)
        assert judged.exit_code == 0, judged.stderr
        said.append(judged.stdout.splitlines()[0])
        assert "root mean squared error loadings nan, intercept nan" in judged.stdout
    assert said[0] == said[1]
    truth = read_truth(sim)
    straight, moved = (
        _order_items(load(tmp_path / name / "result.npz"), truth) for name in ("straight", "turned")
    )
    assert moved.response_names == straight.response_names
    np.testing.assert_array_equal(moved.q_matrix, straight.q_matrix)
    np.testing.assert_allclose(moved.intercept, straight.intercept, atol=1e-8)
