"""Exact search: the highest-scoring DAG, by dynamic programming over sets of variables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import Advice, GraphError, Setting
from hidag.structure.knowledge import FORBIDDEN
from hidag.structure.scores import ScoreCache

#: The tables have 2^K rows; 12 variables take about one second.
MAX_EXACT_VARIABLES = 12


def check_exact_size(n_variables: int) -> None:
    """Raise if there are more variables than the exact search can handle."""
    if n_variables > MAX_EXACT_VARIABLES:
        raise GraphError(
            "too-many-for-exact-search",
            "{exact} takes at most {limit} variables, because it lists all their subsets, got "
            "{found}",
            advice=Advice("set-option", "use {greedy}", {"greedy": Setting("search", "xges")}),
            exact=Setting("search", "exact"),
            limit=MAX_EXACT_VARIABLES,
            found=n_variables,
        )


def best_dag(
    cache: ScoreCache,
    n_variables: int,
    *,
    constraints: NDArray[np.uint8] | None = None,
    required: NDArray[np.int8] | None = None,
    max_parents: int | None = None,
) -> NDArray[np.int8]:
    """Return the adjacency matrix, shape (K, K), of a DAG with the highest score.

    Every DAG has a sink. The best DAG on a set is therefore the best DAG on the set without its
    sink, plus the best parents of the sink among the rest (Silander and Myllymaki 2006).
    """
    check_exact_size(n_variables)
    sets = np.arange(1 << n_variables, dtype=np.int64)
    sizes = np.array([int(s).bit_count() for s in sets])
    best = np.full((n_variables, len(sets)), -np.inf)
    parents = np.tile(sets, (n_variables, 1))
    for v in range(n_variables):
        allowed = sets >> v & 1 == 0
        if max_parents is not None:
            allowed &= sizes <= max_parents
        if constraints is not None:
            allowed &= sets & _mask((constraints[:, v] & FORBIDDEN) > 0) == 0
        if required is not None:
            always = _mask(required[:, v] == 1)
            allowed &= sets & always == always
        scored = sets[allowed]
        if not len(scored):
            raise GraphError(
                "too-many-required-parents",
                "variable {variable} has more required parents than {limit} allows",
                {"variable": v, "limit": Setting("max_parents", max_parents)},
            )
        words = np.zeros((len(scored), cache.n_words), dtype=np.uint64)
        words[:, 0] = scored.astype(np.uint64)
        best[v, allowed] = cache.many(np.full(len(scored), v, dtype=np.int64), words)
        # From "exactly these parents" to "the best among these candidates", one bit at a time.
        for k in range(n_variables):
            larger = sets[sets >> k & 1 == 1]
            smaller = larger ^ (1 << k)
            better = best[v, smaller] >= best[v, larger]
            best[v, larger[better]] = best[v, smaller[better]]
            parents[v, larger[better]] = parents[v, smaller[better]]
    total = np.full(len(sets), -np.inf)
    total[0] = 0.0
    sink = np.full(len(sets), -1, dtype=np.int64)
    for size in range(1, n_variables + 1):
        of_size = sets[sizes == size]
        for v in range(n_variables):
            has_v = of_size[of_size >> v & 1 == 1]
            rest = has_v ^ (1 << v)
            value = total[rest] + best[v, rest]
            better = value > total[has_v]
            total[has_v[better]] = value[better]
            sink[has_v[better]] = v
    out = np.zeros((n_variables, n_variables), dtype=np.int8)
    left = len(sets) - 1
    while left:
        v = int(sink[left])
        left ^= 1 << v
        out[:, v] = int(parents[v, left]) >> np.arange(n_variables) & 1
    return out


def _mask(members: NDArray[np.bool_]) -> int:
    return sum(1 << int(k) for k in np.flatnonzero(members))
