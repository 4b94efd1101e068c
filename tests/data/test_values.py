"""Values that are invalid or suspicious for their family."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.data import check_values, read_table, type_inference
from hidag.data.value_checks import warn_of_values
from hidag.exceptions import DataError, HidagWarning, SettingError

from .helpers import NAN, table


@pytest.mark.parametrize(
    ("family", "values", "sentence"),
    [
        (
            "poisson",
            [3, -2, 1],
            "family='poisson' needs counts >= 0, but item 'time_q4' has minimum -2 (1 of 2 "
            "items); use family='gaussian' for real-valued items",
        ),
        (
            "poisson-identity",
            [3, 1.5, 2.5],
            "family='poisson-identity' needs counts >= 0, but item 'time_q4' has fractions such "
            "as 1.5 (1 of 2 items); use family='gaussian' or family='lognormal' for real-valued "
            "items",
        ),
        (
            "poisson",
            [3, 1.5, 2],
            "family='poisson' needs counts >= 0, but item 'time_q4' has 1.5 in 1 of 3 cells (1 of "
            "2 items); use family='gaussian' or family='lognormal' for real-valued items",
        ),
        (
            "bernoulli",
            [1, 2, NAN],
            "family='bernoulli' needs 0 and 1, but item 'time_q4' has 1 and 2 (1 of 2 items); "
            "recode 1 as 0 and 2 as 1",
        ),
        (
            "bernoulli",
            [0, 1, 2],
            "family='bernoulli' needs 0 and 1, but item 'time_q4' has 0, 1 and 2 (1 of 2 items); "
            "use family='ordinal' for grades, or recode the item as 0 and 1 at a cut",
        ),
        (
            "bernoulli",
            [0, 1, 7],
            "family='bernoulli' needs 0 and 1, but item 'time_q4' has 7 in 1 of 3 cells (1 of 2 "
            "items); recode the item as 0 and 1, or use another family",
        ),
        (
            "ordinal(4)",
            [0, 1, 4],
            "family='ordinal(4)' needs whole numbers from 0 to 3, but item 'time_q4' has values "
            "from 0 to 4 (1 of 2 items); write 'ordinal(0..4)' if these are all grades, or recode "
            "the item",
        ),
        (
            "binomial(5)",
            [0, 3, 7],
            "family='binomial(5)' needs whole numbers from 0 to 5, but item 'time_q4' has 7 "
            "successes in 5 trials (1 of 2 items); put the true number of trials in parentheses, "
            "or use family='poisson' for unbounded counts",
        ),
        (
            "binomial(5)",
            [0, 0.5, 1],
            "family='binomial(5)' needs whole numbers from 0 to 5, but item 'time_q4' has 0.5 in 1 "
            "of 3 cells (1 of 2 items); use the numbers of successes, not shares; family='beta' is "
            "for shares",
        ),
        (
            "beta",
            [0.5, 0, 1],
            "family='beta' needs numbers strictly between 0 and 1, but item 'time_q4' has 2 of 3 "
            "cells at 0 or 1 (1 of 2 items); transform them by (x (n - 1) + 1/2) / n, or use "
            "family='gaussian'",
        ),
        (
            "beta",
            [0.5, 20, 100],
            "family='beta' needs numbers strictly between 0 and 1, but item 'time_q4' has values "
            "from 0.5 to 100 (1 of 2 items); divide percentages by 100, or use family='gaussian'",
        ),
        (
            "censored-lognormal(60)",
            [70, 80, 90],
            "family='censored-lognormal(60)' needs numbers > 0, some of them below the limit, but "
            "item 'time_q4' has minimum 70, so that every time is censored (1 of 2 items); put the "
            "limit in the units of the item in parentheses",
        ),
        (
            "gamma",
            [0, 1.5, -1],
            "family='gamma' needs numbers > 0, but item 'time_q4' has minimum -1 and 2 of 3 cells "
            "at or below 0 (1 of 2 items); use family='gaussian', or NaN where 0 stands for a "
            "missing time",
        ),
        (
            "negative-binomial",
            [0, 1.5, 2.5],
            "family='negative-binomial' needs counts >= 0, but item 'time_q4' has fractions such "
            "as 1.5 (1 of 2 items); use family='gaussian' or family='lognormal' for real-valued "
            "items",
        ),
        (
            "lognormal",
            [0, 1.5, -1],
            "family='lognormal' needs numbers > 0, but item 'time_q4' has minimum -1 and 2 of 3 "
            "cells at or below 0 (1 of 2 items); use family='gaussian', or NaN where 0 stands for "
            "a missing time",
        ),
        (
            "gaussian",
            [2.5, 2.5, NAN],
            "each item needs at least two different values, but item 'time_q4' is 2.5 in all "
            "observed rows (1 of 2 items); drop the column",
        ),
        (
            "bernoulli",
            [1, 1, 1],
            "each item needs at least two different values, but item 'time_q4' is 1 in all "
            "observed rows (1 of 2 items); drop the column",
        ),
    ],
)
def test_values_that_do_not_suit_the_family(
    family: str, values: list[float], sentence: str
) -> None:
    data = table(fine=[0, 1, 1], time_q4=values)
    with pytest.raises(DataError) as caught:
        check_values(data, ["bernoulli", family])
    assert str(caught.value) == sentence


def test_items_with_the_same_problem_are_counted() -> None:
    with pytest.raises(DataError, match=r"item 'a' has minimum -1 \(2 of 2 items\)"):
        check_values(table(a=[0, -1], b=[-5, 2]), ["poisson", "poisson"])


def test_values_that_suit_the_family_pass() -> None:
    data = table(a=[0, 1, NAN], b=[0, 3, 2], c=[-1.5, 2, 3], d=[0.5, 2, 3])
    check_values(data, ["bernoulli", "poisson", "gaussian", "lognormal"])


def test_new_samples_may_be_constant() -> None:
    check_values(table(a=[1, 1], b=[2.5, 2.5]), ["bernoulli", "gaussian"], for_fitting=False)
    with pytest.raises(DataError, match=r"item 'b' has 2\.5 in 1 of 1 cells"):
        check_values(table(a=[1], b=[2.5]), ["bernoulli", "poisson"], for_fitting=False)


def test_as_many_families_as_items() -> None:
    with pytest.raises(SettingError) as caught:
        check_values(table(a=[0, 1]), ["poisson", "poisson"])
    assert str(caught.value) == ("there must be one family per item, but got 2 families for 1 item")


@pytest.mark.parametrize(
    ("factor", "came"), [(1e200, "absolute values up to 3e+200"), (1e-150, "a range of 2e-150")]
)
def test_values_whose_squares_overflow_are_an_error(factor, came):
    table = read_table(np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]) * [1.0, factor])
    with pytest.raises(DataError) as caught:
        check_values(table, ("gaussian", "gaussian"))
    assert str(caught.value) == (
        f"item 'item_1' has {came}, whose square is outside the range of numbers; use other units"
    )


def test_times_above_their_limit_are_counted_in_a_warning() -> None:
    data = table(
        short=[3.0, 10.0, 83.0, 40.0], fine=[2.0, 9.0, 10.0, 10.0], yes=[1, 2, 1, 2],
        long=[1.0, 11.0, 2.0, NAN],
    )  # fmt: skip
    limited = "censored-lognormal(10)"
    families = (limited, limited, "categorical(1,2)", limited)
    check_values(data, families)
    with pytest.warns(HidagWarning) as caught:
        warn_of_values(data, families)
    assert [str(one.message) for one in caught] == [
        "family='censored-lognormal(10)': item 'short' has 2 of 4 values above its limit, up to 83 "
        "(2 of 4 items); the fit treats them as censored at 10; put a higher limit in "
        "parentheses if they were measured"
    ]


def test_times_at_their_limit_cause_no_warning() -> None:
    times = table(minutes=[0.3, 0.1 + 0.2, 0.1, 0.2], hours=[1.0, 2.0, 72.0, 72.0])
    warn_of_values(times, ("censored-lognormal(0.3)", "censored-lognormal(72)"))


def test_few_large_counts_take_no_memory_and_raise_no_warning() -> None:
    # Warnings are errors here; a list of all numbers up to the largest would not fit into memory.
    values = np.array([0.0, 3.0, 3.0, 1.0, 2.0, 4e12] * 5)
    assert not type_inference._fits_poisson_mixture(values)
