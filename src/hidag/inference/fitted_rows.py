"""What a question about rows needs: a fit, its weights, and states that can be listed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.missingness_patterns import canonical_order
from hidag.data.sample_weights import checked_weights, rows_with_answers, scaled_to_effective
from hidag.exceptions import Advice, DataError, Setting, SettingError
from hidag.inference.information.item_derivatives import auxiliary_of
from hidag.inference.information.posterior_tables import MOST_STATES, state_tables
from hidag.measurement.families import item_type
from hidag.measurement.families.registry import family_named
from hidag.results import FitResult

Array = NDArray[np.float64]

#: Said of what takes such a sum, where there are more.
NOT_BEYOND = f"not computed beyond 2^{MOST_STATES.bit_length() - 1} joint states"
#: The same where sums over small tables would do.
NOT_SUMMED = f"{NOT_BEYOND} of latents that hang together closely"


def counted_rows(values: Array, given: Any) -> tuple[Array, Array | None]:
    """Return the rows that count, (n, J), and weights that add up to what these are worth, (n,).

    The unit of weights has no say: a survey's say how many people a row stands for, not how many
    were asked, and whole numbers are no exception. None where all weights are equal. Rows without
    any answer count for nothing.
    """
    answered = rows_with_answers(values)
    if not answered.any():
        raise DataError(
            f"none of the {len(values):,} rows has an answer to any item of the fit, and nothing "
            "can be said of how well it fits them"
        )
    if given is None:
        return (values if answered.all() else values[answered]), None
    weights = checked_weights(given, len(values), answered)
    counted = weights > 0
    values, weights = values[counted], weights[counted]
    return values, None if (weights == weights[0]).all() else scaled_to_effective(weights)


def taken_rows(result: FitResult, X: Any) -> Array:
    """Return the values of a table as the fit's families take them, shape (N, J).

    Those of ``result.rows``, with times beyond the limit of a censored item at the limit: what is
    expected of the item ends there too, and nothing that is compared may tell them apart.
    """
    values = result.rows(X)
    out = values
    for j, name in enumerate(result.families):
        column = values[:, j]
        taken = item_type(name).as_observed(column)
        if taken is not column:
            # A copy, and only where one is needed: the table is the user's.
            out = values.copy() if out is values else out
            out[:, j] = taken
    return out


def was_weighted(result: FitResult) -> bool:
    """Return whether rows were counted by weights when the model was fitted."""
    return result.weighted


def need_weights(result: FitResult, sample_weight: Any, what: str) -> None:
    """Refuse to go on without the weights that a fit counted its rows by."""
    if was_weighted(result) and sample_weight is None:
        raise SettingError(
            "missing-weights",
            "the fit used row weights, and {what} without them would describe another fit",
            advice=Advice("repeat-weights", "give the same weights as {sample_weight}"),
            what=what,
            sample_weight=Setting("sample_weight"),
        )


def can_list_states(result: FitResult) -> bool:
    """Return whether joint states are few enough for sums over all of them."""
    return result.law.space.n_states <= MOST_STATES


def can_sum_states(result: FitResult) -> bool:
    """Return whether sums over joint states can be taken: listed, or as sums over small tables."""
    return can_list_states(result) or state_tables(result) is not None


# --- Tables drawn from a fitted model, with the holes of a given table


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
