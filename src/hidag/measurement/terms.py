"""Regressors of the linear predictors: level indicators of the latents and their products.

The main terms of latent k are ``1{Z_k >= u}`` for u = 1, ..., M_k - 1; a binary latent has one, its
own value. A latent with *linear* steps has one main term, its score ``Z_k / (M_k - 1)``: a trait
in equal steps. An interaction is a product of such terms of several latents (the paper's ``phi_S``,
and its cumulative thresholds in the polytomous case).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import Advice, Choices, Setting, SettingError, invalid_setting

Array = NDArray[np.float64]
#: Pairs (latent, level that it must reach) of a product, ordered by latent.
Interaction = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Terms:
    """Main terms latent by latent, then interactions: products of indicators of several latents."""

    levels: tuple[int, ...]
    interactions: tuple[Interaction, ...] = ()
    linear: tuple[int, ...] = ()  # Latents with more than two levels in equal steps, ascending.

    def __post_init__(self) -> None:
        for pairs in self.interactions:
            latents = [k for k, _ in pairs]
            if len(pairs) < 2 or sorted(set(latents)) != latents:
                text = (
                    "an interaction must have two or more latents in ascending order, got {pairs}"
                )
                raise SettingError("invalid-interaction", text, pairs=pairs)
            if any(not 1 <= u <= self.widths[k] for k, u in pairs):
                text, beyond = "interaction {pairs} has levels beyond {levels}", self.levels
                raise SettingError("invalid-interaction", text, pairs=pairs, levels=beyond)

    @classmethod
    def main(cls, levels: Iterable[int], linear: Iterable[int] = ()) -> Terms:
        """Return the main terms alone; latents with two levels need not be ``linear``."""
        levels = tuple(int(m) for m in levels)
        return cls(levels, (), tuple(sorted(int(k) for k in linear if levels[k] > 2)))

    def with_thresholds(self, thresholds: NDArray[np.integer]) -> Terms:
        """Return the terms of the same latents with these :attr:`thresholds`, shape (T, K)."""
        products = [tuple((int(k), int(row[k])) for k in np.flatnonzero(row)) for row in thresholds]
        return replace(self, interactions=tuple(products[self.n_main :]))

    @property
    def main_only(self) -> Terms:
        """The main terms alone."""
        return replace(self, interactions=())

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Number of main terms of each latent, length K."""
        return tuple(1 if k in self.linear else m - 1 for k, m in enumerate(self.levels))

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return len(self.levels)

    @cached_property
    def n_main(self) -> int:
        """Number of main terms, the sum of M_k - 1, or 1 for linear steps."""
        return sum(self.widths)

    @property
    def n_terms(self) -> int:
        """Number of all terms, T."""
        return self.n_main + len(self.interactions)

    @cached_property
    def main_latents(self) -> NDArray[np.intp]:
        """Latent of each main term, shape (n_main,)."""
        return np.repeat(np.arange(self.n_latents), np.array(self.widths))

    @cached_property
    def main_levels(self) -> NDArray[np.intp]:
        """Threshold u of each main term, 1 for linear steps, shape (n_main,)."""
        return np.concatenate([np.arange(1, w + 1) for w in self.widths]).astype(np.intp)

    @cached_property
    def involved(self) -> NDArray[np.bool_]:
        """Whether a term involves a latent, shape (T, K)."""
        return self.thresholds > 0

    @property
    def thresholds(self) -> NDArray[np.uint8]:
        """Threshold of each latent in each term, 0 for latents not in the term, (T, K)."""
        out = np.zeros((self.n_terms, self.n_latents), dtype=np.uint8)
        out[np.arange(self.n_main), self.main_latents] = self.main_levels
        for t, pairs in enumerate(self.interactions, start=self.n_main):
            for k, u in pairs:
                out[t, k] = u
        return out

    def joined(self, others: Iterable[Terms]) -> Terms:
        """Return the union of these and other terms of the same latents, ordered by latents."""
        found = set(self.interactions).union(*(terms.interactions for terms in others))
        return replace(self, interactions=tuple(sorted(found, key=_by_latents)))

    def features(self, states: NDArray[np.integer]) -> Array:
        """Return the values of the terms in latent states (n, K), shape (n, T)."""
        rows = np.asarray(states)
        out = np.empty((len(rows), self.n_terms))
        out[:, : self.n_main] = rows[:, self.main_latents] >= self.main_levels
        for k in self.linear:
            out[:, self.firsts[k]] = rows[:, k] / (self.levels[k] - 1)
        for t, pairs in enumerate(self.interactions, start=self.n_main):
            out[:, t] = np.prod([out[:, self.firsts[k] + u - 1] for k, u in pairs], axis=0)
        return out

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """First main term of each latent, length K."""
        return tuple(sum(self.widths[:k]) for k in range(self.n_latents))

    def states_of(self, latents: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return all joint states of some latents with the others at level 0, shape (n, K)."""
        shape = [self.levels[k] for k in latents]
        states = np.zeros((int(np.prod(shape)), self.n_latents), dtype=np.int64)
        states[:, latents] = np.indices(shape).reshape(len(latents), len(states)).T
        return states

    def support(self, q_matrix: NDArray[np.integer] | NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which terms Q (J, K) allows each item to have, shape (J, T)."""
        return np.asarray(~((np.asarray(q_matrix) == 0) @ self.involved.T))

    def latents_of(self, coefficients: Array) -> NDArray[np.bool_]:
        """Return which latents the nonzero coefficients (J, T) involve, shape (J, K)."""
        return np.asarray((coefficients != 0) @ self.involved)

    def strengths(self, coefficients: Array) -> Array:
        """Return the effect of the highest versus the lowest level of each latent, (J, K).

        With interactions the average over uniformly distributed levels of the other latents.
        """
        out = np.zeros((self.n_latents, len(coefficients)))
        np.add.at(out, self.main_latents, coefficients[:, : self.n_main].T)
        for t, pairs in enumerate(self.interactions, start=self.n_main):
            for k, _ in pairs:
                out[k] += self._share(pairs, k) * coefficients[:, t]
        return out.T

    def strengths_among(self, coefficients: Array, states: NDArray[np.integer]) -> Array:
        """Return :meth:`strengths` averaged over patterns of other latents that occur, (J, K)."""
        if not self.interactions:
            return self.strengths(coefficients)
        out = np.zeros((len(coefficients), self.n_latents))
        rows, place = np.unique(self.latents_of(coefficients), axis=0, return_inverse=True)
        for number, row in enumerate(rows):
            items, own = np.flatnonzero(place.ravel() == number), np.flatnonzero(row)
            for k in own:
                others = own[own != k]
                at_ends = [
                    set(map(tuple, states[states[:, k] == end][:, others].tolist()))
                    for end in (0, self.levels[k] - 1)
                ]
                shared = sorted(at_ends[0] & at_ends[1])
                low = np.zeros((len(shared), self.n_latents), dtype=np.int64)
                low[:, others] = np.array(shared, dtype=np.int64).reshape(low[:, others].shape)
                high = low.copy()
                high[:, k] = self.levels[k] - 1
                added = self.features(high) - self.features(low)
                out[items, k] = coefficients[items] @ added.mean(axis=0)
        return out

    def _share(self, pairs: Interaction, latent: int) -> float:
        """Return the average of a product's other terms over uniformly distributed levels."""
        others = [
            0.5 if a in self.linear else (self.levels[a] - u) / self.levels[a]
            for a, u in pairs
            if a != latent
        ]
        return float(np.prod(others))

    def heights(self, coefficients: Array, latent: int) -> Array:
        """Return the effect of each level of a latent versus its lowest, (J, M)."""
        steps = np.zeros((len(coefficients), 1 + self.widths[latent]))
        own = np.flatnonzero(self.main_latents == latent)
        steps[:, self.main_levels[own]] = coefficients[:, own]
        for t, pairs in enumerate(self.interactions, start=self.n_main):
            for k, u in pairs:
                if k == latent:
                    steps[:, u] += self._share(pairs, k) * coefficients[:, t]
        if latent in self.linear:
            return steps[:, 1:] * np.linspace(0.0, 1.0, self.levels[latent])
        return np.cumsum(steps, axis=1)

    def expected_levels(self, above_zero: Array) -> Array:
        """Return each latent's expected level, (N, K), from P(level = u) for u > 0, (N, F)."""
        every = Terms.main(self.levels)
        weighted = above_zero * every.main_levels
        out = np.zeros((self.n_latents, len(above_zero)))
        np.add.at(out, every.main_latents, weighted.T)
        return out.T

    def even_steps(self, loadings: ArrayLike) -> Array:
        """Return coefficients (J, T) with the same effect (J, K) for every level of a latent."""
        steps = np.array([(m - 1) // w for m, w in zip(self.levels, self.widths, strict=True)])
        given = np.asarray(loadings, dtype=np.float64) * steps
        out = np.zeros((len(given), self.n_terms))
        out[:, : self.n_main] = given[:, self.main_latents]
        return out

    def rewritten(self, coefficients: Array, others: Terms) -> Array:
        """Return coefficients (J, T) for other terms of the same latents, zero for new terms."""
        out = np.zeros((len(coefficients), others.n_terms))
        if self.linear == others.linear:
            out[:, : self.n_main] = coefficients[:, : self.n_main]
        else:
            out[:, : others.n_main] = self._main_on(coefficients, others)
        place = {pairs: t for t, pairs in enumerate(self.interactions, start=self.n_main)}
        for t, pairs in enumerate(others.interactions, start=others.n_main):
            if pairs in place:
                out[:, t] = coefficients[:, place[pairs]]
        return out

    def _main_on(self, coefficients: Array, others: Terms) -> Array:
        """Return main coefficients where latents have other steps; linear ones keep the total."""
        out = np.zeros((len(coefficients), others.n_main))
        for k, (old, new) in enumerate(zip(self.widths, others.widths, strict=True)):
            own = coefficients[:, self.firsts[k] : self.firsts[k] + old]
            if old != new:
                own = own.sum(axis=1, keepdims=True) / new
            out[:, others.firsts[k] : others.firsts[k] + new] = own
        return out

    def reordered(self, latents: NDArray[np.intp]) -> tuple[Terms, NDArray[np.intp]]:
        """Return the terms with latent ``latents[k]`` in position k, and their old positions."""
        place = {int(k): i for i, k in enumerate(latents)}
        levels = tuple(self.levels[int(k)] for k in latents)
        main = [self.firsts[k] + np.arange(self.widths[k]) for k in latents]
        kept = [
            (tuple(sorted((place[k], u) for k, u in pairs)), t)
            for t, pairs in enumerate(self.interactions, start=self.n_main)
            if all(k in place for k, _ in pairs)
        ]
        # Interactions are ordered by the latents' new positions.
        kept.sort(key=lambda entry: _by_latents(entry[0]))
        positions = np.array([t for _, t in kept], dtype=np.intp)
        order = np.concatenate([*main, positions]).astype(np.intp)
        linear = tuple(sorted(place[k] for k in self.linear if k in place))
        return Terms(levels, tuple(pairs for pairs, _ in kept), linear), order

    def names(self, latents: Iterable[str]) -> list[str]:
        """Return readable names of the terms: ``anxiety``, ``anxiety>=2``, ``anxiety*sleep``."""
        labels = list(latents)

        def one(k: int, u: int) -> str:
            return labels[k] if self.widths[k] == 1 else f"{labels[k]}>={u}"

        main = [one(k, u) for k, u in zip(self.main_latents, self.main_levels, strict=True)]
        return main + ["*".join(one(k, u) for k, u in pairs) for pairs in self.interactions]


def _by_latents(pairs: Interaction) -> tuple[int, list[int], Interaction]:
    """Return the sort key of interactions: number of latents, latents, thresholds."""
    return len(pairs), [k for k, _ in pairs], pairs


def interactions_within(
    q_matrix: NDArray[np.integer] | NDArray[np.bool_],
    levels: tuple[int, ...],
    highest: int,
    linear: tuple[int, ...] = (),
) -> tuple[Interaction, ...]:
    """Return products of main terms of at most ``highest`` latents of a row of Q (J, K)."""
    widths = Terms.main(levels, linear).widths
    found: set[tuple[int, ...]] = set()
    for row in np.unique(np.asarray(q_matrix) != 0, axis=0):
        latents = [int(k) for k in np.flatnonzero(row)]
        for size in range(2, min(len(latents), highest) + 1):
            found.update(combinations(latents, size))
    out: list[Interaction] = []
    for latents_of_product in sorted(found, key=lambda s: (len(s), s)):
        ranges = [range(1, widths[k] + 1) for k in latents_of_product]
        out.extend(tuple(zip(latents_of_product, us, strict=True)) for us in product(*ranges))
    return tuple(out)


#: Names of effects, with those of cognitive diagnosis models.
NAMED_EFFECTS = ("main", "auto", "all", "acdm", "gdina", "dina", "dino")
MAX_TERMS = 400  # Largest number of terms of a fit, for memory.


@dataclass(frozen=True)
class Effects:
    """Main effects and interactions up to order ``highest`` in the linear predictors.

    ``conjunctive``: only the product of all latents of an item (DINA); ``reversed``: of absences
    (DINO); ``selected``: only interactions that the data support.
    """

    highest: int = 1
    conjunctive: bool = False
    reversed: bool = False
    selected: bool = False

    @classmethod
    def of(cls, given: Any) -> Effects:
        """Return the effects given by name or by their highest order."""
        if isinstance(given, Effects):
            return given
        if isinstance(given, str) and given in NAMED_EFFECTS:
            if given in ("main", "acdm"):
                return cls()
            if given == "auto":
                return cls(ALL_ORDERS, selected=True)
            together = given in ("dina", "dino")
            return cls(ALL_ORDERS, conjunctive=together, reversed=given == "dino")
        whole = isinstance(given, (int, np.integer)) and not isinstance(given, bool)
        if whole and given >= 1:
            return cls(int(given))
        highest = "the highest order of an interaction (1, 2, ...)"
        raise invalid_setting("effects", Choices(tuple(NAMED_EFFECTS), highest), given)

    @property
    def main_only(self) -> bool:
        """Whether nothing but main effects is allowed."""
        return self.highest == 1

    def terms(
        self, q_matrix: NDArray[np.integer], levels: tuple[int, ...], linear: tuple[int, ...] = ()
    ) -> Terms:
        """Return the terms allowed by Q (J, K), with all lower orders: levels can be reversed."""
        products = interactions_within(q_matrix, levels, self.highest, linear)
        terms = replace(Terms.main(levels, linear), interactions=products)
        if terms.n_terms > MAX_TERMS:
            lower = {"order": Setting("effects", 2)}
            remedy = "use a lower order, such as {order}, or give a sparser Q"
            text = "the items would have {n_terms} different terms, more than {maximum}"
            params = {"n_terms": terms.n_terms, "maximum": MAX_TERMS}
            raise SettingError(
                "too-many-terms", text, params, advice=Advice("set-option", remedy, lower)
            )
        return terms

    def support(self, terms: Terms, q_matrix: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which terms each item may have, shape (J, T)."""
        out = terms.support(q_matrix)
        if self.conjunctive:
            # The product of all latents of the item.
            widths = (np.asarray(q_matrix) != 0).sum(axis=1)
            out &= terms.involved.sum(axis=1)[None, :] == widths[:, None]
        return out


ALL_ORDERS = 1 << 30  # An order beyond any item.
MAIN_EFFECTS = Effects()
