from __future__ import annotations

import pytest

from hidag.formatting import format_value, is_hidden, plural, replace_hidden, shorten
from hidag.plotting.style import display_name, wrap_name

QUESTIONS = [f"During the past 30 days, how often did you feel {word}" for word in ("sad", "calm")]


def test_names_with_the_same_first_words_stay_distinct():
    assert [display_name(name) for name in QUESTIONS] == [
        "During the pas…you feel sad",
        "During the pas…you feel calm",
    ]
    assert len({wrap_name(name) for name in QUESTIONS}) == 2


def test_names_with_the_same_end_stay_distinct():
    assert shorten("sleep_in_the_first_wave", 12) != shorten("meals_in_the_first_wave", 12)


def test_numbers_are_never_cut():
    names = [f"Messung Nr. {number}, vorn links, Kanal 14 (µV)" for number in range(95, 120)]
    shown = [display_name(name) for name in names]
    assert shown[9] == "Messung Nr. 104…anal 14 (µV)"
    assert len(set(shown)) == len(names)
    assert shorten("first and second half of question 1234 of 5", 18) == "first and…of 5"
    assert shorten("id 12345678901234567890", 12) == "id 123…67890"


@pytest.mark.parametrize("max_length", [1, 2, 3, 5, 12, 40])
def test_no_name_exceeds_max_length(max_length):
    assert len(shorten("a name of some length", max_length)) <= max_length
    assert shorten("ab", 2) == "ab"


def test_another_mark_replaces_the_middle():
    assert shorten("depression_score", 11, "...") == "depr...core"


def test_hidden_characters_are_replaced():
    assert replace_hidden("a\u202eb\u2067c\x1b") == "a\ufffdb\ufffdc\ufffd"
    assert replace_hidden("a\tb\nc") == "a\tb\nc"
    assert display_name("\u202eabc\x07") == "\ufffdabc\ufffd"
    assert not any(map(is_hidden, "plain \u05d0 \u00e4"))


def test_plural_agrees_with_the_number():
    assert plural(1, "item") == "1 item"
    assert plural(0, "item") == "0 items"
    assert plural(1000, "entry", "entries") == "1,000 entries"


def test_integers_are_written_in_full():
    assert format_value(20210131.0) == "20210131"
    assert format_value(-3.0) == "-3"
    assert format_value(5.571583e-05) == "5.57158e-05"
    assert format_value(1e300) == "1e+300"
