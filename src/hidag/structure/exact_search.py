"""The best graph of all, by dynamic programming over sets of variables; small problems only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import GraphError
from hidag.structure.knowledge import FORBIDDEN
from hidag.structure.scores import ScoreCache

#: The tables have 2^K rows; 12 variables take about a second.
MAX_EXACT_VARIABLES = 12


def check_exact_size(n_variables: int) -> None:
    """Refuse more variables than the tables have room for."""
    if n_variables > MAX_EXACT_VARIABLES:
        raise GraphError(
            f"search='exact' lists all sets of variables and takes at most "
            f"{MAX_EXACT_VARIABLES}, got {n_variables}; use search='xges'"
        )


def best_dag(
    cache: ScoreCache,
    n_variables: int,
    *,
    rules: NDArray[np.uint8] | None = None,
    required: NDArray[np.int8] | None = None,
    max_parents: int | None = None,
) -> NDArray[np.int8]:
    """Return the adjacency, shape (K, K), of a DAG with the largest score of all.

    Every DAG has a variable without children. The best graph on a set is therefore the best
    graph on the set without its last variable, and the best parents of that one in the rest
    (Silander and Myllymaki 2006).
    """
    check_exact_size(n_variables)
    sets = np.arange(1 << n_variables, dtype=np.int64)
    sizes = np.array([int(s).bit_count() for s in sets])
    best = np.full((n_variables, len(sets)), -np.inf)
    parents = np.tile(sets, (n_variables, 1))
    for v in range(n_variables):
        fine = sets >> v & 1 == 0
        if max_parents is not None:
            fine &= sizes <= max_parents
        if rules is not None:
            never = _mask((rules[:, v] & FORBIDDEN) > 0)
            fine &= sets & never == 0
        if required is not None:
            always = _mask(required[:, v] == 1)
            fine &= sets & always == always
        asked = sets[fine]
        if not len(asked):
            raise GraphError(
                f"the required edges give variable {v} more than max_parents={max_parents} parents"
            )
        words = np.zeros((len(asked), cache.n_words), dtype=np.uint64)
        words[:, 0] = asked.astype(np.uint64)
        best[v, fine] = cache.many(np.full(len(asked), v, dtype=np.int64), words)
        # From "exactly these parents" to "the best among these candidates", one bit at a time.
        for k in range(n_variables):
            larger = sets[sets >> k & 1 == 1]
            smaller = larger ^ (1 << k)
            better = best[v, smaller] >= best[v, larger]
            best[v, larger[better]] = best[v, smaller[better]]
            parents[v, larger[better]] = parents[v, smaller[better]]
    total = np.full(len(sets), -np.inf)
    total[0] = 0.0
    last = np.full(len(sets), -1, dtype=np.int64)
    for size in range(1, n_variables + 1):
        of_size = sets[sizes == size]
        for v in range(n_variables):
            has_v = of_size[of_size >> v & 1 == 1]
            rest = has_v ^ (1 << v)
            value = total[rest] + best[v, rest]
            better = value > total[has_v]
            total[has_v[better]] = value[better]
            last[has_v[better]] = v
    out = np.zeros((n_variables, n_variables), dtype=np.int8)
    left = len(sets) - 1
    while left:
        v = int(last[left])
        left ^= 1 << v
        chosen = int(parents[v, left])
        out[[k for k in range(n_variables) if chosen >> k & 1], v] = 1
    return out


def _mask(members: NDArray[np.bool_]) -> int:
    return sum(1 << int(k) for k in np.flatnonzero(members))
