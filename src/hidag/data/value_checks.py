"""Check the values of items against their families, and detect suspicious columns.

Suspicious are codes for missing answers, dates, row identifiers and duplicate columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hidag.data.cells import CategoryLabels
from hidag.data.table import Observations, check_unique_names, frame_labels, open_frame, read_table
from hidag.exceptions import Advice, DataError, HidagWarning, Setting, SettingError, join_advice
from hidag.formatting import format_value, plural
from hidag.measurement.families import default_family, item_type
from hidag.measurement.families.base import ValueProblem

Array = NDArray[np.float64]

CODE_SIZES = (9.0, 99.0, 999.0, 9999.0)  # Usual codes for missing answers, with either sign.
FEW_VALUES = 6  # Up to so many distinct values, the largest can be a code even if it is rare.
COUNT_DISTINCT = 6
"""Fewer distinct values than this, from 0 up, are as likely a scale of up to five grades."""
RATING_DISTINCT = 11
"""More than a rating from 1 to 10 has; from here on, counts need not start at 0."""
RARE_CODE = 0.005
"""Codes in a smaller share of the cells have little influence, and tails of counts are as rare."""
USUAL_FAR, REPEATED_FAR, SINGLE_FAR = 1.0, 3.0, 10.0
"""Interquartile ranges from the other values beyond which a usual code, another repeated whole
number, and a single value are asked about; of normal values fewer than 1 in 10,000 are so far."""
EARLIEST_YEAR, LATEST_YEAR = 1800, 2100
REPEATS_LEVEL = 1e-6
"""Level of the test for row identifiers; low, because a table may have thousands of items. Integers
without gaps that occur once each are below it from 17 rows on."""
REPEATED_SHARE = 0.05  # Counts of which a smaller share repeats cause a warning.
MIN_ROWS = 20
"""Rows below which counts may all differ by chance, and responses that must differ from the most
frequent one for two columns to be called duplicates."""
DROP_DATES = Advice(
    "drop-date", "convert dates to numbers, such as days since a reference date, or drop the column"
)
DROP_ROW_IDS = Advice(
    "drop-row-ids", "drop a column that identifies the rows, or set its family to use it as an item"
)
_FIRST_BLOCK = 64
# Squares of larger values overflow, squares of smaller ranges underflow.
_MAX_SIZE, _MIN_RANGE = 1e100, 1e-100
_STACK = 4  # the line that called fit
_SAME_COLUMNS = "give the table that was fitted, or one with the same columns"


def find_code(values: Array) -> float | None:
    """Return the largest or smallest of values (n,) if it may mean a missing answer, or None."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < 3:
        return None
    apart = distinct[-1] in CODE_SIZES and distinct[-2] <= distinct[-1] / 2
    # Among many values a single 99 may be the largest count.
    if apart and (len(distinct) <= FEW_VALUES or counts[-1] > max(1, counts[-2])):
        return float(distinct[-1])
    if -distinct[0] in CODE_SIZES and distinct[1] >= 0:
        return float(distinct[0])
    return -1.0 if np.array_equal(distinct, (-1, 0, 1)) else None


def find_code_beside_grades(values: Array, max_distinct: int | None = None) -> float | None:
    """Return the code next to grades, among fewer than ``max_distinct`` values, or None."""
    distinct = np.unique(values)
    if max_distinct is not None and len(distinct) >= max_distinct:
        return None
    for code, rest in ((distinct[-1:], distinct[:-1]), (distinct[:1], distinct[1:])):
        consecutive = len(rest) > 1 and rest[0] >= 0 and bool(np.all(np.diff(rest) == 1))
        if consecutive and abs(code[0]) in CODE_SIZES and np.abs(rest - code[0]).min() > 1:
            return float(code[0])
    return None


def find_code_beside_scale(values: Array) -> float | None:
    """Return the code next to grades that are too few for counts, or None."""
    few = RATING_DISTINCT if (values > 0).all() else COUNT_DISTINCT
    return find_code_beside_grades(values, few)


def describe_code(values: Array, code: float) -> dict[str, Any]:
    """Return where a code occurs among values, as parameters of a message."""
    rest = values[values != code]
    return {
        "code": f"{code:g}",
        "n": len(values) - len(rest),
        "n_cells": len(values),
        "low": format_value(rest.min()),
        "high": format_value(rest.max()),
    }


def recode_advice(code: float) -> Advice:
    """Return the advice about a code that may stand for missing answers."""
    text = "replace {code} with NaN if it stands for a missing answer"
    return Advice("recode-missing", text, {"code": f"{code:g}"})


def with_code_advice(advice: Advice, values: Array, item: str) -> Advice:
    """Return advice about an item's values, and about a code among them if there may be one."""
    advice = replace(advice, params={**advice.params, "item": item})
    code = find_code(values) or find_code_beside_grades(values)
    if code is None:
        return advice
    text = "it holds {code} in {n} of {n_cells} cells, apart from the other values ({low} to "
    text += "{high}): replace it with NaN if it stands for a missing answer"
    return join_advice(advice, Advice("suspected-code", text, describe_code(values, code)))


def warn_of_codes(observations: Observations, families: Sequence[str]) -> None:
    """Warn of items with a possible code for missing answers among counts or measurements."""
    found: dict[float, list[int]] = {}
    for item, family in enumerate(families):
        # Categories were named one by one, and other families do not admit a code.
        if not item_type(family).is_nominal:
            values = observations.column(item)
            code = _find_frequent_code(values)
            if code is None and (values != np.floor(values)).any():
                code = find_far_code(values)
            if code is not None:
                found.setdefault(code, []).append(item)
    for code, items in found.items():
        name = observations.names[items[0]]
        warning = HidagWarning(
            "suspected-code",
            "item {item!r} holds {code} in {n} of {n_cells} cells, apart from the other values "
            "({low} to {high}) ({n_found} of {n_items} items)",
            {"item": name, "n_found": len(items), "n_items": observations.n_items},
            advice=recode_advice(code),
            **describe_code(observations.column(items[0]), code),
        )
        warnings.warn(warning, stacklevel=_STACK)


def _find_frequent_code(values: Array) -> float | None:
    """Return a code that is frequent enough to bias a fit, or None."""
    code = find_code(values)
    if code is not None and abs(code) in CODE_SIZES:
        n_code = np.count_nonzero(values == code)
        below = values[values < code]
        n_next = np.count_nonzero(values == below.max()) if len(below) else 0
        # A positive code occurs more often than the end of a tail.
        if code < 0 or (n_code > max(1, n_next) and n_code >= RARE_CODE * len(values)):
            return code
    code = find_code_beside_scale(values)
    n_code = np.count_nonzero(values == code)
    return code if code is not None and n_code > 1 and n_code >= RARE_CODE * len(values) else None


def find_far_code(values: Array) -> float | None:
    """Return the extreme one of measurements (n,) if it is far from all others, or None.

    A usual code may be nearer than another repeated whole number, and that than a single value.
    The distance is in interquartile ranges, of positive numbers also in those of their logarithms.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < RATING_DISTINCT or len(values) < MIN_ROWS:
        return None
    for at, beside in ((-1, -2), (0, 1)):
        extreme, rest = float(distinct[at]), values[values != distinct[at]]
        scales: list[Callable[[Any], Any]] = [np.asarray]
        if distinct[0] > 0:
            scales.append(np.log)
        distances = []
        for scale in scales:
            low, high = np.quantile(scale(rest), (0.25, 0.75))
            gap = abs(scale(extreme) - scale(distinct[beside]))
            distances.append(gap / max(high - low, _MIN_RANGE))
        repeated = counts[at] > 1 and extreme == np.floor(extreme)
        usual = repeated and abs(extreme) in CODE_SIZES
        if min(distances) > (USUAL_FAR if usual else REPEATED_FAR if repeated else SINGLE_FAR):
            return extreme
    return None


def check_values(
    observations: Observations, families: Sequence[str], *, for_fitting: bool = True
) -> None:
    """Raise an error about values that do not suit their family or cannot be fitted."""
    if len(families) != observations.n_items:
        got = plural(len(families), "family", "families")
        raise SettingError(
            "wrong-number-of-families",
            "there must be one family per item, but got {families} for {items}",
            {"families": got, "items": plural(observations.n_items, "item")},
        )

    def find_problem(family: str, values: Array) -> ValueProblem | None:
        kind = item_type(family)
        return kind.find_invalid(values) or (kind.find_unfittable(values) if for_fitting else None)

    for params, advice, values in _problems_by_family(observations, families, find_problem):
        text = "{family} needs {need}, but item {item!r} has {problem} ({n} of {n_items} items)"
        advice = with_code_advice(advice, values, params["item"])
        raise DataError("unsuitable-values", text, params, advice=advice)
    _check_ranges(observations, for_fitting=for_fitting)


def warn_of_values(observations: Observations, families: Sequence[str]) -> None:
    """Warn of items that can be fitted, but whose values are suspicious for their family."""

    def find_problem(family: str, values: Array) -> ValueProblem | None:
        kind = item_type(family)
        return None if kind.is_nominal else kind.find_suspicious(values)

    for params, advice, _ in _problems_by_family(observations, families, find_problem):
        text = "{family}: item {item!r} has {problem} ({n} of {n_items} items)"
        warning = HidagWarning("suspicious-values", text, params, advice=advice)
        warnings.warn(warning, stacklevel=_STACK)


def _problems_by_family(
    observations: Observations,
    families: Sequence[str],
    find_problem: Callable[[str, Array], ValueProblem | None],
) -> Iterator[tuple[dict[str, Any], Advice, Array]]:
    """Yield for each family with problems the parameters, advice and values of its first item."""
    for family in dict.fromkeys(families):
        columns = {
            item: observations.column(item) for item, name in enumerate(families) if name == family
        }
        problems = ((item, find_problem(family, values)) for item, values in columns.items())
        found = [(item, problem) for item, problem in problems if problem is not None]
        if found:
            item, problem = found[0]
            params = {
                "family": Setting("family", family),
                "need": item_type(family).allowed_values,
                "item": observations.names[item],
                "problem": problem.problem,
                "n": len(found),
                "n_items": observations.n_items,
            }
            yield params, problem.advice, columns[item]


def _check_ranges(observations: Observations, *, for_fitting: bool) -> None:
    """Raise an error about values or ranges whose squares overflow, and about constant items."""
    constant: dict[str, float] = {}
    for item, name in enumerate(observations.names):
        values = observations.column(item)
        if not len(values):
            continue
        largest, spread = float(np.abs(values).max()), float(np.ptp(values))
        if largest > _MAX_SIZE or (for_fitting and 0 < spread < _MIN_RANGE):
            up_to, over = f"absolute values up to {largest:.3g}", f"a range of {spread:.3g}"
            text = "item {item!r} has {found}, whose square is outside the range of numbers"
            params = {"item": name, "found": up_to if largest > _MAX_SIZE else over}
            raise DataError("extreme-values", text, params, advice="use other units")
        if spread == 0:
            constant[name] = float(values[0])
    if constant and for_fitting:
        name, value = next(iter(constant.items()))
        text = "each item needs at least two different values, but item {item!r} is {value} in all "
        text += "observed rows ({n} of {n_items} items)"
        details: dict[str, Any] = {"item": name, "value": format_value(value), "n": len(constant)}
        details |= {"n_items": observations.n_items}
        advice = Advice("drop-column", "drop the column")
        raise DataError("constant-item", text, details, advice=advice)


def read_known_items(
    X: Any,
    names: Sequence[str],
    families: Sequence[str],
    words: Mapping[str, CategoryLabels] | None = None,
) -> Observations:
    """Return a table with the items of a fit in its order, found by name or else by place."""
    labels = frame_labels(X)
    if labels is not None and set(names) & {str(label) for label in labels}:
        place = {str(label): label for label in labels}
        absent = [name for name in names if name not in place]
        if absent:
            text = "the table must have the items of the fit, but it lacks {item!r} ({n} of "
            text += "{n_items} items)"
            details = {"item": absent[0], "n": len(absent), "n_items": len(names)}
            raise DataError("missing-items", text, details, advice=_SAME_COLUMNS)
        check_unique_names(tuple(str(label) for label in labels if str(label) in names))
        X = _select_columns(X, labels, [place[name] for name in names])
    table = read_table(X, allow_empty_items=True, labels=words)
    if table.n_items != len(names):
        text = "the table must have the {items} of the fit, but it has {columns}"
        params = {"items": plural(len(names), "item"), "columns": plural(table.n_items, "column")}
        raise DataError("wrong-number-of-items", text, params, advice=_SAME_COLUMNS)
    # Messages about cells name the items of the fit even if the table has no names.
    table = replace(table, names=tuple(names))
    check_values(table, families, for_fitting=False)
    return table


def _select_columns(X: Any, labels: Sequence[Any], wanted: Sequence[Any]) -> Any:
    """Return some columns of a frame; the names of others may be repeated."""
    if len(set(labels)) < len(labels):
        # Libraries that allow repeated names select columns by position.
        positions = [list(labels).index(label) for label in wanted]
        return X.iloc[:, positions] if hasattr(X, "iloc") else X.select(positions)
    return open_frame(X)[list(wanted)].to_native()


# Columns that are unlikely to be items.


def are_dates(distinct: Array) -> bool:
    """Return whether distinct values (d,) are all dates such as 20210131 (1 in 27 by chance)."""
    if len(distinct) < 2 or distinct.min() < EARLIEST_YEAR * 10_000:
        return False
    if distinct.max() >= (LATEST_YEAR + 1) * 10_000 or (distinct != np.floor(distinct)).any():
        return False
    integers = distinct.astype(np.int64)
    years, months, days = integers // 10_000, integers // 100 % 100, integers % 100
    if not ((months >= 1) & (months <= 12) & (days >= 1)).all():
        return False
    first = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    lengths = (first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")
    return bool((days <= lengths.astype(np.int64)).all())


def describe_dates(values: Array) -> str:
    """Return the range of a column of dates; completes the sentence "item 'x' holds ..."."""
    return (
        f"whole numbers from {values.min():.0f} to {values.max():.0f} that are all valid dates "
        "(year, month, day)"
    )


def warn_of_dates(observations: Observations) -> None:
    """Warn of items whose values are dates, whatever their family."""
    found = {}
    for item, name in enumerate(observations.names):
        values = observations.column(item)
        # The first value rules out most columns; the test needs sorting.
        if len(values) and values[0] >= EARLIEST_YEAR * 10_000 and are_dates(np.unique(values)):
            found[name] = values
    if found:
        name, values = next(iter(found.items()))
        counts = {"n": len(found), "n_items": observations.n_items}
        text = "item {item!r} holds {dates} ({n} of {n_items} items): the difference between two "
        text += "such numbers is not a number of days"
        params = {"item": name, "dates": describe_dates(values), **counts}
        warning = HidagWarning("dates-as-numbers", text, params, advice=DROP_DATES)
        warnings.warn(warning, stacklevel=_STACK)


def looks_like_row_ids(distinct: Array, n_cells: int) -> bool:
    """Return whether n integers with these distinct values repeat less often than random draws."""
    if len(distinct) < 2:
        return False
    n_distinct = len(distinct)
    gaps = np.diff(distinct)
    # Numbers that all end in 0 have fewer possible values than their range.
    step = int(np.gcd.reduce(gaps.astype(np.int64))) if gaps.max() < 2**53 else 1
    n_possible = (distinct[-1] - distinct[0]) / step + 1
    log_choices = gammaln(n_cells + 1) - gammaln(n_distinct + 1) - gammaln(n_cells - n_distinct + 1)
    log_all_differ = np.log1p(-np.arange(n_distinct) / n_possible).sum()
    return bool(log_choices + log_all_differ < np.log(REPEATS_LEVEL))


def rarely_repeat(values: Array) -> bool:
    """Return whether nearly all of many cells of a column, shape (n,), are different."""
    n_repeated = len(values) - len(np.unique(values))
    return len(values) >= MIN_ROWS and n_repeated < REPEATED_SHARE * len(values)


def warn_of_row_ids(
    observations: Observations, families: tuple[str, ...], inferred: tuple[bool, ...]
) -> None:
    """Warn of items inferred to be counts although their values hardly repeat."""
    found = [
        item
        for item in range(observations.n_items)
        if inferred[item]
        and families[item] == default_family("count")
        and rarely_repeat(observations.column(item))
    ]
    if found:
        values = observations.column(found[0])
        counts = {"n_cells": len(values), "n": len(found), "n_items": observations.n_items}
        text = "item {item!r} is modelled as counts, but {n_distinct} of its {n_cells} cells are "
        text += "different, as row identifiers are ({n} of {n_items} items)"
        params: dict[str, Any] = {"item": observations.names[found[0]]}
        params |= {"n_distinct": len(np.unique(values)), **counts}
        warning = HidagWarning("counts-like-row-ids", text, params, advice=DROP_ROW_IDS)
        warnings.warn(warning, stacklevel=_STACK)


def find_duplicate_columns(values: Array) -> list[tuple[int, int, bool, int]]:
    """Return pairs of columns, whether they are opposite (or equal), and rows with both observed.

    Rows are compared in random order, in blocks of growing size, until a pair differs.
    """
    n_rows, n_items = values.shape
    if n_rows < MIN_ROWS:
        return []
    order = np.random.default_rng(0).permutation(n_rows)
    binary = ((values == 0) | (values == 1) | np.isnan(values)).all(axis=0)
    later = np.triu(np.ones((n_items, n_items), dtype=bool), 1)
    equal, opposite = later.copy(), later & binary & binary[:, None]
    start, step = 0, _FIRST_BLOCK
    while start < n_rows and (equal.any() or opposite.any()):
        rows = values[order[start : start + step]]
        _exclude_different(equal, rows, rows)
        _exclude_different(opposite, 1.0 - rows, rows)
        start, step = start + step, 2 * step
    found = []
    for reverse, left in ((False, equal), (True, opposite)):
        for one, other in np.argwhere(left).tolist():
            both = ~np.isnan(values[:, one]) & ~np.isnan(values[:, other])
            counts = np.unique(values[both, one], return_counts=True)[1]
            # Items with rare responses, and those of small tables, may agree by chance.
            if counts.sum() >= MIN_ROWS and counts.sum() - counts.max() >= MIN_ROWS:
                found.append((one, other, reverse, int(both.sum())))
    return sorted(found)


def _exclude_different(left: NDArray[np.bool_], ours: Array, theirs: Array) -> None:
    """Exclude pairs (i, j) of columns for which our column i and their column j differ in a row."""
    for one in np.flatnonzero(left.any(axis=1)):
        others = np.flatnonzero(left[one])
        gap = ours[:, one, None] - theirs[:, others]
        # The gap of a missing cell is NaN, which is neither.
        left[one, others] = ~((gap > 0) | (gap < 0)).any(axis=0)


def warn_of_duplicate_columns(observations: Observations, *, stacklevel: int) -> None:
    """Warn of copies of an item or of its reverse, which are not independent given the latents."""
    found = find_duplicate_columns(observations.values)
    if not found:
        return
    one, other, reverse, n_rows = found[0]
    more = plural(len(found) - 1, "more pair")
    warning = HidagWarning(
        "duplicate-columns",
        "items {first!r} and {item!r} are {relation} in all {n_rows:,} rows where both are "
        "observed{others}: two copies of one column can form a latent by themselves",
        {"first": observations.names[one], "item": observations.names[other], "n_rows": n_rows},
        advice=Advice("drop-copy", "drop one of the two if it is a copy"),
        relation="opposite" if reverse else "equal",
        others=f" (and {more} of items)" if len(found) > 1 else "",
    )
    warnings.warn(warning, stacklevel=stacklevel)
