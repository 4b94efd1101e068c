"""Families given by the user: aliases, one for all items, one per item, mappings."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.data import check_values, resolve_families
from hidag.data.item_types import family_name
from hidag.exceptions import DataError, SettingError

from .helpers import NAN, table

LISTED = (
    "'bernoulli', 'bernoulli-cloglog', 'bernoulli-probit', 'beta', 'binomial(number of trials)', "
    "'categorical(number of categories)', "
    "'censored-lognormal(limit)', 'gamma', 'gaussian', 'lognormal', 'negative-binomial', "
    "'ordinal(number of grades)', 'poisson', 'poisson-identity', 'zero-inflated-poisson', 'auto'"
)


@pytest.mark.parametrize(
    ("word", "family"),
    [
        ("bernoulli", "bernoulli"),
        ("binary", "bernoulli"),
        ("count", "poisson"),
        (" Poisson ", "poisson"),
        ("poisson-identity", "poisson-identity"),
        ("normal", "gaussian"),
        ("continuous", "gaussian"),
        ("lognormal", "lognormal"),
        ("time", "lognormal"),
        ("Binomial( 20 )", "binomial(20)"),
        ("negbin", "negative-binomial"),
        ("zip", "zero-inflated-poisson"),
        ("share", "beta"),
        ("probit", "bernoulli-probit"),
        ("likert", "ordinal"),
        ("nominal", "categorical"),
        ("nominal(3)", "categorical(3)"),
        ("categorical(2, 0,1)", "categorical(2,0,1)"),
        ("ordinal(5)", "ordinal(5)"),
        ("ordinal(1..5)", "ordinal(1..5)"),
        ("censored-lognormal(7.50)", "censored-lognormal(7.5)"),
    ],
)
def test_aliases_of_families(word: str, family: str) -> None:
    assert family_name(word) == family


def test_grades_are_counted_from_the_values() -> None:
    data = table(mood=[1, 2, 3, 5, 4], pain=[0, 2, 1, 0, NAN], right=[0, 1, 1, 0, 1])
    choice = resolve_families(data, "ordinal")
    assert choice.families == ("ordinal(1..5)", "ordinal(3)", "bernoulli")
    check_values(data, choice.families)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0, 1, 3], "0, 1, 3"),
        ([1, 2, 1], "1, 2"),
        ([0, 1.5, 2], "0, 1.5, 2"),
        ([*range(0, 20, 2)], "0, 2, 4, 6, 8, 10, 12, 14, ..."),
    ],
)
def test_grades_with_gaps_need_an_argument(values: list[float], shown: str) -> None:
    with pytest.raises(DataError) as caught:
        resolve_families(table(pain=values), "ordinal")
    assert str(caught.value) == (
        "family='ordinal' takes its number of grades from values that are whole numbers without "
        f"gaps, at least 3 of them, but item 'pain' holds {shown}; recode the item, or set what "
        "can occur: family='ordinal(5)'"
    )
    assert resolve_families(table(pain=[0, 1, 3]), "ordinal(4)").families == ("ordinal(4)",)


def test_categories_are_taken_from_the_values() -> None:
    data = table(colour=[7, 2, 2, NAN, 4], shape=[0, 1, 1, 0, 0])
    choice = resolve_families(data, "nominal")
    assert choice.families == ("categorical(2,4,7)", "bernoulli")
    check_values(data, choice.families)
    with pytest.raises(DataError) as caught:
        resolve_families(table(colour=[0.5, 1, 2]), "categorical")
    assert str(caught.value) == (
        "family='categorical' takes its number of categories from values that are whole numbers, "
        "at least 2 of them, but item 'colour' holds 0.5, 1, 2; recode the item, or set what can "
        "occur: family='categorical(4)'"
    )
    with pytest.raises(DataError) as caught:
        check_values(data, ("categorical(3)", "bernoulli"))
    assert str(caught.value) == (
        "family='categorical(3)' needs one of 0, 1, 2, but item 'colour' has other values in 2 of "
        "4 cells, such as 7 (1 of 2 items); list all categories in parentheses, or recode the item"
    )


def test_one_family_for_all_items() -> None:
    choice = resolve_families(table(a=[0, 1], b=[1, 0]), "binary")
    assert choice.families == ("bernoulli", "bernoulli")
    assert choice.inferred == (False, False)


@pytest.mark.parametrize("family", [["normal", "count"], ("gaussian", "poisson")])
def test_one_family_per_item(family: object) -> None:
    choice = resolve_families(table(a=[0.5, 1], b=[1, 0]), family)  # type: ignore[arg-type]
    assert choice.families == ("gaussian", "poisson")


@pytest.mark.parametrize("family", [{"b": "count"}, {1: "count"}, {np.int64(1): "count"}])
def test_a_mapping_leaves_the_other_items_to_be_inferred(family: dict[object, str]) -> None:
    choice = resolve_families(table(a=[0.5, 1], b=[1, 0]), family)
    assert choice.families == ("gaussian", "poisson")
    assert choice.inferred == (True, False)
    assert choice.reasons == ("holds numbers with fractions", "set by the user")
    assert choice.table() == (
        "item  family    source    reason\n"
        "a     gaussian  inferred  holds numbers with fractions\n"
        "b     poisson   given     set by the user"
    )


@pytest.mark.parametrize(
    ("family", "sentence"),
    [
        (
            "binomial",
            "family='binomial' needs its number of trials in parentheses; use for instance "
            "'binomial(20)'",
        ),
        ("poison", "family='poison' is unknown; did you mean 'poisson'?"),
        (
            ["normal", "xyz"],
            f"item 'b' (1 of 2 items): family='xyz' is unknown; use one of {LISTED}",
        ),
        (["normal"], "family must have one entry per item, but got 1 entry for 2 items"),
        (3, "family must be a name, one name per item, or a mapping, got 3"),
        (
            [3, "normal"],
            f"item 'a' (1 of 2 items): family must be a name, one of {LISTED}, got 3",
        ),
        (
            {"zzz": "normal"},
            "family names the item 'zzz', which the table does not have; the first item is 'a'",
        ),
        (
            {7: "normal"},
            "family must name items of the table, but got 7; use a column name or a position from "
            "0 to 1",
        ),
        (
            {"a": "normal", 0: "count"},
            "family must name each item once, but item 'a' occurs by name and by position",
        ),
    ],
)
def test_wrong_settings(family: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        resolve_families(table(a=[0, 1], b=[1, 0]), family)  # type: ignore[arg-type]
    assert str(caught.value) == sentence


def test_a_misspelt_item_gets_a_suggestion() -> None:
    with pytest.raises(SettingError, match="did you mean 'time_q1'"):
        resolve_families(table(time_q1=[0, 1]), {"time_Q1": "normal"})
