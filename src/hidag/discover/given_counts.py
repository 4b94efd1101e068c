"""What a search is given, read as weighted configurations: counts, or rows of levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from hidag.errors import DataError, SettingError
from hidag.latent import LatentCounts


def as_counts(
    data: LatentCounts | ArrayLike,
    *,
    weights: ArrayLike | None = None,
    levels: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
) -> LatentCounts:
    """Return the counts of what :func:`discover` takes, after checking it."""
    if isinstance(data, LatentCounts):
        if weights is not None or levels is not None:
            raise SettingError("weights and levels come with the counts; give them for rows only")
        counts = data if names is None else replace(data, names=_names(names))
    else:
        given = np.asarray(data)
        if names is None and hasattr(data, "columns"):
            names = [str(name) for name in cast(Any, data).columns]
        if given.ndim != 2 or given.shape[1] == 0:
            raise DataError(
                f"rows of states must be an array of shape (n, K) with K >= 1, got {given.shape}"
            )
        if given.dtype.kind not in "biu":
            if given.dtype.kind != "f" or not (given == np.rint(given)).all():
                raise DataError(
                    "states must be whole numbers 0, 1, ...; make categories of real values first"
                )
            given = given.astype(np.int64)
        counts = LatentCounts.from_rows(
            given,
            levels=None if levels is None else tuple(int(m) for m in levels),
            names=None if names is None else _names(names),
        )
        if weights is not None:
            # Equal rows are not merged: their weights would be added in the order of the rows.
            counts = LatentCounts(
                given.astype(np.uint8),
                np.asarray(weights, dtype=np.float64),
                counts.levels,
                counts.names,
            )
    if len(set(counts.names)) != len(counts.names):
        raise DataError("the names of the variables must differ")
    return counts


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(name) for name in names)
