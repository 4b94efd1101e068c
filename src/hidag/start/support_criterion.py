"""How well a support explains the items' correlations, whatever the latents' law is.

Where joint states are too many to list, fits with different supports have no likelihood to be
compared by. But a support says which correlations there can be: those of factors with any
correlations among them, on which items load where the support says. The best of these in least
squares, and a price for each loading, tell which of two supports is better. What counts is the
support alone: it does not matter how far a fit's coefficients and law have come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

Array = NDArray[np.float64]

#: Steps of the minimiser: supports differ by far more than the last of them bring.
MOST_STEPS = 100
#: Correlations of factors stay inside this: two that are one have one column too many.
LARGEST_CORRELATION = 0.98


def support_criterion(
    correlations: Array, rows: Array, loadings: Array, factors: Array, price: float
) -> float:
    """Return the criterion of a support, smaller being better.

    It is the sum of the squares that are left, each times the rows it is from, which has a mean of
    about one for each pair when the support is right, and a price for each loading.

    Parameters
    ----------
    correlations : ndarray, shape (J, J)
        Of the items.
    rows : ndarray, shape (J, J)
        Rows that each is from; zero for pairs that are not looked at, as on the diagonal.
    loadings : ndarray, shape (J, K)
        Correlations of the items with the factors to begin with, zero outside the support.
    factors : ndarray, shape (K, K)
        Correlations of the factors to begin with.
    price : float
        Of a loading.
    """
    support = loadings != 0
    places = np.nonzero(support)
    above = np.triu_indices(support.shape[1], 1)

    def parted(numbers: Array) -> tuple[Array, Array]:
        slopes = np.zeros(support.shape)
        slopes[places] = numbers[: len(places[0])]
        among = np.eye(support.shape[1])
        among[above] = numbers[len(places[0]) :]
        return slopes, among + np.triu(among, 1).T

    def squares(numbers: Array) -> tuple[float, Array]:
        slopes, among = parted(numbers)
        rest = slopes @ among @ slopes.T - correlations
        weighted = rows * rest
        pulled = weighted @ slopes
        to_slopes = 2.0 * (pulled @ among)[places]
        to_factors = 2.0 * (slopes.T @ pulled)[above]
        return 0.5 * float((weighted * rest).sum()), np.concatenate([to_slopes, to_factors])

    first = np.concatenate([loadings[places], factors[above]])
    largest = np.repeat([1.0, LARGEST_CORRELATION], [len(places[0]), len(above[0])])
    found = minimize(
        squares,
        np.clip(first, -largest, largest),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(-largest, largest),
        options={"maxiter": MOST_STEPS},
    )
    return float(found.fun) + price * len(places[0])
