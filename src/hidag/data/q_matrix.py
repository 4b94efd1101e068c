"""The Q-matrix: which latents each item measures, known, partly known or to be estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.table import check_unique_names, frame_labels, open_frame, read_table
from hidag.exceptions import DataError, suggest_name

UNKNOWN = -1  # The code of an entry to be estimated; NaN and empty cells mean the same.

_ITEM_COLUMN = "item"


@dataclass(frozen=True, eq=False)
class QSpec:
    """A Q-matrix, (J, K): 1, 0, or -1 to be estimated; ``named`` if the user named the latents."""

    entries: NDArray[np.int8]
    latent_names: tuple[str, ...]
    named: bool

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return int(self.entries.shape[0])

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return int(self.entries.shape[1])

    @property
    def fully_known(self) -> bool:
        """Whether no entry has to be estimated."""
        return not bool((self.entries == UNKNOWN).any())


def read_q_matrix(q: Any, item_names: Sequence[str], n_latents: int | None = None) -> QSpec:
    """Return the Q-matrix in the order of the items, after checking it.

    ``q``, shape (J, K), has the entries 1, 0, and -1 or missing for an entry to be estimated. The
    rows of an array are in the order of the items. The rows of a data frame whose first column is
    called 'item', or of a pandas frame with an index of names, are matched by name; its other
    columns are the latents, ``n_latents`` of them if given.
    """
    items = tuple(item_names)
    row_names, entries, names, named = read_q_entries(q)
    if row_names is not None:
        entries = entries[_match_rows(row_names, items)]
    _check_shape(entries.shape, len(items), n_latents)
    filled = np.where(np.isnan(entries), UNKNOWN, entries)
    _check_entries(filled, items, names)
    empty = np.flatnonzero((filled == 0).all(axis=0))
    if len(empty):
        text = "each latent needs at least one item, but latent {latent!r} has only zeros in the "
        text += "Q-matrix ({n} of {n_latents} latents)"
        params = {"latent": names[int(empty[0])], "n": len(empty), "n_latents": len(names)}
        advice = "drop the column or mark the entries to be estimated with -1"
        raise DataError("latent-without-items", text, params, advice=advice)
    result = np.ascontiguousarray(filled, dtype=np.int8)
    result.setflags(write=False)
    return QSpec(entries=result, latent_names=names, named=named)


def read_q_entries(
    q: Any,
) -> tuple[tuple[str, ...] | None, NDArray[np.float64], tuple[str, ...], bool]:
    """Return names of rows (None if in the order of the items), entries, and latents, if named."""
    row_names, cells, latent_names, named = _split_q_matrix(q)
    try:
        rows = read_table(cells, names=latent_names if named else None, allow_empty_items=True)
    except DataError as error:
        text = "in the Q-matrix, whose columns are read like items: {error}"
        raise DataError("unreadable-q", text, error=error.message) from error
    names = rows.names if named else tuple(f"latent_{k}" for k in range(rows.n_items))
    return row_names, rows.values, names, named


def _split_q_matrix(q: Any) -> tuple[tuple[str, ...] | None, Any, tuple[str, ...], bool]:
    """Return row names (None if rows are in the order of the items), cells, latent names, named."""
    labels = frame_labels(q)
    if labels is None:
        return None, q, (), False
    names = tuple(str(label) for label in labels)
    check_unique_names(names)
    frame = open_frame(q)
    if names and names[0].strip().lower() == _ITEM_COLUMN:
        row_names = tuple(str(cell) for cell in frame[frame.columns[0]].to_list())
        return row_names, frame.select(frame.columns[1:]).to_native(), names[1:], True
    named = list(labels) != list(range(len(labels)))
    index = getattr(q, "index", None)
    # A pandas index of integers only counts rows; an index of text names the items.
    if index is not None and len(index) and all(isinstance(label, str) for label in index):
        return tuple(index), q, names, named
    return None, q, names, named


def _match_rows(row_names: tuple[str, ...], items: tuple[str, ...]) -> list[int]:
    """Return, for each item, the position of its row in the Q-matrix."""
    position: dict[str, int] = {}
    for row, name in enumerate(row_names):
        if name in position:
            text = "each item must have one row in the Q-matrix, but item {item!r} has {count}"
            params = {"item": name, "count": row_names.count(name)}
            raise DataError("repeated-q-row", text, params, advice="remove the others")
        position[name] = row
    unknown = [name for name in row_names if name not in set(items)]
    if unknown:
        text = "the rows of the Q-matrix must be items of the table, but {item!r} is not one ({n} "
        text += "of {n_rows} rows)"
        details = {"item": unknown[0], "n": len(unknown), "n_rows": len(row_names)}
        advice = suggest_name(unknown[0], items, "remove the row or rename the item")
        raise DataError("unknown-q-row", text, details, advice=advice)
    absent = [name for name in items if name not in position]
    if absent:
        text = "each item must have a row in the Q-matrix, but item {item!r} has none ({n} of "
        text += "{n_items} items)"
        details = {"item": absent[0], "n": len(absent), "n_items": len(items)}
        add = "add a row, with -1 for unknown entries"
        raise DataError("missing-q-row", text, details, advice=add)
    return [position[name] for name in items]


def _check_shape(shape: tuple[int, ...], n_items: int, n_latents: int | None) -> None:
    if shape[0] == n_items and n_latents in (None, shape[1]):
        return
    transposed = shape[1] == n_items and n_latents in (None, shape[0])
    raise DataError(
        "wrong-q-shape",
        "the Q-matrix must have shape ({n_items}, {n_latents}), one row per item and one column "
        "per latent, but it has shape {shape}",
        {"n_items": n_items, "n_latents": "K" if n_latents is None else n_latents, "shape": shape},
        advice="it seems to be transposed" if transposed else None,
    )


def _check_entries(
    entries: NDArray[np.float64], items: tuple[str, ...], names: tuple[str, ...]
) -> None:
    other = ~np.isin(entries, (0.0, 1.0, float(UNKNOWN)))
    if other.any():
        row, column = (int(index) for index in np.argwhere(other)[0])
        text = "the entries of the Q-matrix must be 1, 0 or -1 (estimate), but item {item!r} has "
        text += "{entry:g} for latent {latent!r} ({share} entries)"
        params: dict[str, Any] = {"item": items[row], "entry": entries[row, column]}
        params |= {"latent": names[column], "share": f"{np.count_nonzero(other)} of {entries.size}"}
        raise DataError("invalid-q-entry", text, params)
