from __future__ import annotations

import numpy as np
import pytest

from hidag import DCRL
from hidag.data import read_table
from hidag.data.value_checks import MIN_ROWS, find_duplicate_columns, warn_of_duplicate_columns
from hidag.exceptions import HidagWarning

NAN = float("nan")


def binary(n_rows, n_items, seed=0, chance=0.5):
    return (np.random.default_rng(seed).random((n_rows, n_items)) < chance).astype(float)


def test_copies_and_reverses_are_found_where_both_are_observed():
    x = binary(400, 6)
    x[:, 4], x[:, 5] = x[:, 0], 1.0 - x[:, 2]
    assert find_duplicate_columns(x) == [(0, 4, False, 400), (2, 5, True, 400)]
    x[::2, 4], x[:3, 0] = NAN, NAN
    assert find_duplicate_columns(x) == [(0, 4, False, 199), (2, 5, True, 400)]
    x[7, 4], x[7, 0] = 1.0, 0.0
    assert find_duplicate_columns(x) == [(2, 5, True, 400)]


def test_copies_are_found_in_all_columns_and_reversals_in_binary_ones():
    x = np.random.default_rng(1).normal(size=(50, 4))
    x[:, 3], x[:, 2] = x[:, 0], 1.0 - x[:, 1]
    assert find_duplicate_columns(x) == [(0, 3, False, 50)]


def test_columns_that_may_agree_by_chance_are_not_duplicates():
    # Hardly anybody says yes: the columns agree in what nobody says.
    x = np.zeros((1000, 2))
    x[: MIN_ROWS - 1] = 1.0
    assert find_duplicate_columns(x) == []
    x[:MIN_ROWS] = 1.0
    assert find_duplicate_columns(x) == [(0, 1, False, 1000)]
    assert find_duplicate_columns(np.repeat(np.arange(19.0)[:, None], 2, axis=1)) == []
    # Columns of which each row holds one or the other share no row.
    halves = binary(100, 2)
    halves[:50, 0], halves[50:, 1] = NAN, NAN
    assert find_duplicate_columns(halves) == []


def test_a_fit_warns_of_duplicates_in_sorted_rows():
    x = binary(300, 5)
    x = np.column_stack([x[np.argsort(x[:, 0])], np.zeros(300)])
    x[:, 5] = x[:, 0]
    table = read_table(x, names=list("abcdef"))
    with pytest.warns(HidagWarning) as caught:
        warn_of_duplicate_columns(table, stacklevel=2)
    assert str(caught[0].message) == (
        "items 'a' and 'f' are equal in all 300 rows where both are observed: two copies of one "
        "column can form a latent by themselves; drop one of the two if it is a copy"
    )
    with (
        pytest.warns(HidagWarning, match="'item_0' and 'item_5' are equal in all 300 rows"),
        pytest.warns(HidagWarning, match="no guarantee of identifiability"),
    ):
        DCRL(1, n_starts=1, max_iter=30, tol=10.0, random_state=0).fit(x)
