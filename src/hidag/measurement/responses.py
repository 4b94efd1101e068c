"""Map items to responses: most items are one response, nominal items are several."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hidag.measurement.families.categorical import Categorical
from hidag.measurement.families.registry import format_argument, item_type

Array = NDArray[np.float64]


def nominal_item(name: str) -> Categorical | None:
    """Return the nominal item of a name, None if the name is that of a response family."""
    found = item_type(name)
    return found if isinstance(found, Categorical) else None


def category_label(value: float, words: Sequence[str] | None) -> str:
    """Return the word for a category, or the number if there is none."""
    return format_argument(value) if words is None or value >= len(words) else words[int(value)]


@dataclass(frozen=True)
class Responses:
    """The R responses of J items.

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
        families = [item_type(name).response_families for name in item_families]
        item = np.repeat(np.arange(len(families)), [len(own) for own in families])
        return cls(
            tuple(item_families), tuple(f for own in families for f in own), item.astype(np.intp)
        )

    @cached_property
    def plain(self) -> bool:
        """Whether every item is its own response."""
        return not any(item_type(name).is_nominal for name in self.item_families)

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """First response of each item, shape (J,)."""
        return np.searchsorted(self.item, np.arange(len(self.item_families)))

    @cached_property
    def questions(self) -> tuple[Hashable, ...]:
        """Identifiers of the responses, length R: equal ones have comparable coefficients.

        The number of the item; for nominal items also the category and the categories not yet
        excluded.
        """
        out: list[Hashable] = []
        for j, family in enumerate(self.item_families):
            nominal = nominal_item(family)
            if nominal is None:
                out.append((j,))
            else:
                order = nominal.order
                out += [(j, order[c], frozenset(order[c:])) for c in range(len(order) - 1)]
        return tuple(out)

    def names(
        self, item_names: Sequence[str], words: Mapping[str, Sequence[str]] | None = None
    ) -> tuple[str, ...]:
        """Return the names of the responses: the item, and the category of nominal items.

        ``words`` are the category labels by item.
        """
        out: list[str] = []
        for name, family in zip(item_names, self.item_families, strict=True):
            nominal = nominal_item(family)
            if nominal is None:
                out.append(name)
            else:
                labels = (words or {}).get(name)
                out += [f"{name}={category_label(c, labels)}" for c in nominal.order[:-1]]
        return tuple(out)

    def expand(self, values: Array) -> Array:
        """Return responses (N, R) of items (N, J); the same array if every item is its own."""
        if self.plain:
            return values
        return np.hstack(
            [item_type(name).expand(values[:, j]) for j, name in enumerate(self.item_families)]
        )

    def collapse(self, responses: Array) -> Array:
        """Return items (N, J) of complete responses (N, R)."""
        if self.plain:
            return responses
        return np.column_stack(
            [
                item_type(name).collapse(responses[:, self.item == j])
                for j, name in enumerate(self.item_families)
            ]
        )

    def of_items(self, entries: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the rows of Q (J, K) of the items for each response, (R, K)."""
        return entries if self.plain else entries[self.item]

    def largest(self, strengths: Array) -> Array:
        """Return the entry of largest absolute value of each item's responses: (R, K) to (J, K)."""
        if self.plain:
            return strengths
        top = np.maximum.reduceat(strengths, self.starts, axis=0)
        bottom = np.minimum.reduceat(strengths, self.starts, axis=0)
        return np.where(np.abs(bottom) > np.abs(top), bottom, top)

    def any_response(self, support: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the union over each item's responses: (R, ...) to (J, ...)."""
        return support if self.plain else np.logical_or.reduceat(support, self.starts, axis=0)
