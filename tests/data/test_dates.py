from __future__ import annotations

import numpy as np
import pytest

from hidag.cli.messages import CommandLineStyle
from hidag.data import read_table, resolve_families
from hidag.data.value_checks import are_dates, warn_of_dates
from hidag.exceptions import DataError, HidagWarning


def test_only_valid_dates_are_dates():
    assert are_dates(np.array([20210101.0, 20240229.0, 19991231.0]))
    for wrong in (20230229.0, 20211301.0, 20210100.0, 20210132.0, 20210101.5, 999.0, 99990101.0):
        assert not are_dates(np.array([20210101.0, wrong]))
    assert not are_dates(np.array([20210101.0]))


def test_dates_are_an_error_that_shows_all_digits():
    days = np.tile(20210101.0 + np.arange(28), 4)
    table = read_table(np.column_stack([days, np.tile([0.0, 1.0], 56)]), names=["day", "yes"])
    with pytest.raises(DataError) as refused:
        resolve_families(table, "auto")
    assert str(refused.value) == (
        "family='auto' cannot infer the type of 1 of 2 items:\n"
        "  'day': holds whole numbers from 20210101 to 20210128 that are all valid dates (year, "
        "month, day)\n"
        "convert dates to numbers, such as days since a reference date, or drop the column"
    )
    assert refused.value.render(CommandLineStyle()).endswith("leave the column out with --drop day")
    with pytest.warns(HidagWarning) as caught:
        warn_of_dates(table)
    assert str(caught[0].message) == (
        "item 'day' holds whole numbers from 20210101 to 20210128 that are all valid dates (year, "
        "month, day) (1 of 2 items): the difference between two such numbers is not a number of "
        "days; convert dates to numbers, such as days since a reference date, or drop the column"
    )


def test_large_whole_numbers_show_all_digits():
    table = read_table(np.tile(1234567.0 + 3 * np.arange(28), 4)[:, None], names=["n"])
    with pytest.raises(DataError, match="whole numbers from 1234567 to 1234648"):
        resolve_families(table, "auto")
