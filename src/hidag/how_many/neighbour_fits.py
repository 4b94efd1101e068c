"""Fits that begin where fits with one latent more or fewer ended.

Where items hardly show their latents, each number's own search ends somewhere near its best fit,
and how near differs from number to number by more than one latent more or less is worth. Numbers
would be compared by the luck of their searches. But a fit with one latent fewer tells where to
begin: one of its latents, whose items have more in common than the fit says, is taken apart. So
does a fit with one more: a latent is left out. Such fits cost a small part of a search. They are
made up and down between the numbers that were fitted, from whatever is the best fit of each, until
none gets better. Then no number is behind another for what that one could have told it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf, isnan
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from hidag.how_many.common_strength import Fit, bic_at
from hidag.how_many.rule import LOOK_BEYOND, Comparison
from hidag.measurement import MeasurementParameters
from hidag.result import FitResult
from hidag.row_posteriors import MOST_EXACT_STATES
from hidag.start.points import spread_law
from hidag.start.two_in_one import FEWEST_ITEMS, HALVES_AGREE, beyond_the_fit, two_sides

Array = NDArray[np.float64]
#: Items and a law to begin from.
Place = tuple[MeasurementParameters, Array]

#: Latents of a fit that are taken apart, and that are left out.
MOST_TRIED = 4
#: Rounds up and down through the numbers.
MOST_ROUNDS = 3
#: Numbers are told of a fit that is better by this much of BIC: less is a step of EM.
LEAST_GAIN = 1.0


def can_tell(result: FitResult) -> bool:
    """Return whether a fit tells others where to begin: binary latents, whose effects add up."""
    return (
        set(result.law.space.levels) == {2}
        and result.law.space.n_states <= MOST_EXACT_STATES
        and result.parameters.terms.n_terms == result.law.space.n_latents
    )


def taken_apart(result: FitResult, values: Array, weights: Array | None = None) -> Iterator[Place]:
    """Yield places for one latent more: those latents first whose items look most like two.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
        NaN in missing cells.
    weights : ndarray, shape (N,), optional
    """
    x = result.responses.expand(values)
    means = result.item_means(result.law.space.states()).T
    law = np.asarray(result.law.probabilities)
    excess = beyond_the_fit(x, (~np.isnan(x)).astype(np.float64), weights, means, law)
    found = []
    for latent in range(result.law.space.n_latents):
        own = np.flatnonzero(result.parameters.loadings[:, latent])
        if len(own) >= FEWEST_ITEMS:
            leaving, size = two_sides(excess, own)
            found.append((-size, latent, leaving))
    for _, latent, leaving in sorted(found, key=lambda one: one[:2])[:MOST_TRIED]:
        yield _halved(result, latent, leaving)


def with_one_less(result: FitResult) -> Iterator[Place]:
    """Yield places for one latent fewer: those first without a latent that has little to say."""
    items, law = result.parameters, np.asarray(result.law.probabilities)
    levels = result.law.space.levels
    for latent in np.argsort(np.abs(items.loadings).sum(axis=0), kind="stable")[:MOST_TRIED]:
        rest = law.reshape(levels).sum(axis=int(latent)).ravel()
        yield _moved(result, np.delete(items.loadings, latent, axis=1), rest)


def _halved(result: FitResult, latent: int, leaving: NDArray[np.intp]) -> Place:
    """Return items and law with a last latent that some items of another one have gone over to."""
    loadings = result.parameters.loadings
    new = np.zeros(len(loadings))
    new[leaving] = loadings[leaving, latent]
    wider = np.column_stack([loadings, new])
    wider[leaving, latent] = 0.0
    is_high = result.law.space.states()[:, latent] == 1
    high = np.where(is_high, HALVES_AGREE, 1.0 - HALVES_AGREE)
    law = np.asarray(result.law.probabilities)[:, None] * np.column_stack([1.0 - high, high])
    return _moved(result, wider, law.ravel())


def _moved(result: FitResult, loadings: Array, law: Array) -> Place:
    """Return items with other loadings, their predictors' means as they were, and the law."""
    items = result.parameters
    before = np.asarray(result.law.probabilities) @ result.law.space.states()
    states = np.indices((2,) * loadings.shape[1]).reshape(loadings.shape[1], -1)
    intercept = items.intercept + items.loadings @ before - loadings @ (states @ law)
    moved = MeasurementParameters(
        items.families, intercept, loadings, items.dispersion, cutpoints=items.cutpoints
    )
    return moved, spread_law(law)


@dataclass
class Neighbours(Generic[Fit]):
    """Tells numbers of latents of each other's fits.

    Attributes
    ----------
    fits : dict of int to list of fits
        By number of latents; of those that began at a neighbour the best is added, one for each
        number of latents that count.
    begun : callable
        Fits with a number of latents from a place.
    values : ndarray, shape (N, J)
    weights : ndarray, shape (N,), or None
    """

    fits: dict[int, list[Fit]]
    begun: Callable[[int, Place], Fit]
    values: Array
    weights: Array | None = None
    _asked: dict[tuple[int, int], Fit] = field(default_factory=dict)
    _added: dict[int, tuple[int, Fit]] = field(default_factory=dict)
    _rounds: int = 0

    def tell(self, compared: Comparison) -> bool:
        """Go up and down through the numbers near the best once; return whether one got better."""
        if self._rounds >= MOST_ROUNDS or not compared.hardly_seen:
            return False
        self._rounds += 1
        better = False
        for step in (1, -1):
            bic = compared.bic
            best = min(bic, key=lambda k: (bic[k], k))
            near = range(best - LOOK_BEYOND, best + LOOK_BEYOND + 1)
            for k in near[::step]:
                if k in bic and k + step in bic and k + step in near:
                    better |= self._told(k, k + step, compared)
        return better

    def _told(self, k: int, other: int, compared: Comparison) -> bool:
        """Fit a number from the best fit of another one; return whether it got better."""
        known = [one for one in self.fits[k] if not isnan(one.bic)]
        if not known:
            return False
        teller = min(known, key=lambda one: bic_at(one, compared.ratio))
        result = teller.result
        if self._asked.get((k, other)) is teller or result is None or not can_tell(result):
            return False
        self._asked[k, other] = teller
        more = taken_apart(result, self.values, self.weights)
        better = False
        for place in more if other > k else with_one_less(result):
            one = self.begun(other, place)
            if isnan(one.bic):
                continue
            # A latent that ends without items leaves a fit of the number below.
            gain = compared.standing.get(one.n_active, inf) - bic_at(one, compared.ratio)
            if gain > 0:
                self._keep(other, one)
            better |= gain > LEAST_GAIN
        return better

    def _keep(self, k: int, one: Fit) -> None:
        """Add a fit with k latents instead of the one that was added for as many that count."""
        if one.n_active in self._added:
            before, worse = self._added[one.n_active]
            self.fits[before][:] = [kept for kept in self.fits[before] if kept is not worse]
        self.fits[k].append(one)
        self._added[one.n_active] = k, one


__all__ = ["Neighbours", "Place", "can_tell", "taken_apart", "with_one_less"]
