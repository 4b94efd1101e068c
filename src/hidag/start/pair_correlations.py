"""Correlations of items two at a time, each from the rows that have both.

Filling gaps from a low-rank fit, as starts do, would write that rank into the table: whoever asks
how many latents there are must not see it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.column_sums import mean_and_spread
from hidag.estimate.working import WorkingData

Array = NDArray[np.float64]

#: Correlations from different rows need not go together; eigenvalues are at least this.
SMALLEST_EIGENVALUE = 1e-3


@dataclass(frozen=True)
class PairCorrelations:
    """Correlations of items, and the rows behind them.

    Attributes
    ----------
    matrix : ndarray, shape (J, J)
        Positive definite, with ones on the diagonal.
    n_rows : float
        Rows, or sum of weights, that a pair of items has on average.
    raw : ndarray, shape (J, J)
        As counted, each pair by itself; zero for pairs that no row has both of.
    unseen : ndarray of bool, shape (J, J)
        Which pairs these are.
    """

    matrix: Array
    n_rows: float
    raw: Array
    unseen: NDArray[np.bool_]


def pair_correlations(data: WorkingData) -> PairCorrelations:
    """Return the correlations of the items' looks, in which latents act about linearly."""
    seen = _seen(data)
    looks = np.stack([_standard(data, data.look(j), seen[:, j]) for j in range(data.n_items)], 1)
    return _correlations(data, looks, seen)


def shuffled_correlations(data: WorkingData, n_tables: int) -> Iterator[PairCorrelations]:
    """Yield correlations of tables in which every item's answers were dealt out anew.

    Nothing but chance joins items there. Missing cells stay where they are. The shuffles are the
    same for the same table: the answer to how many latents there are depends on no seed.
    """
    seen = _seen(data)
    rng = np.random.default_rng(0)
    places = [np.flatnonzero(seen[:, j]) for j in range(data.n_items)]
    looks = [data.look(j) for j in range(data.n_items)]
    # Unequal weights make chance correlations larger than as many plain rows would: weights say
    # how many rows there are, and the noise is to be that of so many.
    weights = data.row_weights
    shrink = float(np.sqrt(weights.sum() / (weights**2).sum()))
    for _ in range(n_tables):
        table = np.empty((data.n_samples, data.n_items))
        for j, (look, place) in enumerate(zip(looks, places, strict=True)):
            dealt = np.zeros(data.n_samples)
            dealt[place] = look[rng.permutation(place)]
            table[:, j] = _standard(data, dealt, seen[:, j])
        yield _correlations(data, table, seen, shrink)


def _seen(data: WorkingData) -> NDArray[np.bool_]:
    if data.observed is None:
        return np.ones((data.n_samples, data.n_items), dtype=bool)
    return np.asarray(data.observed == 1)


def _standard(data: WorkingData, look: Array, seen: NDArray[np.bool_]) -> Array:
    """Return looks (N,) with mean zero and variance one where seen, zero elsewhere."""
    counts = None if data.weights is None else data.weights[seen]
    mean, spread = mean_and_spread(look[seen], counts)
    return np.where(seen, (look - mean) / spread, 0.0)


def _correlations(
    data: WorkingData, looks: Array, seen: NDArray[np.bool_], shrink: float = 1.0
) -> PairCorrelations:
    total = looks.T @ data.weighted(looks)
    if data.observed is None:
        rows = np.full(total.shape, data.n_counted)
    else:
        both = seen.astype(np.float64)
        rows = both.T @ data.weighted(both)
    raw = np.where(rows > 0, total / np.maximum(rows, 1e-12), 0.0) * shrink
    np.fill_diagonal(raw, 1.0)
    pairs = rows[~np.eye(len(rows), dtype=bool)]
    n_rows = float(pairs.mean()) if len(pairs) else data.n_counted
    return PairCorrelations(positive(raw), n_rows, raw, rows <= 0)


def positive(raw: Array) -> Array:
    """Return the nearest thing to a correlation matrix without eigenvalues near zero."""
    values, vectors = np.linalg.eigh((raw + raw.T) / 2.0)
    if values[0] >= SMALLEST_EIGENVALUE:
        return raw
    lifted = (vectors * np.maximum(values, SMALLEST_EIGENVALUE)) @ vectors.T
    size = np.sqrt(np.diag(lifted))
    return np.asarray(lifted / np.outer(size, size))
