"""Which number of latents is taken, given what correlations count and what fits have."""

from __future__ import annotations

import pytest

from hidag.number_rule import nearest, next_to_fit, settled_number

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("bic", "settled"),
    [
        # The counted number stands, though fewer are better by a near tie.
        ({3: 100.0, 4: 110.0}, 4),
        ({3: 100.0, 4: 110.1}, 3),
        # Several small steps down are one large one.
        ({2: 100.0, 3: 106.0, 4: 112.0}, 3),
        # Fits may not add, by whatever they are better.
        ({3: 100.0, 4: 90.0, 5: 0.0}, 4),
        ({5: 10.0, 6: 0.0}, 5),
        # What could not be fitted is not compared.
        ({3: 100.0, 4: NAN}, 3),
        ({3: INF, 4: NAN}, None),
        ({}, None),
    ],
)
def test_fits_take_away_beyond_a_near_tie_and_never_add(bic, settled):
    assert settled_number(4, bic) == settled


@pytest.mark.parametrize(
    ("bic", "further"),
    [
        ({20: 0.0}, 19),
        ({20: 0.0, 19: 1.0}, None),
        # While the fewest are the best, steps get longer, and end where factor BIC is.
        ({20: 20.0, 19: 0.0}, 17),
        ({20: 40.0, 19: 20.0, 17: 0.0}, 13),
        ({20: 80.0, 19: 60.0, 17: 40.0, 13: 20.0, 5: 0.0}, 2),
        ({20: 80.0, 5: 40.0, 2: 0.0}, None),
        # What was stepped over is made up for next to the best.
        ({20: 40.0, 19: 0.0, 17: 20.0}, 18),
        ({20: 40.0, 19: 0.0, 18: 30.0, 17: 20.0}, None),
        ({20: INF}, None),
    ],
)
def test_the_way_down_is_quick_and_leaves_nothing_out_next_to_the_best(bic, further):
    assert next_to_fit(20, 2, bic) == further


def test_the_nearest_of_two_is_the_smaller():
    assert (nearest(4, [3, 5]), nearest(9, [3, 5]), nearest(1, [3, 5])) == (3, 5, 3)
