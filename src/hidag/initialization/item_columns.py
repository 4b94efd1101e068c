"""Standardised columns of the items, and their pairwise correlations: one number per pair of items.

Most items are one column, their linearised responses. A nominal item has C - 1 columns,
uncorrelated combinations of its category indicators. Its score for correlations is the combination
with the largest sum of squared correlations with the columns of all other items (optimal scaling),
so that a nominal item counts as one item whatever its number of categories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData, weighted_mean_and_sd
from hidag.measurement.parameters import nominal_item

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PairCorrelations:
    """Pairwise-complete correlations of the items."""

    matrix: Array  # Positive definite, with ones on the diagonal, shape (J, J).
    n_rows: float  # Mean number of rows, or sum of weights, of a pair of items.
    # Before the projection to positive definite matrices; zero for unobserved pairs, shape (J, J).
    raw: Array
    unseen: NDArray[np.bool_]  # Pairs that no row observes, shape (J, J).


@dataclass(frozen=True)
class ItemColumns:
    """Standardised columns of J items."""

    # Mean zero and variance one over the item's observed rows, zero elsewhere; columns of one item
    # are uncorrelated, shape (N, D).
    x: Array
    seen: NDArray[np.bool_]  # Shape (N, J).
    item: NDArray[np.intp]  # Item of each column, shape (D,).
    weights: Array | None = None  # Shape (N,).

    @classmethod
    def of(
        cls, values: Array, families: Sequence[str], weights: Array | None = None
    ) -> ItemColumns:
        """Return the columns of a table (N, J) with NaN in missing cells."""
        nominal = [nominal_item(name) for name in families]
        plain = [j for j, kind in enumerate(nominal) if kind is None]
        data = WorkingData.from_values(
            values[:, plain], tuple(families[j] for j in plain), weights=weights
        )
        seen = ~np.isnan(values)
        columns: list[Array] = []
        for j, kind in enumerate(nominal):
            if kind is None:
                response = data.linear_response(plain.index(j))
                columns.append(_standardise(response, seen[:, j], weights)[:, None])
            else:
                indicators = values[:, [j]] == np.array(kind.categories[:-1])
                columns.append(_whiten(indicators, seen[:, j], weights))
        item = np.repeat(np.arange(len(columns)), [block.shape[1] for block in columns])
        return cls(np.hstack(columns), seen, item, weights)

    @classmethod
    def of_data(cls, data: WorkingData) -> ItemColumns:
        """Return the columns of responses, each of which counts as an item."""
        seen = data.seen
        columns = [
            _standardise(data.linear_response(j), seen[:, j], data.weights)
            for j in range(data.n_items)
        ]
        return cls(np.stack(columns, 1), seen, np.arange(data.n_items), data.weights)

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return int(self.seen.shape[1])

    @property
    def n_counted(self) -> float:
        """Sum of the weights; N without weights."""
        return float(len(self.x) if self.weights is None else self.weights.sum())

    def correlations(self, shrink: float = 1.0) -> PairCorrelations:
        """Return the correlations of the items' scores, times ``shrink``."""
        weighted = self.x if self.weights is None else self.x * self.weights[:, None]
        total = self.x.T @ weighted
        if self.seen.all():
            rows = np.full((self.n_items, self.n_items), self.n_counted)
        else:
            both = self.seen.astype(np.float64)
            rows = both.T @ (both if self.weights is None else both * self.weights[:, None])
        of_columns = rows[np.ix_(self.item, self.item)]
        raw = np.where(of_columns > 0, total / np.maximum(of_columns, 1e-12), 0.0) * shrink
        raw = self._collapse(raw)
        np.fill_diagonal(raw, 1.0)
        pairs = rows[~np.eye(len(rows), dtype=bool)]
        n_rows = float(pairs.mean()) if len(pairs) else self.n_counted
        return PairCorrelations(positive(raw), n_rows, raw, rows <= 0)

    def permuted(self, n_tables: int, skip: int = 0) -> Iterator[PairCorrelations]:
        """Yield correlations of tables permuted item by item, after ``skip`` others.

        The permutations have a fixed seed: the number of latents depends on the table alone.
        """
        places = [np.flatnonzero(self.seen[:, j]) for j in range(self.n_items)]
        # Unequal weights inflate chance correlations; they are scaled to those of sum(weights)
        # rows.
        shrink = 1.0
        if self.weights is not None:
            shrink = float(np.sqrt(self.weights.sum() / (self.weights**2).sum()))
        for number in range(skip, skip + n_tables):
            rng = np.random.default_rng(number)
            table = np.zeros_like(self.x)
            for j, place in enumerate(places):
                own = self.item == j
                table[np.ix_(place, own)] = self.x[np.ix_(rng.permutation(place), own)]
                if self.weights is not None:
                    self._restandardise(table, own, j)
            yield replace(self, x=table).correlations(shrink)

    def _restandardise(self, table: Array, own: NDArray[np.bool_], item: int) -> None:
        """Standardise the columns of an item again: its cells have other weights now."""
        for column in np.flatnonzero(own):
            table[:, column] = _standardise(table[:, column], self.seen[:, item], self.weights)

    def _collapse(self, raw: Array) -> Array:
        """Return correlations of items (J, J) from those of their columns (D, D)."""
        if len(self.item) == self.n_items:
            return raw
        directions = np.zeros((len(self.item), self.n_items))
        for j in range(self.n_items):
            own = self.item == j
            block = raw[np.ix_(own, ~own)]
            directions[own, j] = np.linalg.eigh(block @ block.T)[1][:, -1]
        return np.asarray(directions.T @ raw @ directions)


def pair_correlations(data: WorkingData) -> PairCorrelations:
    """Return the correlations of the linearised responses."""
    return ItemColumns.of_data(data).correlations()


def positive(raw: Array) -> Array:
    """Return a correlation matrix whose eigenvalues are raised to a positive minimum."""
    least = CONFIG.factor_count.min_eigenvalue
    values, vectors = np.linalg.eigh((raw + raw.T) / 2.0)
    if values[0] >= least:
        return raw
    lifted = (vectors * np.maximum(values, least)) @ vectors.T
    size = np.sqrt(np.diag(lifted))
    return np.asarray(lifted / np.outer(size, size))


def _standardise(x: Array, seen: NDArray[np.bool_], weights: Array | None) -> Array:
    """Return a column (N,) with mean zero and variance one where observed, zero elsewhere."""
    mean, sd = weighted_mean_and_sd(x[seen], None if weights is None else weights[seen])
    return np.where(seen, (x - mean) / sd, 0.0)


def _whiten(indicators: NDArray[np.bool_], seen: NDArray[np.bool_], weights: Array | None) -> Array:
    """Return uncorrelated standardised combinations of indicators (N, C - 1), zero if missing."""
    own = np.ones(len(seen)) if weights is None else weights
    share = np.where(seen, own, 0.0) / own[seen].sum()
    centred = np.where(seen[:, None], indicators - share @ indicators, 0.0)
    values, vectors = np.linalg.eigh(centred.T @ (centred * share[:, None]))
    # A category that does not occur has no variance.
    used = values > CONFIG.factor_count.min_indicator_variance
    return np.asarray(centred @ (vectors[:, used] / np.sqrt(values[used])))
