"""Data frames of any library, opened through narwhals; none of the libraries is imported here."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from hidag.errors import DataError


def frame_labels(X: Any) -> list[Any] | None:
    """Return the column labels of a data frame, None if X is no data frame."""
    X = nw.to_native(X, pass_through=True)
    # Duplicate labels make narwhals fail with a message of its own, so they are read before it.
    if nw.dependencies.is_pandas_like_dataframe(X):
        return list(X.columns)
    if nw.dependencies.is_pyarrow_table(X):
        return list(X.column_names)
    frame: Any = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return list(frame.collect_schema().names())
    return None


def open_frame(X: Any) -> Any:
    """Return X as a narwhals DataFrame; lazy frames are collected."""
    frame: Any = nw.from_native(X)
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def refuse_duplicates(names: tuple[str, ...]) -> None:
    """Raise the sentence about column names that occur more than once."""
    if len(set(names)) == len(names):
        return
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    twice = [name for name, count in counts.items() if count > 1]
    raise DataError(
        f"column names must be unique, but {twice[0]!r} occurs {counts[twice[0]]} times "
        f"({len(twice)} of {len(counts)} names occur more than once); rename or drop the columns"
    )
