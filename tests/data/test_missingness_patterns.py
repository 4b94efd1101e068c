"""Missingness patterns stored with a result."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL, load
from hidag.data.rows import MAX_PATTERNS, MissingnessPatterns


def gaps(n_rows, n_items, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n_rows, n_items)) < 0.4, np.nan, 1.0)


def test_rows_with_the_same_cells_are_one_pattern():
    table = np.ones((6, 9))
    table[:2, 0] = np.nan
    table[5, 8] = np.nan
    found = MissingnessPatterns.of(table, np.array([1.0, 2.0, 1.0, 1.0, 1.0, 3.0]))
    patterns = {tuple(row): i for i, row in enumerate(found.seen.tolist())}
    assert len(patterns) == 3
    first = patterns[(False,) + (True,) * 8]
    assert (found.counted[first], found.squares[first]) == (3.0, 5.0)
    assert (found.counted.sum(), found.squares.sum()) == (9.0, 17.0)
    whole = MissingnessPatterns.of(np.ones((4, 9)))
    assert whole.seen.all()
    assert (whole.seen.shape, whole.counted.tolist()) == ((1, 9), [4.0])


def test_patterns_do_not_depend_on_the_order_of_rows():
    table = gaps(200, 12)
    order = np.random.default_rng(1).permutation(200)
    one, other = MissingnessPatterns.of(table), MissingnessPatterns.of(table[order])
    np.testing.assert_array_equal(one.bits, other.bits)
    np.testing.assert_array_equal(one.counted, other.counted)


def test_many_patterns_are_sampled_evenly():
    table = gaps(5000, 20)
    weights = np.random.default_rng(1).exponential(size=5000)
    found = MissingnessPatterns.of(table, weights)
    assert len(found.bits) == MAX_PATTERNS
    assert found.counted.sum() == pytest.approx(weights.sum())
    assert found.squares.sum() == pytest.approx((weights**2).sum())
    shares = found.counted @ found.seen / found.counted.sum()
    np.testing.assert_allclose(shares, weights @ ~np.isnan(table) / weights.sum(), atol=0.04)


def test_a_saved_result_has_its_patterns(tmp_path):
    rng = np.random.default_rng(2)
    states = rng.integers(0, 2, 300)
    table = 3.0 * states[:, None] + rng.normal(size=(300, 5))
    table[:100, 0] = np.nan
    weights = np.where(np.arange(300) < 200, 0.5, 2.0)
    weights[-50:] = 0.0
    result = DCRL(1, family="gaussian", random_state=0).fit(table, sample_weight=weights).result_
    np.testing.assert_allclose(np.sort(result.seen_rows.counted), [50.0, 150.0])
    again = load(result.save(tmp_path / "fit.npz")).seen_rows
    np.testing.assert_array_equal(again.seen, result.seen_rows.seen)
    np.testing.assert_array_equal(again.counted, result.seen_rows.counted)
    np.testing.assert_array_equal(again.squares, result.seen_rows.squares)


def as_sorted_patterns(found, columns=slice(None)):
    rows = zip(found.seen[:, columns].tolist(), found.counted, found.squares, strict=True)
    return sorted((tuple(cells), counted, square) for cells, counted, square in rows)


@pytest.mark.parametrize("weighted", [False, True])
def test_stored_patterns_do_not_depend_on_the_order_of_the_table(weighted):
    rng = np.random.default_rng(3)
    table = np.where(np.isnan(gaps(5000, 20)), np.nan, rng.integers(0, 2, (5000, 20)))
    weights = rng.exponential(size=5000) if weighted else None
    rows, columns = rng.permutation(5000), rng.permutation(20)
    one = MissingnessPatterns.of(table, weights)
    other = MissingnessPatterns.of(
        table[rows][:, columns], None if weights is None else weights[rows]
    )
    assert len(one.bits) == MAX_PATTERNS
    assert as_sorted_patterns(one, columns) == as_sorted_patterns(other)
