"""Sets of variables as rows of 64-bit words, for the graph kernels."""

from __future__ import annotations

import numpy as np
from numba import njit

from hidag.kernels.graph_numbers import ONE, PLACES, SHUFFLE, ZERO

#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "6db7f7dd2cc4"


@njit(cache=True)
def in_word(word, k):
    """Return whether variable k is in the set that ``word``, its own word, is part of."""
    return (word >> np.uint64(k & 63)) & ONE != ZERO


@njit(cache=True)
def has(row, k):
    """Return whether variable k is in the set."""
    return in_word(row[k >> 6], k)


@njit(cache=True)
def add(row, k):
    """Put variable k into the set."""
    row[k >> 6] |= ONE << np.uint64(k & 63)


@njit(cache=True)
def drop(row, k):
    """Take variable k out of the set."""
    row[k >> 6] &= ~(ONE << np.uint64(k & 63))


@njit(cache=True)
def lowest(word):
    """Return the place of the lowest one of a word that has one."""
    return PLACES[((word & (~word + ONE)) * SHUFFLE) >> np.uint64(58)]


@njit(cache=True)
def size(row):
    """Return how many variables are in the set."""
    out = 0
    for w in range(row.shape[0]):
        word = row[w]
        while word != ZERO:
            out += 1
            word &= word - ONE
    return out
