"""Local scores of the search in a hash table, and questions for those that are missing.

A table is four arrays: ``keys`` (C, n_words + 1), the variable counted from 1 and the bit set of
its parents, all zero where nothing is stored; ``values`` (C,); ``asked``, the places of scores that
are yet to be computed; and ``counters``, how many scores are stored and how many are asked for.
What is missing is written down as a question and comes back as NaN; the caller has the questions
answered and calls again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hidag.kernels.graph_numbers import ONE, ZERO
from hidag.kernels.graph_sets import add

#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "98e0780d9a1c"


@njit(cache=True)
def look_up(table, node, row):
    """Return the local score of ``node`` with parents ``row``, or NaN after asking for it."""
    keys, values, asked, counters = table
    n_words = row.shape[0]
    mask = np.uint64(keys.shape[0] - 1)
    h = np.uint64(node + 1) * np.uint64(0x9E3779B97F4A7C15)
    for w in range(n_words):
        h = (h ^ row[w]) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(32)
    # A product's low bits know nothing of its factors' high bits: fold once more.
    h *= np.uint64(0x94D049BB133111EB)
    h ^= h >> np.uint64(32)
    slot = h & mask
    while True:
        if keys[slot, 0] == ZERO:
            if counters[1] == asked.shape[0] or 2 * counters[0] >= keys.shape[0]:
                return np.nan
            keys[slot, 0] = np.uint64(node + 1)
            for w in range(n_words):
                keys[slot, w + 1] = row[w]
            values[slot] = np.nan
            asked[counters[1]] = slot
            counters[0] += 1
            counters[1] += 1
            return np.nan
        if keys[slot, 0] == np.uint64(node + 1):
            same = True
            for w in range(n_words):
                if keys[slot, w + 1] != row[w]:
                    same = False
                    break
            if same:
                return values[slot]
        slot = (slot + ONE) & mask


@njit(cache=True)
def worth(table, node, row, x, last_row, last_value):
    """Return what parent x adds to the local score; ``row`` holds the others, and then x too.

    The score without x is the same for most x that are asked about in turn: the last one is kept,
    with its key in ``last_row`` (n_words + 1,).
    """
    known = last_row[0] == np.uint64(node + 1)
    for w in range(row.shape[0]):
        known = known and last_row[w + 1] == row[w]
    without = last_value[0]
    if not known:
        without = look_up(table, node, row)
        if not np.isnan(without):
            last_row[0] = np.uint64(node + 1)
            for w in range(row.shape[0]):
                last_row[w + 1] = row[w]
            last_value[0] = without
    add(row, x)
    return look_up(table, node, row) - without


@njit(cache=True)
def ask_many(table, nodes, rows):
    """Return the scores of many questions, NaN where they have to be answered first."""
    out = np.empty(nodes.shape[0])
    for i in range(nodes.shape[0]):
        out[i] = look_up(table, nodes[i], rows[i])
    return out


@njit(cache=True)
def move_scores(table, larger):
    """Copy all scores to a larger, empty table, which shares ``asked`` and ``counters``."""
    keys, values = table[0], table[1]
    asked, counters = larger[2], larger[3]
    counters[0] = 0
    for slot in range(keys.shape[0]):
        if keys[slot, 0] != ZERO:
            counters[1] = 0
            look_up(larger, np.int64(keys[slot, 0]) - 1, keys[slot, 1:])
            larger[1][asked[0]] = values[slot]
    counters[1] = 0
