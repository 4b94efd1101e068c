"""An order of rows and columns that depends on their contents alone.

Floating-point sums depend on the order of their terms. Working in this order, and putting the
answer back in the user's, makes permuting rows or columns permute the answer, bit for bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 3


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def canonical_order(
    values: NDArray[np.float64],
    labels: Sequence[str],
    weights: NDArray[np.float64] | None = None,
    ties: NDArray[np.integer] | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the orders of rows and of columns in which a table is worked on.

    Parameters
    ----------
    values : ndarray, shape (N, J)
        NaN in missing cells.
    labels : sequence of str, length J
        What tells columns apart besides their contents: the family, the given row of Q.
    weights : ndarray, shape (N,), or None
        What tells rows apart besides theirs.
    ties : ndarray of int, shape (J,), or None
        What columns go by that nothing else tells apart, as all of a kind in a table of one row.

    Notes
    -----
    Rows and columns are coloured in turn: a row by the multiset of its cells with their columns'
    colours, a column by that of its cells with their rows' colours. Rows or columns that still
    share a colour after three rounds are interchangeable for every purpose here.

    Copies of a row are scattered: what is estimated from the first few thousand rows would
    otherwise see a handful of patterns of a table that has few, and most of its copies of those.
    """
    seeds = [int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest()) for t in labels]
    column = np.array(seeds, dtype=np.uint64)
    row = np.zeros(len(values), dtype=np.uint64) if weights is None else _words(weights)
    for _ in range(_ROUNDS):
        # Column by column, so that no array of the table's size is made.
        total = np.zeros(len(values), dtype=np.uint64)
        for j in range(len(column)):
            total += _mix(_mix(_words(values[:, j]) ^ column[j]) ^ row)
        row = _mix(row ^ total)
        for j in range(len(column)):
            keyed = _mix(_mix(_words(values[:, j]) ^ row) ^ column[j])
            column[j] = _mix(column[j : j + 1] ^ keyed.sum(dtype=np.uint64))[0]
    last = np.zeros(len(column), dtype=np.intp) if ties is None else ties
    return np.argsort(_scattered(row), kind="stable"), np.lexsort((last, column))


def _scattered(colours: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return colours in which every copy but the first has one of its own."""
    order = np.argsort(colours, kind="stable")
    arranged = colours[order]
    places = np.arange(len(colours))
    new = np.append(True, arranged[1:] != arranged[:-1])[: len(colours)]
    copy = (places - np.maximum.accumulate(np.where(new, places, 0))).astype(np.uint64)
    out = np.empty_like(colours)
    out[order] = np.where(copy > 0, _mix(arranged ^ _mix(copy)), arranged)
    return out


def _words(cells: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the bits of the cells; minus zero looks like zero, every missing cell alike."""
    bits = (np.ascontiguousarray(cells) + 0.0).view(np.uint64)
    return np.where(np.isnan(cells), np.uint64(0x7FF8000000000000), bits)
