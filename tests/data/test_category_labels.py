"""Labels of categories are encoded in the order that the user gives."""

from __future__ import annotations

import pyarrow
import pytest

from hidag.data.cells import CategoryLabels, describe_coding, encode_labels, find_labels
from hidag.exceptions import DataError, SettingError

MOOD = CategoryLabels(("low", "middle", "high"), ordered=True)


def test_labels_are_encoded_without_regard_to_case() -> None:
    table = pyarrow.table({"mood": [" High", "low", None, "NA", "MIDDLE"], "age": ["1"] * 5})
    found = encode_labels(table, {"mood": MOOD})
    assert found.column("mood").to_pylist() == ["2", "0", None, None, "1"]
    assert found.column("age").to_pylist() == ["1"] * 5
    encoded = pyarrow.table({"mood": pyarrow.array(["low", "high"]).dictionary_encode()})
    assert encode_labels(encoded, {"mood": MOOD}).column("mood").to_pylist() == ["0", "2"]


def test_an_unlisted_label_is_an_error() -> None:
    table = pyarrow.table({"mood": ["low", "so so", "high", "so so"]})
    with pytest.raises(DataError) as caught:
        encode_labels(table, {"mood": MOOD})
    assert str(caught.value) == (
        "column 'mood' must hold one of 'low', 'middle', 'high', but has 'so so' in row 2 below "
        "the names (2 of 4 cells); list all of its labels, or leave the cell empty if the answer "
        "is missing"
    )


@pytest.mark.parametrize("words", [("a",), ("a", "A"), ("a", "")])
def test_labels_must_differ(words: tuple[str, ...]) -> None:
    with pytest.raises(SettingError, match="at least two labels that differ"):
        CategoryLabels(words, ordered=False)


def test_family_of_ordered_unordered_and_two_labels() -> None:
    assert MOOD.family == "ordinal(3)"
    assert CategoryLabels(("north", "south", "west"), ordered=False).family == "categorical"
    assert CategoryLabels(("no", "sometimes"), ordered=True).family == "bernoulli"
    assert describe_coding(MOOD.labels) == "0 low, 1 middle, 2 high"


def test_repeated_texts_are_labels_and_unique_ones_are_not() -> None:
    assert find_labels(["b", "a", "B ", "a", None, "NA"]) == ("a", "b")
    assert find_labels(["Ann", "Bob", "Cid", "Dan"]) == ()
    assert find_labels(["yes"] * 10) == ()
    assert find_labels([f"{i % 13}x" for i in range(100)]) == ()
