"""In which order latents are summed out of a product of factors, so that tables stay small."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations


def elimination_order(n_variables: int, scopes: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Return for each step the latent that goes and the neighbours it has then.

    The latent whose neighbours lack the fewest edges among each other goes first, ties to the one
    with fewer neighbours and then the lower index.
    """
    near: list[set[int]] = [set() for _ in range(n_variables)]
    for scope in scopes:
        for a, b in combinations(scope, 2):
            near[a].add(b)
            near[b].add(a)

    def cost(v: int) -> tuple[int, int, int]:
        missing = sum(1 for a, b in combinations(sorted(near[v]), 2) if b not in near[a])
        return missing, len(near[v]), v

    left = {v: cost(v) for v in range(n_variables)}
    out = []
    while left:
        v = min(left, key=lambda u: left[u])
        others = sorted(near[v])
        out.append([v, *others])
        del left[v]
        touched = set(others)
        for a, b in combinations(others, 2):
            if b not in near[a]:
                near[a].add(b)
                near[b].add(a)
                touched |= near[a] & near[b]
        for a in others:
            near[a].discard(v)
            touched |= near[a]
        for u in touched & left.keys():
            left[u] = cost(u)
    return out


def widest_table(steps: Sequence[Sequence[int]], levels: Sequence[int]) -> int:
    """Return the number of cells of the largest table that an order needs."""
    largest = 1
    for clique in steps:
        size = 1
        for v in clique:
            size *= levels[v]
        largest = max(largest, size)
    return largest
