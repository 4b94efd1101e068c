"""Greedy searches over equivalence classes: GES, and an XGES-style search that goes on after it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.discover.engine import DELETE, INSERT, REVERSE, Engine, State
from hidag.discover.orientation import MixedGraph, bits
from hidag.kernels import graph_operators


def ges(engine: Engine, start: NDArray[np.int8] | None = None) -> State:
    """Return where greedy equivalence search ends (Chickering 2002).

    First insertions until none gains, then deletions until none gains; each time the operator
    with the largest gain.
    """
    state = engine.start(start)
    engine.climb(state, INSERT)
    state.forget_ratings()
    engine.climb(state, DELETE)
    return state


def xges(engine: Engine, start: NDArray[np.int8] | None = None) -> State:
    """Return where an extremely greedy search ends (after Nazaret and Blei 2024).

    Deletions come before reversals and these before insertions, so that a wrong edge is
    corrected as soon as that gains. At an optimum each deletion in turn is forced although it
    loses; the pair deleted must not be inserted again in that direction; the search climbs on,
    and where it ends is kept if it scores better.
    """
    every = DELETE | REVERSE | INSERT
    state = engine.start(start)
    engine.climb(state, every)
    improved = True
    while improved:
        improved = False
        for x, y, chosen, gain in _deletions(engine, state):
            trial = state.copy()
            # The pair deleted keeps its rating from before, so it is rated again under the ban.
            if not engine.apply(trial, graph_operators.DELETE, x, y, chosen, gain):
                continue
            engine.climb(trial, every, banned=(x, y))
            if trial.score > state.score + engine.threshold:
                trial.dirty[y, x] = 1
                trial.dirty_rows[y] = 1
                engine.climb(trial, every)
                state = trial
                improved = True
                break
    return state


def _cliques(graph: MixedGraph, among: int) -> list[int]:
    """Return all sets of mutually joined variables among these, the empty one first."""
    out = [0]
    for k in bits(among):
        joined = graph.adjacent(k)
        out.extend(clique | 1 << k for clique in list(out) if not clique & ~joined)
    return out


def _deletions(engine: Engine, state: State) -> list[tuple[int, int, NDArray[np.uint64], float]]:
    """Return every valid deletion (x, y, C, gain), the least loss first; ties by content."""
    n = engine.n_variables
    graph = MixedGraph(*(_masks(state.graph[part]) for part in range(3)))
    pairs: list[tuple[int, int, int]] = []
    for y in range(n):
        for x in bits(graph.parents[y] | graph.neighbours[y]):
            if engine.rules[x, y] & 2:
                continue
            among = graph.neighbours[y] & graph.adjacent(x)
            pairs.extend((x, y, clique) for clique in _cliques(graph, among))
    if not pairs:
        return []
    nodes = np.array([y for _, y, _ in pairs], dtype=np.int64)
    n_words = engine.cache.n_words
    without = _words([(graph.parents[y] | c) & ~(1 << x) for x, y, c in pairs], n_words)
    with_x = _words([graph.parents[y] | c | 1 << x for x, y, c in pairs], n_words)
    chosen = _words([c for _, _, c in pairs], n_words)
    gains = engine.cache.many(nodes, without) - engine.cache.many(nodes, with_x)
    ranks, mix = engine.ranks, engine.mix.tolist()

    def place(i: int) -> tuple[float, int, int, int]:
        x, y, c = pairs[i]
        return -gains[i], int(ranks[y]), int(ranks[x]), sum(mix[k] for k in bits(c))

    return [
        (pairs[i][0], pairs[i][1], chosen[i], float(gains[i]))
        for i in sorted(range(len(pairs)), key=place)
    ]


def _masks(rows: NDArray[np.uint64]) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") for row in np.ascontiguousarray(rows)]


def _words(masks: list[int], n_words: int) -> NDArray[np.uint64]:
    data = b"".join(mask.to_bytes(8 * n_words, "little") for mask in masks)
    return np.frombuffer(data, dtype=np.uint64).reshape(len(masks), n_words)


__all__ = ["ges", "xges"]
