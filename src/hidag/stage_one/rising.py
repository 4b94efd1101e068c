"""Which of a latent's two levels is the higher one, by what is expected of its items.

Coefficients do not say it. One that ran to an edge, or one of an item in large units, is larger
than all others together, and those of a combination that hardly anybody has may be anything. So an
item votes with a covariance: that of its expected answer and the latent, the item's other latents
held, over the item's standard deviation. Nobody's units matter to that, no answer beyond the range
of answers does, and combinations count by how many people have them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.column_sums import mean_and_spread
from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters, family_named

Array = NDArray[np.float64]
#: From some latents, in ascending order, to the shares of their joint levels, one axis for each.
Shares = Callable[[tuple[int, ...]], Array]

#: Draws that shares are counted in, at the most.
MOST_DRAWS = 100_000


def shares_of_law(cube: Array) -> Shares:
    """Return the shares under a law over all latents, one axis for each."""
    total = cube.sum()

    def shares(latents: tuple[int, ...]) -> Array:
        others = tuple(a for a in range(cube.ndim) if a not in latents)
        return np.asarray(cube.sum(axis=others) / total)

    return shares


def shares_of_draws(
    draws: NDArray[np.uint8], levels: tuple[int, ...], weights: Array | None
) -> Shares:
    """Return the shares among draws (R, N, K) of rows that count for their weights (N,)."""
    kept = draws[: max(1, MOST_DRAWS // draws.shape[1])]
    rows = kept.reshape(-1, kept.shape[-1])
    counted = None if weights is None else np.tile(weights, len(kept))

    def shares(latents: tuple[int, ...]) -> Array:
        shape = [levels[k] for k in latents]
        place = np.zeros(len(rows), dtype=np.int64)
        for k, m in zip(latents, shape, strict=True):
            place = place * m + rows[:, k]
        often = np.bincount(place, counted, minlength=prod(shape)).astype(np.float64)
        return np.asarray(often / often.sum()).reshape(shape)

    return shares


def votes_for_rising(working: MeasurementParameters, data: WorkingData, shares: Shares) -> Array:
    """Return how much higher each item is at level 1 of each of its binary latents, shape (J, K).

    Zero for latents that an item does not have or that have more levels than two.

    Parameters
    ----------
    working : MeasurementParameters
        On the working scale of ``data``.
    data : WorkingData
    shares : callable
        Shares of joint levels under the law that belongs to the parameters.
    """
    levels = working.terms.levels
    out = np.zeros((working.n_items, working.n_latents))
    spread = _spreads(data)
    for latents, items in _items_by_latents(working).items():
        shape = [levels[k] for k in latents]
        states = np.zeros((prod(shape), working.n_latents), dtype=np.int64)
        states[:, latents] = np.indices(shape).reshape(len(shape), -1).T
        means = (_expected(working, states)[:, items] / spread[items]).reshape(*shape, -1)
        share = shares(latents)
        for axis, k in enumerate(latents):
            if levels[k] == 2:
                low, high = np.moveaxis(share, axis, 0)
                both = low + high
                # Where all have one level nothing can be compared.
                weight = low * high / np.where(both > 0, both, 1.0)
                rise = np.diff(np.moveaxis(means, axis, 0), axis=0)[0]
                out[items, k] = weight.ravel() @ rise.reshape(weight.size, -1)
    return out


def _items_by_latents(working: MeasurementParameters) -> dict[tuple[int, ...], list[int]]:
    """Return items by the latents that they have, without those that have none."""
    out: dict[tuple[int, ...], list[int]] = {}
    for item, row in enumerate(working.support):
        if row.any():
            out.setdefault(tuple(np.flatnonzero(row).tolist()), []).append(item)
    return out


def _expected(working: MeasurementParameters, states: NDArray[np.int64]) -> Array:
    """Return expected answers in latent states given by rows, of logarithms for lognormal, (n, J).

    Means of lognormal answers are those of their largest.
    """
    straight = np.array([family_named(name).is_location_scale for name in working.families])
    return np.where(straight, working.predictors(states).T, working.response_means(states))


def _spreads(data: WorkingData) -> Array:
    """Return standard deviations of the items' answers, of logarithms for lognormal, (J,)."""
    out = np.ones(data.n_items)
    for item, name in enumerate(data.families):
        family = family_named(name)
        columns = slice(data.columns.starts[item], data.columns.starts[item + 1])
        if family.n_columns == 1:
            out[item] = np.sqrt(data.variance[columns][0]) or 1.0
            continue
        seen = slice(None) if data.observed is None else data.observed[:, item] == 1
        answers = family.from_working(data.x[seen, columns].T)
        weights = None if data.weights is None else data.weights[seen]
        if len(answers):
            out[item] = mean_and_spread(answers, weights)[1]
    return out


__all__ = ["Shares", "shares_of_draws", "shares_of_law", "votes_for_rising"]
