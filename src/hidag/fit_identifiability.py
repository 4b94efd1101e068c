"""What a fit lets be identified: by its Q alone, or by its coefficients and its law too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.identify import Certificate, certify_fit, check_identifiability
from hidag.identify.question import Question
from hidag.measurement.effects import ALL_ORDERS, Effects

if TYPE_CHECKING:
    from hidag.result import FitResult


def certificate_of_q(fit: FitResult) -> Certificate:
    """Return what the fit's Q lets be identified, whatever its coefficients are."""
    return check_identifiability(_question(fit, fit.q_matrix, fit.families))


def certificate_of_fit(fit: FitResult, *, information: bool = True) -> Certificate:
    """Return what the fitted coefficients and the law let be identified.

    With ``information``, the rank of the Fisher information too.
    """
    # A nominal item stands in the blocks once, by its first response: more would count twice.
    items = fit.parameters.reordered(items=fit.responses.starts)
    return certify_fit(
        _question(fit, items.q_matrix, items.families),
        items.predictors(fit.law.space.states()),
        fit.law.probabilities,
        dispersion=items.dispersion,
        cutpoints=items.cutpoints,
        information=information,
    )


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
    )
