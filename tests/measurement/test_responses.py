"""Nominal items as nested yes/no responses."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.exceptions import SettingError
from hidag.measurement.families.categorical import Categorical
from hidag.measurement.parameters import Responses, nominal_item

NAN = np.nan


def test_a_response_is_asked_only_where_no_earlier_one_was_a_yes():
    item = nominal_item("categorical(2,0,1)")
    x = np.array([2.0, 0.0, 1.0, NAN])
    expected = [[1, NAN], [0, 1], [0, 0], [NAN, NAN]]
    np.testing.assert_array_equal(item.expand(x), expected)
    np.testing.assert_array_equal(item.collapse(item.expand(x)[:3]), x[:3])


def test_probabilities_of_categories_add_up_and_are_products():
    rng = np.random.default_rng(0)
    yes = rng.random((4, 3))
    item = nominal_item("categorical(4)")
    found = item.probabilities(yes)
    np.testing.assert_allclose(found.sum(axis=-1), 1.0)
    np.testing.assert_allclose(found[:, 2], (1 - yes[:, 0]) * (1 - yes[:, 1]) * yes[:, 2])


def test_frequent_categories_are_asked_first_and_ties_go_by_code():
    x = np.array([5.0, 1.0, 1.0, 3.0, 3.0, 7.0])
    assert Categorical.name_from_values(x) == "categorical(1,3,5,7)"
    assert Categorical.name_from_values(np.array([0.0, 0.0, 1.0, 1.0, 2.0])) == "categorical(3)"
    assert Categorical.name_from_values(np.array([0.0, 0.5])) is None
    assert Categorical.name_from_values(np.array([1.0, 1.0])) is None


def test_responses_of_a_table():
    responses = Responses.of(("gaussian", "categorical(3)", "bernoulli", "categorical(4,7)"))
    assert responses.families == ("gaussian", *("bernoulli",) * 4)
    assert responses.item.tolist() == [0, 1, 1, 2, 3]
    assert responses.names(("a", "b", "c", "d")) == ("a", "b=0", "b=1", "c", "d=4")
    values = np.array([[0.5, 0, 1, 7], [1.5, 2, 0, 4], [NAN, 1, NAN, NAN]])
    expanded = responses.expand(values)
    assert expanded.shape == (3, 5)
    np.testing.assert_array_equal(responses.collapse(expanded[:2]), values[:2])
    q = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=np.int8)
    assert responses.of_items(q).tolist() == [[1, 0], [0, 1], [0, 1], [1, 1], [0, 0]]
    support = np.array([[1, 0], [0, 0], [0, 1], [1, 1], [0, 0]], dtype=bool)
    assert responses.any_response(support).tolist() == (q == 1).tolist()
    strengths = np.array([[1.0, 0], [0.5, -2], [1, 1], [0, 0], [0, 0]])
    assert responses.largest(strengths)[1].tolist() == [1.0, -2.0]


def test_items_that_are_their_own_responses_are_left_alone():
    responses = Responses.of(("gaussian", "poisson"))
    values = np.ones((2, 2))
    assert responses.plain
    assert responses.expand(values) is values
    assert responses.collapse(values) is values


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "categorical",
            "family='categorical' needs its number of categories in parentheses; use for instance "
            "'categorical(4)'",
        ),
        (
            "categorical(1)",
            "family='categorical(1)' must have a number of categories, at least 2, or a list of "
            "different whole numbers",
        ),
        (
            "categorical(1,1,2)",
            "family='categorical(1,1,2)' must have a number of categories, at least 2, or a list "
            "of different whole numbers",
        ),
        (
            "categorical(red,blue)",
            "family='categorical(red,blue)' must have its number of categories in "
            "parentheses; use for instance 'categorical(4)'",
        ),
    ],
)
def test_arguments_of_nominal_items_are_checked(name, sentence):
    with pytest.raises(SettingError) as caught:
        nominal_item(name)
    assert str(caught.value) == sentence
