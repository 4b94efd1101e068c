"""The order in which tables are worked on."""

from __future__ import annotations

import numpy as np

from hidag.estimate.canonical import canonical_order


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
