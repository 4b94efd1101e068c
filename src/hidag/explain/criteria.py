"""Likelihood, number of parameters and the criteria made of them; how surely rows are placed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.criteria import count_parameters, criteria_of, law_parameters, log_number_of_q
from hidag.explain.free_parameters import FreeParameters
from hidag.result import FitResult

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Criteria:
    """How likely the table is under the fit, and at what price.

    Attributes
    ----------
    log_likelihood : float
        Of the observed cells.
    n_parameters : int
        Free coefficients, dispersions, cutpoints and probabilities, as
        :func:`hidag.criteria.count_parameters` counts them.
    n_at_edge : int
        Those of the law's probabilities that less than half a row is expected in; they are among
        ``n_parameters``.
    aic, bic : float
    ebic : float
        BIC and twice the logarithm of the number of Q-matrices with as many entries; as BIC when Q
        was given.
    entropy : float
        One less the mean uncertainty of rows' joint states, as a share of the largest possible: 1
        where every row is placed without doubt. States that a hierarchy rules out are not possible.
    n_rows : int
    n_cells : int
        Observed.
    n_effective : float
        Rows that the log-likelihood counts for and BIC pays for: all, or as many as rows with
        weights are worth.
    """

    log_likelihood: float
    n_parameters: int
    n_at_edge: int
    aic: float
    bic: float
    ebic: float
    entropy: float
    n_rows: int
    n_cells: int
    n_effective: float


def criteria(free: FreeParameters, values: Array) -> Criteria:
    """Return the criteria of a fit on a table, shape (N, J), rows counted by ``free``'s weights."""
    result = free.result
    n_effective = free.data.n_counted
    log_likelihood = float(free.data.weighted(result.row_log_likelihood(values)).sum())
    n_parameters = count_parameters(result)
    n_of_law = free.n_parameters - free.n_of_items
    price = criteria_of(log_likelihood, n_parameters, log_number_of_q(result), n_effective)
    return Criteria(
        log_likelihood=log_likelihood,
        n_parameters=n_parameters,
        n_at_edge=law_parameters(result.law, result.ruled_out) - n_of_law,
        aic=price.aic,
        bic=price.bic,
        ebic=price.ebic,
        entropy=_entropy(free),
        n_rows=len(values),
        n_cells=int((~np.isnan(values)).sum()),
        n_effective=n_effective,
    )


def _entropy(free: FreeParameters) -> float:
    weights = free.data.row_weights
    total = sum(float(weights[block.rows] @ block.joint_doubt()) for block in free.row_blocks())
    return 1.0 - total / (free.data.n_counted * largest_doubt(free.result))


def largest_doubt(result: FitResult) -> float:
    """Return the entropy of joint states that are all alike, of those that may occur."""
    if result.ruled_out is not None:
        return float(np.log(np.count_nonzero(~result.ruled_out)))
    return float(np.log(result.law.space.levels).sum())
