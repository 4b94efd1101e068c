"""Answers that stand in words become numbers in the order that the user says."""

from __future__ import annotations

import pyarrow
import pytest

from hidag.data.cells import CategoryLabels, describe_coding, encode_labels, find_labels
from hidag.exceptions import DataError, SettingError

MOOD = CategoryLabels(("low", "middle", "high"), ordered=True)


def test_words_become_their_places_whatever_their_letters_and_gaps_stay() -> None:
    table = pyarrow.table({"mood": [" High", "low", None, "NA", "MIDDLE"], "age": ["1"] * 5})
    found = encode_labels(table, {"mood": MOOD})
    assert found.column("mood").to_pylist() == ["2", "0", None, None, "1"]
    assert found.column("age").to_pylist() == ["1"] * 5
    encoded = pyarrow.table({"mood": pyarrow.array(["low", "high"]).dictionary_encode()})
    assert encode_labels(encoded, {"mood": MOOD}).column("mood").to_pylist() == ["0", "2"]


def test_a_word_that_nobody_named_is_refused() -> None:
    table = pyarrow.table({"mood": ["low", "so so", "high", "so so"]})
    with pytest.raises(DataError) as caught:
        encode_labels(table, {"mood": MOOD})
    assert str(caught.value) == (
        "column 'mood' must hold one of 'low', 'middle', 'high', but has 'so so' in row 2 below "
        "the names (2 of 4 cells); list all of its labels, or leave the cell empty if the answer "
        "is missing"
    )


@pytest.mark.parametrize("words", [("a",), ("a", "A"), ("a", "")])
def test_words_have_to_differ(words: tuple[str, ...]) -> None:
    with pytest.raises(SettingError, match="at least two labels that differ"):
        CategoryLabels(words, ordered=False)


def test_order_makes_grades_and_two_words_a_yes_or_no() -> None:
    assert MOOD.family == "ordinal(3)"
    assert CategoryLabels(("north", "south", "west"), ordered=False).family == "categorical"
    assert CategoryLabels(("no", "sometimes"), ordered=True).family == "bernoulli"
    assert describe_coding(MOOD.labels) == "0 low, 1 middle, 2 high"


def test_few_words_that_come_again_are_answers_and_names_are_none() -> None:
    assert find_labels(["b", "a", "B ", "a", None, "NA"]) == ("a", "b")
    assert find_labels(["Ann", "Bob", "Cid", "Dan"]) == ()
    assert find_labels(["yes"] * 10) == ()
    assert find_labels([f"{i % 13}x" for i in range(100)]) == ()
