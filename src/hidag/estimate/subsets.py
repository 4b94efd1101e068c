"""Choosing an item's coefficients one step at a time on a quadratic model of its likelihood.

A latent comes with all its thresholds and goes with every interaction it takes part in; an
interaction comes only when its latents are there (hierarchical sparsity).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.maximise import at_a_cost
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

    def solve(support: Support) -> tuple[tuple[int, float], Array]:
        active = np.concatenate([[0], 1 + np.flatnonzero(support)])
        solution = np.linalg.solve(curvature[np.ix_(active, active)], linear[active])
        out = np.zeros(len(linear))
        out[active] = solution
        paid = int((support & open_).sum())
        gain = 0.5 * float(linear[active] @ solution) - cost * paid
        # A support that needs a loading to fall is worse than any that does not.
        return (-int((out[rising] < 0).sum()), gain), out

    support = (begin & (allowed != ZERO)) | (allowed == FREE)
    value, best = solve(support)
    for _ in range(2 * len(support)):
        trials = [(*solve(other), other) for other in moves(support, open_)]
        if not trials:
            break
        top = max(trials, key=lambda trial: trial[0])
        if top[0] <= (value[0], value[1] + 1e-9):
            break
        value, best, support = top
    return np.where(rising, np.maximum(best, 0.0), best)
