"""Local scores of many pairs (variable, parent set), from rows or a weighted table.

Counts are integers (weights in fixed point), and the terms of a score are added in fixed point.
Both sums are exact, so that a score is bit-identical in any order of rows, columns or levels.
"""

from __future__ import annotations

from math import lgamma as math_lgamma

import numpy as np
from numba import njit

from hidag.kernels.graph_sets import ONE, ZERO, add, next_in

#: Compiled code lasts until this file changes: see tests/laws/test_kernel_files.py.
CALLED_FILES = "e44a4ea252f5"


@njit(cache=True)
def look_up(table, node, row):
    """Return the cached score of ``node`` with parents ``row``, or NaN after requesting it."""
    keys, values, asked, counters = table
    n_words = row.shape[0]
    mask = np.uint64(keys.shape[0] - 1)
    h = np.uint64(node + 1) * np.uint64(0x9E3779B97F4A7C15)
    for w in range(n_words):
        h = (h ^ row[w]) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(32)
    # The low bits of a product do not depend on the high bits of its factors: fold once more.
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
                same = same and keys[slot, w + 1] == row[w]
            if same:
                return values[slot]
        slot = (slot + ONE) & mask


@njit(cache=True)
def parent_gain(table, node, row, x, last_row, last_value):
    """Add parent x to ``row`` and return its gain; the last score without x is cached."""
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
    """Return many scores, NaN where they are requested but not yet computed."""
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


BDEU, BIC = 0, 1


@njit(cache=True)
def _ones(word):
    # The usual sideways addition; the compiler turns it into one popcount instruction.
    m1 = np.uint64(0x5555555555555555)
    m2 = np.uint64(0x3333333333333333)
    m4 = np.uint64(0x0F0F0F0F0F0F0F0F)
    word = word - ((word >> np.uint64(1)) & m1)
    word = (word & m2) + ((word >> np.uint64(2)) & m2)
    word = (word + (word >> np.uint64(4))) & m4
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True)
def _count_planes(node, parents, n_parents, levels, offset, planes, masks, place, table):
    """Fill table[configuration * levels + level] by bit planes; all bits of masks[0] are set."""
    n_words = planes.shape[1]
    r = levels[node]
    base = offset[node]
    depth = 0
    configuration = 0
    for d in range(n_parents):
        place[d] = -1
    while True:
        if depth == n_parents:
            for level in range(r):
                plane, mask = planes[base + level], masks[n_parents]
                total = 0
                for w in range(n_words):
                    total += _ones(mask[w] & plane[w])
                table[configuration * r + level] = total
            configuration += 1
            depth -= 1
            if depth < 0:
                return
        place[depth] += 1
        k = parents[depth]
        if place[depth] == levels[k]:
            place[depth] = -1
            depth -= 1
            if depth < 0:
                return
            continue
        plane = planes[offset[k] + place[depth]]
        before, mask = masks[depth], masks[depth + 1]
        for w in range(n_words):
            mask[w] = before[w] & plane[w]
        depth += 1


@njit(cache=True)
def _relabel(code, slots, owner):
    """Replace codes by 0, 1, .. in order of appearance; return the number of codes."""
    size = slots.shape[0]
    slots[:] = -1
    n_labels = 0
    for i in range(code.shape[0]):
        c = code[i]
        h = np.int64((np.uint64(c) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) % size
        while slots[h] >= 0 and owner[slots[h]] != c:
            h += 1
            if h == size:
                h = 0
        if slots[h] < 0:
            owner[n_labels] = c
            slots[h] = n_labels
            n_labels += 1
        code[i] = slots[h]
    return n_labels


@njit(cache=True)
def _count_codes(
    node, parents, n_parents, levels, states, weights, code, slots, owner, limit, table
):
    """Fill table by numbering the parent configurations of the rows; return their number."""
    n = states.shape[1]
    r = levels[node]
    q = 1
    code[:] = 0
    for d in range(n_parents):
        k = parents[d]
        m = levels[k]
        column = states[k]
        for i in range(n):
            code[i] = code[i] * m + column[i]
        q *= m
        if q * r > limit:
            q = _relabel(code, slots, owner)
    table[: q * r] = 0
    column = states[node]
    for i in range(n):
        table[code[i] * r + column[i]] += weights[i]
    return q


@njit(cache=True)
def _log_term(kind, x, prior, zero):
    """Return what a count x adds: ``x log x``, or ``log Gamma`` from the prior to their sum."""
    return math_lgamma(prior + x) - zero if kind == BDEU else x * np.log(x)


@njit(cache=True)
def score_many(kind, nodes, parent_words, rows, bit_planes, scales):
    """Return the local scores (BDEU or BIC) of many pairs (variable, parent set), (n_questions,).

    ``parent_words`` are bit sets of the parents, uint64 (n_questions, n_words). ``rows``: levels
    (K,), states uint8 (K, n) with one row per variable, weights int64 (n,) in units of ``unit``,
    and the first bit plane of every variable (K,). ``bit_planes``: one-hot planes of the rows (sum
    of levels, words), without words if the rows carry weights, and the number of cells up to which
    counts come from them. ``scales``: the equivalent sample size of BDeu, the sum of the weights,
    ``unit``, and the value of one unit of score.
    """
    (levels, states, weights, offset), (planes, max_plane_cells) = rows, bit_planes
    sample_size, total, unit, resolution = scales
    n_variables, n = states.shape
    out = np.empty(nodes.shape[0])
    limit = max(4 * n, 4096) * 2
    max_levels = 2
    for k in range(n_variables):
        max_levels = max(max_levels, levels[k])
    table = np.empty(max(limit, (n + 1) * max_levels * 2), dtype=np.int64)
    code = np.empty(n, dtype=np.int64)
    size = 1
    while size < 2 * n + 2:
        size *= 2
    slots = np.empty(size, dtype=np.int64)
    owner = np.empty(n + 1, dtype=np.int64)
    parents = np.empty(n_variables + 1, dtype=np.int64)
    place = np.empty(n_variables + 1, dtype=np.int64)
    masks = np.full((65, planes.shape[1]), ~ZERO)
    scale = 1.0 / resolution
    for question in range(nodes.shape[0]):
        node = nodes[question]
        r = levels[node]
        n_parents = np.int64(0)
        q_all = 1.0
        k = next_in(parent_words[question], 0)
        while k >= 0:
            parents[n_parents] = k
            n_parents += 1
            q_all *= levels[k]
            k = next_in(parent_words[question], k + 1)
        if q_all * r <= max_plane_cells:
            q = np.int64(q_all)
            _count_planes(node, parents, n_parents, levels, offset, planes, masks, place, table)
        else:
            q = _count_codes(
                node, parents, n_parents, levels, states, weights, code, slots, owner, limit, table
            )
        score = 0
        prior_q, prior_c = sample_size / q_all, sample_size / (q_all * r)
        zero_q, zero_c = math_lgamma(prior_q), math_lgamma(prior_c)
        for c in range(q):
            n_q = 0
            for level in range(r):
                count = table[c * r + level]
                if count > 0:
                    n_q += count
                    term = _log_term(kind, count * unit, prior_c, zero_c)
                    score += np.int64(np.rint(term * scale))
            if n_q > 0:
                term = _log_term(kind, n_q * unit, prior_q, zero_q)
                score -= np.int64(np.rint(term * scale))
        out[question] = score * resolution
        if kind == BIC:
            out[question] -= 0.5 * np.log(total) * q_all * (r - 1)
    return out
