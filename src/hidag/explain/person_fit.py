"""Which rows answer unlike anybody the model knows: the standardised log-likelihood, lz.

The log density of a row's answers in its most probable state, less what is expected there, in
standard deviations. Because the state is estimated from the same answers, lz is not standard
normal; chances are taken from rows drawn from the model and treated the same way, with the missing
cells of the row that is judged (:mod:`hidag.explain.alike_rows`): the most probable state accounts
for nearly all of a few answers, and lz is seldom low then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.explain.alike_rows import Patterns
from hidag.explain.density_moments import DensityMoments, log_density
from hidag.explain.draws import canonical_rows, drawn_tables, ranks_of_fit
from hidag.explain.item_channels import auxiliary_of
from hidag.explain.rows import taken_rows
from hidag.explain.tables import Table
from hidag.measurement import family_named
from hidag.result import FitResult
from hidag.settings import checked_count, root_seed

Array = NDArray[np.float64]

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
    result: FitResult,
    X: Any,
    *,
    ids: Sequence[Any] | None = None,
    n_tables: int = 4,
    random_state: Any = 0,
) -> PersonFit:
    """Return lz of each row and how rare it is among rows of the model.

    Parameters
    ----------
    result : FitResult
    X : array or frame
    ids : sequence, length N, optional
        Names of the rows; numbers from 1 by default.
    n_tables : int
        Tables drawn for comparison, of as many rows as X has with two answers at least, and with
        their missing cells, or of more: a row is compared with 4,000 at least that lack the same
        cells or, where patterns of missing cells are many, the most nearly the same.
    random_state : int, RandomState or None
    """
    values = taken_rows(result, X)
    n_tables = checked_count("n_tables", n_tables)
    number = (~np.isnan(values)).sum(axis=1)
    # Rows with too few answers for lz are judged by nothing, and are no reference for others.
    judged = number >= FEWEST_ITEMS
    found, chance = np.full((2, len(values)), np.nan)
    n_reference = 0
    if judged.any():
        found[judged], chance[judged], n_reference = _against_the_model(
            result, values[judged], n_tables, root_seed(random_state)
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
    items = np.argsort(ranks_of_fit(result), kind="stable")
    found[rows] = _lz(result, ordered, moments, items)
    patterns = Patterns.of(np.isnan(ordered), np.argsort(places), n_tables)
    tables = drawn_tables(result, patterns.rows, places, n_tables, seed)
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
                family, auxiliary_of(parameters, int(r)), answers[asked, r], eta[r, asked]
            )
        expected, spread = moments.of(int(j), eta[own])
        mean += seen * expected
        variance += seen * spread
    enough = (~np.isnan(values)).sum(axis=1) >= FEWEST_ITEMS
    known = enough & (variance > 0)
    return np.where(known, (total - mean) / np.sqrt(np.where(known, variance, 1.0)), np.nan)
