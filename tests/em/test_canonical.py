"""The canonical order of rows and columns."""

from __future__ import annotations

import numpy as np

from hidag.data.rows import canonical_order


def test_permuted_tables_have_the_same_canonical_form():
    rng = np.random.default_rng(0)
    for values in (
        (rng.random((200, 12)) < 0.5).astype(float),
        rng.normal(size=(50, 4)),
        rng.poisson(1.0, (300, 9)).astype(float),
    ):
        values = values.copy()
        values[rng.random(values.shape) < 0.1] = np.nan
        labels = [f"family {j % 2}" for j in range(values.shape[1])]
        rows, columns = canonical_order(values, labels)
        for _ in range(5):
            a, b = rng.permutation(values.shape[0]), rng.permutation(values.shape[1])
            moved = values[np.ix_(a, b)]
            other_rows, other_columns = canonical_order(moved, [labels[j] for j in b])
            assert np.array_equal(
                values[np.ix_(rows, columns)],
                moved[np.ix_(other_rows, other_columns)],
                equal_nan=True,
            )


def test_minus_zero_is_zero():
    values = np.array([[0.0, 1.0], [2.0, 3.0], [-0.0, 4.0]])
    plus = np.abs(values)
    for mine, other in zip(
        canonical_order(values, ["a", "a"]), canonical_order(plus, ["a", "a"]), strict=True
    ):
        assert np.array_equal(mine, other)


def test_copies_of_a_row_are_scattered():
    rng = np.random.default_rng(1)
    # Four patterns, the rarest one in a hundred rows.
    values = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [500, 300, 190, 10], 0)
    values = values[rng.permutation(len(values))]
    rows, _ = canonical_order(values, ["a", "a"])
    assert sorted(rows.tolist()) == list(range(1000))
    patterns = (values[rows] @ [2.0, 1.0]).astype(int)
    for part in np.split(patterns, 4):
        shares = np.bincount(part, minlength=4) / 250
        np.testing.assert_allclose(shares, [0.5, 0.3, 0.19, 0.01], atol=0.09)


def test_tables_with_many_copies_have_the_same_canonical_form():
    rng = np.random.default_rng(2)
    values = (rng.random((400, 3)) < 0.3).astype(float)
    labels = ["x", "y", "z"]
    rows, columns = canonical_order(values, labels)
    for _ in range(5):
        a, b = rng.permutation(400), rng.permutation(3)
        moved = values[np.ix_(a, b)]
        other_rows, other_columns = canonical_order(moved, [labels[j] for j in b])
        np.testing.assert_array_equal(
            values[np.ix_(rows, columns)], moved[np.ix_(other_rows, other_columns)]
        )


def test_identical_columns_are_ordered_by_their_ties():
    values, ties = np.ones((1, 4)), np.array([3, 0, 2, 1])
    _, columns = canonical_order(values, ["x"] * 4, ties=ties)
    assert ties[columns].tolist() == [0, 1, 2, 3]
    # Contents come first.
    values = np.random.default_rng(0).normal(size=(5, 4))
    np.testing.assert_array_equal(
        canonical_order(values, ["x"] * 4, ties=ties)[1], canonical_order(values, ["x"] * 4)[1]
    )
