"""Greedy searches over equivalence classes: GES, and an XGES-style search that goes on after it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.discover.engine import DELETE, INSERT, REVERSE, Engine, State, from_words
from hidag.discover.orientation import MixedGraph, bits
from hidag.discover.rules import FORBIDDEN, KEPT
from hidag.kernels import graph_numbers

#: Forced insertions tried at an optimum: per variable, and in all. All of them up to about 13
#: variables, beyond that a share that keeps the search within ten times the cost of GES.
MAX_FORCED_INSERTIONS_EACH = 10
MAX_FORCED_INSERTIONS = 600

_EVERY = DELETE | REVERSE | INSERT


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
    corrected as soon as that gains. At an optimum single steps are forced although they lose,
    the search climbs on, and where it ends is kept if it scores better:

    - each deletion in turn; the pair must not be inserted again in that direction;
    - then insertions, the least loss first; the pair must not be deleted again. This goes
      beyond the paper. It finds causes that tell something only together, as of an exclusive or.
    """
    state = engine.start(start)
    engine.climb(state, _EVERY)
    visited = {state.graph.tobytes()}
    while True:
        better = _force_deletions(engine, state) or _force_insertions(engine, state)
        # Coming back happens only with a score that tells equivalent graphs apart.
        if better is None or better.graph.tobytes() in visited:
            return state
        state = better
        visited.add(state.graph.tobytes())


def _force_deletions(engine: Engine, state: State) -> State | None:
    """Return the first better state behind a forced deletion, or None."""
    for x, y, chosen, gain in _deletions(engine, state):
        trial = state.copy()
        if not engine.apply(trial, graph_numbers.DELETE, x, y, chosen, gain):
            continue
        engine.climb(trial, _EVERY, banned=(x, y))
        if trial.score > state.score + engine.threshold:
            return _set_free(engine, trial, x, y)
    return None


def _force_insertions(engine: Engine, state: State) -> State | None:
    """Return the first better state behind a forced insertion, or None."""
    rules = engine.rules
    for x, y, chosen, gain in _insertions(engine, state):
        trial = state.copy()
        if not engine.apply(trial, graph_numbers.INSERT, x, y, chosen, gain):
            continue
        engine.rules = rules.copy()
        engine.rules[x, y] |= KEPT
        engine.rules[y, x] |= KEPT
        engine.climb(trial, _EVERY)
        engine.rules = rules
        if trial.score > state.score + engine.threshold:
            return _set_free(engine, trial, x, y)
    return None


def _set_free(engine: Engine, trial: State, x: int, y: int) -> State:
    """Climb on without the restriction on the pair."""
    for a, b in ((x, y), (y, x)):
        trial.dirty[a, b] = 1
        trial.dirty_rows[a] = 1
    engine.climb(trial, _EVERY)
    return trial


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
            if engine.rules[x, y] & KEPT:
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


def _insertions(engine: Engine, state: State) -> list[tuple[int, int, NDArray[np.uint64], float]]:
    """Return the best insertion (x, y, C, gain) of each pair, the least loss first."""
    n = engine.n_variables
    apart = from_words(state.graph[3], n) == 0
    np.fill_diagonal(apart, False)
    pairs = np.argwhere(apart & (engine.rules & FORBIDDEN == 0))
    gains, sets = engine.rate(state, pairs)
    x, y = pairs[:, 0], pairs[:, 1]
    order = np.lexsort((engine.ranks[x], engine.ranks[y], -gains))
    most = min(MAX_FORCED_INSERTIONS_EACH * n, MAX_FORCED_INSERTIONS)
    order = order[np.isfinite(gains[order])][:most]
    return [(int(x[i]), int(y[i]), sets[i], float(gains[i])) for i in order]


def _masks(rows: NDArray[np.uint64]) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") for row in np.ascontiguousarray(rows)]


def _words(masks: list[int], n_words: int) -> NDArray[np.uint64]:
    data = b"".join(mask.to_bytes(8 * n_words, "little") for mask in masks)
    # A copy: for a read-only array every kernel that gets it would be compiled once more.
    return np.frombuffer(data, dtype=np.uint64).reshape(len(masks), n_words).copy()


__all__ = ["ges", "xges"]
