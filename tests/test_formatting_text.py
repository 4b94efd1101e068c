from __future__ import annotations

import pytest

from hidag.formatting import counted, hidden, shortened, shown_value, visible
from hidag.plotting.style import name_in_lines, shown_name

QUESTIONS = [f"During the past 30 days, how often did you feel {word}" for word in ("sad", "calm")]


def test_names_that_begin_alike_stay_apart():
    assert [shown_name(name) for name in QUESTIONS] == [
        "During the pas…you feel sad",
        "During the pas…you feel calm",
    ]
    assert len({name_in_lines(name) for name in QUESTIONS}) == 2


def test_names_that_end_alike_stay_apart():
    assert shortened("sleep_in_the_first_wave", 12) != shortened("meals_in_the_first_wave", 12)


def test_numbers_are_kept_whole_or_left_out():
    names = [f"Messung Nr. {number}, vorn links, Kanal 14 (µV)" for number in range(95, 120)]
    shown = [shown_name(name) for name in names]
    assert shown[9] == "Messung Nr. 104…anal 14 (µV)"
    assert len(set(shown)) == len(names)
    assert shortened("first and second half of question 1234 of 5", 18) == "first and…of 5"
    assert shortened("id 12345678901234567890", 12) == "id 123…67890"


@pytest.mark.parametrize("longest", [1, 2, 3, 5, 12, 40])
def test_nothing_is_longer_than_asked_for(longest):
    assert len(shortened("a name of some length", longest)) <= longest
    assert shortened("ab", 2) == "ab"


def test_a_terminal_gets_points():
    assert shortened("depression_score", 11, "...") == "depr...core"


def test_hidden_characters_are_seen_in_pictures():
    assert visible("a\u202eb\u2067c\x1b") == "a\ufffdb\ufffdc\ufffd"
    assert visible("a\tb\nc") == "a\tb\nc"
    assert shown_name("\u202eabc\x07") == "\ufffdabc\ufffd"
    assert not any(map(hidden, "plain \u05d0 \u00e4"))


def test_a_number_goes_with_its_noun():
    assert counted(1, "item") == "1 item"
    assert counted(0, "item") == "0 items"
    assert counted(1000, "entry", "entries") == "1,000 entries"


def test_whole_numbers_are_shown_in_full():
    assert shown_value(20210131.0) == "20210131"
    assert shown_value(-3.0) == "-3"
    assert shown_value(5.571583e-05) == "5.57158e-05"
    assert shown_value(1e300) == "1e+300"
