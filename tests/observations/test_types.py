from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from hidag.errors import DataError, HidagWarning, SettingError
from hidag.observations import Observations, check_values, infer, read_table, resolve_families
from hidag.observations.infer import infer_family
from hidag.observations.types import family_name
from hidag.observations.values import warn_of_values

NAN = float("nan")
LISTED = (
    "'bernoulli', 'bernoulli-cloglog', 'bernoulli-probit', 'beta', 'binomial(number of trials)', "
    "'categorical(number of categories)', "
    "'censored-lognormal(limit)', 'gamma', 'gaussian', 'lognormal', 'negative-binomial', "
    "'ordinal(number of grades)', 'poisson', 'poisson-identity', 'zero-inflated-poisson', 'auto'"
)


def table(**columns: object) -> Observations:
    return read_table(pd.DataFrame(columns))


def spread(**counts: int) -> np.ndarray:
    """Return whole numbers with the given frequencies, keys v0, v1, ..."""
    return np.concatenate([np.full(n, float(key[1:])) for key, n in counts.items()])


# --- saying it ------------------------------------------------------------------------------


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
def test_words_for_families(word: str, family: str) -> None:
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
def test_grades_with_gaps_have_to_be_named(values: list[float], shown: str) -> None:
    with pytest.raises(DataError) as caught:
        resolve_families(table(pain=values), "ordinal")
    assert str(caught.value) == (
        "family='ordinal' takes its number of grades from values that are whole numbers without "
        f"gaps, at least 3 of them, but item 'pain' holds {shown}; recode the item, or say what "
        "may occur, as 'ordinal(5)'"
    )
    assert resolve_families(table(pain=[0, 1, 3]), "ordinal(4)").families == ("ordinal(4)",)


def test_categories_are_read_off_the_values() -> None:
    data = table(colour=[7, 2, 2, NAN, 4], shape=[0, 1, 1, 0, 0])
    choice = resolve_families(data, "nominal")
    assert choice.families == ("categorical(2,4,7)", "bernoulli")
    check_values(data, choice.families)
    with pytest.raises(DataError) as caught:
        resolve_families(table(colour=[0.5, 1, 2]), "categorical")
    assert str(caught.value) == (
        "family='categorical' takes its number of categories from values that are whole numbers, "
        "at least 2 of them, but item 'colour' holds 0.5, 1, 2; recode the item, or say what may "
        "occur, as 'categorical(4)'"
    )
    with pytest.raises(DataError) as caught:
        check_values(data, ("categorical(3)", "bernoulli"))
    assert str(caught.value) == (
        "family='categorical(3)' needs one of 0, 1, 2, but item 'colour' has something else in 2 "
        "of 4 cells, such as 7 (1 of 2 items); name all categories in the brackets, or recode the "
        "item"
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
            "family='binomial' needs its number of trials in brackets, such as 'binomial(20)'",
        ),
        ("poison", "family='poison' is unknown; did you mean 'poisson'?"),
        (
            ["normal", "xyz"],
            f"item 'b' (1 of 2 items): family='xyz' is unknown; use one of {LISTED}",
        ),
        (["normal"], "family must have one entry per item, but got 1 entry for 2 items"),
        (3, "family must be a name, one name per item, or a mapping, but got 3"),
        (
            [3, "normal"],
            "item 'a' (1 of 2 items): family must be given by name, but got 3; use one of "
            f"{LISTED}",
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


def test_a_name_that_is_nearly_an_item_gets_a_hint() -> None:
    with pytest.raises(SettingError, match="did you mean 'time_q1'"):
        resolve_families(table(time_q1=[0, 1]), {"time_Q1": "normal"})


# --- guessing it ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "family"),
    [
        ([0, 1, 1, 0], "bernoulli"),
        ([1, 1, 1], "bernoulli"),
        ([2.5, 2.5], "gaussian"),
        ([0.1, 0.9, 0.5], "gaussian"),
        ([-3, 4, 12, -7, 5], "gaussian"),
        (np.random.default_rng(0).negative_binomial(1, 0.1, 200), "poisson"),
        (np.repeat(np.arange(40), 3), "gaussian"),
    ],
)
def test_clear_values_are_inferred(values: object, family: str) -> None:
    assert infer_family(np.asarray(values, dtype=float)).family == family


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_ordinary_continuous_data_are_gaussian(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    for draw in (rng.normal(size=(20, 5)), rng.uniform(size=(20, 5)), rng.normal(9, size=(20, 5))):
        choice = resolve_families(read_table(draw * scale), "auto")
        assert choice.families == ("gaussian",) * 5


def share_inferred(draw: object, n_draws: int = 60) -> float:
    rng = np.random.default_rng(20)
    found = [infer_family(draw(rng).astype(float)).family for _ in range(n_draws)]  # type: ignore[operator]
    return float(np.mean([family == "poisson" for family in found]))


@pytest.mark.parametrize("mean", [1.0, 1.5, 2.0, 3.0, 6.0, 12.0])
def test_plain_counts_are_poisson(mean: float) -> None:
    assert share_inferred(lambda rng: rng.poisson(mean, 1000)) >= 0.95


@pytest.mark.parametrize("mean", [0.7, 1.0, 3.0])
def test_counts_that_depend_on_latents_are_poisson(mean: float) -> None:
    assert share_inferred(lambda rng: rng.poisson(mean * rng.choice([1, 4], 1000))) >= 0.95


@pytest.mark.parametrize("n_grades", [4, 5, 6, 7, 10, 11])
def test_grades_of_a_scale_are_not_guessed(n_grades: int) -> None:
    def draw(rng: np.random.Generator) -> np.ndarray:
        cuts = np.sort(rng.normal(0.8, 1, n_grades - 1))
        return (rng.normal(size=1000)[:, None] > cuts).sum(axis=1)

    assert share_inferred(draw) <= 0.02


def test_the_order_of_the_rows_does_not_matter() -> None:
    values = np.random.default_rng(3).poisson(2.0, 500).astype(float)
    assert infer_family(values) == infer_family(np.sort(values))


@pytest.mark.parametrize(
    ("values", "reason", "suggestion"),
    [
        (
            spread(v1=30, v2=20),
            "holds only 1 and 2: recode it as 0 and 1 for a binary item, or take it as two "
            "categories",
            "categorical",
        ),
        (
            spread(v0=30, v1=20, v2=9),
            "holds whole numbers from 0 to 2 (3 different): grades of a scale or a count?",
            "ordinal",
        ),
        (
            spread(v1=9, v2=20, v3=40, v4=30, v5=11),
            "holds whole numbers from 1 to 5 (5 different): grades of a scale or a count?",
            "ordinal",
        ),
        (
            spread(v0=50, v1=90, v2=150, v3=200, v4=200, v5=150),
            "holds whole numbers from 0 to 5 (6 different), 150 of 840 at the top, not spread as "
            "counts are: grades of a scale or a count?",
            "ordinal",
        ),
        (
            spread(v0=5, v10=5, v20=5, v30=3),
            "holds whole numbers from 0 to 30 (4 different), all multiples of 10: gaussian, or "
            "counts of 10?",
            "gaussian",
        ),
        (
            np.random.default_rng(0).poisson(60, 300).astype(float),
            "holds whole numbers from 40 to 87 (39 different), hardly any near 0: a rounded "
            "measurement or a count?",
            "gaussian",
        ),
        (
            np.repeat(np.arange(0.0, 130.0), 3),
            "holds whole numbers from 0 to 129 (130 different), spread as scores are: a rounded "
            "measurement or a count?",
            "gaussian",
        ),
        (
            spread(v0=30, v1=20, v9=4),
            "holds 9 in 4 of 54 cells, apart from the other values (0 to 1): replace it with NaN "
            "if it stands for a missing answer",
            "bernoulli",
        ),
        (
            np.append(np.random.default_rng(0).poisson(3, 300), [99, 99, 99]).astype(float),
            "holds 99 in 3 of 303 cells, apart from the other values (0 to 10): replace it with "
            "NaN if it stands for a missing answer",
            "poisson",
        ),
        (
            np.array([-1.0, 0, 1, 1, 0]),
            "holds -1 in 1 of 5 cells, apart from the other values (0 to 1): replace it with NaN "
            "if it stands for a missing answer",
            "bernoulli",
        ),
        (
            np.append(spread(v0=30, v1=20), [-99.0, -99.0]),
            "holds -99 in 2 of 52 cells, apart from the other values (0 to 1): replace it with "
            "NaN if it stands for a missing answer",
            "bernoulli",
        ),
        (
            np.exp(stats.norm.ppf((np.arange(101) + 0.5) / 101)),
            "holds positive numbers with skewness 3.2, and 0.0 after taking logarithms: lognormal "
            "(times, incomes) or gaussian?",
            "lognormal",
        ),
    ],
)
def test_ambiguous_values_are_not_guessed(values: np.ndarray, reason: str, suggestion: str) -> None:
    guess = infer_family(values)
    assert guess.family is None
    assert guess.reason == reason
    assert guess.suggestion == suggestion


def test_all_doubts_are_in_one_error_with_a_setting_to_paste() -> None:
    data = table(
        sex=[1, 2, 1, 2], mood=[1, 2, 3, NAN], right=[0, 1, 1, 0], pain=[3, 2, 1, 1], time=[1.5] * 4
    )
    with pytest.raises(DataError) as caught:
        resolve_families(data, "auto")
    assert str(caught.value) == (
        "family='auto' cannot tell the type of 3 of 5 items:\n"
        "  'sex': holds only 1 and 2: recode it as 0 and 1 for a binary item, or take it as two "
        "categories\n"
        "  'mood', 'pain': holds whole numbers from 1 to 3 (3 different): grades of a scale or a "
        "count?\n"
        "say what they are, for instance family={'sex': 'categorical', 'mood': 'ordinal', "
        "'pain': 'ordinal'}; the other items stay 'auto'"
    )
    pasted = {"sex": "categorical", "mood": "ordinal", "pain": "ordinal"}
    assert resolve_families(data, pasted).families == (
        "categorical(1,2)",
        "ordinal(1..3)",
        "bernoulli",
        "ordinal(1..3)",
        "gaussian",
    )


@pytest.mark.parametrize("codes", [(1.0, 2.0), (-1.0, 1.0), (0.0, 100.0)])
def test_what_is_suggested_for_items_of_two_values_suits_them(codes: tuple[float, float]) -> None:
    answers = table(item=np.tile(codes, 20))
    suggestion = infer_family(answers.column(0)).suggestion
    check_values(answers, resolve_families(answers, suggestion).families)


def test_unnamed_items_are_pasted_by_position_and_alike_ones_are_shortened() -> None:
    X = np.tile([[1.0], [2.0], [3.0]], 7)
    with pytest.raises(DataError) as caught:
        resolve_families(read_table(X), "auto")
    message = str(caught.value)
    assert "  'item_0', 'item_1', 'item_2', 'item_3', 'item_4' and 2 more: holds" in message
    assert "family={0: 'ordinal', 1: 'ordinal', " in message


def test_other_positive_items_are_mentioned_beside_a_skewed_one() -> None:
    rng = np.random.default_rng(0)
    data = table(slow=np.exp(rng.normal(3, 1, 300)), quick=np.exp(rng.normal(3, 0.2, 300)))
    with pytest.raises(DataError, match=r"\n  \(1 other positive items would be taken as gaus"):
        resolve_families(data, "auto")


# --- checking it ----------------------------------------------------------------------------


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
            "successes in 5 trials (1 of 2 items); put the true number of trials in the brackets, "
            "or use family='poisson' for counts without a largest one",
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
            "cells at 0 or 1 (1 of 2 items); move them inside, as (x (n - 1) + 1/2) / n does, or "
            "use family='gaussian'",
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
            "limit of the item's own units in the brackets",
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


def test_items_that_fail_alike_are_counted() -> None:
    with pytest.raises(DataError, match=r"item 'a' has minimum -1 \(2 of 2 items\)"):
        check_values(table(a=[0, -1], b=[-5, 2]), ["poisson", "poisson"])


def test_values_that_suit_the_family_pass() -> None:
    data = table(a=[0, 1, NAN], b=[0, 3, 2], c=[-1.5, 2, 3], d=[0.5, 2, 3])
    check_values(data, ["bernoulli", "poisson", "gaussian", "lognormal"])


def test_new_samples_may_agree_on_an_item() -> None:
    check_values(table(a=[1, 1], b=[2.5, 2.5]), ["bernoulli", "gaussian"], for_fitting=False)
    with pytest.raises(DataError, match=r"item 'b' has 2\.5 in 1 of 1 cells"):
        check_values(table(a=[1], b=[2.5]), ["bernoulli", "poisson"], for_fitting=False)


def test_as_many_families_as_items() -> None:
    with pytest.raises(SettingError) as caught:
        check_values(table(a=[0, 1]), ["poisson", "poisson"])
    assert str(caught.value) == ("there must be one family per item, but got 2 families for 1 item")


@pytest.mark.parametrize(
    ("factor", "came"), [(1e200, "sizes up to 3e+200"), (1e-150, "spread 2e-150")]
)
def test_sizes_that_cannot_be_squared_are_refused(factor, came):
    table = read_table(np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]) * [1.0, factor])
    with pytest.raises(DataError) as caught:
        check_values(table, ("gaussian", "gaussian"))
    assert str(caught.value) == (
        f"item 'item_1' has {came}, beyond what can be squared and added; measure it in other units"
    )


def test_doubtful_items_with_the_same_code_are_told_at_once() -> None:
    columns = [np.array([1, 2, 3, 4, 5] * 20 + [9] * n, dtype=float)[-100:] for n in (3, 5, 5)]
    table = read_table(np.column_stack(columns))
    with pytest.raises(DataError) as caught:
        resolve_families(table, "auto")
    assert str(caught.value) == (
        "family='auto' cannot tell the type of 3 of 3 items:\n"
        "  'item_0', 'item_1', 'item_2': the first holds 9 in 3 of 100 cells, apart from the other "
        "values (1 to 5): replace it with NaN if it stands for a missing answer\n"
        "then say what they are, for instance family={0: 'ordinal', 1: 'ordinal', 2: 'ordinal'}; "
        "the other items stay 'auto'"
    )


# --- what can be fitted, and is not likely meant ----------------------------------------------


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
        "(2 of 4 items); of these a fit takes no more than that they are at least 10; put a higher "
        "limit in the brackets if they were measured"
    ]


def test_times_at_their_limit_are_as_they_should_be() -> None:
    times = table(minutes=[0.3, 0.1 + 0.2, 0.1, 0.2], hours=[1.0, 2.0, 72.0, 72.0])
    warn_of_values(times, ("censored-lognormal(0.3)", "censored-lognormal(72)"))


def test_few_large_counts_take_no_memory_and_raise_no_warning() -> None:
    # Warnings are errors here; a list of all numbers up to the largest would not fit into memory.
    values = np.array([0.0, 3.0, 3.0, 1.0, 2.0, 4e12] * 5)
    assert not infer._fits_poisson_mixture(values)


def test_no_family_is_suggested_that_the_code_would_make_fail() -> None:
    data = table(unk=[0, 1] * 25 + [9] * 4, day=[0, 1] * 27)
    with pytest.raises(DataError) as caught:
        resolve_families(data, "auto")
    assert str(caught.value) == (
        "family='auto' cannot tell the type of 1 of 2 items:\n"
        "  'unk': holds 9 in 4 of 54 cells, apart from the other values (0 to 1): replace it with "
        "NaN if it stands for a missing answer"
    )
