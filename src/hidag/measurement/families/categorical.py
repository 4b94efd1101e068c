"""Nominal items as nested binary responses (a sequential, or continuation-ratio, model).

An item with C categories consists of C - 1 binary responses: is it this category, given that it is
none of the earlier ones? A response is missing where an earlier one was 1. The product of the
nested probabilities is the probability of the category. With one parent the model equals the
multinomial logit.
"""

from __future__ import annotations

import numpy as np

from hidag.exceptions import Advice, SettingError
from hidag.measurement.families.base import (
    MAX_CATEGORIES,
    AnalyticCondition,
    Array,
    ItemType,
    ValueProblem,
    check_size,
    describe_invalid,
    format_argument,
    register,
)


@register("categorical", default_for="categories")
class Categorical(ItemType):
    """A nominal item: ``categorical(2,0,1)`` asks for 2 first, ``categorical(4)`` for 0 to 3."""

    aliases = ("nominal", "multinomial", "factor")
    argument_name = "number of categories"
    argument_source = "whole numbers, at least 2 of them"
    example_argument = "4"
    description = "unordered categories"
    analytic_condition = AnalyticCondition(
        "undecided",
        "the assumption is about one predictor per item, and this family has one per category",
    )
    is_nominal = True

    def __init__(self, order: tuple[float, ...]) -> None:
        self.order = order
        listed = ",".join(map(format_argument, order))
        argument = str(len(order)) if order == tuple(range(len(order))) else listed
        self.name = f"categorical({argument})"
        self.allowed_values = f"one of {', '.join(map(format_argument, sorted(order)))}"

    @classmethod
    def from_argument(cls, text: str) -> Categorical:
        """Return the item from a number of categories, or from a list of them."""
        parts = [float(part) for part in text.split(",")]
        check_size(parts[0] if len(parts) == 1 else len(parts), MAX_CATEGORIES, text)
        order = parts if len(parts) > 1 else [float(c) for c in range(int(parts[0]))]
        whole = all(c.is_integer() for c in parts)
        if not whole or len(set(order)) != len(order) or len(order) < 2:
            problem = "family='categorical({text})' must have a number of categories, at least 2, "
            problem += "or a list of different whole numbers"
            raise SettingError("family-argument", problem, text=text)
        return cls(tuple(order))

    @classmethod
    def name_from_values(cls, x: Array, weights: Array | None = None) -> str | None:
        """Return the name for values (n,) with weights (n,), most frequent categories first."""
        categories, numbers = np.unique(x, return_inverse=True)
        counts = np.bincount(numbers, weights, minlength=len(categories))
        if len(categories) < 2 or (categories != np.floor(categories)).any():
            return None
        order = np.lexsort((categories, -counts))
        return cls(tuple(float(c) for c in categories[order])).name

    @property
    def response_families(self) -> tuple[str, ...]:
        """One binary family for each category but the last."""
        return ("bernoulli",) * (len(self.order) - 1)

    @property
    def categories(self) -> tuple[float, ...]:
        """The categories, ascending."""
        return tuple(sorted(self.order))

    def possible_values(self) -> Array:
        return np.array(self.categories)

    def find_invalid(self, x: Array) -> ValueProblem | None:
        other = ~np.isin(x, self.order)
        if not other.any():
            return None
        advice = "list all categories in parentheses, or recode the item"
        return ValueProblem(describe_invalid(x, other), Advice("family-argument", advice))

    def expand(self, x: Array) -> Array:
        """Return the nested responses of an item (N,), shape (N, C - 1); NaN after the first 1."""
        place = np.full(len(x), np.nan)
        for c, category in enumerate(self.order):
            place[x == category] = c
        asked = np.arange(len(self.order) - 1)
        answers = np.asarray(place[:, None] == asked, dtype=np.float64)
        answers[~(place[:, None] >= asked)] = np.nan
        return answers

    def collapse(self, responses: Array) -> Array:
        """Return the categories of nested responses (N, C - 1): the position of the first 1."""
        ended = np.hstack([responses == 1, np.ones((len(responses), 1), dtype=bool)])
        return np.asarray(np.array(self.order)[ended.argmax(axis=1)])

    def probabilities(self, yes: Array) -> Array:
        """Return probabilities in ``order``, (..., C), from those of nested ones, (..., C - 1)."""
        none_before = np.concatenate(
            [np.ones_like(yes[..., :1]), np.cumprod(1.0 - yes, axis=-1)], axis=-1
        )
        ends = np.concatenate([yes, np.ones_like(yes[..., :1])], axis=-1)
        return np.asarray(none_before * ends)
