"""Moment tests that account for estimated parameters (Newey 1985, Tauchen 1985).

A moment with mean zero under the model varies less once parameters are fitted, because the fit
removes the part that the parameters' scores explain. Its variance is therefore that of the
residual of a regression on the scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd

from hidag.data.rows import effective_sample_size
from hidag.information.free_parameters import FreeParameters
from hidag.information.item_derivatives import broadcast_auxiliary, response_auxiliary
from hidag.information.posterior_tables import ListedTables, StateFunctions
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters, category_label, nominal_item
from hidag.results import FitResult

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]

ROUNDING = 1e-12  # Scores below this share of the largest are rounding errors
RANK_TOLERANCE = 1e-8  # Relative singular values of the scores below this are zero
MIN_RELATIVE_VARIANCE = 1e-6  # Relative eigenvalues of a covariance below this are zero
MAX_SHARED = 64  # Largest number of directions shared by all moments
ROWS_PER_DIRECTION = 10  # Rows needed for each
#: Scores sum to zero at a maximum. Parameters on the boundary (an answer that nobody in a state
#: gave) leave a small direction that is constant over rows and would explain any mean. Its cosine
#: with the constant is near 1, that of directions left by a penalty near 0.
MAX_CONSTANT_COSINE = 0.5
#: Parts of an item's scores below this size are explained by the shared directions.
MIN_OWN_SCORE = 1e-5


@dataclass(frozen=True)
class ScoredColumns:
    """G numeric columns with their expectations: one per item, or one per nominal category."""

    names: tuple[str, ...]
    item: IntArray  # (G,), ascending
    values: Array  # (N, G), NaN where missing
    expected: StateFunctions  # expectations in each state
    categorical: NDArray[np.bool_]  # (G,), whether the item takes finitely many values

    @property
    def means(self) -> Array:
        """Expectations in each joint state, shape (S, G); only where these are enumerated."""
        assert isinstance(self.expected.tables, ListedTables)
        return self.expected.parts[0]

    @classmethod
    def of(cls, free: FreeParameters, values: Array) -> ScoredColumns:
        """Return the columns of a table (N, J) as `fitted_rows.observable_values` gives it."""
        result, tables = free.result, free.tables
        names, item = zip(*column_names(result), strict=True)
        columns: list[Array] = []
        finite: list[bool] = []
        for j, name in enumerate(result.families):
            nominal = nominal_item(name)
            x = values[:, j]
            if nominal is not None:
                shown = nominal.order[:-1]
                columns += [np.where(np.isnan(x), np.nan, x == category) for category in shown]
                finite += [True] * len(shown)
                continue
            family = family_named(name)
            columns.append(family.to_working(x) if family.is_location_scale else x)
            finite.append(family.possible_values() is not None)
        of_item = tables.of_response[result.responses.starts]
        parts = {}
        for t in np.unique(of_item).tolist():
            eta = result.parameters.predictors(tables.states(t))
            own = np.flatnonzero(of_item == t).tolist()
            parts[t] = np.vstack([item_means(result, result.parameters, j, eta) for j in own]).T
        index = np.array(item, dtype=np.intp)
        expected = StateFunctions(tables, of_item[index], parts)
        return cls(names, index, np.column_stack(columns), expected, np.array(finite))

    def selected(self, columns: IntArray) -> ScoredColumns:
        """Return some of the columns, in their order."""
        names, values = tuple(self.names[g] for g in columns), self.values[:, columns]
        expected, categorical = self.expected.selected(columns), self.categorical[columns]
        return ScoredColumns(names, self.item[columns], values, expected, categorical)

    def pairs(self) -> tuple[IntArray, IntArray]:
        """Return the pairs of columns of different items."""
        left, right = np.triu_indices(len(self.names), 1)
        apart = self.item[left] != self.item[right]
        return left[apart], right[apart]


def column_names(result: FitResult) -> list[tuple[str, int]]:
    """Return the names of the columns of a fit with the item of each."""
    out, words = [], result.answer_words
    for j, (item, name) in enumerate(zip(result.item_names, result.families, strict=True)):
        nominal = nominal_item(name)
        if nominal is None:
            out.append((family_named(name).moment_label(item), j))
        else:
            out += [(f"{item}={category_label(c, words.get(item))}", j) for c in nominal.order[:-1]]
    return out


def item_means(
    result: FitResult, parameters: MeasurementParameters, item: int, eta: Array
) -> Array:
    """Return the means of an item's columns given predictors (R, S) of all responses, (G_j, S)."""
    own = np.flatnonzero(result.responses.item == item)
    nominal = nominal_item(result.families[item])
    family = family_named(parameters.families[own[0]])
    if nominal is not None:
        return nominal.probabilities(family.response_mean(eta[own], np.ones(1)).T)[:, :-1].T
    if family.is_location_scale:
        return eta[own]
    aux = broadcast_auxiliary(family, response_auxiliary(parameters, int(own[0])))
    return np.asarray(family.response_mean(eta[own[0]], aux))[None]


def item_second_moments(result: FitResult, item: int, eta: Array) -> Array:
    """Return E[h_a h_b | state] of a categorical item's columns, shape (G_j, G_j, S)."""
    parameters = result.parameters
    if nominal_item(result.families[item]) is not None:
        # Indicators of different categories have product zero.
        means = item_means(result, parameters, item, eta)
        return np.asarray(np.einsum("ab,as->abs", np.eye(len(means)), means))
    family, own = family_named(result.families[item]), int(result.responses.starts[item])
    aux = broadcast_auxiliary(family, response_auxiliary(parameters, own))
    return np.asarray(family.second_moment(eta[own], aux))[None, None]


def informative_columns(complete: Array, item: IntArray) -> NDArray[np.bool_]:
    """Return which columns (G,) vary and are not determined by the others of their item."""
    out = np.asarray((complete != complete[0]).any(axis=0))
    for own in (np.flatnonzero(item == j) for j in np.unique(item)):
        if out[own].any() and len(own) > 1 and (complete[:, own].sum(axis=1) == 1.0).all():
            # Nobody chose the category without a column, so that the others sum to one.
            out[own[np.flatnonzero(out[own])[-1]]] = False
    return out


def score_basis(scores: Array, shared: Array | None = None) -> Array:
    """Return a basis of the scores (N, P), or of their parts orthogonal to a basis ``shared``."""
    size = np.sqrt((scores**2).sum(axis=0))
    finite = np.isfinite(size)
    # Parameters at the end of the floating-point range, or of a latent without items, explain
    # nothing.
    used = finite & (size > ROUNDING * size[finite].max(initial=0.0))
    if not used.any():
        return np.zeros((len(scores), 0))
    scaled = scores[:, used] / size[used]
    if shared is not None:
        scaled = scaled - shared @ (shared.T @ scaled)
    left, values, _ = svd(scaled, full_matrices=False)
    least = RANK_TOLERANCE * values[0] if shared is None else MIN_OWN_SCORE
    return np.asarray(left[:, values > least])


@dataclass(frozen=True)
class ScoreSpace:
    """The space of the scores of fitted parameters; moments of rows are times ``sum_weights``."""

    basis: Array  # (N, P'), orthonormal
    n_variance: float | None = None  # effective number of rows of a variance; default N
    sum_weights: Array | None = None  # (N,), factors of the rows in sums; default ones

    @classmethod
    def of(cls, scores: Array) -> ScoreSpace:
        """Return the space of scores, shape (N, P)."""
        return cls(np.ascontiguousarray(score_basis(scores)))

    @property
    def n_rows(self) -> float:
        """Effective number of rows of a variance."""
        return float(len(self.basis)) if self.n_variance is None else self.n_variance

    @property
    def variance_inflation(self) -> float:
        """Correction of residual variances for the P' degrees of freedom of the regression."""
        n_rows, n_used = self.n_rows, self.basis.shape[1]
        return float(n_rows / max(n_rows - n_used, 1))

    def residuals(self, moments: Array) -> Array:
        """Return the residuals of moments per row on the scores, shape (N, m)."""
        return np.asarray(moments - self.basis @ (self.basis.T @ moments))


def chi_square(
    space: ScoreSpace,
    moments: Array,
    min_variance: float = MIN_RELATIVE_VARIANCE,
    min_residual: float = 0.0,
) -> tuple[float, int]:
    """Return the chi-square statistic for zero means of all columns (N, m), and its degrees.

    Weighted rows bring moments and scores times the weights. Directions with a share of the largest
    variance below ``min_variance`` are dropped, and those of which the regression leaves less than
    ``min_residual`` times the share that it removes by chance, P' / N. NaN and 0 if none remains.
    """
    size = np.sqrt((moments**2).sum(axis=0))
    moments = moments[:, size > 0] / size[size > 0]
    if moments.shape[1] == 0:
        return float("nan"), 0
    rest = space.residuals(moments)
    values, vectors = np.linalg.eigh(space.variance_inflation * (rest.T @ rest))
    n_rows, n_used = space.n_rows, space.basis.shape[1]
    good = (values > min_variance * values[-1]) & (values >= min_residual * n_used / n_rows)
    if not good.any():
        return float("nan"), 0
    totals = rest.sum(axis=0) if space.sum_weights is None else space.sum_weights @ rest
    sums = vectors[:, good].T @ totals
    return float((sums**2 / values[good]).sum()), int(good.sum())


@dataclass(frozen=True)
class LocalScores:
    """Orthonormal directions of the scores: shared ones, and those of each item."""

    shared: Array  # (N, l), of all parameters if they are few, else of the law
    own: tuple[Array, ...]  # (N, p_j) of an item's parameters, orthogonal to the shared ones
    n_variance: float  # as in ScoreSpace
    sum_weights: Array | None = None

    @classmethod
    def of(
        cls, free: FreeParameters, scores: Array, *, frequency_weights: bool = False
    ) -> LocalScores:
        """Return the directions of scores (N, P); weights are numbers of rows or survey weights."""
        weights, sum_weights = free.data.row_weights, None
        if frequency_weights and free.data.weights is not None:
            sum_weights = np.sqrt(weights)
            scores = sum_weights[:, None] * scores
            n_mean = n_variance = free.data.n_counted
        else:
            scores = free.data.weighted(scores)
            n_mean, n_variance = effective_sample_size(weights), effective_sample_size(weights**2)
        owner = parameter_items(free)
        most = min(MAX_SHARED, int(n_variance / ROWS_PER_DIRECTION))
        few = scores.shape[1] <= most
        # The strongest directions come first.
        shared = ScoreSpace.of(scores if few else scores[:, owner < 0]).basis[:, :most]
        shared = drop_constant(shared, n_mean, sum_weights)
        own = (
            drop_constant(score_basis(scores[:, owner == j], shared), n_mean, sum_weights)
            for j in range(len(free.result.item_names))
        )
        return cls(shared, tuple(own), n_variance, sum_weights)

    def of_item(self, item: int) -> ScoreSpace:
        """Return the space for moments of one item."""
        basis = np.hstack([self.shared, self.own[item]])
        return ScoreSpace(basis, self.n_variance, self.sum_weights)


def parameter_items(free: FreeParameters) -> IntArray:
    """Return the item of each free parameter, shape (P,); -1 for those of the law."""
    item = [int(free.result.responses.item[channel.response]) for channel in free.channels]
    return np.array([*item, -1], dtype=np.intp)[free.channel]


def drop_constant(
    basis: Array, n_effective: float | None = None, sum_weights: Array | None = None
) -> Array:
    """Return an orthonormal basis (N, p) without the direction that is constant over rows."""
    sums = basis.sum(axis=0) if sum_weights is None else sum_weights @ basis
    cosines = sums / np.sqrt(len(basis) if n_effective is None else n_effective)
    if cosines @ cosines <= MAX_CONSTANT_COSINE**2:
        return np.ascontiguousarray(basis)
    # The first column of a full QR is the direction itself, the others are orthogonal to it.
    rotation, _ = np.linalg.qr(cosines[:, None], mode="complete")
    return np.ascontiguousarray(basis @ rotation[:, 1:])
