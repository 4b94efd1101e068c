"""How many latents the items' correlations speak for, before anything is fitted.

Items that are independent given K latents have correlations of rank K but for their diagonal, as
far as latents act linearly on the items' looks. Three questions are put to the correlations:

- *parallel analysis*: which eigenvalues are larger than in tables whose columns were shuffled;
- *factor BIC*: how many common factors the normal likelihood of the correlations pays for;
- *spectral gap*: after which eigenvalue the largest fall comes, noise counted as noise.

In eigenvalues what an item shares with the others stands on the diagonal. With ones there, weak
latents drown: their eigenvalues are below those of single items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import minimize

from hidag.data.missingness_patterns import canonical_order
from hidag.em.design_data import WorkingData, weighted_mean_and_sd

# --- Correlations of items two at a time, each from the rows that have both

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
    looks = np.stack(
        [_standard(data, data.linear_response(j), seen[:, j]) for j in range(data.n_items)], 1
    )
    return _correlations(data, looks, seen)


def shuffled_correlations(data: WorkingData, n_tables: int) -> Iterator[PairCorrelations]:
    """Yield correlations of tables in which every item's answers were dealt out anew.

    Nothing but chance joins items there. Missing cells stay where they are. The shuffles are the
    same for the same table: the answer to how many latents there are depends on no seed.
    """
    seen = _seen(data)
    rng = np.random.default_rng(0)
    places = [np.flatnonzero(seen[:, j]) for j in range(data.n_items)]
    looks = [data.linear_response(j) for j in range(data.n_items)]
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
    mean, spread = weighted_mean_and_sd(look[seen], counts)
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


# --- Correlations of pairs of items that no row has both of, as in tests with booklets

#: Pulls loadings towards zero, a seen pair weighing 1: pairs nobody saw cannot hold them back.
RIDGE = 0.02
#: No item shares more of its variance than this.
MOST_SHARED = 0.98
#: Steps of the search for loadings.
STEPS = 500


def filled_correlations(
    raw: Array, unseen: NDArray[np.bool_], count: Callable[[Array], int], most: int
) -> Array:
    """Return correlations with the unseen pairs filled in from as few factors as will do.

    Parameters
    ----------
    raw : ndarray, shape (J, J)
        Correlations of the pairs that were seen.
    unseen : ndarray of bool, shape (J, J)
    count : callable
        How many factors correlations speak for.
    most : int
        No more factors than this are tried.

    Returns
    -------
    ndarray, shape (J, J)
    """
    told = ~unseen & ~np.eye(len(raw), dtype=bool)
    loadings = np.zeros((len(raw), 0))
    filled = raw
    for k in range(1, most + 1):
        loadings = _one_more(raw, told, loadings)
        shared = np.sqrt((loadings**2).sum(axis=1))
        within = (
            loadings * np.minimum(1.0, np.sqrt(MOST_SHARED) / np.maximum(shared, 1e-12))[:, None]
        )
        filled = np.where(unseen, within @ within.T, raw)
        if count(filled) <= k:
            break
    return filled


def _one_more(raw: Array, told: NDArray[np.bool_], loadings: Array) -> Array:
    """Return loadings of one more factor that fit the pairs that were told, shape (J, k + 1)."""
    rest = np.where(told, raw - loadings @ loadings.T, 0.0)
    values, vectors = np.linalg.eigh(rest)
    size = np.sqrt(max(float(values[-1]), 0.0) / max(float(told.mean()), 1e-12) / len(raw))
    new = vectors[:, -1] * max(size, np.sqrt(1e-3))
    start = np.column_stack([loadings, new])

    def lack(flat: Array) -> tuple[float, Array]:
        now = flat.reshape(start.shape)
        off = np.where(told, now @ now.T - raw, 0.0)
        value = 0.25 * float((off**2).sum()) + 0.5 * RIDGE * float((now**2).sum())
        return value, (off @ now + RIDGE * now).ravel()

    found = minimize(lack, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.asarray(found.x).reshape(start.shape)


# ---

#: Shuffled tables; an eigenvalue has to be larger than in all of them.
N_SHUFFLES = 10
#: No more factors than this are looked for.
MOST_FACTORS = 40
#: Factors are added until the criterion has not been better for so many in a row.
PATIENCE = 3
#: Bounds of the share of an item's variance that is its own.
OWN_VARIANCE = (0.005, 1.3)
#: Steps of the search for the items' own variances; the criterion is settled long before.
FACTOR_STEPS = 100


@dataclass(frozen=True)
class FactorCount:
    """What the correlations say for each number of latents k = 1, ..., M.

    Attributes
    ----------
    eigenvalues : ndarray, shape (M,)
        Of the correlations with shared variances on the diagonal.
    noise : ndarray, shape (M,)
        The largest of as many shuffled tables.
    factor_bic : ndarray, shape (M + 1,)
        Criterion of k = 0, ..., M common factors, less the best; NaN where no longer looked at.
    n_rows : float
        Rows behind a correlation.
    """

    eigenvalues: Array
    noise: Array
    factor_bic: Array
    n_rows: float

    @property
    def largest(self) -> int:
        """Return the largest number of latents that was looked at, M."""
        return len(self.eigenvalues)

    @property
    def gaps(self) -> Array:
        """Each eigenvalue over the next one, or over the noise if that is larger, (M - 1,)."""
        floor = np.maximum(self.eigenvalues[1:], self.noise[1:])
        return np.asarray(self.eigenvalues[:-1] / floor)

    @property
    def by_parallel_analysis(self) -> int:
        """How many eigenvalues in a row are above the noise; at least 1."""
        return _above(self.eigenvalues, self.noise)

    @property
    def by_factor_bic(self) -> int:
        """The number of common factors with the best criterion; at least 1."""
        return max(1, int(np.nanargmin(self.factor_bic)))

    @property
    def by_gap(self) -> int:
        """After which eigenvalue above the noise the largest fall comes; at least 1."""
        seen = self.gaps[: self.by_parallel_analysis]
        return int(np.argmax(seen)) + 1 if len(seen) else 1

    @property
    def nothing_shared(self) -> bool:
        """Whether chance alone could have joined the items: no factor pays for itself."""
        return self.by_parallel_analysis == 1 and int(np.nanargmin(self.factor_bic)) == 0

    @property
    def agreed(self) -> bool:
        """Whether parallel analysis and factor BIC say the same."""
        return self.by_parallel_analysis == self.by_factor_bic

    @property
    def span(self) -> tuple[int, int]:
        """The smaller and the larger of what parallel analysis and factor BIC say."""
        low, high = sorted((self.by_parallel_analysis, self.by_factor_bic))
        return low, high

    def in_words(self) -> str:
        """Return what each criterion says, as part of a sentence."""
        if self.nothing_shared:
            return "hardly anything joins the items beyond chance, and 1 is the fewest there can be"
        # Few items could not identify more, and more were not asked about.
        end = ", the most that was looked at"
        if self.agreed:
            said = f"parallel analysis and factor BIC both say {self.by_factor_bic}"
            if self.by_factor_bic == self.largest:
                return f"{said}{end}"
        else:
            parallel, bic = (
                f"{k}{end}" if k == self.largest else f"{k}"
                for k in (self.by_parallel_analysis, self.by_factor_bic)
            )
            said = f"parallel analysis says {parallel}, factor BIC {bic}"
        return f"{said}; the largest spectral gap is after {self.by_gap}"


def largest_count(n_items: int, most: int = MOST_FACTORS) -> int:
    """Return the largest number of latents that so many items can identify, at least 1."""
    return max(1, min(most, (n_items - 1) // 2))


def count_factors(
    values: Array,
    families: Sequence[str],
    *,
    weights: Array | None = None,
    largest: int | None = None,
) -> FactorCount:
    """Return what the items' correlations say about the number of latents.

    Parameters
    ----------
    values : ndarray, shape (N, J)
        Responses, one column for each; NaN in missing cells.
    families : sequence of str, length J
    weights : ndarray, shape (N,), optional
    largest : int, optional
        Numbers of latents to look at; by default as many as J items can identify, up to 40.
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
    for shuffled in shuffled_correlations(data, N_SHUFFLES):
        noise = np.maximum(noise, _shared_eigenvalues(shuffled.matrix, size))
    matrix = found.matrix
    if found.unseen.any():
        matrix = positive(
            filled_correlations(
                found.raw,
                found.unseen,
                lambda filled: _above(_shared_eigenvalues(positive(filled), size), noise),
                size,
            )
        )
    return FactorCount(
        _shared_eigenvalues(matrix, size),
        noise,
        _factor_bic(matrix, found.n_rows, size),
        found.n_rows,
    )


def _above(eigenvalues: Array, noise: Array) -> int:
    """Return how many eigenvalues in a row are above the noise; at least 1."""
    below = np.flatnonzero(eigenvalues <= noise)
    return max(1, int(below[0]) if len(below) else len(eigenvalues))


def _own_variances(correlations: Array) -> Array:
    """Return what no regression on the other items explains of each, shape (J,)."""
    return np.asarray(1.0 / np.diag(np.linalg.inv(correlations)))


def _leading(matrix: Array, size: int) -> tuple[Array, Array]:
    """Return the ``size`` largest eigenvalues, largest first, and their vectors (J, size)."""
    n = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(n - size, n - 1))
    return values[::-1], vectors[:, ::-1]


def _shared_eigenvalues(correlations: Array, size: int) -> Array:
    reduced = correlations - np.diag(_own_variances(correlations))
    return _leading(reduced, size)[0]


def _factor_bic(correlations: Array, n_rows: float, size: int) -> Array:
    """Return BIC of normal factor models with 0, ..., ``size`` factors, less the best."""
    n_items = len(correlations)
    log_determinant = float(np.linalg.slogdet(correlations)[1])
    own = np.clip(_own_variances(correlations), *OWN_VARIANCE)
    out = np.full(size + 1, np.nan)
    # Without factors the model is the identity, and twice its lack of fit -log det R per row.
    out[0] = -n_rows * log_determinant + np.log(n_rows) * n_items
    for k in range(1, size + 1):
        n_free = n_items * (k + 1) - k * (k - 1) / 2
        if n_free > n_items * (n_items + 1) / 2:
            break
        lack, own = _factor_lack(correlations, log_determinant, k, own)
        out[k] = n_rows * lack + np.log(n_rows) * n_free
        if k - int(np.nanargmin(out)) >= PATIENCE:
            break
    return out - float(np.nanmin(out))


def _factor_lack(
    correlations: Array, log_determinant: float, k: int, own: Array
) -> tuple[float, Array]:
    """Return the discrepancy of the best k factors per row, and the items' own variances (J,).

    Given own variances Psi the best loadings come from the k leading eigenvalues of
    Psi^-1/2 R Psi^-1/2, so that only J numbers are searched for.
    """
    n_items = len(correlations)

    def discrepancy(log_own: Array) -> tuple[float, Array]:
        own = np.exp(log_own)
        root = np.sqrt(own)
        values, vectors = _leading(correlations / np.outer(root, root), k)
        common = np.maximum(values, 1.0)
        trace = float((1.0 / own).sum() - common.sum())
        rest = log_determinant - float(log_own.sum()) - float(np.log(common).sum())
        loadings = root[:, None] * vectors * np.sqrt(common - 1.0)
        slope = ((loadings**2).sum(axis=1) + own - 1.0) / own
        return trace - rest - (n_items - k), slope

    low, high = np.log(OWN_VARIANCE)
    found = minimize(
        discrepancy,
        np.log(own),
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, high)] * n_items,
        options={"maxiter": FACTOR_STEPS},
    )
    return float(found.fun), np.exp(found.x)
