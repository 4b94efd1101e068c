from __future__ import annotations

import numpy as np
import pytest

from hidag.data import check_values, read_table
from hidag.exceptions import DataError


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([5.5e-05, 7.1e-05, 6.2e-05, 1.0], "other values in 3 of 4 cells, such as 5.5e-05"),
        ([0.0, 1.0, 9.0, 9.0], "9 in 2 of 4 cells"),
        ([0.0, 1.0, 20210101.0, 20210102.0], "other values in 2 of 4 cells, such as 20210101"),
    ],
)
def test_invalid_values_are_counted(values, words):
    with pytest.raises(DataError) as refused:
        check_values(read_table(np.array(values)[:, None], names=["a"]), ["bernoulli"])
    assert f"needs 0 and 1, but item 'a' has {words} (1 of 1 items)" in str(refused.value)
