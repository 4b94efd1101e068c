from __future__ import annotations

import numpy as np
import pytest

from hidag.cli.data_source import read_weights, scale_survey_weights
from hidag.data.cells import import_arrow
from hidag.exceptions import DataError


def test_empty_rows_have_no_weight():
    table = import_arrow("pyarrow").table({"a": [1.0, None, 0.0, None], "b": [0.0, None, 1.0, 1.0]})
    found = read_weights({"w": ["1", "50", "2", "3"]}, "w", table)
    # Kish's number of the three rows that hold an answer, whatever the other one weighs.
    np.testing.assert_allclose(found, np.array([1, 0, 2, 3]) * 6 / 14)


def test_a_dominant_weight_in_a_column_is_an_error():
    with pytest.raises(DataError) as refused:
        scale_survey_weights([1, 1, 1e9, 1], "w", np.ones(4, dtype=bool))
    assert str(refused.value) == (
        "the weights in column 'w' have an effective sample size below 2: row 3 below the names "
        "has 1e+09 of 1e+09, nearly all of the weight; check the weight of that row"
    )
