"""Tables for the items of a fit, found by name."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.data.value_checks import read_known_items
from hidag.exceptions import DataError

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
FAMILIES = ("bernoulli", "gaussian")


def test_other_columns_may_have_one_name():
    cells = [["x", 1.5, 1.0, "y"], ["z", -0.5, 0.0, "y"]]
    frame = pandas.DataFrame(cells, columns=["note", "b", "a", "note"])
    arrow = pyarrow.Table.from_arrays(
        [pyarrow.array(column) for column in zip(*cells, strict=True)], names=list(frame.columns)
    )
    for table in (frame, arrow):
        found = read_known_items(table, ("a", "b"), FAMILIES)
        assert found.names == ("a", "b")
        np.testing.assert_array_equal(found.values, [[1.0, 1.5], [0.0, -0.5]])


def test_a_repeated_item_is_an_error():
    frame = pandas.DataFrame([[1.0, 0.3, 0.0]], columns=["a", "b", "a"])
    with pytest.raises(DataError) as caught:
        read_known_items(frame, ("a", "b"), FAMILIES)
    assert str(caught.value) == (
        "column names must be unique, but 'a' occurs 2 times (1 of 2 names occur more than once); "
        "rename or drop the columns"
    )
