"""Tables drawn from a fitted model, with the holes of a given table.

Every item has a stream of random numbers of its own, found by its contents: the order of items and
rows has no say in what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.canonical import canonical_order
from hidag.explain.item_channels import auxiliary_of
from hidag.measurement import family_named
from hidag.result import FitResult

Array = NDArray[np.float64]


def canonical_rows(
    result: FitResult, values: Array, weights: Array | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the order of rows (N,) that goes by contents, and each item's place in its own.

    Weights (N,) tell rows of the same contents apart; their unit has no say. Items of the same
    contents are told apart by what was fitted for them: in a few rows many are alike.
    """
    ranks = None
    if weights is not None:
        ranks = np.unique(weights, return_inverse=True)[1].astype(np.float64)
    rows, columns = canonical_order(values, result.families, ranks, ranks_of_fit(result))
    return rows, np.argsort(columns)


def ranks_of_fit(result: FitResult) -> NDArray[np.intp]:
    """Return a rank for each item by its fitted numbers, shape (J,); the same for equal ones."""
    parameters, item = result.parameters, result.responses.item
    cutpoints = np.nan_to_num(parameters.cutpoints, nan=np.inf)
    numbers = np.hstack([parameters.coefficients, parameters.dispersion[:, None], cutpoints])
    keys = [numbers[item == j].tobytes() for j in range(len(result.item_names))]
    place = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys], dtype=np.intp)


def drawn_tables(
    result: FitResult,
    missing: NDArray[np.bool_],
    item_places: NDArray[np.intp],
    n_tables: int,
    seed: int,
) -> Iterator[Array]:
    """Yield tables drawn from the fit, shape (N, J), NaN where ``missing`` (N, J) says so."""
    for table in range(n_tables):
        states = result.law.sample(len(missing), np.random.default_rng((seed, table)))
        out = drawn_answers(result, states, item_places, (seed, table))
        out[missing] = np.nan
        yield out


def drawn_answers(
    result: FitResult,
    states: NDArray[np.integer],
    item_places: NDArray[np.intp],
    seed: tuple[int, ...],
) -> Array:
    """Return answers of all items, shape (N, J), drawn from the fit in given states (N, K)."""
    parameters, responses = result.parameters, result.responses
    eta = parameters.predictors(states)
    answers = np.empty((len(states), parameters.n_items))
    for j in range(len(result.item_names)):
        stream = np.random.default_rng((*seed, 1 + int(item_places[j])))
        for r in np.flatnonzero(responses.item == j):
            family = family_named(parameters.families[r])
            answers[:, r] = family.sample(eta[r], auxiliary_of(parameters, int(r)), stream)
    return np.array(responses.collapse(answers))
