"""The fit when nobody says how many latents there are: choose, fit, and keep why."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hidag.how_many.choice import JudgedFit, choose_number, count_in_table, number_told
from hidag.how_many.neighbour_fits import Place
from hidag.observations import Observations
from hidag.result import FitResult
from hidag.row_weights import weighted_rows
from hidag.shown_text import counted as with_noun

#: From the caller of ``fit``: ``fit_chosen_number``, ``fit``, the caller.
_STACK = 3


def fit_chosen_number(
    table: Observations,
    sample_weight: Any,
    settings: Mapping[str, Any],
    fit_number: Callable[[int, float | None, Place | None], FitResult],
    *,
    tell: Callable[[str], None],
) -> FitResult:
    """Return the fit with the number of latents that other settings or the table tell.

    Parameters
    ----------
    table : Observations
    sample_weight : array, shape (N,), or None
    settings : mapping
        As the estimator takes them.
    fit_number : callable
        Fits with so many latents, a strength of the penalty, as the settings say for None, and a
        place to begin at, if any.
    tell : callable
        Takes a sentence on what was chosen.
    """
    counted, weights = weighted_rows(table, sample_weight)
    n_rows = counted.n_samples if weights is None else float(weights.sum())
    fits: dict[int, tuple[FitResult, list[warnings.WarningMessage]]] = {}

    def fit_of(n_latents: int, strength: float | None, place: Place | None = None) -> JudgedFit:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = fit_number(n_latents, strength, place)
        # A second fit with another number's penalty, or from its fit, is for the comparison alone.
        if place is None:
            fits.setdefault(n_latents, (result, caught))
        return JudgedFit.of(result, n_rows)

    choice = number_told(
        settings["q_matrix"], settings["levels"], settings["latent_names"], table.names
    )
    if choice is None:
        count = count_in_table(counted, settings["family"], weights)
        choice = choose_number(count, fit_of, counted.values, weights)
    tell(f"{with_noun(choice.n_latents, 'latent')}: {choice.reason}")
    if choice.n_latents not in fits:
        fit_of(choice.n_latents, None)
    result, caught = fits[choice.n_latents]
    for warning in caught:
        # Only what was said of the fit that is kept.
        warnings.warn(warning.message, stacklevel=_STACK)
    why = {
        "n_latents": "auto",
        "n_latents_chosen": choice.n_latents,
        "n_latents_reason": choice.reason,
    }
    return replace(result, settings={**result.settings, **why})
