"""Data frames of any library, opened through narwhals; none of the libraries is imported here."""

from __future__ import annotations

from typing import Any

import narwhals as nw


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
