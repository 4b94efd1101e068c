"""Grades of an ordinal item that no response has change nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, standard_errors
from hidag.measurement import family_named

N_ITEMS = 6


def answers(seed: int = 1, n_rows: int = 1000) -> np.ndarray:
    """Return grades 0, 1, 2 of items with slope 3 and cutpoint 2, shape (N, 6)."""
    rng = np.random.default_rng(seed)
    latent = rng.random((n_rows, 1)) < 0.5
    level = rng.logistic(size=(n_rows, N_ITEMS)) - 1 + 3 * latent
    return (level > 0).astype(float) + (level > 2)


def fitted(family: str, x: np.ndarray) -> DCRL:
    q = np.ones((N_ITEMS, 1))
    return DCRL(1, family=family, q_matrix=q, random_state=0, tol=1e-8, max_iter=3000).fit(x)


@pytest.mark.parametrize(
    ("family", "grades", "used"),
    [
        ("ordinal(4)", (0, 1, 2), 0),
        ("ordinal(5)", (0, 1, 2), 0),
        ("ordinal(-2..2)", (0, 1, 2), None),
        ("ordinal(4)", (0, 1, 3), 1),
        ("ordinal(5)", (0, 1, 4), 2),
        ("ordinal(6)", (0, 2, 5), None),
    ],
)
def test_unused_grades_change_nothing(
    family: str, grades: tuple[int, ...], used: int | None
) -> None:
    x = answers()
    plain, other = fitted("ordinal(3)", x), fitted(family, np.array(grades)[x.astype(int)])
    # Each of them takes a thousandth of the scale away from the others.
    assert other.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=6)
    np.testing.assert_allclose(other.loadings_, plain.loadings_, atol=0.01)
    if used is not None:
        np.testing.assert_allclose(other.cutpoints_[:, used], plain.cutpoints_[:, 0], atol=0.01)
    if min(grades) == family_named(family).possible_values()[0]:
        np.testing.assert_allclose(other.intercept_, plain.intercept_, atol=0.01)


@pytest.mark.parametrize(
    ("family", "grades"), [("ordinal(4)", (0, 1, 3)), ("ordinal(5)", (0, 1, 4))]
)
def test_unused_grades_do_not_change_standard_errors_of_cutpoints(
    family: str, grades: tuple[int, ...]
) -> None:
    x = answers()
    again = np.array(grades)[x.astype(int)]
    plain = standard_errors(fitted("ordinal(3)", x).result_, x)
    other = standard_errors(fitted(family, again).result_, again)
    assert other.distance < 1e-3

    def errors(found: object, term: str) -> list[float]:
        return [row["standard_error"] for row in found.to_rows() if row["term"] == term]  # type: ignore[attr-defined]

    for term in ("intercept", "Z1", "cutpoint 2"):
        assert len(errors(plain, term)) == N_ITEMS
        np.testing.assert_allclose(errors(other, term), errors(plain, term), rtol=0.01)
    np.testing.assert_allclose(errors(other, "cutpoint 3"), errors(other, "cutpoint 2"), rtol=1e-6)


def test_cutpoints_climb_to_the_best_from_anywhere() -> None:
    rng = np.random.default_rng(0)
    family = family_named("ordinal(5)")
    eta = rng.normal(size=(1, 3))
    sums = rng.integers(1, 50, (4, 1, 3)).astype(float)
    sums[1] = 0.0
    counts = sums.sum(axis=0) + rng.integers(1, 50, (1, 3))
    ends = []
    for start in ([0.001, 0.002, 0.003], [1.0, 1.001, 5.0], [3.0, 6.0, 9.0]):
        cut, moved = np.array([start]), eta.copy()
        for _ in range(60):
            cut, shift = family.update_auxiliary(cut, moved, sums, counts, [np.zeros(0)], counts)
            moved = moved + shift[:, None]
        ends.append(np.append(cut, moved - eta))
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-5)
    np.testing.assert_allclose(ends[2], ends[0], atol=1e-5)
