"""Options that list several things with commas, where names may have commas themselves."""

from __future__ import annotations

import pytest

from hidag.cli.commands.fit import read_knowledge
from hidag.cli.data_source import parse_drop
from hidag.cli.options import parse_arrows, parse_pairs, split_known
from hidag.exceptions import SettingError

LONG = 'Word "problems", long'


def test_the_longest_known_name_wins():
    known = {"a", "a, b", "a, b, c"}.__contains__
    assert split_known("a, b, c", known) == ["a, b, c"]
    assert split_known("a, b, d", known) == ["a, b", "d"]
    assert split_known("d,a", known) == ["d", "a"]


def test_names_in_pairs_may_contain_commas():
    names = {"visits, 12 months", "Z1", "x=y"}
    assert parse_pairs(["visits, 12 months=3,Z1=1"], "--given", names) == {
        "visits, 12 months": "3",
        "Z1": "1",
    }
    assert parse_pairs(["x=y=2"], "--given", names) == {"x=y": "2"}
    with pytest.raises(SettingError) as caught:
        parse_pairs(["visits, 6 months=3"], "--given", names)
    assert str(caught.value) == "--given takes NAME=VALUE, such as Z1=1, got 'visits'"


def test_names_in_arrows_and_tiers_may_contain_commas():
    names = ["Fractions", "Decimals", LONG]
    text = f"Fractions->{LONG},Fractions->Decimals"
    pairs = [("Fractions", LONG), ("Fractions", "Decimals")]
    assert parse_arrows([text], "--require", names) == pairs
    reported = read_knowledge(None, (), (), f"Fractions,{LONG};Decimals", (), names)
    assert reported is not None
    assert reported.tiers == (("Fractions", LONG), ("Decimals",))


def test_columns_with_commas_can_be_dropped():
    columns = ["visits, 12 months", "a", "b1", "b2"]
    assert parse_drop(["visits, 12 months"], columns) == ["visits, 12 months"]
    assert parse_drop(["b*,visits, 12 months"], columns) == ["visits, 12 months", "b1", "b2"]
