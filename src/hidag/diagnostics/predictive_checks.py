"""Predictive checks: would tables drawn from the fit look like the table that was fitted?

Tables are drawn at the estimate. Chances are therefore far on the cautious side: parameters were
fitted to most of the numbers that are compared, so that a true model has next to none below .05.
Drawn rows have the weights of the table's: numbers of both vary as weighted ones do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.data.sample_weights import effective_sample_size, weighted_mean_std
from hidag.inference.fitted_rows import canonical_rows, draw_tables
from hidag.inference.intervals import percentile_interval
from hidag.inference.result_tables import N_EFFECTIVE, Table
from hidag.measurement.families import item_type
from hidag.measurement.responses import category_label, nominal_item
from hidag.results import FitResult

Array = NDArray[np.float64]

COLUMNS = ("item", "statistic", "observed", "expected", "lower", "upper", "p_value", "n_rows")
ALL_ITEMS = "(all items)"
#: Correlations of all pairs are compared for at most so many items.
MOST_ITEMS_FOR_PAIRS = 300


def predictive_checks(
    result: FitResult, values: Array, weights: Array | None = None, *, n_tables: int, seed: int
) -> Table:
    """Return observed statistics beside those of tables drawn from the fit.

    For each item its mean, and its standard deviation, smallest and largest value and share of
    zeros where these say more; for all items the spread of rows' means and the mean size of
    correlations. *lower* and *upper* hold one more draw in 90 %; *p_value* is two-sided. With
    weights there are no smallest and largest values: no weight turns those of a sample into those
    of the population that the model is about.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
    weights : ndarray, shape (N,), optional
    n_tables, seed : int
    """
    rows, places = canonical_rows(result, values, weights)
    ordered = values[rows]
    counted = None if weights is None else weights[rows]
    missing = np.isnan(ordered)
    names, observed = _statistics(result, ordered, counted)
    drawn = np.array(
        [
            _statistics(result, table, counted)[1]
            for table in draw_tables(result, missing, places, n_tables, seed)
        ]
    )
    counts = {name: int((~missing[:, j]).sum()) for j, name in enumerate(result.item_names)}
    out = []
    for i, (item, statistic) in enumerate(names):
        below, above = (drawn[:, i] <= observed[i]).sum(), (drawn[:, i] >= observed[i]).sum()
        chance = min(1.0, 2.0 * (1 + min(below, above)) / (1 + n_tables))
        # Their ranks are those of the chance: outside these ends it is about .1 or less.
        low, high = percentile_interval(drawn[:, i], 0.9)
        n_rows = counts.get(item, len(values))
        middle = drawn[:, i].mean()
        out.append((item, statistic, observed[i], middle, float(low), float(high), chance, n_rows))
    found = Table.of(COLUMNS, out)
    if counted is None:
        return found
    worth = {
        n: effective_sample_size(counted[~missing[:, j]]) for j, n in enumerate(result.item_names)
    }
    everything = effective_sample_size(counted)
    return found.with_column(N_EFFECTIVE, (worth.get(item, everything) for item, _ in names))


def are_checks(table: Table) -> bool:
    """Return whether a table is one of predictive checks."""
    return table.columns[: len(COLUMNS)] == COLUMNS


def _statistics(
    result: FitResult, values: Array, weights: Array | None
) -> tuple[list[tuple[str, str]], Array]:
    """Return what is compared, by item and name, and the numbers."""
    counted = np.ones(len(values)) if weights is None else weights
    names: list[tuple[str, str]] = []
    out: list[float] = []
    for j, item in enumerate(result.item_names):
        seen = ~np.isnan(values[:, j])
        x, own = values[seen, j], counted[seen]
        if not len(x):
            continue
        mean, spread = weighted_mean_std(x, own)
        nominal = nominal_item(result.families[j])
        if nominal is not None:
            for category in nominal.order:
                names.append(
                    (item, f"share of {category_label(category, result.answer_words.get(item))}")
                )
                out.append(_share(x == category, own))
            continue
        names.append((item, "mean"))
        out.append(mean)
        if item_type(result.families[j]).is_binary:
            continue
        ends = (("smallest", x.min()), ("largest", x.max())) if weights is None else ()
        for name, number in (
            ("standard deviation", spread),
            *ends,
            ("share of zeros", _share(x == 0, own)),
        ):
            names.append((item, name))
            out.append(float(number))
    if values.shape[1] > 1:
        names.append((ALL_ITEMS, "spread of rows' means"))
        out.append(_spread_of_rows(values, counted))
        if values.shape[1] <= MOST_ITEMS_FOR_PAIRS:
            names.append((ALL_ITEMS, "mean size of correlations"))
            out.append(_mean_correlation(values, counted))
    return names, np.array(out)


def _share(is_so: NDArray[np.bool_], weights: Array) -> float:
    return weighted_mean_std(is_so.astype(np.float64), weights)[0]


def _standard(values: Array, weights: Array) -> Array:
    """Return values in standard deviations from their item's mean, zero where missing."""
    seen, by = ~np.isnan(values), weights[:, None]
    filled = np.where(seen, values, 0.0)
    number = (by * seen).sum(axis=0)
    number[number == 0] = 1.0
    centred = np.where(seen, values - (by * filled).sum(axis=0) / number, 0.0)
    spread = np.sqrt((by * centred**2).sum(axis=0) / number)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def _spread_of_rows(values: Array, weights: Array) -> float:
    number = (~np.isnan(values)).sum(axis=1)
    means = _standard(values, weights).sum(axis=1)[number > 0] / number[number > 0]
    return weighted_mean_std(means, weights[number > 0])[1]


def _mean_correlation(values: Array, weights: Array) -> float:
    standard, seen = _standard(values, weights), (~np.isnan(values)).astype(np.float64)
    by = weights[:, None]
    both = (by * seen).T @ seen
    both[both == 0] = 1.0
    left, right = np.triu_indices(values.shape[1], 1)
    return float(np.abs(((by * standard).T @ standard / both)[left, right]).mean())
