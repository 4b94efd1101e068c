"""Information criteria of a fit: its likelihood less the price of what was free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hidag.free_coefficients import n_free_loadings
from hidag.latent import LatentLaw, NetworkLaw
from hidag.latent.factorise import n_free_probabilities
from hidag.measurement import family_named
from hidag.result import FitResult

#: Weight of the extended criterion's price for having chosen among so many supports.
EBIC_WEIGHT = 1.0


@dataclass(frozen=True)
class InformationCriteria:
    """Criteria of a fit, all of them the smaller the better.

    Attributes
    ----------
    log_likelihood : float
        Of the observed cells; NaN, and the criteria with it, where joint states are not listed.
    n_parameters : int
        Intercepts, loadings that can be told apart, dispersions, cutpoints and the law's
        probabilities, without what prerequisites rule out.
    n_rows : float
        Rows, or sum of weights, that were counted on.
    aic, bic : float
    ebic : float
        BIC that also pays for choosing the loadings among all that could have been: twice the
        logarithm of the number of supports of that size (Chen and Chen 2008).
    """

    log_likelihood: float
    n_parameters: int
    n_rows: float
    aic: float
    bic: float
    ebic: float


def information_criteria(result: FitResult, n_rows: float | None = None) -> InformationCriteria:
    """Return the information criteria of a fit.

    Parameters
    ----------
    result : FitResult
    n_rows : float, optional
        What the likelihood counts on; by default the fit's rows, or the sum of their weights.
    """
    rows = result.n_counted if n_rows is None else float(n_rows)
    return criteria_of(
        result.log_likelihood, count_parameters(result), log_number_of_q(result), rows
    )


def criteria_of(
    log_likelihood: float, n_parameters: int, log_choices: float, n_rows: float
) -> InformationCriteria:
    """Return the information criteria of a likelihood.

    Parameters
    ----------
    log_likelihood : float
    n_parameters : int
    log_choices : float
        Logarithm of how many supports of that size there are to choose from.
    n_rows : float
    """
    twice = -2.0 * log_likelihood
    bic = twice + np.log(n_rows) * n_parameters
    return InformationCriteria(
        log_likelihood=log_likelihood,
        n_parameters=n_parameters,
        n_rows=n_rows,
        aic=float(twice + 2.0 * n_parameters),
        bic=float(bic),
        ebic=float(bic + 2.0 * EBIC_WEIGHT * log_choices),
    )


def count_parameters(result: FitResult) -> int:
    """Return how many free numbers a fit has."""
    own = item_parameters(result.parameters.families)
    return own + n_free_loadings(result) + law_parameters(result.law, result.ruled_out)


def item_parameters(families: Sequence[str]) -> int:
    """Return how many free numbers items have beside their loadings."""
    named = [family_named(name) for name in families]
    return sum(1 + family.has_dispersion + family.n_cutpoints for family in named)


def law_parameters(law: LatentLaw, ruled_out: NDArray[np.bool_] | None = None) -> int:
    """Return how many free probabilities a law has.

    Parameters
    ----------
    law : LatentLaw
    ruled_out : ndarray of bool, shape (S,), optional
        Joint states that cannot occur, whatever the data: their probabilities are not free.
    """
    possible = None if ruled_out is None else ~ruled_out
    if isinstance(law, NetworkLaw):
        return n_free_probabilities(law.parents, law.space, possible)
    return (law.space.n_states if possible is None else int(possible.sum())) - 1


def log_number_of_q(result: FitResult) -> float:
    """Return the logarithm of how many Q-matrices have as many of the open entries as the fit."""
    q, given = result.q_matrix, result.q_given
    free = np.ones(q.shape, dtype=bool) if given is None else given < 0
    return log_number_of_supports(int(free.sum()), int(q[free].sum()))


def log_number_of_supports(n_free: int, n_chosen: int) -> float:
    """Return the logarithm of how many ways there are to choose so many of the open entries."""
    return float(gammaln(n_free + 1) - gammaln(n_chosen + 1) - gammaln(n_free - n_chosen + 1))
