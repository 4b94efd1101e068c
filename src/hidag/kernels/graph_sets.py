"""Sets of variables as rows of 64-bit words, for the graph kernels."""

from __future__ import annotations

import numpy as np
from numba import njit

#: Kinds of operators.
DELETE, REVERSE, INSERT = 0, 1, 2

#: Parts of a graph, an array (5, K, n_words) of bit sets. JOINED are all adjacent variables; BELOW
#: are those reachable by a partially directed path that begins with an arrow.
PARENTS, CHILDREN, NEIGHBOURS, JOINED, BELOW = range(5)

ZERO, ONE = np.uint64(0), np.uint64(1)

#: De Bruijn multiplication: the top six bits of the lowest one times SHUFFLE index PLACES.
SHUFFLE = np.uint64(0x03F79D71B4CB0A89)
PLACES = np.zeros(64, dtype=np.int64)
for _place in range(64):
    PLACES[(int(SHUFFLE) << _place & (1 << 64) - 1) >> 58] = _place


@njit(cache=True)
def in_word(word, k):
    """Return whether variable k is in the set, given the word of k."""
    return (word >> np.uint64(k & 63)) & ONE != ZERO


@njit(cache=True)
def has(row, k):
    """Return whether variable k is in the set."""
    return in_word(row[k >> 6], k)


@njit(cache=True)
def add(row, k):
    """Add variable k to the set."""
    row[k >> 6] |= ONE << np.uint64(k & 63)


@njit(cache=True)
def drop(row, k):
    """Remove variable k from the set."""
    row[k >> 6] &= ~(ONE << np.uint64(k & 63))


@njit(cache=True)
def lowest(word):
    """Return the position of the lowest one of a nonzero word."""
    return PLACES[((word & (~word + ONE)) * SHUFFLE) >> np.uint64(58)]


@njit(cache=True)
def next_in(row, k):
    """Return the first variable of the set from k on, or -1."""
    w = k >> 6
    if w >= row.shape[0]:
        return -1
    word = row[w] >> np.uint64(k & 63) << np.uint64(k & 63)
    while word == ZERO:
        w += 1
        if w == row.shape[0]:
            return -1
        word = row[w]
    return w * 64 + lowest(word)


@njit(cache=True)
def size(row):
    """Return the number of variables in the set."""
    out = 0
    for w in range(row.shape[0]):
        word = row[w]
        while word != ZERO:
            out += 1
            word &= word - ONE
    return out
