from __future__ import annotations

import pytest

from hidag.formatting import format_cell, format_number, format_range, format_row


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.25, "0.250"),
        (-1.7591, "-1.759"),
        (2001.45, "2001.450"),
        (0.0, "0"),
        (-0.0, "0"),
        (8.113e-5, "8.11e-05"),
        (-0.000103, "-0.000103"),
        (2990483525014.65, "2.99e+12"),
        (float("nan"), ""),
    ],
)
def test_ordinary_numbers_have_decimals_and_others_significant_digits(value, text):
    assert format_number(value) == text


def test_the_standard_error_sets_the_number_of_digits():
    assert format_number(12.2063018, error=0.000218) == "12.20630"
    assert format_number(1.4712e-19, error=7.4e-21) == "1.471e-19"
    assert format_number(4478123.4, error=15472.3) == "4.478e+06"
    assert format_number(3.21, error=0.193) == "3.210"


def test_no_zero_has_a_sign():
    assert format_number(-0.0001, error=0.05) == "0.000"
    assert format_cell(-0.000103) == "-0.0001"
    assert format_cell(-0.0) == "0.00"


def test_a_range_of_one_number_is_written_once():
    assert format_range(0.5001, 0.5002) == "0.500"
    assert format_range(-1e-22, 5.2e-9) == "0 to 5.2e-09"


def test_rounding_errors_are_relative_to_the_row():
    names = ("of", "estimate", "standard_error", "lower", "upper", "p_value", "residual")
    tiny = ("dna", 1.47e-19, 7.4e-21, 1.35e-19, 1.6e-19, 2e-15, -5e-18)
    texts = ["dna", "1.47e-19", "7.4e-21", "1.35e-19", "1.6e-19", "2e-15", "0"]
    assert format_row(names, tiny) == texts
    assert format_row(("least", "most"), (-1e-17, 0.5)) == ["0", "0.500"]


def test_grouped_numbers_have_commas():
    assert format_row(("n", "mean", "fine"), (12345, 12345.6, True), grouped=True) == [
        *("12,345", "12,345.600", "yes")
    ]
