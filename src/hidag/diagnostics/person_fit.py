"""Which rows answer unlike anybody the model knows: the standardised log-likelihood, lz.

The log density of a row's answers in its most probable state, less what is expected there, in
standard deviations. Because the state is estimated from the same answers, lz is not standard
normal; chances are taken from rows drawn from the model and treated the same way, with the missing
cells of the row that is judged (:mod:`hidag.diagnostics.person_fit`): the most probable state
accounts for nearly all of a few answers, and lz is seldom low then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.fitting.settings import checked_count, root_seed
from hidag.inference.fitted_rows import canonical_rows, draw_tables, observable_values, rank_items
from hidag.inference.information.item_derivatives import (
    add_column_axis,
    broadcast_auxiliary,
    response_auxiliary,
)
from hidag.inference.result_tables import Table
from hidag.measurement.families.base import Family
from hidag.measurement.families.registry import family_named
from hidag.measurement.responses import nominal_item
from hidag.results import FitResult, as_result

if TYPE_CHECKING:
    from hidag.estimator import DCRL


# --- What a number of a row is rare among: rows drawn with the same cells missing, or nearly

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

#: Draws that a row is compared with at least: a single row has to be called rare if it is, and the
#: smallest chance is one over their number.
FEWEST_ALIKE = 4_000
#: Draws in all that patterns get beyond their share, so that many patterns do not take for ever.
MOST_EXTRA = 80_000
#: Patterns that are drawn for at most; those of other rows are compared with the nearest of these.
MAX_PATTERNS = 2_000
#: Patterns whose distances from all that are drawn for are worked on at once.
BLOCK = 1_000


@dataclass(frozen=True)
class Patterns:
    """Patterns of missing cells that N rows of J items have, and how often each is drawn for.

    Attributes
    ----------
    all : ndarray of bool, shape (P, J)
        True where a cell is missing.
    of_row : ndarray of int, shape (N,)
    drawn : ndarray of int, shape (D,)
        Those that are drawn for.
    n_draws : ndarray of int, shape (D,)
        Rows of each in a drawn table.
    """

    all: NDArray[np.bool_]
    of_row: Counts
    drawn: Counts
    n_draws: Counts

    @classmethod
    def of(cls, missing: NDArray[np.bool_], columns: NDArray[np.intp], n_tables: int) -> Patterns:
        """Return the patterns of ``missing`` (N, J), in an order in which columns go by contents.

        ``columns`` (J,) is that order of the columns.
        """
        ordered, of_row, counts = np.unique(
            missing[:, columns], axis=0, return_inverse=True, return_counts=True
        )
        patterns = np.empty_like(ordered)
        patterns[:, columns] = ordered
        drawn = np.arange(len(counts))
        if len(counts) > MAX_PATTERNS:
            # Those of rows evenly apart: frequent patterns are there, of rare ones a selection.
            middles = (np.arange(MAX_PATTERNS) + 0.5) * len(missing) / MAX_PATTERNS
            drawn = np.unique(np.searchsorted(np.cumsum(counts), middles, side="right"))
        own = -(-min(FEWEST_ALIKE, MOST_EXTRA // len(drawn)) // n_tables)
        n_draws = np.maximum(counts[drawn], own)
        return cls(patterns, of_row.ravel().astype(np.int64), drawn, n_draws.astype(np.int64))

    @property
    def rows(self) -> NDArray[np.bool_]:
        """Missing cells of the rows of a drawn table, pattern by pattern, shape (sum, J)."""
        return np.repeat(self.all[self.drawn], self.n_draws, axis=0)

    def shares_below(self, found: Array, tables: Sequence[Array]) -> Array:
        """Return the share of draws like each row whose number is no larger than the row's, (N,).

        The row itself is counted among them, so that no share is zero.

        Parameters
        ----------
        found : ndarray, shape (N,)
            Numbers of the rows.
        tables : sequence of ndarray, shape (sum of ``n_draws``,)
            Numbers of the rows of drawn tables; NaN where a row has none.
        """
        ends = np.cumsum(self.n_draws)[:-1]
        parts = zip(*(np.split(table, ends) for table in tables), strict=True)
        drawn = [np.sort(one[~np.isnan(one)]) for one in map(np.concatenate, parts)]
        sizes = np.array([len(one) for one in drawn], dtype=np.int64)
        below, total = np.ones((2, len(found)))
        order = np.argsort(self.of_row, kind="stable")
        begins = np.searchsorted(self.of_row[order], np.arange(0, len(self.all) + BLOCK, BLOCK))
        for block, (begin, end) in enumerate(pairwise(begins)):
            rows = order[begin:end]
            first = block * BLOCK
            alike = self._alike(self.all[first : first + BLOCK], sizes)
            for place, numbers in enumerate(drawn):
                mine = rows[alike[self.of_row[rows] - first, place]]
                below[mine] += np.searchsorted(numbers, found[mine], side="right")
                total[mine] += len(numbers)
        return np.asarray(np.where(np.isnan(found), np.nan, below / total))

    def _alike(self, patterns: NDArray[np.bool_], sizes: Counts) -> NDArray[np.bool_]:
        """Return which of the patterns drawn for are near enough to some (n, J), shape (n, D).

        The nearest, and all as near as the last that it takes for enough draws.
        """
        one, other = patterns.astype(np.float64), self.all[self.drawn].astype(np.float64)
        apart = one.sum(axis=1)[:, None] + other.sum(axis=1) - 2.0 * one @ other.T
        nearest = np.argsort(apart, axis=1, kind="stable")
        draws = np.cumsum(sizes[nearest], axis=1)
        last = np.minimum((draws < FEWEST_ALIKE).sum(axis=1), len(self.drawn) - 1)
        here = np.arange(len(patterns))
        return np.asarray(apart <= apart[here, nearest[here, last]][:, None])


# --- What the log density of an item's answer is on average, and how it varies, at a predictor

#: Answers drawn where they can neither be listed nor summed up, as counts without end.
N_DRAWS = 2000
#: Counts are listed from 0 up until the remaining probability is at most this.
FEWEST_COUNTS, MOST_COUNTS, REST_OF_COUNTS = 1 << 6, 1 << 16, 1e-9


class DensityMoments:
    """Mean and variance of an item's log density where it is drawn from, by predictor."""

    def __init__(self, result: FitResult) -> None:
        self.result = result
        self._known: list[dict[tuple[float, ...], tuple[float, float]]] = [
            {} for _ in result.item_names
        ]

    def of(self, item: int, eta: Array) -> tuple[Array, Array]:
        """Return means and variances for predictors of the item's responses, (R_j, N) to (N,)."""
        points, place = np.unique(eta, axis=1, return_inverse=True)
        known = self._known[item]
        pairs = []
        for point in points.T:
            key = tuple(point.tolist())
            if key not in known:
                known[key] = self._moments(item, point)
            pairs.append(known[key])
        table = np.array(pairs).reshape(-1, 2)[place.ravel()]
        return table[:, 0], table[:, 1]

    def _moments(self, item: int, point: Array) -> tuple[float, float]:
        parameters = self.result.parameters
        first = int(self.result.responses.starts[item])
        family, own = (
            family_named(parameters.families[first]),
            response_auxiliary(parameters, first),
        )
        nominal = nominal_item(self.result.families[item])
        if nominal is not None:
            chances = nominal.probabilities(family.response_mean(point, own))
            return _weighted(np.log(np.maximum(chances, 1e-300)), chances)
        values = family.possible_values()
        if values is not None:
            at = np.full(len(values), point[0])
            logs = log_density(family, own, values, at)
            return _weighted(logs, np.exp(logs))
        closed = family.log_density_moments(float(point[0]), own)
        if closed is not None:
            return closed
        if family.is_count:
            counted = _counted(family, own, float(point[0]))
            if counted is not None:
                return _weighted(np.log(np.maximum(counted, 1e-300)), counted)
        # The same draws for every predictor and every call: what is expected is no chance.
        rng = np.random.default_rng(0)
        at = np.full(N_DRAWS, point[0])
        logs = log_density(family, own, family.sample(at, own, rng), at)
        return float(logs.mean()), float(logs.var())


def _weighted(logs: Array, chances: Array) -> tuple[float, float]:
    mean = float(chances @ logs)
    return mean, float(chances @ (logs - mean) ** 2)


def _counted(family: Family, own: Array, eta: float) -> Array | None:
    """Return the chances of 0, 1, 2 and so on at a predictor, None where they are too many."""
    n_values = FEWEST_COUNTS
    while n_values <= MOST_COUNTS:
        chances = np.exp(
            log_density(family, own, np.arange(n_values, dtype=float), np.full(n_values, eta))
        )
        if chances.sum() > 1.0 - REST_OF_COUNTS:
            return np.asarray(chances)
        n_values *= 4
    return None


def log_density(family: Family, own: Array, x: Array, eta: Array) -> Array:
    """Return the log density of answers (n,) at predictors (n,), without a change of variables.

    It is that of the logarithm of times: of times themselves the unit would say how much one that
    was seen weighs beside one that was censored.
    """
    theta, partition = family.natural(eta, broadcast_auxiliary(family, own))
    columns = add_column_axis(family, family.to_working(x))
    linear = (columns * add_column_axis(family, theta)).sum(axis=0)
    return np.asarray(linear - partition + family.working_base(x, own))


# ---

COLUMNS = ("id", "lz", "p_value", "n_items")
FEWEST_ITEMS = 2


@dataclass(frozen=True)
class PersonFit:
    """How usual each row is under the model.

    Attributes
    ----------
    table : Table
        id, lz, the share of rows of the model with the same cells seen that fit as badly, and how
        many items were seen. The share counts the row itself among them, so that it is never zero.
    n_reference : int
        Rows drawn from the model, with two items seen at least.
    """

    table: Table
    n_reference: int

    def summary(self, n_shown: int = 10) -> str:
        """Return the rows that fit worst as text."""
        known = [row for row in self.table.rows if not np.isnan(row[1])]
        worst = Table(self.table.columns, tuple(sorted(known, key=lambda row: row[1])))
        share = float(np.mean([row[2] < 0.05 for row in known])) if known else float("nan")
        return "\n".join(
            [
                f"person fit (lz) of {len(known):,} rows, each against those of "
                f"{self.n_reference:,} drawn from the model that lack the same cells or nearly so: "
                f"{share:.1%} are among the 5 % that fit worst; the worst are",
                *worst.lines(n_shown),
            ]
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each row."""
        return self.table.to_dicts()


def person_fit(
    result: FitResult | DCRL,
    X: Any,
    *,
    ids: Sequence[Any] | None = None,
    n_tables: int = 4,
    random_state: Any = 0,
) -> PersonFit:
    """Return lz of each row and how rare it is among rows of the model.

    Parameters
    ----------
    result : FitResult or DCRL
    X : array or frame
    ids : sequence, length N, optional
        Names of the rows; numbers from 1 by default.
    n_tables : int
        Tables drawn for comparison, of as many rows as X has with two answers at least, and with
        their missing cells, or of more: a row is compared with 4,000 at least that lack the same
        cells or, where patterns of missing cells are many, the most nearly the same.
    random_state : int, RandomState or None
    """
    fitted = as_result(result)
    values = observable_values(fitted, X)
    n_tables = checked_count("n_tables", n_tables)
    number = (~np.isnan(values)).sum(axis=1)
    # Rows with too few answers for lz are judged by nothing, and are no reference for others.
    judged = number >= FEWEST_ITEMS
    found, chance = np.full((2, len(values)), np.nan)
    n_reference = 0
    if judged.any():
        found[judged], chance[judged], n_reference = _against_the_model(
            fitted, values[judged], n_tables, root_seed(random_state)
        )
    names = range(1, len(values) + 1) if ids is None else ids
    return PersonFit(Table.of(COLUMNS, zip(names, found, chance, number, strict=True)), n_reference)


def _against_the_model(
    result: FitResult, values: Array, n_tables: int, seed: int
) -> tuple[Array, Array, int]:
    """Return lz (n,) and chances (n,) of rows (n, J), and how many drawn rows they come from."""
    rows, places = canonical_rows(result, values)
    ordered = values[rows]
    moments = DensityMoments(result)
    found = np.empty(len(values))
    items = np.argsort(rank_items(result), kind="stable")
    found[rows] = _lz(result, ordered, moments, items)
    patterns = Patterns.of(np.isnan(ordered), np.argsort(places), n_tables)
    tables = draw_tables(result, patterns.rows, places, n_tables, seed)
    reference = [_lz(result, table, moments, items) for table in tables]
    chance = np.empty(len(values))
    chance[rows] = patterns.shares_below(found[rows], reference)
    return found, chance, int(sum((~np.isnan(one)).sum() for one in reference))


def _lz(
    result: FitResult, values: Array, moments: DensityMoments, items: NDArray[np.intp]
) -> Array:
    """Return lz of each row, shape (N,); NaN where fewer than two items were seen.

    ``items`` (J,) is the order in which these are summed, so that a row has the same lz beside any
    other rows and in any order of the columns.
    """
    parameters, responses = result.parameters, result.responses
    answers = responses.expand(values)
    eta = parameters.predictors(result.classify(values))
    total, mean, variance = np.zeros((3, len(values)))
    for j in items:
        own = np.flatnonzero(responses.item == j)
        seen = ~np.isnan(values[:, j])
        for r in own:
            asked = ~np.isnan(answers[:, r])
            family = family_named(parameters.families[r])
            total[asked] += log_density(
                family, response_auxiliary(parameters, int(r)), answers[asked, r], eta[r, asked]
            )
        expected, spread = moments.of(int(j), eta[own])
        mean += seen * expected
        variance += seen * spread
    enough = (~np.isnan(values)).sum(axis=1) >= FEWEST_ITEMS
    known = enough & (variance > 0)
    return np.where(known, (total - mean) / np.sqrt(np.where(known, variance, 1.0)), np.nan)
