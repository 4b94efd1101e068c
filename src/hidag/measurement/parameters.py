"""Parameters of the items, and the responses that they belong to.

Most items are one response; nominal items are several.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import DataError
from hidag.measurement.families import Family, default_family, family_named, item_type
from hidag.measurement.families.base import format_argument
from hidag.measurement.families.categorical import Categorical
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


def nominal_item(name: str) -> Categorical | None:
    """Return the nominal item of a name, None if the name is that of a response family."""
    found = item_type(name)
    return found if isinstance(found, Categorical) else None


def category_label(value: float, words: Sequence[str] | None) -> str:
    """Return the word for a category, or the number if there is none."""
    return format_argument(value) if words is None or value >= len(words) else words[int(value)]


@dataclass(frozen=True)
class Responses:
    """The R responses of J items; ``item``, shape (R,), has the item of each response."""

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
        """Identifiers of the responses, length R: equal ones have comparable coefficients."""
        out: list[Hashable] = []
        for j, family in enumerate(self.item_families):
            nominal = nominal_item(family)
            order = () if nominal is None else nominal.order
            out += [(j, c, frozenset(order[at:])) for at, c in enumerate(order[:-1])] or [(j,)]
        return tuple(out)

    def names(
        self, item_names: Sequence[str], words: Mapping[str, Sequence[str]] | None = None
    ) -> tuple[str, ...]:
        """Return the names of the responses: the item, and the category (or its label)."""
        out: list[str] = []
        for name, family in zip(item_names, self.item_families, strict=True):
            nominal, labels = nominal_item(family), (words or {}).get(name)
            order = () if nominal is None else nominal.order[:-1]
            out += [f"{name}={category_label(c, labels)}" for c in order] or [name]
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


@dataclass(frozen=True)
class Columns:
    """Columns of the working data of J items: ``starts[j]`` to ``starts[j + 1] - 1`` for item j."""

    starts: Indices
    item: Indices

    @property
    def n_columns(self) -> int:
        """Number of columns of all items."""
        return len(self.item)

    @property
    def single(self) -> bool:
        """Whether every item has one column."""
        return len(self.item) == len(self.starts) - 1

    def of(self, family: Family, items: Indices) -> Indices:
        """Return the columns of items of one family, shape (n,), or (D, n) if it has several."""
        if family.n_columns == 1:
            return np.asarray(self.starts[items])
        return np.asarray(self.starts[items] + np.arange(family.n_columns)[:, None])

    def add_up(self, values: NDArray[np.float64], axis: int = 0) -> NDArray[np.float64]:
        """Return sums over the columns of each item, along an axis that runs over columns."""
        return values if self.single else np.add.reduceat(values, self.starts[:-1], axis=axis)

    def listed(self, items: Indices) -> tuple[Indices, Indices, Indices]:
        """Return the columns of some items, the place of each in ``items`` and within its item."""
        if self.single:
            return items, np.arange(len(items)), np.zeros(len(items), dtype=np.intp)
        widths = np.diff(self.starts)[items]
        places = np.repeat(np.arange(len(items)), widths)
        within = np.arange(len(places)) - np.repeat(np.cumsum(widths) - widths, widths)
        return self.starts[items][places] + within, places, within


@lru_cache(maxsize=64)
def columns_of(families: tuple[str, ...]) -> Columns:
    """Return the columns of items with these families."""
    widths = np.array([family_named(name).n_columns for name in families], dtype=np.intp)
    starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.intp)
    item = np.repeat(np.arange(len(families)), widths)
    for array in (starts, item):
        array.setflags(write=False)
    return Columns(starts, item)


@dataclass(frozen=True)
class MeasurementParameters:
    """Coefficients of J items on T terms of K latents.

    Intercepts (J,), loadings (J, T) on main terms latent by latent and then on interactions,
    dispersions (J,), 1 for families without one, and cutpoints (J, C) of ordered grades after the
    first, padded by NaN. By default the terms are the main ones of binary latents.
    """

    families: tuple[str, ...]
    intercept: Array
    loadings: Array
    dispersion: Array
    terms: Terms = None  # type: ignore[assignment]
    cutpoints: Array = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        n_items = len(self.families)
        if self.cutpoints is None:
            object.__setattr__(self, "cutpoints", np.zeros((n_items, 0)))
        for name in ("intercept", "loadings", "dispersion", "cutpoints"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.shape[0] != n_items:
                text = "{n_items} items need as many rows of {name}, got {n_rows}"
                sizes = {"n_items": n_items, "n_rows": len(values)}
                raise DataError("wrong-shape", text, sizes, name=name)
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        if self.terms is None:
            object.__setattr__(self, "terms", Terms.main((2,) * self.loadings.shape[1]))
        if self.terms.n_terms != self.loadings.shape[1]:
            text = "{n_terms} terms need as many columns of loadings, got {n_columns}"
            sizes = {"n_terms": self.terms.n_terms, "n_columns": self.loadings.shape[1]}
            raise DataError("wrong-shape", text, sizes)

    @classmethod
    def linear(cls, intercept: Array, loadings: Array, terms: Terms) -> MeasurementParameters:
        """Return items with these coefficients, for operations that do not depend on families."""
        n_items = len(intercept)
        families = (default_family("real"),) * n_items
        return cls(families, intercept, loadings, np.ones(n_items), terms)

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return len(self.families)

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return self.terms.n_latents

    @property
    def coefficients(self) -> Array:
        """Intercepts and loadings, shape (J, 1 + T)."""
        return np.hstack([self.intercept[:, None], self.loadings])

    @property
    def support(self) -> NDArray[np.bool_]:
        """Latents with a nonzero coefficient on each item, shape (J, K)."""
        return self.terms.latents_of(self.loadings)

    @property
    def q_matrix(self) -> NDArray[np.int8]:
        """The support as zeros and ones, shape (J, K)."""
        return np.asarray(self.support, dtype=np.int8)

    @property
    def strengths(self) -> Array:
        """Effects of the highest versus the lowest level, shape (J, K): :meth:`Terms.strengths`."""
        return self.terms.strengths(self.loadings)

    def predictors(self, states: NDArray[np.integer]) -> Array:
        """Return the linear predictors in latent states (n, K), shape (J, n)."""
        return self.intercept[:, None] + self.loadings @ self.terms.features(states).T

    def lowest_predictors(self) -> Array:
        """Return the smallest linear predictor of each item over all states, (J,)."""
        if not self.terms.interactions:
            return lowest_of_main(self.coefficients, self.terms)
        states = [self.terms.states_of(np.flatnonzero(row)) for row in self.support]
        features = map(self.terms.features, states)
        lowest = [(own @ row).min() for own, row in zip(features, self.loadings, strict=True)]
        return np.asarray(self.intercept + np.array(lowest))

    def in_range(self) -> NDArray[np.bool_]:
        """Return which items' predictors and cutpoints are admissible, shape (J,)."""
        floors = np.array([family_named(name).lowest_predictor for name in self.families])
        out = np.ones(self.n_items, dtype=bool)
        if np.isfinite(floors).any():
            out = self.lowest_predictors() >= floors
        if self.cutpoints.shape[1]:
            rising = np.diff(np.hstack([np.zeros((self.n_items, 1)), self.cutpoints]), axis=1)
            # Comparisons with the padding NaN are false.
            out &= ~(rising <= 0).any(axis=1)
        return out

    @property
    def deviations(self) -> Array:
        """Divisors of standardised loadings, (J,): residual standard deviations, else 1."""
        spread = np.array([family_named(name).dispersion_is_variance for name in self.families])
        return np.where(spread, np.sqrt(self.dispersion), 1.0)

    def response_means(self, states: NDArray[np.integer]) -> Array:
        """Return the items' means in the user's units in latent states (n, K), shape (n, J)."""
        return self._by_family(states, lambda family, *given: family.response_mean(*given))

    def sample(self, states: NDArray[np.integer], rng: np.random.Generator) -> Array:
        """Return responses drawn in latent states (n, K), shape (n, J)."""
        return self._by_family(states, lambda family, *given: family.sample(*given, rng))

    def _by_family(self, states: NDArray[np.integer], respond: Callable[..., Array]) -> Array:
        """Return a function of family, predictors and auxiliaries in latent states, (n, J)."""
        out = np.ascontiguousarray(self.predictors(states).T)
        for family, items in self.groups():
            out[:, items] = respond(family, out[:, items], self.auxiliary(family, items))
        return out

    def within_bounds(self, dispersion: Array) -> Array:
        """Return dispersions (J,) clipped to the bounds of the families."""
        out = dispersion.copy()
        for family, items in self.groups():
            if family.has_dispersion:
                out[items] = np.clip(out[items], *family.dispersion_bounds)
        return out

    def groups(self) -> Iterator[tuple[Family, NDArray[np.intp]]]:
        """Yield each family that occurs with the positions of its items."""
        names = np.array(self.families)
        for name in sorted(set(self.families)):
            yield family_named(name), np.flatnonzero(names == name)

    def auxiliary(self, family: Family, items: NDArray[np.intp]) -> Array:
        """Return the cutpoints (n, C) of items of one family, or their dispersions (n,)."""
        if family.n_cutpoints:
            return self.cutpoints[items, : family.n_cutpoints]
        return self.dispersion[items]

    def tables(self, features: Array) -> tuple[Array, Array]:
        """Return ``theta`` of the columns and ``A`` of the items for features (n_states, T)."""
        columns = columns_of(self.families)
        theta = np.empty((columns.n_columns, len(features)))
        partition = np.empty((self.n_items, len(features)))
        for family, items in self.groups():
            eta = self.intercept[items, None] + self.loadings[items] @ features.T
            found = family.natural(eta, self.auxiliary(family, items)[:, None])
            theta[columns.of(family, items)], partition[items] = found
        return theta, partition

    def with_terms(self, terms: Terms) -> MeasurementParameters:
        """Return the items with other terms; coefficients of common terms are kept."""
        return replace(self, loadings=self.terms.rewritten(self.loadings, terms), terms=terms)

    def reordered(
        self, *, items: NDArray[np.intp] | None = None, latents: NDArray[np.intp] | None = None
    ) -> MeasurementParameters:
        """Return the parameters with items and latents in the given order."""
        rows = np.arange(self.n_items) if items is None else items
        terms, columns = self.terms, np.arange(self.terms.n_terms)
        if latents is not None:
            terms, columns = self.terms.reordered(latents)
        return MeasurementParameters(
            tuple(self.families[j] for j in rows),
            self.intercept[rows],
            self.loadings[np.ix_(rows, columns)],
            self.dispersion[rows],
            terms,
            self.cutpoints[rows],
        )

    def flipped(self, flips: NDArray[np.bool_]) -> MeasurementParameters:
        """Return the items with the levels of some latents (K,) reversed."""
        both = zip(self.terms.levels, flips, strict=True)
        return self.relevelled([np.arange(m)[:: -1 if turned else 1] for m, turned in both])

    def relevelled(self, orders: Sequence[NDArray[np.integer]]) -> MeasurementParameters:
        """Return the items when level ``orders[k][v]`` of latent k becomes level v."""
        terms = self.terms
        intercept, loadings = self.intercept.copy(), self.loadings.copy()
        place = {
            ((int(k), int(u)),): t
            for t, (k, u) in enumerate(zip(terms.main_latents, terms.main_levels, strict=True))
        } | {pairs: t for t, pairs in enumerate(terms.interactions, start=terms.n_main)}
        for k, order in enumerate(orders):
            if np.array_equal(order, np.arange(len(order))):
                continue
            old, loadings = loadings, loadings.copy()
            touched = [(pairs, t) for pairs, t in place.items() if any(a == k for a, _ in pairs)]
            for _, t in touched:
                loadings[:, t] = 0.0
            for pairs, t in touched:
                rest = tuple(pair for pair in pairs if pair[0] != k)
                asked = next(u for a, u in pairs if a == k)
                # Scores of linear steps can be reversed only: their one step becomes its opposite.
                steps = np.array([1, 0]) if k in terms.linear else np.asarray(order) >= asked
                reached = steps.astype(np.int64)
                for v, step in enumerate(np.diff(reached), start=1):
                    if step:
                        there = tuple((a, v if a == k else u) for a, u in pairs)
                        loadings[:, place[there]] += step * old[:, t]
                if reached[0] and rest:
                    loadings[:, place[rest]] += old[:, t]
                elif reached[0]:
                    intercept += old[:, t]
        return replace(self, intercept=intercept, loadings=loadings + 0.0)

    def pruned(self) -> MeasurementParameters:
        """Return the items without interactions that are part of none with a coefficient."""
        terms = self.terms
        used = (self.loadings[:, terms.n_main :] != 0).any(axis=0)
        sets = [frozenset(k for k, _ in pairs) for pairs in terms.interactions]
        kept = {latents for latents, own in zip(sets, used, strict=True) if own}
        left = [
            pairs
            for pairs, latents in zip(terms.interactions, sets, strict=True)
            if any(latents <= larger for larger in kept)
        ]
        return self.with_terms(replace(terms, interactions=tuple(left)))

    def heights(self, latent: int) -> Array:
        """Return the average effect of each level of a latent versus its lowest, shape (J, M)."""
        return self.terms.heights(self.loadings, latent)


def lowest_of_main(coefficients: Array, terms: Terms) -> Array:
    """Return the smallest predictor of items with main effects (J, 1 + n_main), shape (J,)."""
    out = coefficients[:, 0].copy()
    if max(terms.levels) == 2:
        return np.asarray(out + np.minimum(coefficients[:, 1:], 0.0).sum(axis=1))
    begin = 1
    for width in terms.widths:
        heights = np.cumsum(coefficients[:, begin : begin + width], axis=1)
        out += np.minimum(heights.min(axis=1), 0.0)
        begin += width
    return out


def order_levels(working: MeasurementParameters, latent: int) -> NDArray[np.intp]:
    """Return a latent's levels from low to high along the principal component of their effects."""
    heights = working.heights(latent) / working.deviations[:, None]
    centred = heights - heights.mean(axis=1, keepdims=True)
    line = np.linalg.svd(centred, full_matrices=False)[2][0]
    order = np.argsort(line, kind="stable")
    rises = (heights[:, order[-1]] - heights[:, order[0]]).sum()
    return np.asarray(order if rises >= 0 else order[::-1], dtype=np.intp)


def order_all_levels(working: MeasurementParameters) -> tuple[NDArray[np.intp], ...]:
    """Return the levels of every latent from low to high."""
    return tuple(order_levels(working, k) for k in range(working.n_latents))
