"""Leading eigenvectors of a symmetric matrix: all of it when small, by random projection else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_range_finder

Array = NDArray[np.float64]

#: Up to this many rows all eigenvectors cost little.
SMALL = 600
#: Directions beyond those wanted, and multiplications that sharpen them.
SPARE, SHARPENINGS = 20, 6


def leading_eigenvectors(matrix: Array, size: int) -> tuple[Array, Array]:
    """Return the ``size`` largest eigenvalues, largest first, and their vectors, (J, size).

    Large matrices are projected on the range of a few more random directions, sharpened by
    repeated multiplication; the directions are always the same ones, so the answer is too.

    Parameters
    ----------
    matrix : ndarray, shape (J, J)
        Symmetric.
    size : int
        At most J.
    """
    n = len(matrix)
    if n <= SMALL or size + SPARE >= n // 2:
        values, vectors = np.linalg.eigh(matrix)
        return values[::-1][:size], vectors[:, ::-1][:, :size]
    basis = randomized_range_finder(
        matrix,
        size=size + SPARE,
        n_iter=SHARPENINGS,
        power_iteration_normalizer="QR",
        random_state=0,
    )
    values, turned = np.linalg.eigh(basis.T @ matrix @ basis)
    return values[::-1][:size], (basis @ turned)[:, ::-1][:, :size]
