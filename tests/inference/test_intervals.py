"""Percentile intervals: ranks, coverage, partially identified numbers."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.exceptions import SettingError
from hidag.inference.intervals import (
    attainable_level,
    percentile_interval,
    range_interval,
    required_replicates,
)


@pytest.mark.parametrize(
    ("count", "level", "ends"),
    [
        (19, 0.9, (1.0, 19.0)),
        (39, 0.9, (2.0, 38.0)),
        (30, 0.9, (1.55, 29.45)),
        (199, 0.9, (10.0, 190.0)),
        (39, 0.95, (1.0, 39.0)),
        # Fewer than needed: from the least to the greatest.
        (6, 0.9, (1.0, 6.0)),
    ],
)
def test_ends_are_at_the_weibull_ranks(count, level, ends):
    values = np.random.default_rng(0).permutation(np.arange(1.0, count + 1))
    np.testing.assert_allclose(percentile_interval(values, level), ends)
    # Every column is its own interval.
    low, high = percentile_interval(np.column_stack([values, -2 * values]), level)
    np.testing.assert_allclose(low, [ends[0], -2 * ends[1]])
    np.testing.assert_allclose(high, [ends[1], -2 * ends[0]])


@pytest.mark.parametrize("count", [19, 30, 60])
def test_few_replicates_have_nominal_coverage(count):
    rng = np.random.default_rng(1)
    # Skewed, so that nothing leans on the normal law.
    replicates, one_more = rng.gamma(2.0, size=(count, 20_000)), rng.gamma(2.0, size=20_000)
    low, high = percentile_interval(replicates, 0.9)
    share = ((low <= one_more) & (one_more <= high)).mean()
    # Three standard errors of the simulation; numpy's own percentiles hold .81 to .87.
    assert abs(share - 0.9) < 3 * np.sqrt(0.9 * 0.1 / 20_000)


def test_intervals_of_a_normal_mean_have_nominal_coverage():
    rng = np.random.default_rng(2)
    means = rng.standard_normal(4000) / 20.0
    # What a bootstrap of 400 rows gives: means around the found one, as spread as that around 0.
    low, high = percentile_interval(means + rng.standard_normal((99, 4000)) / 20.0, 0.9)
    assert abs(((low <= 0) & (high >= 0)).mean() - 0.9) < 3 * np.sqrt(0.9 * 0.1 / 4000)
    low, high = percentile_interval(rng.standard_normal(40_000), 0.9)
    np.testing.assert_allclose((low, high), (-1.645, 1.645), atol=0.03)


def test_single_numbers_have_the_interval_of_their_percentiles():
    values = np.random.default_rng(3).gamma(2.0, size=(30, 7, 2))
    for level in (0.5, 0.9, 0.95):
        np.testing.assert_allclose(
            range_interval(values, values, level), percentile_interval(values, level), rtol=1e-6
        )


def test_wide_ranges_have_one_sided_error():
    lows = np.random.default_rng(4).permutation(np.arange(1.0, 40.0))
    low, high = range_interval(lows, lows + 100, 0.9)
    np.testing.assert_allclose((low, high), (4.0, 136.0))
    # Half of the replicates leave open whether there is an effect: but for the gap below the least,
    # a fortieth, nothing is missed there.
    open_ways = np.where(np.arange(39) % 2 == 0, 1e-16, lows)
    np.testing.assert_allclose(range_interval(open_ways, lows, 0.9), (0.0, 37.0), rtol=1e-6)
    np.testing.assert_allclose(range_interval(-lows, -open_ways, 0.9), (-37.0, 0.0), rtol=1e-6)


@pytest.mark.parametrize("width", [0.0, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_range_intervals_have_nominal_coverage_anywhere_in_the_range(width, place):
    rng = np.random.default_rng(5)
    n_tables, truth = 3000, place * width
    found = rng.standard_normal(n_tables)
    lows = found + rng.standard_normal((99, n_tables))
    low, high = range_interval(lows, lows + width, 0.9)
    share = ((low <= truth) & (truth <= high)).mean()
    error = 3 * np.sqrt(0.9 * 0.1 / n_tables)
    assert share > 0.9 - error
    # From the percentiles that leave out 5 % each, .95 at the ends of all but the first.
    if place != 0.5 or width == 0.0:
        assert share < 0.9 + error


def test_replicates_without_a_range_leave_no_interval():
    values = np.random.default_rng(6).standard_normal((39, 2))
    alone = range_interval(values[:, 0], values[:, 0] + 1.0)
    values[3, 1] = np.nan
    low, high = range_interval(values, values + 1.0)
    np.testing.assert_allclose((low[0], high[0]), alone)
    assert np.isnan([low[1], high[1]]).all()


def test_required_replicates_and_attainable_levels():
    assert [required_replicates(level) for level in (0.5, 0.8, 0.9, 0.95, 0.99)] == [
        3, 9, 19, 39, 199,
    ]  # fmt: skip
    assert attainable_level(6) == pytest.approx(5 / 7)
    assert attainable_level(19) == pytest.approx(0.9)
    assert attainable_level(500) == 0.9
    with pytest.raises(SettingError) as caught:
        percentile_interval(np.arange(5.0), 90)
    assert str(caught.value) == "level must be between 0 and 1, got 90"


@pytest.mark.parametrize("level", [0.0, 1.0, 90, "a"])
def test_invalid_levels_are_refused(level):
    with pytest.raises(SettingError) as caught:
        percentile_interval([1.0, 2.0], level)
    assert str(caught.value) == f"level must be between 0 and 1, got {level!r}"
