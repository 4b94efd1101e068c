"""The paper's conditions, read literally and tried out in all ways; for small matrices only."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np


def items_per_block(levels: int) -> int:
    number = 0
    while 2**number < levels:
        number += 1
    return number


def has_blocks(q: np.ndarray, levels: list[int]) -> bool:
    """Fill the places of both blocks, latent by latent, with any unused rows; look at the rest."""
    n_items, n_latents = q.shape
    places = [k for k in range(n_latents) for _ in range(2 * items_per_block(levels[k]))]
    columns = [sum(1 << j for j in range(n_items) if q[j, k]) for k in range(n_latents)]

    @cache
    def fill(place: int, free: int) -> bool:
        if place == len(places):
            return all(free & column for column in columns)
        usable = free & columns[places[place]]
        return any(fill(place + 1, free & ~(1 << j)) for j in range(n_items) if usable >> j & 1)

    return fill(0, (1 << n_items) - 1)


def no_column_contains_another(q: np.ndarray) -> bool:
    columns = range(q.shape[1])
    return not any((q[:, a] >= q[:, b]).all() for a in columns for b in columns if a != b)


def outside(q: np.ndarray) -> np.ndarray | None:
    """Return the rows that two identity matrices leave over, None if there are no two."""
    rest = list(range(len(q)))
    for k in range(q.shape[1]):
        unit = [j for j in rest if q[j, k] and q[j].sum() == 1]
        if len(unit) < 2:
            return None
        rest = [j for j in rest if j not in unit[:2]]
    return q[rest]


def strict_by_main_effects(q: np.ndarray, rng: np.random.Generator) -> bool | None:
    """Try coefficients: all that could cancel for some pair of states, and random ones."""
    rest = outside(q)
    if rest is None:
        return False
    states = np.array(list(product((0, 1), repeat=q.shape[1])))
    random = (rest * rng.normal(size=rest.shape)) @ states.T
    if len(np.unique(random.round(9).T, axis=0)) < len(states):
        return False  # not even coefficients without ties report all states apart

    def may_cancel(row: np.ndarray, change: np.ndarray) -> bool:
        own = change[row == 1]
        return any(np.dot(b, own) == 0 for b in product((-2, -1, 1, 2), repeat=len(own)))

    for change in product((-1, 0, 1), repeat=q.shape[1]):
        if any(change) and all(may_cancel(row, np.array(change)) for row in rest):
            return None
    return True


@cache
def equal_pairs(width: int) -> frozenset[tuple[int, int]]:
    """Return pairs of states that some monotone item of so many latents does not report apart."""
    n_states = 2**width
    pairs = set()
    for low in product((0, 1), repeat=n_states - 1):
        table = (*low, 2)  # the last state has all latents at 1
        if any(table[1 << k] == table[0] for k in range(width)):
            continue  # a main effect would be zero
        pairs |= {(a, b) for a in range(n_states) for b in range(n_states) if table[a] == table[b]}
    return frozenset(pairs)


def strict_by_all_effects(q: np.ndarray, rng: np.random.Generator) -> bool | None:
    rest = outside(q)
    if rest is None:
        return False
    if not rest.any(axis=0).all():
        return False
    states = list(product((0, 1), repeat=q.shape[1]))

    def code(row: np.ndarray, state: tuple[int, ...]) -> int:
        own = [state[k] for k in np.flatnonzero(row)]
        return sum(bit << place for place, bit in enumerate(own))

    for one in states:
        for other in states:
            if one < other and all(
                (code(row, one), code(row, other)) in equal_pairs(int(row.sum())) for row in rest
            ):
                return None
    return True


def fewest_items(q: np.ndarray, levels: list[int], *, subset: bool, most: int) -> int | None:
    """Return the smallest number of rows to add, None if more than ``most``."""
    rows = [row for row in product((0, 1), repeat=q.shape[1]) if any(row)]
    for number in range(most + 1):
        for new in combinations_with_replacement(rows, number):
            larger = np.vstack([q, *new]) if new else q
            if has_blocks(larger, levels) and (not subset or no_column_contains_another(larger)):
                return number
    return None


def all_matrices(n_latents: int, n_items: int):
    """Yield all matrices of ones and zeros, up to the order of their rows."""
    rows = list(product((0, 1), repeat=n_latents))
    for chosen in combinations_with_replacement(rows, n_items):
        yield np.array(chosen)
