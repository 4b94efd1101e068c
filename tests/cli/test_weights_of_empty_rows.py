from __future__ import annotations

import numpy as np
import pytest

from hidag.cli.data_source import read_weights
from hidag.data.cells import import_arrow
from hidag.data.rows import check_weights
from hidag.exceptions import DataError


def test_empty_rows_have_no_weight():
    table = import_arrow("pyarrow").table({"a": [1.0, None, 0.0, None], "b": [0.0, None, 1.0, 1.0]})
    found = read_weights({"w": ["1", "50", "2", "3"]}, "w", table)
    # Kish's number of the three rows that hold an answer, whatever the other one weighs.
    np.testing.assert_allclose(found, np.array([1, 0, 2, 3]) * 6 / 14)


def test_a_dominant_weight_in_a_column_is_an_error():
    table = import_arrow("pyarrow").table({"a": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 1.0]})
    weights = read_weights({"w": ["1", "1", "1e9"]}, "w", table)
    with pytest.raises(DataError) as refused:
        check_weights(weights, 3)
    assert refused.value.code == "dominant-weight"
