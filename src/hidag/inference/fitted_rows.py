"""The table of a fit: its values, weights and row order, and tables drawn from the fitted model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.data.rows import check_weights, nonempty_rows, scale_to_effective_size
from hidag.exceptions import Advice, DataError, Setting, SettingError
from hidag.information.item_derivatives import response_auxiliary
from hidag.information.posterior_tables import can_list_states, state_tables
from hidag.measurement.families.base import family_named
from hidag.results import FitResult, observable

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


def not_listed() -> str:
    """Return the reason for omitting a statistic that needs a sum over all joint states."""
    return f"not computed beyond 2^{CONFIG.derivatives.max_states.bit_length() - 1} joint states"


def not_summed() -> str:
    """Return the same for statistics that a junction tree can compute."""
    return f"{not_listed()} if the treewidth is too large"


def weighted_sample(values: Array, given: Any) -> tuple[Array, Array | None]:
    """Return rows with answers and their weights, summing to Kish's sample size; None if equal."""
    answered = nonempty_rows(values)
    if not answered.any():
        reason = "none of the {n_rows:,} rows has an answer to any item of the fit"
        advice = "pass the table that was fitted, or rows with answers to its items"
        raise DataError("no-answers", reason, advice=advice, n_rows=len(values))
    if given is None:
        return (values if answered.all() else values[answered]), None
    weights = check_weights(given, len(values), answered)
    used = weights > 0
    values, weights = values[used], weights[used]
    return values, None if (weights == weights[0]).all() else scale_to_effective_size(weights)


def observable_values(result: FitResult, X: Any) -> Array:
    """Return ``result.rows(X)`` with times beyond the limit of a censored item set to the limit."""
    return observable(result, result.rows(X))


def require_weights(result: FitResult, sample_weight: Any, what: str) -> None:
    """Raise if the fit used row weights that are not given again."""
    if result.weighted and sample_weight is None:
        raise SettingError(
            "missing-weights",
            "the fit used row weights, and {what} without them would describe another fit",
            {"what": what, "sample_weight": Setting("sample_weight")},
            advice=Advice("repeat-weights", "give the same weights as {sample_weight}"),
        )


def can_sum_states(result: FitResult) -> bool:
    """Return whether sums over joint states are feasible, by listing or by a junction tree."""
    return can_list_states(result) or state_tables(result) is not None


def draw_tables(
    result: FitResult, missing: NDArray[np.bool_], item_places: Indices, n_tables: int, seed: int
) -> Iterator[Array]:
    """Yield tables drawn from the fit, shape (N, J), NaN in the cells ``missing`` (N, J)."""
    for table in range(n_tables):
        states = result.law.sample(len(missing), np.random.default_rng((seed, table)))
        out = draw_responses(result, states, item_places, (seed, table))
        out[missing] = np.nan
        yield out


def draw_responses(
    result: FitResult, states: NDArray[np.integer], item_places: Indices, seed: tuple[int, ...]
) -> Array:
    """Return responses to all items, shape (N, J), drawn from the fit given states (N, K)."""
    parameters, responses = result.parameters, result.responses
    eta = parameters.predictors(states)
    answers = np.empty((len(states), parameters.n_items))
    for j in range(len(result.item_names)):
        stream = np.random.default_rng((*seed, 1 + int(item_places[j])))
        for r in np.flatnonzero(responses.item == j):
            family = family_named(parameters.families[r])
            answers[:, r] = family.sample(eta[r], response_auxiliary(parameters, int(r)), stream)
    return np.array(responses.collapse(answers))
