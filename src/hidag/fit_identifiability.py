"""What a fit lets be identified: by its Q alone, or by its coefficients and its law too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.identify import Certificate, check_identifiability
from hidag.identify.assumptions import Fitted
from hidag.identify.fit_certificate import certificate_of_fitted
from hidag.identify.question import Question
from hidag.identify.ruled_out import only_told
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters
from hidag.measurement.effects import ALL_ORDERS, Effects

if TYPE_CHECKING:
    from hidag.result import FitResult

#: Up to so many joint states predictors are listed in all of them, to compare states and for the
#: rank of the information; beyond, each item is looked at over its own latents only.
MOST_LISTED_STATES = 1 << 13


def certificate_of_q(fit: FitResult) -> Certificate:
    """Return what the fit's Q lets be identified, whatever its coefficients are."""
    return check_identifiability(_question(fit, fit.q_matrix, fit.families))


def certificate_of_fit(fit: FitResult, *, information: bool = True) -> Certificate:
    """Return what the fitted coefficients and the law let be identified.

    With ``information``, the rank of the Fisher information too.
    """
    # A nominal item stands in the blocks once, by its first response: more would count twice.
    items = fit.parameters.reordered(items=fit.responses.starts)
    asked = _question(fit, items.q_matrix, items.families)
    space = fit.law.space
    eta = items.predictors(space.states()) if space.n_states <= MOST_LISTED_STATES else None
    return certificate_of_fitted(
        asked,
        Fitted(only_told(asked, _own_tables(items, asked.q, space.levels)), fit.law, eta),
        items.dispersion,
        items.cutpoints,
        information=information,
    )


def _own_tables(
    items: MeasurementParameters, q: NDArray[np.bool_], levels: tuple[int, ...]
) -> tuple[NDArray[np.float64], ...]:
    """Return each item's predictor over its own latents, an axis for each of them."""
    out = []
    for row, intercept, loadings in zip(q, items.intercept, items.loadings, strict=True):
        own = tuple(level for level, has in zip(levels, row, strict=True) if has)
        patterns = StateSpace(own).states() if own else np.zeros((1, 0), dtype=np.int64)
        states = np.zeros((len(patterns), len(levels)), dtype=np.int64)
        states[:, row] = patterns
        out.append((intercept + items.terms.features(states) @ loadings).reshape(own))
    return tuple(out)


def _question(fit: FitResult, q: NDArray[np.int8], families: tuple[str, ...]) -> Question:
    effects = Effects.of(fit.settings.get("effects", "main"))
    return Question.about(
        q == 1,
        fit.item_names,
        fit.latent_names,
        fit.law.space.levels,
        None if effects.highest >= ALL_ORDERS else effects.highest,
        families,
        conjunctive=effects.conjunctive,
        ruled_out=fit.ruled_out,
    )
