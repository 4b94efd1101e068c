"""Nominal items as nested yes/no responses: is it this category, given none of the earlier ones?

A categorical item with C categories is C - 1 Bernoulli responses. A response is missing where an
earlier one was a yes: the category is known by then. The product of the nested probabilities is the
probability of the category, so nothing is lost; with one parent the model is that of multinomial
logit. An item stays one item to the user: it measures a latent if one of its responses does.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import SettingError
from hidag.measurement.families.base import Finding, found_elsewhere
from hidag.measurement.families.registry import split_name, written

Array = NDArray[np.float64]

#: The name of nominal items, without brackets.
CATEGORICAL = "categorical"
#: The family of each of a nominal item's responses.
NESTED = "bernoulli"


@dataclass(frozen=True)
class Categorical:
    """A nominal item: its categories in the order in which they are asked about.

    ``categorical(4)`` has the categories 0 to 3 in this order; ``categorical(2,0,1)`` asks about
    category 2 first.
    """

    categories: tuple[float, ...]

    aliases = ("nominal", "multinomial", "factor")
    number_means = "number of categories"
    example_number = "4"
    meaning = "unordered categories"

    @property
    def name(self) -> str:
        """The name with brackets."""
        if self.categories == tuple(range(len(self.categories))):
            return f"{CATEGORICAL}({len(self.categories)})"
        return f"{CATEGORICAL}({','.join(written(c) for c in self.categories)})"

    @property
    def need(self) -> str:
        """The values that the item takes."""
        return f"one of {', '.join(written(c) for c in sorted(self.categories))}"

    @classmethod
    def from_brackets(cls, text: str) -> Categorical:
        """Return the item from a number of categories, or from a list of them."""
        parts = [float(part) for part in text.split(",")]
        categories = parts if len(parts) > 1 else [float(c) for c in range(int(parts[0]))]
        whole = all(c.is_integer() for c in parts)
        if not whole or len(set(categories)) != len(categories) or len(categories) < 2:
            raise SettingError(
                f"family='{CATEGORICAL}({text})' must have a number of categories, at least 2, or "
                "their list, whole numbers that differ"
            )
        return cls(tuple(categories))

    @classmethod
    def name_from_values(cls, x: Array, weights: Array | None = None) -> str | None:
        """Return the name for the values (n,) of an item: frequent categories are asked first.

        ``weights`` (n,) say how many rows each value counts for.
        """
        categories, numbers = np.unique(x, return_inverse=True)
        counts = np.bincount(numbers, weights, minlength=len(categories))
        if len(categories) < 2 or (categories != np.floor(categories)).any():
            return None
        order = np.lexsort((categories, -counts))
        return cls(tuple(float(c) for c in categories[order])).name

    def finding(self, x: Array) -> Finding:
        """Return the values that are none of the categories."""
        other = ~np.isin(x, self.categories)
        if not other.any():
            return None
        return (
            found_elsewhere(x, other),
            "name all categories in the brackets, or recode the item",
        )

    def column_finding(self, x: Array) -> Finding:
        """Return nothing: fitting needs no more of a nominal item than of any."""
        return None

    def expand(self, x: Array) -> Array:
        """Return the nested responses of an item (N,), shape (N, C - 1); NaN where not asked."""
        place = np.full(len(x), np.nan)
        for c, category in enumerate(self.categories):
            place[x == category] = c
        asked = np.arange(len(self.categories) - 1)
        answers = np.asarray(place[:, None] == asked, dtype=np.float64)
        answers[~(place[:, None] >= asked)] = np.nan
        return answers

    def collapse(self, answers: Array) -> Array:
        """Return the categories of nested responses (N, C - 1); the first yes decides."""
        ended = np.hstack([answers == 1, np.ones((len(answers), 1), dtype=bool)])
        return np.asarray(np.array(self.categories)[ended.argmax(axis=1)])

    def probabilities(self, yes: Array) -> Array:
        """Return each category's probability, (..., C), from those of nested yeses (..., C - 1).

        In the order in which categories are asked about.
        """
        none_before = np.concatenate(
            [np.ones_like(yes[..., :1]), np.cumprod(1.0 - yes, axis=-1)], axis=-1
        )
        ends = np.concatenate([yes, np.ones_like(yes[..., :1])], axis=-1)
        return np.asarray(none_before * ends)


def worded(value: float, words: Sequence[str] | None) -> str:
    """Return a value as its answer was worded, or as a number where no word stands for it."""
    return written(value) if words is None or value >= len(words) else words[int(value)]


@lru_cache(maxsize=1024)
def categorical_named(name: str) -> Categorical | None:
    """Return the nominal item of that name, None if the name is that of a family."""
    kind, text = split_name(name)
    if kind != CATEGORICAL:
        return None
    if text is None:
        raise SettingError(
            f"family='{CATEGORICAL}' needs its {Categorical.number_means} in brackets, such as "
            f"'{CATEGORICAL}({Categorical.example_number})'"
        )
    try:
        return Categorical.from_brackets(text)
    except ValueError as error:
        if isinstance(error, SettingError):
            raise
        raise SettingError(
            f"family={name!r} must have numbers in its brackets; use for instance "
            f"'{CATEGORICAL}({Categorical.example_number})'"
        ) from None


@dataclass(frozen=True)
class Responses:
    """The responses of J items: one for each, several for nominal ones (R in all).

    Attributes
    ----------
    item_families : tuple of str, length J
    families : tuple of str, length R
    item : ndarray of int, shape (R,)
        Item of each response.
    """

    item_families: tuple[str, ...]
    families: tuple[str, ...]
    item: NDArray[np.intp]

    @classmethod
    def of(cls, item_families: Sequence[str]) -> Responses:
        """Return the responses of items with these families."""
        families: list[str] = []
        item: list[int] = []
        for j, name in enumerate(item_families):
            nominal = categorical_named(name)
            n_responses = 1 if nominal is None else len(nominal.categories) - 1
            families += [name if nominal is None else NESTED] * n_responses
            item += [j] * n_responses
        return cls(tuple(item_families), tuple(families), np.array(item, dtype=np.intp))

    @property
    def plain(self) -> bool:
        """Whether every item is its own response."""
        return CATEGORICAL not in self._kinds

    @cached_property
    def _kinds(self) -> frozenset[str]:
        return frozenset(split_name(name)[0] for name in self.item_families)

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """First response of each item, shape (J,)."""
        return np.searchsorted(self.item, np.arange(len(self.item_families)))

    @cached_property
    def questions(self) -> tuple[Hashable, ...]:
        """What each response asks, length R: coefficients of the same question can be compared.

        The item's number; of a nominal item also the category, and which ones are left by then.
        """
        out: list[Hashable] = []
        for j, family in enumerate(self.item_families):
            nominal = categorical_named(family)
            if nominal is None:
                out.append((j,))
                continue
            order = nominal.categories
            out += [(j, order[c], frozenset(order[c:])) for c in range(len(order) - 1)]
        return tuple(out)

    def names(
        self, item_names: Sequence[str], words: Mapping[str, Sequence[str]] | None = None
    ) -> tuple[str, ...]:
        """Return a name for each response: that of its item, with the category if nominal.

        ``words`` are those of items whose answers stood in words.
        """
        out: list[str] = []
        for name, family in zip(item_names, self.item_families, strict=True):
            nominal = categorical_named(family)
            asked = () if nominal is None else nominal.categories[:-1]
            out += (
                [name]
                if nominal is None
                else [f"{name}={worded(c, (words or {}).get(name))}" for c in asked]
            )
        return tuple(out)

    def expand(self, values: Array) -> Array:
        """Return responses (N, R) of items (N, J); the same array if every item is its own."""
        if self.plain:
            return values
        parts = []
        for j, family in enumerate(self.item_families):
            nominal = categorical_named(family)
            column = values[:, j]
            parts.append(column[:, None] if nominal is None else nominal.expand(column))
        return np.hstack(parts)

    def collapse(self, responses: Array) -> Array:
        """Return items (N, J) of complete responses (N, R)."""
        if self.plain:
            return responses
        out = np.empty((len(responses), len(self.item_families)))
        for j, family in enumerate(self.item_families):
            own = responses[:, self.item == j]
            nominal = categorical_named(family)
            out[:, j] = own[:, 0] if nominal is None else nominal.collapse(own)
        return out

    def of_items(self, entries: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the items' rows of Q (J, K) for each of their responses, (R, K)."""
        return entries if self.plain else entries[self.item]

    def largest(self, strengths: Array) -> Array:
        """Return what is largest in size among an item's responses: (R, K) to (J, K)."""
        if self.plain:
            return strengths
        top = np.maximum.reduceat(strengths, self.starts, axis=0)
        bottom = np.minimum.reduceat(strengths, self.starts, axis=0)
        return np.where(np.abs(bottom) > np.abs(top), bottom, top)

    def any_response(self, support: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether any response of an item has it: (R, ...) to (J, ...)."""
        return support if self.plain else np.logical_or.reduceat(support, self.starts, axis=0)
