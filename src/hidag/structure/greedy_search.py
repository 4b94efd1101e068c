"""Greedy searches over Markov equivalence classes: GES, and an extended search after XGES.

Operators insert, delete or reverse an edge of the CPDAG. Each is given by a pair (x, y) and a set C
of further variables; its gain is a difference of two local scores of y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.kernels import equivalence_classes, graph_operators, graph_sets
from hidag.structure.knowledge import ADJACENT, FORBIDDEN
from hidag.structure.mixed_graphs import MixedGraph, bits, cliques
from hidag.structure.scores import ScoreCache, from_bitsets, to_bitsets, to_words

Floats = NDArray[np.float64]
Bits = NDArray[np.uint64]

#: Kinds of operators, as bit sets.
DELETE, REVERSE, INSERT = 1 << graph_sets.DELETE, 1 << graph_sets.REVERSE, 1 << graph_sets.INSERT
ALL_OPERATORS = DELETE | REVERSE | INSERT

#: An operator on the pair (x, y) with its set C and its gain.
Operator = tuple[int, int, Bits, float]


@dataclass
class SearchState:
    """The class as bit sets (5, K, n_words), its score, gains (K, K), and best of rows (3, K)."""

    graph: Bits
    score: float
    gains: Floats
    stale: NDArray[np.uint8]
    stale_rows: NDArray[np.uint8]
    row_best: Floats
    row_x: NDArray[np.int64]

    @property
    def gain_arrays(self) -> tuple[NDArray[Any], ...]:
        """The cached gains as the kernels take them."""
        return self.gains, self.stale, self.stale_rows, self.row_best, self.row_x

    def copy(self) -> SearchState:
        """Return a state that changes independently of this one."""
        gains, stale, stale_rows, row_best, row_x = (one.copy() for one in self.gain_arrays)
        return SearchState(self.graph.copy(), self.score, gains, stale, stale_rows, row_best, row_x)

    def invalidate_gains(self) -> None:
        """Mark all gains as stale, as after a change of the allowed operators."""
        self.stale[:] = 1
        self.stale_rows[:] = 1


class ClassSearch:
    """Hill climbing among the equivalence classes that satisfy ``constraints``, shape (K, K)."""

    def __init__(
        self,
        cache: ScoreCache,
        n_variables: int,
        constraints: NDArray[np.uint8] | None = None,
        max_parents: int | None = None,
    ) -> None:
        self.n_variables = n_variables
        self.cache = cache
        self.has_constraints = constraints is not None
        none = np.zeros((n_variables, n_variables), dtype=np.uint8)
        self.constraints = none if constraints is None else constraints
        self.max_parents = n_variables if max_parents is None else max_parents
        self.n_steps = 0
        self.ranks, self.mix, empty_score = self._rank_variables()
        share = CONFIG.graph_search.relative_threshold
        self.threshold = share * abs(empty_score) + share
        self._after = np.zeros((5, n_variables, self.cache.n_words), dtype=np.uint64)
        self._parents = np.zeros(self._after.shape[1:], dtype=np.uint64)
        self._chosen = np.zeros(self.cache.n_words, dtype=np.uint64)
        self._out = np.zeros(4)

    def _rank_variables(self) -> tuple[NDArray[np.int64], Bits, float]:
        """Return ranks of variables by scores, for ties, hash factors, and the empty score."""
        n = self.n_variables
        nodes = np.repeat(np.arange(n, dtype=np.int64), n)
        single = np.tile(np.eye(n, dtype=np.int8), (n, 1))
        single[np.arange(n) * (n + 1)] = 0  # the pair (k, k) stands for k without parents
        scores = self.cache.many(nodes, to_bitsets(single)).reshape(n, n)
        alone = scores.diagonal().copy()
        content = np.column_stack([alone, np.sort(scores, axis=1)])
        _, ranks = np.unique(content, axis=0, return_inverse=True)
        ranks = ranks.reshape(-1).astype(np.int64)
        mix = (ranks + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mix = (mix ^ (mix >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
        return ranks, mix | np.uint64(1), math.fsum(alone.tolist())

    def start(self, dag: NDArray[np.int8] | None = None) -> SearchState:
        """Return the state of the class of a DAG, shape (K, K); default the empty graph."""
        n = self.n_variables
        parents = to_bitsets(np.zeros((n, n), dtype=np.int8) if dag is None else dag.T)
        graph = np.zeros((5, n, self.cache.n_words), dtype=np.uint64)
        equivalence_classes.complete(parents, graph)
        scores = self.cache.many(np.arange(n, dtype=np.int64), parents)
        return SearchState(
            graph,
            math.fsum(scores.tolist()),
            np.full((n, n), -np.inf),
            np.ones((n, n), dtype=np.uint8),
            np.ones(n, dtype=np.uint8),
            np.full((3, n), -np.inf),
            np.full((3, n), -1, dtype=np.int64),
        )

    def apply(self, state: SearchState, kind: int, operator: Operator) -> bool:
        """Apply an operator; return False, without a change, if the constraints forbid it."""
        x, y, chosen, gain = operator
        equivalence_classes.move(state.graph, kind, x, y, chosen, self._parents)
        equivalence_classes.complete(self._parents, self._after)
        # The class must have a member that satisfies the constraints.
        if self.has_constraints and not equivalence_classes.direct_by_rules(
            self._after.copy(), self.constraints
        ):
            return False
        equivalence_classes.mark_dirty(state.graph, self._after, state.stale, state.stale_rows)
        state.graph, self._after = self._after, state.graph
        state.score += gain
        self.n_steps += 1
        return True

    def climb(self, state: SearchState, allowed: int, excluded: tuple[int, int] = (-1, -1)) -> None:
        """Apply best operators, not inserting ``excluded``, until none gains or a graph repeats."""
        cache = self.cache
        visited = {state.graph.tobytes()}
        refused_pairs = np.zeros((0, 2), dtype=np.int64)
        refused_sets = np.zeros((0, cache.n_words), dtype=np.uint64)
        ties, out = (self.ranks, self.mix), (self._chosen, self._out)
        rules = ties, self.constraints, allowed, excluded, self.max_parents, self.threshold
        while True:
            # The arrays of the table are replaced when it grows.
            rest = cache.table, (refused_pairs, refused_sets), out
            answer = graph_operators.propose(state.graph, state.gain_arrays, *rules, *rest)
            if answer == graph_operators.NOTHING:
                return
            if answer == graph_operators.ASKS:
                cache.compute_requests()
                continue
            kind, x, y = (int(v) for v in self._out[:3])
            if self.apply(state, kind, (x, y, self._chosen, float(self._out[3]))):
                refused_pairs, refused_sets = refused_pairs[:0], refused_sets[:0]
                current = state.graph.tobytes()
                if current in visited:
                    return
                visited.add(current)
            else:
                refused_pairs = np.vstack([refused_pairs, [[x, y]]])
                refused_sets = np.vstack([refused_sets, self._chosen])

    def best_gains(self, state: SearchState, pairs: NDArray[np.int64]) -> tuple[Floats, Bits]:
        """Return the best gain of each pair (x, y), (n,), or -inf, and its set C, (n, n_words)."""
        cache = self.cache
        pairs = np.ascontiguousarray(pairs)
        sets = np.zeros((len(pairs), cache.n_words), dtype=np.uint64)
        while True:
            gains: Floats = graph_operators.rate_pairs(
                pairs, state.graph, self.mix, self.max_parents, cache.table, sets
            )
            if not np.isnan(gains).any():
                return gains, sets
            cache.compute_requests()

    def adjacency(self, state: SearchState) -> NDArray[np.int8]:
        """Return the class, oriented further by the constraints, as a matrix, shape (K, K)."""
        graph = state.graph.copy()
        if self.has_constraints:
            equivalence_classes.direct_by_rules(graph, self.constraints)
        return from_bitsets(graph[1] | graph[2], self.n_variables)


def ges(search: ClassSearch, start: NDArray[np.int8] | None = None) -> SearchState:
    """Run greedy equivalence search (Chickering 2002): first insertions, then deletions."""
    state = search.start(start)
    search.climb(state, INSERT)
    state.invalidate_gains()
    search.climb(state, DELETE)
    return state


def xges(search: ClassSearch, start: NDArray[np.int8] | None = None) -> SearchState:
    """Run an extremely greedy equivalence search (after Nazaret and Blei 2024).

    At a local optimum single deletions, then insertions, are forced although they lower the score,
    and a better optimum is accepted. Forced insertions extend the published search: they find
    causes that are informative only jointly, as in an exclusive or.
    """
    state = search.start(start)
    search.climb(state, ALL_OPERATORS)
    visited = {state.graph.tobytes()}
    while True:
        better = _force(search, state, graph_sets.DELETE, _deletions(search, state))
        better = better or _force(search, state, graph_sets.INSERT, _insertions(search, state))
        # A class is visited twice only if equivalent graphs have different scores.
        if better is None or better.graph.tobytes() in visited:
            return state
        state = better
        visited.add(state.graph.tobytes())


def _force(
    search: ClassSearch, state: SearchState, kind: int, operators: list[Operator]
) -> SearchState | None:
    """Return the first better state after a forced operator of one kind, or None."""
    constraints = search.constraints
    deletes = kind == graph_sets.DELETE
    for operator in operators:
        trial = state.copy()
        if not search.apply(trial, kind, operator):
            continue
        x, y = operator[:2]
        if not deletes:
            search.constraints = constraints.copy()
            search.constraints[[x, y], [y, x]] |= ADJACENT
        search.climb(trial, ALL_OPERATORS, excluded=(x, y) if deletes else (-1, -1))
        search.constraints = constraints
        if trial.score > state.score + search.threshold:
            # Climb on without the restriction on the pair.
            trial.stale[[x, y], [y, x]] = 1
            trial.stale_rows[[x, y]] = 1
            search.climb(trial, ALL_OPERATORS)
            return trial
    return None


def _deletions(search: ClassSearch, state: SearchState) -> list[Operator]:
    """Return every valid deletion, the smallest loss first; ties by rank."""
    parts = ([int.from_bytes(row.tobytes(), "little") for row in part] for part in state.graph[:3])
    graph = MixedGraph(*parts)
    pairs = [
        (x, y, clique)
        for y in range(search.n_variables)
        for x in bits(graph.parents[y] | graph.neighbours[y])
        if not search.constraints[x, y] & ADJACENT
        for clique in cliques(graph, graph.neighbours[y] & graph.adjacent(x))
    ]
    if not pairs:
        return []
    nodes = np.array([y for _, y, _ in pairs], dtype=np.int64)
    n_words = search.cache.n_words
    without = to_words([(graph.parents[y] | c) & ~(1 << x) for x, y, c in pairs], n_words)
    with_x = to_words([graph.parents[y] | c | 1 << x for x, y, c in pairs], n_words)
    chosen = to_words([c for _, _, c in pairs], n_words)
    gains = search.cache.many(nodes, without) - search.cache.many(nodes, with_x)
    ranks, mix = search.ranks, search.mix.tolist()

    def sort_key(i: int) -> tuple[float, int, int, int]:
        x, y, c = pairs[i]
        return -gains[i], int(ranks[y]), int(ranks[x]), sum(mix[k] for k in bits(c))

    return [
        (pairs[i][0], pairs[i][1], chosen[i], float(gains[i]))
        for i in sorted(range(len(pairs)), key=sort_key)
    ]


def _insertions(search: ClassSearch, state: SearchState) -> list[Operator]:
    """Return the best insertion of each pair, the smallest loss first."""
    n = search.n_variables
    nonadjacent = from_bitsets(state.graph[3], n) == 0
    np.fill_diagonal(nonadjacent, False)
    pairs = np.argwhere(nonadjacent & (search.constraints & FORBIDDEN == 0))
    gains, sets = search.best_gains(state, pairs)
    x, y = pairs[:, 0], pairs[:, 1]
    order = np.lexsort((search.ranks[x], search.ranks[y], -gains))
    config = CONFIG.graph_search
    limit = min(config.max_forced_insertions_each * n, config.max_forced_insertions)
    order = order[np.isfinite(gains[order])][:limit]
    return [(int(x[i]), int(y[i]), sets[i], float(gains[i])) for i in order]
