"""Families inferred from values, and ambiguous values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hidag.data import check_values, read_table, resolve_families
from hidag.data.type_inference import infer_family
from hidag.exceptions import DataError

from .helpers import NAN, spread, table


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


@pytest.mark.parametrize("n_rows", [20_000, 200_000])
def test_many_counts_are_poisson_too(n_rows: int) -> None:
    def draw(rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(1.3 * rng.choice([1, 2.5], n_rows))

    assert share_inferred(draw, 10) >= 0.9


def test_the_suggested_family_is_among_the_alternatives() -> None:
    guess = infer_family(spread(v17=2, v18=5, v19=3, v20=4, v24=2, v27=1))
    assert guess.suggestion == "gaussian"
    assert guess.reason.endswith(": a rounded measurement, grades of a scale or a count?")


@pytest.mark.parametrize("n_grades", [4, 5, 6, 7, 10, 11])
def test_grades_of_a_scale_are_ambiguous(n_grades: int) -> None:
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
            "holds only 1 and 2: recode it as 0 and 1 for a binary item, or use two categories",
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
            "holds whole numbers from 0 to 5 (6 different), 150 of 840 at the maximum, not "
            "distributed like counts: grades of a scale or a count?",
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
            "holds whole numbers from 40 to 87 (39 different), few near 0: a rounded "
            "measurement or a count?",
            "gaussian",
        ),
        (
            np.repeat(np.arange(0.0, 130.0), 3),
            "holds whole numbers from 0 to 129 (130 different), distributed like scores: a rounded "
            "measurement or a count?",
            "gaussian",
        ),
        (
            spread(v0=30, v1=20, v9=4),
            "holds 9 in 4 of 54 cells, apart from the other values (0 to 1)",
            "bernoulli",
        ),
        (
            np.append(np.random.default_rng(0).poisson(3, 300), [99, 99, 99]).astype(float),
            "holds 99 in 3 of 303 cells, apart from the other values (0 to 10)",
            "poisson",
        ),
        (
            np.array([-1.0, 0, 1, 1, 0]),
            "holds -1 in 1 of 5 cells, apart from the other values (0 to 1)",
            "bernoulli",
        ),
        (
            np.append(spread(v0=30, v1=20), [-99.0, -99.0]),
            "holds -99 in 2 of 52 cells, apart from the other values (0 to 1)",
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
def test_ambiguous_values_are_not_inferred(
    values: np.ndarray, reason: str, suggestion: str
) -> None:
    guess = infer_family(values)
    assert guess.family is None
    assert guess.reason == reason
    assert guess.suggestion == suggestion


def test_all_ambiguous_items_are_in_one_error_with_a_setting_to_paste() -> None:
    data = table(
        sex=[1, 2, 1, 2], mood=[1, 2, 3, NAN], right=[0, 1, 1, 0], pain=[3, 2, 1, 1], time=[1.5] * 4
    )
    with pytest.raises(DataError) as caught:
        resolve_families(data, "auto")
    assert str(caught.value) == (
        "family='auto' cannot infer the type of 3 of 5 items:\n"
        "  'sex': holds only 1 and 2: recode it as 0 and 1 for a binary item, or use two "
        "categories\n"
        "  'mood', 'pain': holds whole numbers from 1 to 3 (3 different): grades of a scale or a "
        "count?\n"
        "set the types, for instance family={'sex': 'categorical', 'mood': 'ordinal', "
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
def test_the_suggestion_for_two_values_admits_them(codes: tuple[float, float]) -> None:
    answers = table(item=np.tile(codes, 20))
    suggestion = infer_family(answers.column(0)).suggestion
    check_values(answers, resolve_families(answers, suggestion).families)


def test_unnamed_items_are_suggested_by_position() -> None:
    X = np.tile([[1.0], [2.0], [3.0]], 7)
    with pytest.raises(DataError) as caught:
        resolve_families(read_table(X), "auto")
    message = str(caught.value)
    assert "  'item_0', 'item_1', 'item_2', 'item_3', 'item_4' and 2 more: holds" in message
    assert "family={0: 'ordinal', 1: 'ordinal', " in message


def test_other_positive_items_are_mentioned_beside_a_skewed_one() -> None:
    rng = np.random.default_rng(0)
    data = table(slow=np.exp(rng.normal(3, 1, 300)), quick=np.exp(rng.normal(3, 0.2, 300)))
    with pytest.raises(DataError, match=r"\n  \(1 other positive item would be modelled as gaus"):
        resolve_families(data, "auto")


def test_ambiguous_items_with_the_same_code_are_grouped() -> None:
    columns = [np.array([1, 2, 3, 4, 5] * 20 + [9] * n, dtype=float)[-100:] for n in (3, 5, 5)]
    table = read_table(np.column_stack(columns))
    with pytest.raises(DataError) as caught:
        resolve_families(table, "auto")
    assert str(caught.value) == (
        "family='auto' cannot infer the type of 3 of 3 items:\n"
        "  'item_0', 'item_1', 'item_2': the first holds 9 in 3 of 100 cells, apart from the other "
        "values (1 to 5)\n"
        "replace 9 with NaN if it stands for a missing answer; set the types, for instance "
        "family={0: 'ordinal', 1: 'ordinal', 2: 'ordinal'}; the other items stay 'auto'"
    )


def test_no_family_is_suggested_that_the_code_would_make_fail() -> None:
    data = table(unk=[0, 1] * 25 + [9] * 4, day=[0, 1] * 27)
    with pytest.raises(DataError) as caught:
        resolve_families(data, "auto")
    assert str(caught.value) == (
        "family='auto' cannot infer the type of 1 of 2 items:\n"
        "  'unk': holds 9 in 4 of 54 cells, apart from the other values (0 to 1)\n"
        "replace 9 with NaN if it stands for a missing answer"
    )
