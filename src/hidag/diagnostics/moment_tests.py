"""Are averages what the model says they are? Tests that know that parameters were estimated.

A number per row whose mean is zero under the model has, once parameters are fitted, less spread
than it seems: what the parameters' scores explain of it has been fitted away. So its variance is
that of what is left after regression on the scores (Newey 1985, Tauchen 1985).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd

from hidag.data.sample_weights import effective_sample_size
from hidag.inference.information.free_parameters import FreeParameters
from hidag.inference.information.item_derivatives import broadcast_auxiliary, response_auxiliary
from hidag.inference.information.posterior_tables import ListedTables, StateFunctions
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.responses import category_label, nominal_item
from hidag.results import FitResult

# --- The numbers that observed and expected are compared in: one per item, one per category

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class ScoredColumns:
    """G columns of numbers with what the model expects of them.

    Attributes
    ----------
    names : tuple of str, length G
    item : ndarray of int, shape (G,)
        Ascending.
    values : ndarray, shape (N, G)
        NaN where nothing was observed.
    expected : OverStates
        What is expected in each state.
    categorical : ndarray of bool, shape (G,)
        Whether the item takes finitely many values.
    """

    names: tuple[str, ...]
    item: IntArray
    values: Array
    expected: StateFunctions
    categorical: NDArray[np.bool_]

    @property
    def means(self) -> Array:
        """What is expected in each joint state, shape (S, G); only where these are listed."""
        assert isinstance(self.expected.tables, ListedTables)
        return self.expected.parts[0]

    @classmethod
    def of(cls, free: FreeParameters, values: Array) -> ScoredColumns:
        """Return the columns of a table (N, J) under a fit.

        The table is as the families take it: :func:`hidag.inference.fitted_rows.taken_rows`.
        """
        result, tables = free.result, free.tables
        names, item = zip(*column_names(result), strict=True)
        columns: list[Array] = []
        finite: list[bool] = []
        for j, name in enumerate(result.families):
            nominal = nominal_item(name)
            x = values[:, j]
            if nominal is not None:
                for category in nominal.order[:-1]:
                    columns.append(np.where(np.isnan(x), np.nan, x == category))
                    finite.append(True)
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
        place = np.array(item, dtype=np.intp)
        return cls(
            names,
            place,
            np.column_stack(columns),
            StateFunctions(tables, of_item[place], parts),
            np.array(finite),
        )

    def selected(self, columns: IntArray) -> ScoredColumns:
        """Return some of the columns, in their order."""
        return ScoredColumns(
            tuple(self.names[g] for g in columns),
            self.item[columns],
            self.values[:, columns],
            self.expected.selected(columns),
            self.categorical[columns],
        )

    def pairs(self) -> tuple[IntArray, IntArray]:
        """Return the pairs of columns of different items, the first one's item before."""
        left, right = np.triu_indices(len(self.names), 1)
        apart = self.item[left] != self.item[right]
        return left[apart], right[apart]


def column_names(result: FitResult) -> list[tuple[str, int]]:
    """Return what the columns of a fit are called, with the item of each."""
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
    if nominal is not None:
        yes = family_named(parameters.families[own[0]]).response_mean(eta[own], np.ones(1))
        return nominal.probabilities(yes.T)[:, :-1].T
    family = family_named(parameters.families[own[0]])
    if family.is_location_scale:
        return eta[own]
    aux = broadcast_auxiliary(family, response_auxiliary(parameters, int(own[0])))
    return np.asarray(family.response_mean(eta[own[0]], aux))[None]


def telling_columns(complete: Array, item: IntArray) -> NDArray[np.bool_]:
    """Return which columns (G,) vary, and not only as the others of their item do.

    A category that nobody chose has next to no variance to hold its moments against, and would
    count as degrees of freedom that cannot be missed.
    """
    out = np.asarray((complete != complete[0]).any(axis=0))
    for own in (np.flatnonzero(item == j) for j in np.unique(item)):
        if out[own].any() and len(own) > 1 and (complete[:, own].sum(axis=1) == 1.0).all():
            # Nobody chose the category without a column: of the others, too, the last one goes.
            out[own[np.flatnonzero(out[own])[-1]]] = False
    return out


def item_second_moments(result: FitResult, item: int, eta: Array) -> Array:
    """Return E[h_a h_b | state] of a categorical item's columns, shape (G_j, G_j, S)."""
    parameters = result.parameters
    if nominal_item(result.families[item]) is not None:
        # One category at a time: products of different ones are zero.
        means = item_means(result, parameters, item, eta)
        return np.asarray(np.einsum("ab,as->abs", np.eye(len(means)), means))
    family, own = family_named(result.families[item]), int(result.responses.starts[item])
    aux = broadcast_auxiliary(family, response_auxiliary(parameters, own))
    return np.asarray(family.second_moment(eta[own], aux))[None, None]


# ---

#: Scores below this share of the largest are rounding errors.
ROUNDING = 1e-12
#: Directions of the scores below this share of the largest are none.
NO_DIRECTION = 1e-8
#: Directions of a quadratic form below this share of its largest count for nothing.
NO_SPREAD = 1e-6


def speaking(size: Array) -> NDArray[np.bool_]:
    """Return which parameters' scores, of these sizes (P,), say anything.

    A parameter at the end of floating point's range explains nothing, nor does one whose scores are
    rounding errors, as those of a latent without items.
    """
    finite = np.isfinite(size)
    return np.asarray(finite & (size > ROUNDING * size[finite].max(initial=0.0)))


@dataclass(frozen=True)
class ScoreSpace:
    """What fitted parameters can explain.

    Attributes
    ----------
    basis : ndarray, shape (N, P')
        Orthonormal basis of the scores' columns.
    n_known : float, optional
        How many equal rows' squares tell as much as these rows' squares; all N if not said.
    along : ndarray, shape (N,), optional
        What rows' numbers are multiplied by in sums; ones if not said. The root of its weight for a
        row that stands for so many like it, and brings its numbers times that root.
    """

    basis: Array
    n_known: float | None = None
    along: Array | None = None

    @classmethod
    def of(cls, scores: Array) -> ScoreSpace:
        """Return the space of scores, shape (N, P)."""
        size = np.sqrt((scores**2).sum(axis=0))
        used = speaking(size)
        if not used.any():
            return cls(np.zeros((len(scores), 0)))
        left, values, _ = svd(scores[:, used] / size[used], full_matrices=False)
        return cls(np.ascontiguousarray(left[:, values > NO_DIRECTION * values[0]]))

    def left_over(self, moments: Array) -> Array:
        """Return what the scores leave of numbers per row, shape (N, m)."""
        return np.asarray(moments - self.basis @ (self.basis.T @ moments))

    def summed(self, moments: Array) -> Array:
        """Return the sums of numbers per row, shape (m,)."""
        return moments.sum(axis=0) if self.along is None else np.asarray(self.along @ moments)

    @property
    def stretch(self) -> float:
        """How much larger variances are than those of what is left.

        Regression on P' columns takes P' rows' worth of spread away whatever the numbers are.
        """
        n_rows, n_used = self.n_rows, self.basis.shape[1]
        return float(n_rows / max(n_rows - n_used, 1))

    @property
    def n_rows(self) -> float:
        """How many rows' worth of spread there is."""
        return float(len(self.basis)) if self.n_known is None else self.n_known


def chi_square(
    space: ScoreSpace, moments: Array, least_spread: float = NO_SPREAD, least_left: float = 0.0
) -> tuple[float, int]:
    """Return the chi-square statistic that all columns' means are zero, and its degrees.

    Directions with less than a share ``least_spread`` of the largest variance are left out, and so
    are those of which the scores leave less than ``least_left`` times what they take by chance
    alone, their number over the number of rows; NaN and 0 if none remains. Rows with weights bring
    their numbers and scores times these: their sum then has the variance that weights give it. Rows
    that stand for several alike bring them times the root, and the space says so.
    """
    size = np.sqrt((moments**2).sum(axis=0))
    moments = moments[:, size > 0] / size[size > 0]
    if moments.shape[1] == 0:
        return float("nan"), 0
    rest = space.left_over(moments)
    values, vectors = np.linalg.eigh(space.stretch * (rest.T @ rest))
    n_rows, n_used = space.n_rows, space.basis.shape[1]
    good = (values > least_spread * values[-1]) & (values >= least_left * n_used / n_rows)
    if not good.any():
        return float("nan"), 0
    sums = vectors[:, good].T @ space.summed(rest)
    return float((sums**2 / values[good]).sum()), int(good.sum())


# --- What fitted parameters can explain of numbers that are about one or two items

#: Directions that all numbers are held against: at most so many, and one for so many rows.
MOST_SHARED = 64
ROWS_FOR_ONE = 10
#: At a maximum scores add up to nothing. Parameters that ran to the edge of what they can be (an
#: answer that nobody in a state gave) leave a direction, however faint, that is alike in all rows:
#: it would seem to explain any mean away. Such a direction has nearly the largest sum that there
#: could be, what a penalty leaves of the maximum a small part of it: half lies between the two.
HELD = 0.5
#: Of an item's scores, what the shared directions leave less of than this share is nothing.
NOTHING_LEFT = 1e-5


@dataclass(frozen=True)
class LocalScores:
    """Orthonormal directions of the scores: shared ones, and an item's own.

    Attributes
    ----------
    shared : ndarray, shape (N, l)
        Of all parameters if they are few, else of the law.
    own : tuple of J arrays, shape (N, p_j)
        Of an item's parameters, at right angles to the shared ones.
    n_known : float
        How many equal rows' squares tell as much as these rows' squares: N without weights.
    along : ndarray, shape (N,), optional
        As in :class:`hidag.diagnostics.moment_tests.ScoreSpace`.
    """

    shared: Array
    own: tuple[Array, ...]
    n_known: float
    along: Array | None = None

    @classmethod
    def of(cls, free: FreeParameters, scores: Array) -> LocalScores:
        """Return the directions of scores, shape (N, P), of a fit's free parameters.

        With weights they are directions of the scores times the weights: what rows add to sums.
        """
        weights = free.data.row_weights
        n_means, n_known = effective_sample_size(weights), effective_sample_size(weights**2)
        return cls._of(free, free.data.weighted(scores), n_means, n_known, None)

    @classmethod
    def of_repeated(cls, free: FreeParameters, scores: Array) -> LocalScores:
        """Return the directions of scores (N, P) of rows that stand for as many as they weigh.

        They are directions of the scores times the roots of the weights, so that sums of squares
        are those of a table in which every row stands as often as its weight says.
        """
        if free.data.weights is None:
            return cls.of(free, scores)
        roots, total = np.sqrt(free.data.row_weights), free.data.n_counted
        return cls._of(free, roots[:, None] * scores, total, total, roots)

    @classmethod
    def _of(
        cls,
        free: FreeParameters,
        scores: Array,
        n_means: float,
        n_known: float,
        along: Array | None,
    ) -> LocalScores:
        owner = items_of(free)
        most = min(MOST_SHARED, int(n_known / ROWS_FOR_ONE))
        few = scores.shape[1] <= most
        # The strongest directions come first.
        shared = ScoreSpace.of(scores if few else scores[:, owner < 0]).basis[:, :most]
        shared = movable(shared, n_means, along)
        own = (
            _beyond(shared, scores[:, owner == j], n_means, along)
            for j in range(len(free.result.item_names))
        )
        return cls(shared, tuple(own), n_known, along)

    @classmethod
    def none(cls, n_rows: int, n_items: int) -> LocalScores:
        """Return no directions at all: as if nothing had been fitted."""
        nothing = np.zeros((n_rows, 0))
        return cls(nothing, (nothing,) * n_items, float(n_rows))

    def of_item(self, item: int) -> ScoreSpace:
        """Return the space that numbers about one item are held against."""
        return ScoreSpace(np.hstack([self.shared, self.own[item]]), self.n_known, self.along)


def items_of(free: FreeParameters) -> IntArray:
    """Return the item that each free parameter is of, shape (P,); -1 for those of the law."""
    item = [int(free.result.responses.item[channel.response]) for channel in free.channels]
    return np.array([*item, -1], dtype=np.intp)[free.channel]


def movable(basis: Array, n_effective: float | None = None, along: Array | None = None) -> Array:
    """Return an orthonormal basis, shape (N, p), without what is alike in all rows, if it is in.

    ``n_effective`` is how many equal rows the rows are worth, N if not said: what is alike in all
    rows has the square of its sum, once it comes times the weights. ``along`` (N,) is what rows
    are multiplied by in sums, ones if not said.
    """
    sums = basis.sum(axis=0) if along is None else along @ basis
    towards = sums / np.sqrt(len(basis) if n_effective is None else n_effective)
    if towards @ towards <= HELD**2:
        return np.ascontiguousarray(basis)
    # The first column of a full QR is the direction itself, the others are at right angles to it.
    turned, _ = np.linalg.qr(towards[:, None], mode="complete")
    return np.ascontiguousarray(basis @ turned[:, 1:])


def _beyond(shared: Array, scores: Array, n_effective: float, along: Array | None) -> Array:
    """Return an orthonormal basis of what shared directions leave of scores, shape (N, p)."""
    size = np.sqrt((scores**2).sum(axis=0))
    used = speaking(size)
    if not used.any():
        return np.zeros((len(scores), 0))
    scaled = scores[:, used] / size[used]
    left, values, _ = svd(scaled - shared @ (shared.T @ scaled), full_matrices=False)
    return movable(left[:, values > NOTHING_LEFT], n_effective, along)
