"""Number of common factors in the correlations of the items, before any model is fitted.

Items that are independent given K latents have correlations of rank K off the diagonal, as far as
the latents act linearly on the linearised responses. Three criteria are computed:

- *parallel analysis*: eigenvalues larger than those of tables with permuted columns;
- *factor BIC*: BIC of the normal factor model;
- *spectral gap*: the largest ratio of successive eigenvalues above the noise.

Eigenvalues are those of the correlations with communalities on the diagonal: with ones there, weak
latents have smaller eigenvalues than single items. If parallel analysis and factor BIC select 0,
the items are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import OptimizeResult, minimize

from hidag.config import CONFIG
from hidag.data.item_types import resolve_families
from hidag.data.rows import canonical_order
from hidag.data.table import Observations
from hidag.data.value_checks import check_values
from hidag.exceptions import Advice, Message
from hidag.formatting import plural
from hidag.initialization.item_columns import ItemColumns, positive
from hidag.parallel import one_blas_thread

Array = NDArray[np.float64]


def filled_correlations(
    raw: Array, unseen: NDArray[np.bool_], count: Callable[[Array], int], most: int
) -> Array:
    """Return correlations (J, J) with unobserved pairs from as many factors as ``count`` finds."""
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
    new = vectors[:, -1] * max(size, np.sqrt(CONFIG.factor_count.smallest_start))
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
    """Criteria for k = 0, 1, ..., M common factors."""

    eigenvalues: Array  # Of the correlations with communalities on the diagonal, shape (M,).
    noise: Array  # Largest eigenvalues of the permuted tables, shape (M,).
    # BIC of k = 0, ..., M factors minus the smallest; NaN if not computed, shape (M + 1,).
    factor_bic: Array
    n_rows: float  # Mean number of rows per correlation.
    # Largest number of latents that may be selected, at most M; M if not given. Larger counts are
    # computed to show whether this limit binds.
    largest: int = 0

    def __post_init__(self) -> None:
        if not self.largest:
            object.__setattr__(self, "largest", len(self.eigenvalues))

    @property
    def gaps(self) -> Array:
        """Ratio of each eigenvalue to the next one or the noise, whichever is larger, (M - 1,)."""
        floor = np.maximum(self.eigenvalues[1:], self.noise[1:])
        return np.asarray(self.eigenvalues[:-1] / floor)

    @property
    def without_limit(self) -> tuple[int, int]:
        """Numbers of parallel analysis and of factor BIC, from 0 to M."""
        return _above(self.eigenvalues, self.noise), int(np.nanargmin(self.factor_bic))

    @property
    def by_parallel_analysis(self) -> int:
        """Number of leading eigenvalues above the noise, at most ``largest``."""
        return min(self.without_limit[0], self.largest)

    @property
    def by_factor_bic(self) -> int:
        """Number of common factors with the smallest BIC, at most ``largest``."""
        return min(self.without_limit[1], self.largest)

    @property
    def by_gap(self) -> int:
        """Position of the largest gap among eigenvalues above the noise; 0 if there is none."""
        gaps = self.gaps[: self.by_parallel_analysis]
        return int(np.argmax(gaps)) + 1 if len(gaps) else self.by_parallel_analysis

    @property
    def no_common_factor(self) -> bool:
        """Whether the correlations are consistent with independent items."""
        return self.span == (0, 0)

    @property
    def agreed(self) -> bool:
        """Whether parallel analysis and factor BIC select the same number."""
        return self.by_parallel_analysis == self.by_factor_bic

    @property
    def span(self) -> tuple[int, int]:
        """The smaller and the larger number of parallel analysis and factor BIC."""
        low, high = sorted((self.by_parallel_analysis, self.by_factor_bic))
        return low, high

    @property
    def limited(self) -> bool:
        """Whether a criterion selects more latents than may be selected."""
        return max(self.without_limit) > self.largest

    def describe(self) -> str:
        """Return the number that each criterion selects, as part of a sentence."""
        if self.no_common_factor:
            return "the correlations are consistent with independent items"
        parallel, bic = self.without_limit
        if parallel != bic:
            selected = f"parallel analysis selects {parallel} and factor BIC {bic}"
        else:
            selected = f"parallel analysis and factor BIC both select {bic}"
        if self.limited:
            return f"{selected}, but {self.largest} is the largest number that can be selected"
        return f"{selected}; the largest spectral gap is after {self.by_gap}"

    def limit_message(self) -> Message:
        """Return that the number of items limits the number of latents."""
        wanted = max(*self.without_limit, self.largest + 1)
        return Message(
            "number-limited-by-items",
            "{latents} were selected because the items cannot identify more, but the data may have "
            "more: {reason}",
            {
                "latents": plural(self.largest, "latent"),
                "reason": self.describe(),
                "wanted": plural(wanted, "latent"),
                "least": 2 * wanted + 1,
            },
            Advice("", "add items: {wanted} need at least {least}"),
        )


def identifiable_count(n_items: int) -> int:
    """Return the largest number of latents that J items can identify, at least 1."""
    return max(1, (n_items - 1) // 2)


def largest_count(n_items: int) -> int:
    """Return the largest number of latents that is considered at first, at least 1."""
    return min(CONFIG.factor_count.max_factors, identifiable_count(n_items))


def count_table_factors(
    table: Observations, family: Any, weights: Array | None = None, *, largest: int | None = None
) -> FactorCount:
    """Return the number of common factors of a table; ``family`` as in `DCRL`."""
    families = resolve_families(table, family, weights).families
    check_values(table, families)
    with one_blas_thread():
        return count_factors(table.values, families, weights=weights, largest=largest)


def count_factors(
    values: Array,
    families: Sequence[str],
    *,
    weights: Array | None = None,
    largest: int | None = None,
) -> FactorCount:
    """Return the criteria for the number of common factors of a table (N, J), NaN in missing cells.

    Parameters
    ----------
    values : ndarray, shape (N, J)
        NaN in missing cells.
    families : sequence of str, length J
        Nominal items count as one item each.
    weights : ndarray, shape (N,), optional
    largest : int, optional
        Largest number that may be selected; by default the number that J items can identify.
    """
    rows, columns = canonical_order(values, tuple(families), weights)
    items = ItemColumns.of(
        values[np.ix_(rows, columns)],
        [families[j] for j in columns],
        None if weights is None else weights[rows],
    )
    most = min(largest or identifiable_count(items.n_items), items.n_items)
    end = max(most, items.n_items - 1)
    size = min(max(CONFIG.factor_count.max_factors, most), end)
    found = _count_up_to(items, size, most)
    while max(found.without_limit) == size < end:
        # The number of factors looked at is no limit of the count.
        size = min(2 * size, end)
        found = _count_up_to(items, size, most)
    return found


def _count_up_to(items: ItemColumns, size: int, most: int) -> FactorCount:
    """Return the criteria for up to ``size`` factors, of which ``most`` may be selected."""
    config = CONFIG.factor_count
    found = items.correlations()
    noise = np.full(size, -np.inf)
    for shuffled in items.permuted(config.n_permutations):
        noise = np.maximum(noise, _reduced_eigenvalues(shuffled.matrix, size))
    matrix = found.matrix
    if found.unseen.any():
        matrix = positive(
            filled_correlations(
                found.raw,
                found.unseen,
                lambda filled: _above(_reduced_eigenvalues(positive(filled), size), noise),
                size,
            )
        )
    eigenvalues = _reduced_eigenvalues(matrix, size)
    factor_bic = _factor_bic(matrix, found.n_rows, size)
    if np.nanargmin(factor_bic) == 0 and eigenvalues[0] > noise[0]:
        # Only one criterion sees a factor: independence must be rejected at a smaller level.
        for shuffled in items.permuted(
            config.n_independence_permutations - config.n_permutations, config.n_permutations
        ):
            noise[0] = max(noise[0], _reduced_eigenvalues(shuffled.matrix, 1)[0])
            if eigenvalues[0] <= noise[0]:
                break
    return FactorCount(eigenvalues, noise, factor_bic, found.n_rows, most)


def _above(eigenvalues: Array, noise: Array) -> int:
    """Return the number of leading eigenvalues above the noise."""
    below = np.flatnonzero(eigenvalues <= noise)
    return int(below[0]) if len(below) else len(eigenvalues)


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
    """Return the maximum likelihood discrepancy of k factors, and the unique variances (J,)."""
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
