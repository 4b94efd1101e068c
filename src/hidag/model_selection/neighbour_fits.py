"""Refits of a number of latents from fits of neighbouring numbers: a latent is split or removed.

Numbers are refitted if the information ratio is low, where the luck of their searches would decide,
and where a search has failed: BIC is worse than for the numbers on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, isnan

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.fitting.stages import InitialValues
from hidag.initialization.start_points import spread_law
from hidag.measurement.parameters import MeasurementParameters
from hidag.model_selection.candidates import Candidate
from hidag.model_selection.comparison import Comparison, bic_at
from hidag.results import FitResult
from hidag.strategy.moves.split_moves import residual_correlation, split_sides

Array = NDArray[np.float64]


def can_initialize(result: FitResult) -> bool:
    """Return whether a fit can initialize neighbours: binary latents with main effects only."""
    return (
        set(result.law.space.levels) == {2}
        and result.law.space.n_states <= CONFIG.network_em.max_listed_states
        and result.parameters.terms.n_terms == result.law.space.n_latents
    )


def find_failed_fits(bic: Mapping[int, float]) -> list[int]:
    """Return the numbers whose BIC is worse than that of the numbers on both sides.

    Models of a larger number contain those of a smaller one, and each further latent explains less:
    such a number can only be a search that ended at a poor optimum.
    """
    least = CONFIG.selection.failed_fit
    return [
        k
        for k, value in bic.items()
        if k - 1 in bic and k + 1 in bic and value - max(bic[k - 1], bic[k + 1]) > least
    ]


def split_latents(
    result: FitResult, values: Array, weights: Array | None = None
) -> Iterator[InitialValues]:
    """Yield initial values with one latent split in two, largest residual correlations first."""
    x = result.responses.expand(values)
    means = result.item_means(result.law.space.states()).T
    law = np.asarray(result.law.probabilities)
    excess = residual_correlation(x, (~np.isnan(x)).astype(np.float64), weights, means, law)
    found = []
    for latent in range(result.law.space.n_latents):
        own = np.flatnonzero(result.parameters.loadings[:, latent])
        if len(own) >= CONFIG.split_moves.fewest_items:
            leaving, size = split_sides(excess, own)
            found.append((-size, latent, leaving))
    found.sort(key=lambda one: one[:2])
    for _, latent, leaving in found[: CONFIG.selection.max_neighbour_starts]:
        yield _split_latent(result, latent, leaving)


def remove_latents(result: FitResult) -> Iterator[InitialValues]:
    """Yield initial values with one latent removed, smallest sum of loadings first."""
    items, law = result.parameters, np.asarray(result.law.probabilities)
    levels = result.law.space.levels
    order = np.argsort(np.abs(items.loadings).sum(axis=0), kind="stable")
    for latent in order[: CONFIG.selection.max_neighbour_starts]:
        rest = law.reshape(levels).sum(axis=int(latent)).ravel()
        yield _with_loadings(result, np.delete(items.loadings, latent, axis=1), rest)


def _split_latent(result: FitResult, latent: int, leaving: NDArray[np.intp]) -> InitialValues:
    """Return initial values in which some items of a latent load on a new last latent instead."""
    loadings = result.parameters.loadings
    new = np.zeros(len(loadings))
    new[leaving] = loadings[leaving, latent]
    wider = np.column_stack([loadings, new])
    wider[leaving, latent] = 0.0
    is_high = result.law.space.states()[:, latent] == 1
    high = np.where(
        is_high, CONFIG.split_moves.split_agreement, 1.0 - CONFIG.split_moves.split_agreement
    )
    law = np.asarray(result.law.probabilities)[:, None] * np.column_stack([1.0 - high, high])
    return _with_loadings(result, wider, law.ravel())


def _with_loadings(result: FitResult, loadings: Array, law: Array) -> InitialValues:
    """Return initial values with other loadings and unchanged means of the predictors."""
    items = result.parameters
    before = np.asarray(result.law.probabilities) @ result.law.space.states()
    states = np.indices((2,) * loadings.shape[1]).reshape(loadings.shape[1], -1)
    intercept = items.intercept + items.loadings @ before - loadings @ (states @ law)
    moved = MeasurementParameters(
        items.families, intercept, loadings, items.dispersion, cutpoints=items.cutpoints
    )
    return moved, spread_law(law)


@dataclass
class NeighbourFits:
    """Refits of each number of latents from the fits of neighbouring numbers."""

    # by number of latents; of the refits the best is added for each number of active latents
    fits: dict[int, list[Candidate]]
    fit_from: Callable[[int, InitialValues], Candidate]  # with a number of latents
    values: Array  # (N, J)
    weights: Array | None = None  # (N,)
    _used: dict[tuple[int, int], Candidate] = field(default_factory=dict)
    _added: dict[int, tuple[int, Candidate]] = field(default_factory=dict)
    _rounds: int = 0

    def improve(self, compared: Comparison) -> bool:
        """Refit failed numbers, or with low information those near the best; return if better."""
        config = CONFIG.selection
        if self._rounds >= config.max_neighbour_rounds:
            return False
        self._rounds += 1
        better = False
        for step in (1, -1):
            bic = compared.bic
            wanted = set(find_failed_fits(bic))
            if compared.low_information:
                best = min(bic, key=lambda k: (bic[k], k))
                near = range(best - config.n_neighbours, best + config.n_neighbours + 1)
                wanted = {k for k in near if k - step in near}
            for k in sorted(wanted, reverse=step < 0):
                if k in bic and k - step in bic:
                    better |= self._refit(k - step, k, compared)
        return better

    def _refit(self, k: int, other: int, compared: Comparison) -> bool:
        """Fit ``other`` latents from the best fit with k; return whether BIC improved."""
        known = [one for one in self.fits[k] if not isnan(one.bic)]
        if not known:
            return False
        source = min(known, key=lambda one: bic_at(one, compared.ratio))
        result = source.result
        if self._used.get((k, other)) is source or result is None or not can_initialize(result):
            return False
        self._used[k, other] = source
        more = split_latents(result, self.values, self.weights)
        better = False
        for start in more if other > k else remove_latents(result):
            one = self.fit_from(other, start)
            if isnan(one.bic):
                continue
            # A fit with an inactive latent counts for a smaller number.
            gain = compared.active_bic.get(one.n_active, inf) - bic_at(one, compared.ratio)
            if gain > 0:
                self._add(other, one)
            better |= gain > CONFIG.selection.min_gain
        return better

    def _add(self, k: int, one: Candidate) -> None:
        """Add a refit, and remove the previous one with as many active latents."""
        if one.n_active in self._added:
            before, worse = self._added[one.n_active]
            self.fits[before][:] = [fit for fit in self.fits[before] if fit is not worse]
        self.fits[k].append(one)
        self._added[one.n_active] = k, one
