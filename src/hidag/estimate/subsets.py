"""Choosing an item's coefficients one step at a time on a quadratic model of its likelihood.

A latent comes with all its thresholds and goes with every interaction it takes part in; an
interaction comes only when its latents are there (hierarchical sparsity).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.loading_costs import at_a_cost
from hidag.kernels.item_regression import FREE, RISING, ZERO
from hidag.measurement import Terms

Array = NDArray[np.float64]
Support = NDArray[np.bool_]
#: From a support and what may change, both (P - 1,), to the supports one step away.
Moves = Callable[[Support, Support], Iterator[Support]]


def together(groups: NDArray[np.integer]) -> Moves:
    """Return the moves that put in or take out all coefficients with the same number."""
    numbers = np.asarray(groups)

    def moves(support: Support, open_: Support) -> Iterator[Support]:
        for group in np.unique(numbers[open_]):
            members = (numbers == group) & open_
            other = support.copy()
            other[members] = not support[members].any()
            yield other

    return moves


def moves_of(terms: Terms) -> Moves:
    """Return the moves that keep latents whole and interactions below their latents."""
    if not terms.interactions:
        return together(terms.main_latents)
    is_main = np.arange(terms.n_terms) < terms.n_main
    of_latent = terms.involved

    def moves(support: Support, open_: Support) -> Iterator[Support]:
        inside: Support = of_latent[support].any(axis=0)  # type: ignore[assignment]
        for k in range(terms.n_latents):
            own = of_latent[:, k] & open_
            other = support.copy()
            if support[own].any():
                other[own] = False
            elif (own & is_main).any():
                other[own & is_main] = True
            else:
                continue
            yield other
        for t in np.flatnonzero(open_ & ~is_main):
            if support[t] or inside[of_latent[t]].all():
                other = support.copy()
                other[t] = not support[t]
                yield other

    return moves


def same_model(one: Support, other: Support, terms: Terms) -> bool:
    """Return whether two supports have the same latents and the same interactions."""
    main = slice(0, terms.n_main)
    groups = terms.main_latents
    return bool(
        np.array_equal(np.unique(groups[one[main]]), np.unique(groups[other[main]]))
        and np.array_equal(one[terms.n_main :], other[terms.n_main :])
    )


def best_subset(
    linear: Array,
    curvature: Array,
    allowed: NDArray[np.uint8],
    begin: Support,
    cost: float,
    moves: Moves,
) -> Array:
    """Return coefficients that maximise ``h'b - b'Gb/2 - cost * (number of loadings)``.

    Stepwise from the support ``begin``: the one move that gains most, until none gains. Other
    coefficients, the intercept first of all, move along with each step: that is what coordinate
    descent from a settled estimate cannot do.

    Parameters
    ----------
    linear, curvature : ndarray, shapes (P,) and (P, P)
        h and G; position 0 is the intercept, which is free of cost.
    allowed : ndarray of uint8, shape (P - 1,)
        ZERO, PENALISED, FREE or RISING; free loadings always stay, rising ones are not negative.
    begin : ndarray of bool, shape (P - 1,)
    cost : float
    moves : callable
    """
    open_ = at_a_cost(allowed)
    rising = np.concatenate([[False], allowed == RISING])

    def rated(supports: list[Support]) -> tuple[list[tuple[int, float]], Array]:
        """Return what each support is worth, and its coefficients, shape (n, P)."""
        inside = np.array(supports)
        found = _solved(linear, curvature, inside)
        gains = 0.5 * (found @ linear) - cost * (inside & open_).sum(axis=1)
        # A support that needs a loading to fall is worse than any that does not.
        falling = (found[:, rising] < 0).sum(axis=1)
        return list(zip((-falling).tolist(), gains.tolist(), strict=True)), found

    support = (begin & (allowed != ZERO)) | (allowed == FREE)
    values, found = rated([support])
    value, best = values[0], found[0]
    for _ in range(2 * len(support)):
        others = list(moves(support, open_))
        if not others:
            break
        values, found = rated(others)
        top = max(range(len(others)), key=values.__getitem__)
        if values[top] <= (value[0], value[1] + 1e-9):
            break
        value, best, support = values[top], found[top], others[top]
    return np.asarray(np.where(rising, np.maximum(best, 0.0), best))


def _solved(linear: Array, curvature: Array, supports: NDArray[np.bool_]) -> Array:
    """Return the coefficients that are best with each support, (n, P), zero outside it.

    All systems are solved at once, because one by one calls cost more than solutions. They are as
    large as the largest support; others are filled up with equations that say nothing.
    """
    active = np.hstack([np.ones((len(supports), 1), dtype=bool), supports])
    largest = int(active.sum(axis=1).max())
    members = np.argsort(~active, axis=1, kind="stable")[:, :largest]
    used = np.take_along_axis(active, members, axis=1)
    systems = curvature[members[:, :, None], members[:, None, :]]
    systems *= used[:, :, None] & used[:, None, :]
    place = np.arange(largest)
    systems[:, place, place] += ~used
    solved = np.linalg.solve(systems, (linear[members] * used)[..., None])[..., 0]
    out = np.zeros(active.shape)
    np.put_along_axis(out, members, solved, axis=1)
    return out
