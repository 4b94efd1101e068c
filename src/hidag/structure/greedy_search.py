"""The engine of the greedy searches: the graph, and the ratings of all operators."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.kernels import equivalence_classes, graph_operators, graph_sets
from hidag.structure.knowledge import ADJACENT, FORBIDDEN
from hidag.structure.orientation import MixedGraph, bits
from hidag.structure.scores import LocalScore, ScoreCache

#: Sets of kinds of operators.
DELETE = 1 << graph_sets.DELETE
REVERSE = 1 << graph_sets.REVERSE
INSERT = 1 << graph_sets.INSERT

#: A gain counts if it exceeds this share of the empty graph's score: far above rounding, far
#: below anything that data can tell.
RELATIVE_THRESHOLD = 1e-12


def to_bitsets(matrix: NDArray[np.int8]) -> NDArray[np.uint64]:
    """Return the rows of a 0-1 matrix, shape (n, K), as bit sets, shape (n, n_words)."""
    n_bytes = 8 * max(1, (matrix.shape[1] + 63) // 64)
    out = np.zeros((len(matrix), n_bytes), dtype=np.uint8)
    packed = np.packbits(matrix.astype(bool), axis=1, bitorder="little")
    out[:, : packed.shape[1]] = packed
    return out.view(np.uint64)


def from_bitsets(words: NDArray[np.uint64], n_variables: int) -> NDArray[np.int8]:
    """Return the 0-1 matrix, shape (n, K), of rows of bit sets, shape (n, n_words)."""
    flat = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little")
    return flat[:, :n_variables].astype(np.int8)


@dataclass
class State:
    """Where a climb stands: the class, its score, and the ratings of all operators."""

    graph: NDArray[np.uint64]
    score: float
    ratings: NDArray[np.float64]
    dirty: NDArray[np.uint8]
    dirty_rows: NDArray[np.uint8]
    row_best: NDArray[np.float64]
    row_x: NDArray[np.int64]

    def copy(self) -> State:
        """Return an independent copy."""
        return State(
            self.graph.copy(),
            self.score,
            self.ratings.copy(),
            self.dirty.copy(),
            self.dirty_rows.copy(),
            self.row_best.copy(),
            self.row_x.copy(),
        )

    @property
    def kept(self) -> tuple[NDArray[Any], ...]:
        """What is kept of ratings between steps, as the kernels take it."""
        return self.ratings, self.dirty, self.dirty_rows, self.row_best, self.row_x

    def forget_ratings(self) -> None:
        """Have all operators rated again, as after a change of the kinds allowed."""
        self.dirty[:] = 1
        self.dirty_rows[:] = 1


class Engine:
    """Climbs in the space of equivalence classes.

    Parameters
    ----------
    score : LocalScore
    n_variables : int
    rules : ndarray of uint8, shape (K, K), or None
        Background knowledge; only classes with a member that obeys it are entered.
    max_parents : int or None
        Bound on the parents that an operator gives to a variable.
    cache : ScoreCache or None
        Local scores of the same score that were computed before, and where more are kept.
    """

    def __init__(
        self,
        score: LocalScore,
        n_variables: int,
        rules: NDArray[np.uint8] | None = None,
        max_parents: int | None = None,
        cache: ScoreCache | None = None,
    ) -> None:
        self.n_variables = n_variables
        self.cache = ScoreCache(score, n_variables) if cache is None else cache
        self.has_rules = rules is not None
        no_rules = np.zeros((n_variables, n_variables), dtype=np.uint8)
        self.rules = no_rules if rules is None else rules
        self.max_parents = n_variables if max_parents is None else max_parents
        self.n_steps = 0
        self.ranks, self.mix, empty_score = self._ranks()
        self.threshold = RELATIVE_THRESHOLD * abs(empty_score) + RELATIVE_THRESHOLD
        self._after = np.zeros((5, n_variables, self.cache.n_words), dtype=np.uint64)
        self._parents = np.zeros(self._after.shape[1:], dtype=np.uint64)
        self._chosen = np.zeros(self.cache.n_words, dtype=np.uint64)
        self._out = np.zeros(4)

    def _ranks(self) -> tuple[NDArray[np.int64], NDArray[np.uint64], float]:
        """Rank variables by content: their score alone and with each single parent, sorted.

        Ranks settle exact ties, so that a new order of the columns only reorders the answer.
        Variables of equal rank cannot be told apart by these numbers; they go by column.
        """
        n = self.n_variables
        nodes = np.repeat(np.arange(n, dtype=np.int64), n)
        single = np.tile(np.eye(n, dtype=np.int8), (n, 1))
        single[np.arange(n) * (n + 1)] = 0  # the pair (k, k) asks for k without parents
        scores = self.cache.many(nodes, to_bitsets(single)).reshape(n, n)
        alone = scores.diagonal().copy()
        content = np.column_stack([alone, np.sort(scores, axis=1)])
        _, ranks = np.unique(content, axis=0, return_inverse=True)
        ranks = ranks.reshape(-1).astype(np.int64)
        mix = (ranks + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mix = (mix ^ (mix >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
        return ranks, mix | np.uint64(1), math.fsum(alone.tolist())

    def start(self, dag: NDArray[np.int8] | None = None) -> State:
        """Return the state at the class of a DAG, shape (K, K); default the empty graph."""
        n = self.n_variables
        parents = to_bitsets(np.zeros((n, n), dtype=np.int8) if dag is None else dag.T)
        graph = np.zeros((5, n, self.cache.n_words), dtype=np.uint64)
        equivalence_classes.complete(parents, graph)
        scores = self.cache.many(np.arange(n, dtype=np.int64), parents)
        return State(
            graph,
            math.fsum(scores.tolist()),
            np.full((n, n), -np.inf),
            np.ones((n, n), dtype=np.uint8),
            np.ones(n, dtype=np.uint8),
            np.full((3, n), -np.inf),
            np.full((3, n), -1, dtype=np.int64),
        )

    def obeys(self, graph: NDArray[np.uint64]) -> bool:
        """Return whether the class has a member that obeys the rules."""
        return not self.has_rules or bool(
            equivalence_classes.direct_by_rules(graph.copy(), self.rules)
        )

    def apply(
        self, state: State, kind: int, x: int, y: int, chosen: NDArray[np.uint64], gain: float
    ) -> bool:
        """Move the state by one operator; return False, and stay, if the rules forbid it."""
        equivalence_classes.move(state.graph, kind, x, y, chosen, self._parents)
        equivalence_classes.complete(self._parents, self._after)
        if not self.obeys(self._after):
            return False
        equivalence_classes.mark_dirty(state.graph, self._after, state.dirty, state.dirty_rows)
        state.graph, self._after = self._after, state.graph
        state.score += gain
        self.n_steps += 1
        return True

    def climb(self, state: State, allowed: int, banned: tuple[int, int] = (-1, -1)) -> None:
        """Apply the best operator of the allowed kinds until none gains.

        With a score that tells equivalent graphs apart gains need not add up, and the climb
        could go round in circles; it ends when it comes back to a graph.
        """
        cache = self.cache
        visited = {state.graph.tobytes()}
        refused_pairs = np.zeros((0, 2), dtype=np.int64)
        refused_sets = np.zeros((0, cache.n_words), dtype=np.uint64)
        while True:
            answer = graph_operators.propose(
                state.graph,
                state.kept,
                self.ranks,
                self.mix,
                self.rules,
                allowed,
                banned[0],
                banned[1],
                self.max_parents,
                self.threshold,
                cache.table,
                refused_pairs,
                refused_sets,
                self._chosen,
                self._out,
            )
            if answer == graph_operators.NOTHING:
                return
            if answer == graph_operators.ASKS:
                cache.answer()
                continue
            kind, x, y = (int(v) for v in self._out[:3])
            if self.apply(state, kind, x, y, self._chosen, float(self._out[3])):
                refused_pairs, refused_sets = refused_pairs[:0], refused_sets[:0]
                seen = state.graph.tobytes()
                if seen in visited:
                    return
                visited.add(seen)
            else:
                refused_pairs = np.vstack([refused_pairs, [[x, y]]])
                refused_sets = np.vstack([refused_sets, self._chosen])

    def rate(
        self, state: State, pairs: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
        """Return the best valid gain of each pair (x, y) and its set C, losses included.

        Parameters
        ----------
        state : State
        pairs : ndarray of int64, shape (n, 2)

        Returns
        -------
        gains : ndarray, shape (n,)
            Minus infinity for a pair without a valid operator.
        sets : ndarray of uint64, shape (n, n_words)
        """
        cache = self.cache
        pairs = np.ascontiguousarray(pairs)
        sets = np.zeros((len(pairs), cache.n_words), dtype=np.uint64)
        while True:
            gains: NDArray[np.float64] = graph_operators.rate_pairs(
                pairs,
                state.graph,
                self.mix,
                self.max_parents,
                cache.table,
                sets,
            )
            if not np.isnan(gains).any():
                return gains, sets
            cache.answer()

    def adjacency(self, state: State) -> NDArray[np.int8]:
        """Return the class as an adjacency, shape (K, K), directed further by the rules."""
        graph = state.graph.copy()
        if self.has_rules:
            equivalence_classes.direct_by_rules(graph, self.rules)
        return from_bitsets(graph[1] | graph[2], self.n_variables)


# --- Greedy searches over equivalence classes: GES, and an XGES-style search that goes on

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
        if not engine.apply(trial, graph_sets.DELETE, x, y, chosen, gain):
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
        if not engine.apply(trial, graph_sets.INSERT, x, y, chosen, gain):
            continue
        engine.rules = rules.copy()
        engine.rules[x, y] |= ADJACENT
        engine.rules[y, x] |= ADJACENT
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
            if engine.rules[x, y] & ADJACENT:
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
    apart = from_bitsets(state.graph[3], n) == 0
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
