"""The table of answers as the rest of the library sees it, and the one function that makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hidag.errors import DataError
from hidag.observations.columns import columns_from_array, columns_from_frame, finish_in_place
from hidag.observations.frames import frame_labels, open_frame, refuse_duplicates
from hidag.shown_text import counted


@dataclass(frozen=True, eq=False)
class Observations:
    """A table of numbers with holes: one row per sample, one column per item.

    Attributes
    ----------
    values : ndarray of float64, shape (N, J)
        C-contiguous, read-only; NaN where there is no answer, never infinite.
    names : tuple of str, length J
        Unique.
    named : bool
        True if the names came from the user's table, False if they were made up.
    padded : frozenset of str
        Items of which some number was written with leading zeros, as '007', which counts are not.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]
    named: bool
    padded: frozenset[str] = frozenset()

    @property
    def n_samples(self) -> int:
        """Number of rows, N."""
        return int(self.values.shape[0])

    @property
    def n_items(self) -> int:
        """Number of columns, J."""
        return int(self.values.shape[1])

    @cached_property
    def observed(self) -> NDArray[np.bool_]:
        """Mask of the cells that hold an answer, shape (N, J), read-only."""
        mask = ~np.isnan(self.values)
        mask.setflags(write=False)
        return mask

    @property
    def missing_share(self) -> float:
        """Share of the cells that hold no answer, between 0 and 1."""
        return 1.0 - float(np.count_nonzero(self.observed)) / self.values.size

    def column(self, item: int) -> NDArray[np.float64]:
        """Return the observed values of one item, shape (n_observed,)."""
        values = self.values[:, item]
        return values[~np.isnan(values)]

    def __repr__(self) -> str:
        return (
            f"Observations({self.n_samples} samples, {self.n_items} items, "
            f"{self.missing_share:.1%} missing)"
        )


def read_table(
    X: Any,
    *,
    names: Sequence[str] | None = None,
    min_rows: int = 1,
    allow_empty_items: bool = False,
) -> Observations:
    """Return the table as `Observations`, or say in one sentence why it cannot be used.

    Parameters
    ----------
    X : array-like or data frame, shape (N, J)
        A NumPy array (numbers, booleans, objects, masked), a list of lists, or a pandas, polars
        or pyarrow table. Missing answers may be NaN of any kind (also R's NA), None, masked
        cells, pandas NA, polars or pyarrow nulls, or in text columns one of
        `hidag.observations.cells.MISSING_WORDS`. The input is never altered; float64 input is
        copied once.
    names : sequence of str, length J, optional
        Names of the items; by default those of the table, or 'item_0', 'item_1', ...
    min_rows : int, default=1
        Fewer rows are refused. Fitting needs 2, prediction 1.
    allow_empty_items : bool, default=False
        Whether an item may have no observed cell at all. Nothing can be learned from such an
        item, but new samples without it can still be assigned to latent states.

    Returns
    -------
    Observations
        Rows in which nothing is observed are kept.

    Raises
    ------
    DataError
        If the table is empty, not two-dimensional, sparse or complex; if a cell is text, a date
        or infinite; if two columns share a name; if an item is never observed.
    """
    if isinstance(X, Observations):
        values, own_names, named = X.values, X.names, X.named
        padded = [name in X.padded for name in X.names]
    else:
        values, own_names, named, padded = _read_values(X, names, min_rows)
    if names is not None:
        own_names, named = _given_names(names, values.shape[1]), True
    refuse_duplicates(own_names)
    if not isinstance(X, Observations):
        finish_in_place(values, own_names)
        values.setflags(write=False)
    written = frozenset(name for name, zeros in zip(own_names, padded, strict=True) if zeros)
    observations = Observations(values=values, names=own_names, named=named, padded=written)
    _refuse_too_small(values.shape, min_rows)
    if not allow_empty_items:
        _refuse_empty_items(observations)
    return observations


def _read_values(
    X: Any, names: Sequence[str] | None, min_rows: int
) -> tuple[NDArray[np.float64], tuple[str, ...], bool, list[bool]]:
    """Return the numbers, the names, whether they are the table's own, and leading zeros."""
    if bool(sparse.issparse(X)):  # bool() so that the type checker does not narrow X
        raise DataError(
            f"Sparse input is not supported: expected a dense table, got a {type(X).__name__} of "
            f"shape {tuple(X.shape)}; use X.toarray() if it fits into memory"
        )
    labels = frame_labels(X)
    if labels is not None:
        own_names = tuple(str(label) for label in labels)
        refuse_duplicates(own_names)
        # pandas numbers the columns of a frame that was given no names.
        named = list(labels) != list(range(len(labels)))
        if not named:
            own_names = _default_names(len(labels))
        frame = open_frame(X)
        _refuse_too_small(frame.shape, min_rows)
        shown = _given_names(names, len(labels)) if names is not None else own_names
        values, padded = columns_from_frame(frame, shown)
        return values, own_names, named, padded
    array = _as_array(X)
    _refuse_too_small(array.shape, min_rows)
    own_names = _default_names(array.shape[1])
    shown = _given_names(names, array.shape[1]) if names is not None else own_names
    values, padded = columns_from_array(array, shown)
    return values, own_names, False, padded


def _as_array(X: Any) -> NDArray[Any]:
    """Return X as a two-dimensional array of any dtype, masks kept."""
    if isinstance(X, np.ma.MaskedArray):
        array: NDArray[Any] = X
    else:
        try:
            array = np.asarray(X)
        except ValueError as error:
            raise DataError(_ragged_sentence(X)) from error
    if array.dtype.kind == "c":
        raise DataError(
            "Complex data not supported: expected real numbers, got a table of dtype "
            f"{array.dtype} and shape {array.shape}; use X.real if the imaginary part is nothing"
        )
    if array.ndim != 2:
        kind = "scalar" if array.ndim == 0 else f"{array.ndim}D"
        raise DataError(
            f"Expected 2D array, got {kind} array instead (shape={array.shape}). Reshape your "
            "data: X.reshape(-1, 1) if it is one item, X.reshape(1, -1) if it is one sample"
        )
    return array


def _ragged_sentence(X: Any) -> str:
    """Return the sentence for rows of unequal length."""
    if not isinstance(X, list | tuple):
        return "expected a table of numbers, got something that NumPy cannot read as an array"
    lengths = [len(row) if hasattr(row, "__len__") else None for row in X]
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), 0)
    n_odd = sum(length != lengths[0] for length in lengths)
    if not n_odd:
        return "expected a table of numbers, got lists that NumPy cannot read as an array"
    return (
        f"all rows must have as many cells as row 0, which has {lengths[0]}, but row {odd} has "
        f"{lengths[odd]} ({n_odd} of {len(lengths)} rows differ); use None for a missing answer"
    )


def _default_names(n_items: int) -> tuple[str, ...]:
    return tuple(f"item_{j}" for j in range(n_items))


def _given_names(names: Sequence[str], n_items: int) -> tuple[str, ...]:
    """Return the names given by the caller after counting them."""
    given = tuple(str(name) for name in names)
    if len(given) != n_items:
        raise DataError(
            f"names must have one name per column, but got {counted(len(given), 'name')} for "
            f"{counted(n_items, 'column')}"
        )
    return given


def _refuse_too_small(shape: tuple[int, ...], min_rows: int) -> None:
    # The first half of both sentences is the wording that scikit-learn's own checks look for.
    n_samples, n_items = shape
    if n_items < 1:
        raise DataError(
            f"Found a table with 0 feature(s) (shape=({n_samples}, 0)) while a minimum of 1 is "
            "required. Give one column per item"
        )
    if n_samples < min_rows:
        raise DataError(
            f"Found a table with {n_samples} sample(s) (shape=({n_samples}, {n_items})) while a "
            f"minimum of {min_rows} is required. Give one row per sample"
        )


def _refuse_empty_items(observations: Observations) -> None:
    empty = np.flatnonzero(~observations.observed.any(axis=0))
    if len(empty) == observations.n_items:
        raise DataError(
            f"all {observations.n_samples} rows of the table are empty in all {len(empty)} items; "
            "check that the right file was read and that its cells hold numbers"
        )
    if len(empty):
        name = observations.names[int(empty[0])]
        raise DataError(
            f"each item needs at least one observed cell, but item {name!r} has none in "
            f"{observations.n_samples} rows ({len(empty)} of {observations.n_items} items); "
            "drop the column"
        )
