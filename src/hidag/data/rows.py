"""Rows of a table: weights, empty rows, an order by contents, and missingness patterns.

The precision of a fit depends on which items were observed together and on the row weights, not
only on the share of missing cells. A result therefore stores the patterns of observed cells of its
table. If there are too many, a sample is stored that does not depend on the order of the table.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.data.table import Observations, read_table
from hidag.exceptions import DataError, HidagWarning, Setting
from hidag.formatting import plural

Floats = NDArray[np.float64]

#: A larger share of empty rows causes a warning; a smaller one is reported with the fit.
MANY_EMPTY_ROWS = 0.05
MAX_PATTERNS = 1024  # Patterns that are stored; of more, so many are sampled evenly from all rows.
_ROUNDS = 3


def nonempty_rows(values: Floats) -> NDArray[np.bool_]:
    """Return which rows of a table (N, J) have an observed cell, (N,); others say nothing."""
    return np.asarray(~np.isnan(values).all(axis=1))


def describe_empty_rows(n_empty: int, n_rows: int) -> str:
    """Return a sentence about the number of empty rows, which are ignored."""
    verbs = "has no response and is" if n_empty == 1 else "have no response and are"
    return f"{n_empty:,} of {n_rows:,} rows {verbs} ignored"


def warn_of_empty_rows(table: Observations, *, stacklevel: int) -> None:
    """Warn of many empty rows, which may come from a wrong file or column."""
    n_empty = int((~nonempty_rows(table.values)).sum())
    if n_empty > MANY_EMPTY_ROWS * table.n_samples:
        found = describe_empty_rows(n_empty, table.n_samples)
        warnings.warn(HidagWarning("empty-rows", "{rows}", rows=found), stacklevel=stacklevel)


def check_weights(given: Any, n_samples: int, nonempty: NDArray[np.bool_] | None = None) -> Floats:
    """Return checked row weights (N,) from an array or a number, 0 for rows not in ``nonempty``."""
    name = Setting("sample_weight")
    weights = _as_floats(given, name)
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        text = "{name} must have shape ({n_rows},), one weight for each row, got {shape}"
        params = {"name": name, "n_rows": n_samples, "shape": weights.shape}
        raise DataError("wrong-shape-of-weights", text, params)
    _check_nonnegative(weights, name)
    restricted = nonempty is not None and not nonempty.all()
    if nonempty is not None:
        weights[~nonempty] = 0.0
    _check_two_positive(weights, name, " that have a response" if restricted else "")
    most = CONFIG.limits.largest_weight
    if weights.max() > most:
        text = "{name} are numbers of rows, and must be at most {most:g}, but row {row} (counting "
        text += "from 0) has {weight:g}"
        details = {"name": name, "most": most, "row": int(weights.argmax())}
        advice = "scale weights of another unit with hidag.survey_weights"
        raise DataError("weight-too-large", text, details, advice=advice, weight=weights.max())
    if weights.sum() < 2 and effective_sample_size(weights) >= 2:
        text = "{name} must add up to the number of rows that the table stands for, at least 2, "
        text += "but adds up to {total:g}"
        details = {"name": name, "total": weights.sum()}
        advice = "scale weights that are shares with hidag.survey_weights"
        raise DataError("weights-below-two-rows", text, details, advice=advice)
    if weights.sum() < 2:
        heaviest, advice = int(weights.argmax()), "check the weight of that row"
        text = "{name} must let more than one row count, but row {row} (counting from 0) has "
        text += "{weight:g} of {total:g}, nearly all of the weight"
        details = {"name": name, "weight": weights.max(), "total": weights.sum()}
        raise DataError("dominant-weight", text, details, advice=advice, row=heaviest)
    return weights


def survey_weights(weights: Any) -> Floats:
    """Return survey weights scaled for ``sample_weight``, shape (N,).

    A survey weight is the number of people that a row represents, and only ratios of weights are
    meaningful; a fit takes a weight as a number of rows. The scaled weights add up to the effective
    sample size, the square of the sum of the weights over the sum of their squares (Kish 1965).
    ``hidag fit --weights`` does the same.

    Parameters
    ----------
    weights : array, shape (N,)
        Finite numbers of at least 0; 0 excludes a row.

    Notes
    -----
    A weight of 2 has two interpretations. Frequency weights: two rows were observed; so the fit,
    ``validate_q`` and ``standard_errors`` of the kinds "louis" and "scores" take it. Sampling
    weights: one observed row represents two, and only ratios count; so ``fit_statistics``,
    ``draw_asymptotic``, standard errors of the kind "sandwich" and the bootstrap take it. The
    numbers do not show which one is meant. With the weights returned here both agree. With
    frequencies, repeat the rows instead: ``numpy.repeat(X, counts, axis=0)``.

    Examples
    --------
    >>> import hidag
    >>> float(hidag.survey_weights([1, 1, 4]).sum())
    2.0
    """
    name = Setting("weights")
    found = _as_floats(weights, name)
    if found.ndim != 1:
        text = "{name} must be one number for each row, got shape {shape}"
        raise DataError("wrong-shape-of-weights", text, {"name": name, "shape": found.shape})
    return scale_survey_weights(found, name)


def scale_survey_weights(
    weights: Floats, name: Setting, nonempty: NDArray[np.bool_] | None = None
) -> Floats:
    """Return `survey_weights` of numbers (N,), 0 for rows not in ``nonempty``; errors name them."""
    _check_nonnegative(weights, name)
    if nonempty is not None:
        weights = np.where(nonempty, weights, 0.0)
    restricted = nonempty is not None and not nonempty.all()
    _check_two_positive(weights, name, " that have a response" if restricted else "")
    return scale_to_effective_size(weights)


def _as_floats(given: Any, name: Setting) -> Floats:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            "weights-not-numbers", "{name} must be numbers, one for each row", name=name
        ) from error


def _check_nonnegative(weights: Floats, name: Setting) -> None:
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        share = f"{len(bad)} of {len(weights)} rows"
        text = "{name} must be finite numbers >= 0, but row {row} (counting from 0) has {weight:g} "
        text += "({share})"
        params = {"name": name, "row": bad[0], "weight": weights[bad[0]], "share": share}
        raise DataError("invalid-weight", text, params)


def _check_two_positive(weights: Floats, name: Setting, which: str = "") -> None:
    if (weights > 0).sum() < 2:
        text = "{name} must be above zero for at least 2 rows{which}"
        raise DataError("too-few-weights", text, {"name": name, "which": which})


def select_weighted_rows(table: Observations, given: Any) -> tuple[Observations, Floats | None]:
    """Return the n rows with response and positive weight, and weights (n,), None if all are 1."""
    selected = nonempty_rows(table.values)
    weights = None
    if given is not None:
        weights = check_weights(given, table.n_samples, selected)
        selected = weights > 0
    if not selected.all():
        # Checked again, because an item may be observed in excluded rows only.
        table = read_table(replace(table, values=table.values[selected]), min_rows=2)
        weights = None if weights is None else weights[selected]
    return table, None if weights is None or (weights == 1.0).all() else weights


def effective_sample_size(weights: Floats) -> float:
    """Return the number of equally weighted rows with the same variance of a mean (Kish 1965)."""
    if not len(weights):
        return 0.0
    scaled = _near_one(weights)
    return float(scaled.sum() ** 2 / (scaled**2).sum())


def _near_one(weights: Floats) -> Floats:
    """Return weights times a power of two, which is exact: squares of 1e-300 would be zero."""
    return np.ldexp(weights, -int(np.frexp(weights.max())[1]))


def scale_to_effective_size(weights: Floats) -> Floats:
    """Return weights whose sum and sum of squares are both the effective sample size."""
    # fsum makes the scale independent of the order of rows.
    scaled = _near_one(weights)
    return np.asarray(scaled * (fsum(scaled) / fsum(scaled**2)))


def describe_rows(n_rows: int, n_effective: float) -> str:
    """Return the number of rows, and the effective sample size if it differs."""
    effective = f" (effective sample size {n_effective:,.1f})" if n_effective != n_rows else ""
    return f"{plural(n_rows, 'row')}{effective}"


def weighted_mean_std(x: Floats, weights: Floats) -> tuple[float, float]:
    """Return weighted mean and standard deviation of numbers (n,); NaN of none."""
    if not len(x):
        return float("nan"), float("nan")
    if (weights == weights[0]).all():  # The same bits as without weights.
        return float(x.mean()), float(x.std())
    mean = float(weights @ x / weights.sum())
    return mean, float(np.sqrt(weights @ (x - mean) ** 2 / weights.sum()))


# Order by contents, and patterns.


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def canonical_order(
    values: Floats,
    labels: Sequence[str],
    weights: Floats | None = None,
    ties: NDArray[np.integer] | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return orders of rows (N,) and columns (J,) that depend on the contents of a table only.

    ``labels`` and ``weights`` are attributes of columns and rows; ``ties`` orders equal columns.
    Colour refinement: a row is coloured by the multiset of its cells with the colours of their
    columns, and vice versa, three times. Copies of a row are scattered, so that the first few
    thousand rows represent a table with few distinct rows.
    """
    seeds = [int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest()) for t in labels]
    column = np.array(seeds, dtype=np.uint64)
    row = np.zeros(len(values), dtype=np.uint64) if weights is None else _as_bits(weights)
    for _ in range(_ROUNDS):
        # Column by column, so that no array of the table's size is made.
        total = np.zeros(len(values), dtype=np.uint64)
        for j in range(len(column)):
            total += _mix(_mix(_as_bits(values[:, j]) ^ column[j]) ^ row)
        row = _mix(row ^ total)
        for j in range(len(column)):
            keyed = _mix(_mix(_as_bits(values[:, j]) ^ row) ^ column[j])
            column[j] = _mix(column[j : j + 1] ^ keyed.sum(dtype=np.uint64))[0]
    last = np.zeros(len(column), dtype=np.intp) if ties is None else ties
    return np.argsort(_scatter_copies(row), kind="stable"), np.lexsort((last, column))


def collapse_rows(values: Floats, weights: Floats | None = None) -> tuple[Floats, Floats | None]:
    """Return the distinct rows of a table (N, J), missing cells equal, and their weights."""
    rows = np.column_stack([_as_bits(column) for column in values.T])
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
    _, first, place = np.unique(keys.ravel(), return_index=True, return_inverse=True)
    if len(first) == len(values):
        return values, weights
    totals = np.bincount(place.ravel(), weights, minlength=len(first))
    return values[first], totals.astype(np.float64)


def _scatter_copies(colours: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return colours in which every copy except the first has a colour of its own."""
    order = np.argsort(colours, kind="stable")
    arranged = colours[order]
    places = np.arange(len(colours))
    new = np.append(True, arranged[1:] != arranged[:-1])[: len(colours)]
    copy = (places - np.maximum.accumulate(np.where(new, places, 0))).astype(np.uint64)
    out = np.empty_like(colours)
    out[order] = np.where(copy > 0, _mix(arranged ^ _mix(copy)), arranged)
    return out


def _as_bits(cells: Floats) -> NDArray[np.uint64]:
    """Return the bits of the cells, the same for both zeros and for every missing cell."""
    bits = (np.ascontiguousarray(cells) + 0.0).view(np.uint64)
    return np.where(np.isnan(cells), np.uint64(0x7FF8000000000000), bits)


@dataclass(frozen=True)
class MissingnessPatterns:
    """Patterns of observed cells, M of them over J items, eight in a byte of ``bits``.

    ``counted`` and ``squares``, (M,), are sums of the weights and squared weights of their rows.
    """

    bits: NDArray[np.uint8]
    n_items: int
    counted: Floats
    squares: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats | None = None) -> MissingnessPatterns:
        """Return the patterns of a table (N, J), NaN for missing cells, with weights (N,)."""
        counts = np.ones(len(values)) if weights is None else weights
        seen = ~np.isnan(values)
        if seen.all():
            # Sorted, so that the rounding of the sum does not depend on the order of rows.
            ranked = np.sort(counts)
            sums = [np.array([float(w.sum())]) for w in (ranked, ranked**2)]
            return cls(np.packbits(seen[:1], axis=1), seen.shape[1], sums[0], sums[1])
        every = cls._of_cells(seen, counts)
        if len(every.bits) <= MAX_PATTERNS:
            return every
        _, columns = canonical_order(values, ("",) * seen.shape[1])
        chosen = cls._of_cells(seen[:, columns], counts)._sample_evenly()
        return chosen.with_items_in_order(np.argsort(columns))

    @classmethod
    def _of_cells(cls, seen: NDArray[np.bool_], counts: Floats) -> MissingnessPatterns:
        """Return the sorted patterns of observed cells (N, J) with row weights (N,)."""
        bits, place = np.unique(np.packbits(seen, axis=1), axis=0, return_inverse=True)
        place = place.ravel()
        ranked = np.lexsort((counts, place))
        counted, squares = (
            np.bincount(place[ranked], w, minlength=len(bits)).astype(np.float64)
            for w in (counts[ranked], counts[ranked] ** 2)
        )
        return cls(bits, seen.shape[1], counted, squares)

    def _sample_evenly(self) -> MissingnessPatterns:
        """Return `MAX_PATTERNS` patterns of equal weight."""
        # Patterns are sorted, so that an even sample represents all kinds of them.
        each = float(self.counted.sum()) / MAX_PATTERNS
        at = (np.arange(MAX_PATTERNS) + 0.5) * each
        chosen = np.minimum(np.searchsorted(np.cumsum(self.counted), at), len(self.bits) - 1)
        unequal = (self.squares / self.counted)[chosen]
        unequal *= float(self.squares.sum()) / float(unequal.sum())
        counted = np.full(MAX_PATTERNS, each)
        return MissingnessPatterns(self.bits[chosen], self.n_items, counted, unequal)

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Observed cells of each pattern, shape (M, J)."""
        return np.unpackbits(self.bits, axis=1, count=self.n_items).astype(bool)

    def with_items_in_order(self, order: NDArray[np.intp]) -> MissingnessPatterns:
        """Return the patterns with reordered items (J,), sorted again."""
        bits = np.packbits(self.seen[:, order], axis=1)
        ranked = np.lexsort((self.squares, self.counted, *bits.T[::-1]))
        counted, squares = self.counted[ranked], self.squares[ranked]
        return MissingnessPatterns(bits[ranked], self.n_items, counted, squares)
