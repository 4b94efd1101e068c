"""What a fit's items cost by the table's evidence, on the scale of BIC.

BIC charges the same for every number of a fit. The evidence integrates loadings out instead, each
item's with the information that the observed rows carry about them, and charges for having chosen
these entries of Q (:mod:`hidag.estimate.item_evidence`).
"""

from __future__ import annotations

from math import nan

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hidag.estimate.expectation import expect
from hidag.estimate.item_evidence import log_evidence
from hidag.estimate.item_information import observed_information
from hidag.estimate.maximise import Basis, coefficient_scales
from hidag.estimate.working import WorkingData
from hidag.result import MOST_EXACT_STATES, FitResult

Array = NDArray[np.float64]


def price_of_items(result: FitResult, values: Array, weights: Array | None = None) -> float:
    """Return what the items of a fit cost, to be added to minus twice its log-likelihood.

    Every order of the latents is the same fit, so that choosing Q costs less by their number.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
        The table that was fitted; NaN in missing cells.
    weights : ndarray, shape (N,), optional

    Returns
    -------
    float
        NaN where joint states are not listed, or where latents act together.
    """
    items, law = result.parameters, result.law
    if law.space.n_states > MOST_EXACT_STATES or items.terms.n_terms > items.terms.n_main:
        return nan
    data = WorkingData.around(items, result.responses.expand(values), weights)
    working = data.to_working(items)
    basis = Basis.over(law.space, items.terms)
    probabilities = np.asarray(law.probabilities)
    statistics, _ = expect(working, probabilities, data, np.ascontiguousarray(basis.features))
    _, information = observed_information(working, probabilities, statistics, data, basis)
    optional = np.ones(items.loadings.shape, dtype=bool)
    if result.q_given is not None:
        given = result.responses.of_items(result.q_given)
        optional = np.asarray(given[:, items.terms.main_latents] < 0)
    chosen = log_evidence(working, information, coefficient_scales(data), optional)
    return -2.0 * (chosen + float(gammaln(law.space.n_latents + 1)))
