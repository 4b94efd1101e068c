"""Person fit: the standardised log-likelihood lz of each row, with p-values from the model.

lz is the log density of a row's answers in its most probable state, minus its expectation there, in
standard deviations. Because the state is estimated from the same answers, lz is not standard
normal. P-values therefore come from rows drawn from the model and treated in the same way, with the
missing cells of the row: with few answers the most probable state explains nearly all of them, and
lz is seldom low.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.fitting.settings import checked_count, root_seed
from hidag.inference.fitted_rows import draw_tables, observable_values
from hidag.inference.result_tables import Table
from hidag.information.item_derivatives import log_density, response_auxiliary
from hidag.measurement.families.base import Family, family_named
from hidag.measurement.parameters import nominal_item
from hidag.results import AnyFit, FitResult, as_result, canonical_rows, rank_items
from hidag.views import View

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

COLUMNS = ("id", "lz", "p_value", "n_items")
MIN_ITEMS = 2
#: Smallest number of reference rows of a row; the smallest p-value is one over their number.
MIN_REFERENCE_ROWS = 4_000
#: Total number of reference rows beyond those of a table, which bounds the time.
MAX_EXTRA_ROWS = 80_000
#: Patterns of missing cells with reference rows; other patterns use the nearest of these.
MAX_PATTERNS = 2_000
BLOCK_SIZE = 1_000  # Patterns whose distances are computed at once
N_DRAWS = 2000  # Draws for moments of log densities without a closed form or an enumeration
#: Counts are enumerated from 0 until the remaining probability is at most the last number.
MIN_COUNTS, MAX_COUNTS, COUNT_TAIL = 1 << 6, 1 << 16, 1e-9


@dataclass(frozen=True, repr=False)
class PersonFit(View, title="lz against {0.n_reference} reference rows", frames={"rows": "table"}):
    """Fit of each row under the model.

    Attributes
    ----------
    table : Table
        id, lz, the share of reference rows of the model with the same missing cells and an lz at
        most as large (counting the row itself, so that it is never zero), and the number of
        observed items.
    n_reference : int, reference rows drawn from the model
    """

    table: Table
    n_reference: int

    def summary(self, max_shown: int = 10) -> str:
        """Return the ``max_shown`` rows that fit worst as text."""
        known = [row for row in self.table.rows if not np.isnan(row[1])]
        if not known:
            return f"person fit (lz) has no row: it needs at least {MIN_ITEMS} answers in one"
        worst = Table(self.table.columns, tuple(sorted(known, key=lambda row: row[1])))
        share = float(np.mean([row[2] < 0.05 for row in known]))
        heading = (
            f"person fit (lz) of {len(known):,} rows, compared with {self.n_reference:,} rows "
            "drawn from the model with the same or similar missing cells: "
            f"{share:.1%} have p < 0.05; the worst are"
        )
        return "\n".join([heading, *worst.lines(max_shown)])


def person_fit(
    result: AnyFit,
    X: Any,
    *,
    ids: Sequence[Any] | None = None,
    n_tables: int = 4,
    random_state: Any = 0,
) -> PersonFit:
    """Return lz of each row and its p-value under the model.

    Parameters
    ----------
    result : FitResult or DCRL
    X : array or frame
    ids : sequence of length N, optional, names of the rows; numbers from 1 by default
    n_tables : int
        Reference tables, each with the number and the missing cells of the rows of X with at least
        two answers, or more rows: every row is compared with at least 4,000 that have the same
        missing cells or, with many patterns of missing cells, the most similar ones.
    random_state : int, RandomState or None

    Returns
    -------
    PersonFit
        A table with a row for each of the N rows: lz, its p-value and the number of answers.

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> found = hidag.person_fit(model, skills.X)
    >>> found.table.columns
    ('id', 'lz', 'p_value', 'n_items')
    """
    fitted = as_result(result)
    fitted.refuse_nuisance("person fit")
    values = observable_values(fitted, X)
    n_tables = checked_count("n_tables", n_tables)
    n_items = (~np.isnan(values)).sum(axis=1)
    enough = n_items >= MIN_ITEMS
    lz, p_values = np.full((2, len(values)), np.nan)
    n_reference = 0
    if enough.any():
        found = _compare_with_model(fitted, values[enough], n_tables, root_seed(random_state))
        lz[enough], p_values[enough], n_reference = found
    names = range(1, len(values) + 1) if ids is None else ids
    table = Table.of(COLUMNS, zip(names, lz, p_values, n_items, strict=True))
    return PersonFit(table, n_reference).like(X)


def _compare_with_model(
    result: FitResult, values: Array, n_tables: int, seed: int
) -> tuple[Array, Array, int]:
    """Return lz and p-values (n,) of rows (n, J), and the number of reference rows."""
    rows, places = canonical_rows(result, values)
    ordered = values[rows]
    moments = DensityMoments(result)
    lz, p_values = np.empty((2, len(values)))
    items = np.argsort(rank_items(result), kind="stable")
    lz[rows] = _compute_lz(result, ordered, moments, items)
    patterns = MissingPatterns.of(np.isnan(ordered), np.argsort(places), n_tables)
    tables = draw_tables(result, patterns.rows, places, n_tables, seed)
    reference = [_compute_lz(result, table, moments, items) for table in tables]
    p_values[rows] = patterns.shares_below(lz[rows], reference)
    return lz, p_values, int(sum((~np.isnan(one)).sum() for one in reference))


def _compute_lz(
    result: FitResult, values: Array, moments: DensityMoments, items: NDArray[np.intp]
) -> Array:
    """Return lz (N,), summed in the order ``items`` (J,); NaN with less than two observed items."""
    parameters, responses = result.parameters, result.responses
    answers = responses.expand(values)
    eta = parameters.predictors(result.most_probable_states(values))
    total, mean, variance = np.zeros((3, len(values)))
    for j in items:
        own = np.flatnonzero(responses.item == j)
        seen = ~np.isnan(values[:, j])
        for r in own:
            given = ~np.isnan(answers[:, r])
            family = family_named(parameters.families[r])
            auxiliary = response_auxiliary(parameters, int(r))
            total[given] += log_density(family, auxiliary, answers[given, r], eta[r, given])
        expected, spread = moments.of(int(j), eta[own])
        mean += seen * expected
        variance += seen * spread
    known = ((~np.isnan(values)).sum(axis=1) >= MIN_ITEMS) & (variance > 0)
    return np.where(known, (total - mean) / np.sqrt(np.where(known, variance, 1.0)), np.nan)


@dataclass(frozen=True)
class MissingPatterns:
    """Patterns of missing cells of N rows, and the number of reference rows of each."""

    all: NDArray[np.bool_]  # (P, J), true where a cell is missing
    of_row: Counts  # (N,)
    drawn: Counts  # (D,), patterns with reference rows
    n_draws: Counts  # (D,), reference rows of each in one table

    @classmethod
    def of(
        cls, missing: NDArray[np.bool_], columns: NDArray[np.intp], n_tables: int
    ) -> MissingPatterns:
        """Return the patterns of ``missing`` (N, J), sorted with the columns in a given order."""
        ordered, of_row, counts = np.unique(
            missing[:, columns], axis=0, return_inverse=True, return_counts=True
        )
        patterns = np.empty_like(ordered)
        patterns[:, columns] = ordered
        drawn = np.arange(len(counts))
        if len(counts) > MAX_PATTERNS:
            # The patterns of evenly spaced rows: frequent ones, and some of the rare ones.
            middles = (np.arange(MAX_PATTERNS) + 0.5) * len(missing) / MAX_PATTERNS
            drawn = np.unique(np.searchsorted(np.cumsum(counts), middles, side="right"))
        own = -(-min(MIN_REFERENCE_ROWS, MAX_EXTRA_ROWS // len(drawn)) // n_tables)
        n_draws = np.maximum(counts[drawn], own)
        return cls(patterns, of_row.ravel().astype(np.int64), drawn, n_draws.astype(np.int64))

    @property
    def rows(self) -> NDArray[np.bool_]:
        """Missing cells of the reference rows of one table, by pattern, shape (sum, J)."""
        return np.repeat(self.all[self.drawn], self.n_draws, axis=0)

    def shares_below(self, found: Array, tables: Sequence[Array]) -> Array:
        """Return the share of reference rows, the row included, with at most its value, (N,)."""
        ends = np.cumsum(self.n_draws)[:-1]
        parts = zip(*(np.split(table, ends) for table in tables), strict=True)
        drawn = [np.sort(one[~np.isnan(one)]) for one in map(np.concatenate, parts)]
        sizes = np.array([len(one) for one in drawn], dtype=np.int64)
        below, total = np.ones((2, len(found)))
        order = np.argsort(self.of_row, kind="stable")
        blocks = np.arange(0, len(self.all) + BLOCK_SIZE, BLOCK_SIZE)
        begins = np.searchsorted(self.of_row[order], blocks)
        for block, (begin, end) in enumerate(pairwise(begins)):
            rows = order[begin:end]
            first = block * BLOCK_SIZE
            similar = self._similar(self.all[first : first + BLOCK_SIZE], sizes)
            for place, reference in enumerate(drawn):
                mine = rows[similar[self.of_row[rows] - first, place]]
                below[mine] += np.searchsorted(reference, found[mine], side="right")
                total[mine] += len(reference)
        return np.asarray(np.where(np.isnan(found), np.nan, below / total))

    def _similar(self, patterns: NDArray[np.bool_], sizes: Counts) -> NDArray[np.bool_]:
        """Return the nearest patterns, ties included, with enough reference rows, (n, D)."""
        one, other = patterns.astype(np.float64), self.all[self.drawn].astype(np.float64)
        apart = one.sum(axis=1)[:, None] + other.sum(axis=1) - 2.0 * one @ other.T
        nearest = np.argsort(apart, axis=1, kind="stable")
        draws = np.cumsum(sizes[nearest], axis=1)
        last = np.minimum((draws < MIN_REFERENCE_ROWS).sum(axis=1), len(self.drawn) - 1)
        here = np.arange(len(patterns))
        return np.asarray(apart <= apart[here, nearest[here, last]][:, None])


class DensityMoments:
    """Mean and variance of an item's log density under the model, cached by predictor."""

    def __init__(self, result: FitResult) -> None:
        self.result = result
        self._known = cache(self._moments)

    def of(self, item: int, eta: Array) -> tuple[Array, Array]:
        """Return means and variances for predictors of the item's responses, (R_j, N) to (N,)."""
        points, place = np.unique(eta, axis=1, return_inverse=True)
        pairs = [self._known(item, *point) for point in points.T.tolist()]
        table = np.array(pairs).reshape(-1, 2)[place.ravel()]
        return table[:, 0], table[:, 1]

    def _moments(self, item: int, *point: float) -> tuple[float, float]:
        parameters = self.result.parameters
        first = int(self.result.responses.starts[item])
        family = family_named(parameters.families[first])
        own = response_auxiliary(parameters, first)
        nominal = nominal_item(self.result.families[item])
        if nominal is not None:
            probabilities = nominal.probabilities(family.response_mean(np.array(point), own))
            return _mean_and_variance(np.log(np.maximum(probabilities, 1e-300)), probabilities)
        values = family.possible_values()
        if values is not None:
            logs = log_density(family, own, values, np.full(len(values), point[0]))
            return _mean_and_variance(logs, np.exp(logs))
        closed = family.log_density_moments(point[0], own)
        if closed is not None:
            return closed
        counts = _count_probabilities(family, own, point[0]) if family.is_count else None
        if counts is not None:
            return _mean_and_variance(np.log(np.maximum(counts, 1e-300)), counts)
        # A fixed seed, so that expectations do not vary between calls.
        rng = np.random.default_rng(0)
        at = np.full(N_DRAWS, point[0])
        logs = log_density(family, own, family.sample(at, own, rng), at)
        return float(logs.mean()), float(logs.var())


def _mean_and_variance(logs: Array, probabilities: Array) -> tuple[float, float]:
    mean = float(probabilities @ logs)
    return mean, float(probabilities @ (logs - mean) ** 2)


def _count_probabilities(family: Family, own: Array, eta: float) -> Array | None:
    """Return the probabilities of 0, 1, 2, ... at a predictor, None if there are too many."""
    n_values = MIN_COUNTS
    while n_values <= MAX_COUNTS:
        values = np.arange(n_values, dtype=float)
        probabilities = np.exp(log_density(family, own, values, np.full(n_values, eta)))
        if probabilities.sum() > 1.0 - COUNT_TAIL:
            return np.asarray(probabilities)
        n_values *= 4
    return None
