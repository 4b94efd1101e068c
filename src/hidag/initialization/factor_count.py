"""Number of common factors in the correlations of the items, before any model is fitted.

Items that are independent given K latents have correlations of rank K off the diagonal, as far as
the latents act linearly on the linearised responses. Three criteria are computed:

- *parallel analysis*: eigenvalues larger than those of tables with permuted columns;
- *factor BIC*: BIC of the normal factor model;
- *spectral gap*: the largest ratio of successive eigenvalues above the noise.

Eigenvalues are those of the correlations with communalities on the diagonal: with ones there, weak
latents have smaller eigenvalues than single items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import OptimizeResult, minimize

from hidag.config import CONFIG
from hidag.data.rows import canonical_order
from hidag.em.design_data import WorkingData

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PairCorrelations:
    """Pairwise-complete correlations of the items."""

    matrix: Array  # (J, J): positive definite, with ones on the diagonal
    n_rows: float  # mean number of rows, or sum of weights, of a pair of items
    # (J, J): before the projection to positive definite matrices; zero for unobserved pairs
    raw: Array
    unseen: NDArray[np.bool_]  # (J, J): pairs that no row observes


def pair_correlations(data: WorkingData) -> PairCorrelations:
    """Return the correlations of the linearised responses."""
    columns = [_standardise(data, data.linear_response(j), j) for j in range(data.n_items)]
    return _correlations(data, np.stack(columns, 1))


def shuffled_correlations(data: WorkingData, n_tables: int) -> Iterator[PairCorrelations]:
    """Yield correlations of tables whose columns are permuted within their observed cells.

    The permutations have a fixed seed: the number of latents depends on the table alone.
    """
    rng = np.random.default_rng(0)
    places = [np.flatnonzero(seen) for seen in data.seen.T]
    responses = [data.linear_response(j) for j in range(data.n_items)]
    # Unequal weights inflate chance correlations; they are scaled to those of sum(weights) rows.
    weights = data.row_weights
    shrink = float(np.sqrt(weights.sum() / (weights**2).sum()))
    for _ in range(n_tables):
        table = np.empty((data.n_samples, data.n_items))
        for j, (response, place) in enumerate(zip(responses, places, strict=True)):
            permuted = np.zeros(data.n_samples)
            permuted[place] = response[rng.permutation(place)]
            table[:, j] = _standardise(data, permuted, j)
        yield _correlations(data, table, shrink)


def _standardise(data: WorkingData, x: Array, item: int) -> Array:
    """Return a column (N,) with mean zero and variance one where observed, zero elsewhere."""
    mean, sd = data.mean_and_sd(x, item)
    return np.where(data.seen[:, item], (x - mean) / sd, 0.0)


def _correlations(data: WorkingData, x: Array, shrink: float = 1.0) -> PairCorrelations:
    total = x.T @ data.weighted(x)
    if data.observed is None:
        rows = np.full(total.shape, data.n_counted)
    else:
        both = data.seen.astype(np.float64)
        rows = both.T @ data.weighted(both)
    raw = np.where(rows > 0, total / np.maximum(rows, 1e-12), 0.0) * shrink
    np.fill_diagonal(raw, 1.0)
    pairs = rows[~np.eye(len(rows), dtype=bool)]
    n_rows = float(pairs.mean()) if len(pairs) else data.n_counted
    return PairCorrelations(positive(raw), n_rows, raw, rows <= 0)


def positive(raw: Array) -> Array:
    """Return a correlation matrix whose eigenvalues are raised to a positive minimum."""
    least = CONFIG.factor_count.min_eigenvalue
    values, vectors = np.linalg.eigh((raw + raw.T) / 2.0)
    if values[0] >= least:
        return raw
    lifted = (vectors * np.maximum(values, least)) @ vectors.T
    size = np.sqrt(np.diag(lifted))
    return np.asarray(lifted / np.outer(size, size))


def filled_correlations(
    raw: Array, unseen: NDArray[np.bool_], count: Callable[[Array], int], most: int
) -> Array:
    """Return correlations (J, J) with unobserved pairs imputed from a factor model.

    ``count`` estimates the number of factors; the smallest consistent number, at most ``most``, is
    used.
    """
    seen = ~unseen & ~np.eye(len(raw), dtype=bool)
    largest = np.sqrt(CONFIG.factor_count.max_communality)
    loadings = np.zeros((len(raw), 0))
    filled = raw
    for k in range(1, most + 1):
        loadings = _add_factor(raw, seen, loadings)
        lengths = np.sqrt((loadings**2).sum(axis=1))
        within = loadings * np.minimum(1.0, largest / np.maximum(lengths, 1e-12))[:, None]
        filled = np.where(unseen, within @ within.T, raw)
        if count(filled) <= k:
            break
    return filled


def _add_factor(raw: Array, seen: NDArray[np.bool_], loadings: Array) -> Array:
    """Return loadings with one more factor, fitted to the observed pairs, shape (J, k + 1)."""
    ridge = CONFIG.factor_count.imputation_ridge
    rest = np.where(seen, raw - loadings @ loadings.T, 0.0)
    values, vectors = np.linalg.eigh(rest)
    size = np.sqrt(max(float(values[-1]), 0.0) / max(float(seen.mean()), 1e-12) / len(raw))
    new = vectors[:, -1] * max(size, np.sqrt(1e-3))
    start = np.column_stack([loadings, new])

    def loss(flat: Array) -> tuple[float, Array]:
        now = flat.reshape(start.shape)
        off = np.where(seen, now @ now.T - raw, 0.0)
        value = 0.25 * float((off**2).sum()) + 0.5 * ridge * float((now**2).sum())
        return value, (off @ now + ridge * now).ravel()

    found = _minimise(loss, start.ravel(), CONFIG.factor_count.imputation_steps)
    return np.asarray(found.x).reshape(start.shape)


def _minimise(
    loss: Callable[[Array], tuple[float, Array]],
    start: Array,
    max_iter: int,
    bounds: list[tuple[float, float]] | None = None,
) -> OptimizeResult:
    """Return the minimum of a function that returns its value and gradient."""
    options: Any = {"maxiter": max_iter}
    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)


@dataclass(frozen=True)
class FactorCount:
    """Criteria for k = 1, ..., M common factors."""

    eigenvalues: Array  # (M,): of the correlations with communalities on the diagonal
    noise: Array  # (M,): largest eigenvalues of the permuted tables
    # (M + 1,): BIC of k = 0, ..., M factors minus the smallest; NaN if not computed
    factor_bic: Array
    n_rows: float  # mean number of rows per correlation

    @property
    def largest(self) -> int:
        """Largest number of latents that was considered, M."""
        return len(self.eigenvalues)

    @property
    def gaps(self) -> Array:
        """Ratio of each eigenvalue to the next one or the noise, whichever is larger, (M - 1,)."""
        floor = np.maximum(self.eigenvalues[1:], self.noise[1:])
        return np.asarray(self.eigenvalues[:-1] / floor)

    @property
    def by_parallel_analysis(self) -> int:
        """Number of leading eigenvalues above the noise, at least 1."""
        return _above(self.eigenvalues, self.noise)

    @property
    def by_factor_bic(self) -> int:
        """Number of common factors with the smallest BIC, at least 1."""
        return max(1, int(np.nanargmin(self.factor_bic)))

    @property
    def by_gap(self) -> int:
        """Position of the largest gap among eigenvalues above the noise, at least 1."""
        gaps = self.gaps[: self.by_parallel_analysis]
        return int(np.argmax(gaps)) + 1 if len(gaps) else 1

    @property
    def no_common_factor(self) -> bool:
        """Whether the correlations are consistent with independent items."""
        return self.by_parallel_analysis == 1 and int(np.nanargmin(self.factor_bic)) == 0

    @property
    def agreed(self) -> bool:
        """Whether parallel analysis and factor BIC select the same number."""
        return self.by_parallel_analysis == self.by_factor_bic

    @property
    def span(self) -> tuple[int, int]:
        """The smaller and the larger number of parallel analysis and factor BIC."""
        low, high = sorted((self.by_parallel_analysis, self.by_factor_bic))
        return low, high

    def describe(self) -> str:
        """Return the number that each criterion selects, as part of a sentence."""
        if self.no_common_factor:
            return "the correlations are consistent with independent items, and 1 is the minimum"
        parallel, bic = (
            f"{k} (the largest number considered)" if k == self.largest else f"{k}"
            for k in (self.by_parallel_analysis, self.by_factor_bic)
        )
        if not self.agreed:
            selected = f"parallel analysis selects {parallel} and factor BIC {bic}"
        else:
            selected = f"parallel analysis and factor BIC both select {bic}"
            if self.by_factor_bic == self.largest:
                return selected
        return f"{selected}; the largest spectral gap is after {self.by_gap}"


def largest_count(n_items: int) -> int:
    """Return the largest number of latents that J items can identify, at least 1."""
    return max(1, min(CONFIG.factor_count.max_factors, (n_items - 1) // 2))


def count_factors(
    values: Array,
    families: Sequence[str],
    *,
    weights: Array | None = None,
    largest: int | None = None,
) -> FactorCount:
    """Return the criteria for the number of common factors of a table (N, J), NaN in missing cells.

    The largest number is by default the number that J items can identify, up to 40.
    """
    rows, columns = canonical_order(values, tuple(families), weights)
    data = WorkingData.from_values(
        values[np.ix_(rows, columns)],
        tuple(families[j] for j in columns),
        weights=None if weights is None else weights[rows],
    )
    size = min(largest or largest_count(data.n_items), data.n_items)
    found = pair_correlations(data)
    noise = np.full(size, -np.inf)
    for shuffled in shuffled_correlations(data, CONFIG.factor_count.n_permutations):
        noise = np.maximum(noise, _reduced_eigenvalues(shuffled.matrix, size))
    matrix = found.matrix
    if found.unseen.any():

        def count(filled: Array) -> int:
            return _above(_reduced_eigenvalues(positive(filled), size), noise)

        matrix = positive(filled_correlations(found.raw, found.unseen, count, size))
    bic = _factor_bic(matrix, found.n_rows, size)
    return FactorCount(_reduced_eigenvalues(matrix, size), noise, bic, found.n_rows)


def _above(eigenvalues: Array, noise: Array) -> int:
    """Return the number of leading eigenvalues above the noise, at least 1."""
    below = np.flatnonzero(eigenvalues <= noise)
    return max(1, int(below[0]) if len(below) else len(eigenvalues))


def _unique_variances(correlations: Array) -> Array:
    """Return the residual variances of regressions on the other items, shape (J,)."""
    return np.asarray(1.0 / np.diag(np.linalg.inv(correlations)))


def _leading(matrix: Array, size: int) -> tuple[Array, Array]:
    """Return the ``size`` largest eigenvalues, largest first, and their vectors (J, size)."""
    n = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(n - size, n - 1))
    return values[::-1], vectors[:, ::-1]


def _reduced_eigenvalues(correlations: Array, size: int) -> Array:
    reduced = correlations - np.diag(_unique_variances(correlations))
    return _leading(reduced, size)[0]


def _factor_bic(correlations: Array, n_rows: float, size: int) -> Array:
    """Return BIC of normal factor models with 0, ..., ``size`` factors, minus the smallest."""
    config, n_items = CONFIG.factor_count, len(correlations)
    log_determinant = float(np.linalg.slogdet(correlations)[1])
    unique = np.clip(_unique_variances(correlations), *config.unique_variance_bounds)
    out = np.full(size + 1, np.nan)
    # Without factors the model is the identity matrix, with discrepancy -log det R per row.
    out[0] = -n_rows * log_determinant + np.log(n_rows) * n_items
    for k in range(1, size + 1):
        n_free = n_items * (k + 1) - k * (k - 1) / 2
        if n_free > n_items * (n_items + 1) / 2:
            break
        discrepancy, unique = _fit_factors(correlations, log_determinant, k, unique)
        out[k] = n_rows * discrepancy + np.log(n_rows) * n_free
        if k - int(np.nanargmin(out)) >= config.patience:
            break
    return out - float(np.nanmin(out))


def _fit_factors(
    correlations: Array, log_determinant: float, k: int, unique: Array
) -> tuple[float, Array]:
    """Return the maximum likelihood discrepancy of k factors, and the unique variances (J,).

    Given the unique variances Psi, the loadings come from the k leading eigenvalues of
    Psi^-1/2 R Psi^-1/2, so that the optimisation is over J numbers.
    """
    n_items = len(correlations)

    def discrepancy(log_unique: Array) -> tuple[float, Array]:
        own = np.exp(log_unique)
        root = np.sqrt(own)
        values, vectors = _leading(correlations / np.outer(root, root), k)
        common = np.maximum(values, 1.0)
        trace = float((1.0 / own).sum() - common.sum())
        rest = log_determinant - float(log_unique.sum()) - float(np.log(common).sum())
        loadings = root[:, None] * vectors * np.sqrt(common - 1.0)
        slope = ((loadings**2).sum(axis=1) + own - 1.0) / own
        return trace - rest - (n_items - k), slope

    config = CONFIG.factor_count
    low, high = np.log(config.unique_variance_bounds)
    bounds = [(low, high)] * n_items
    found = _minimise(discrepancy, np.log(unique), config.factor_steps, bounds)
    return float(found.fun), np.exp(found.x)
