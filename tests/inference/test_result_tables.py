from __future__ import annotations

from hidag.inference.result_tables import Table


def test_long_names_do_not_widen_the_lines():
    long = "How often in the last month were you " + "very " * 20 + "tired"
    table = Table.of(["item", "share"], [[long, 0.25], ["short", 0.5]])
    assert table.lines() == [
        "item                              share",
        "How often in th...ery very tired  0.250",
        "short                             0.500",
    ]
    assert table.rows[0][0] == long


def test_rounding_errors_are_zero_and_small_p_values_are_not():
    table = Table(("residual", "p_value"), ((-6.3e-18, 6.3e-18), (0.5, 0.25)))
    assert table.lines()[1].split() == ["0", "6.3e-18"]
