"""Searches beside the greedy ones: PC, by tests of independence, and BOSS, over permutations.

Both read the data through local scores, so that they use any counts, score and knowledge. A score
decides the tests of PC: two variables are independent given a set if adding one to the parents of
the other does not raise the score. With BIC that is the test by G^2 with the critical value
df log N, with BDeu its Bayesian form; both are consistent as N grows, as a fixed level is not.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.structure.graphs import DAG
from hidag.structure.greedy_search import DELETE, ClassSearch
from hidag.structure.knowledge import FORBIDDEN, orient_by_knowledge
from hidag.structure.mixed_graphs import (
    MixedGraph,
    apply_meek_rules,
    bits,
    dag_to_cpdag,
    extend_to_dag,
    find_v_structures,
)
from hidag.structure.scores import ScoreCache, to_words

#: Adjacency of the CPDAG, number of steps, and no best member.
Result = tuple[NDArray[np.int8], int, DAG | None]


class Candidates:
    """Local scores by bit sets, and the parents that knowledge permits or requires."""

    def __init__(
        self,
        cache: ScoreCache,
        n: int,
        constraints: NDArray[np.uint8] | None,
        required: NDArray[np.int8] | None,
        max_parents: int | None,
    ) -> None:
        self.cache, self.n, self.constraints = cache, n, constraints
        self.most = n if max_parents is None else max_parents
        every = (1 << n) - 1
        forbidden = np.zeros((n, n)) if constraints is None else constraints & FORBIDDEN
        self.allowed = [every & ~(1 << v) & ~_mask(forbidden[:, v] > 0) for v in range(n)]
        self.required = [0 if required is None else _mask(required[:, v] == 1) for v in range(n)]
        self._scores: dict[tuple[int, int], float] = {}
        self._parents: dict[tuple[int, int], tuple[int, float]] = {}
        empty = [self.score(v, 0) for v in range(n)]
        # Gains below this share of the empty graph's score are rounding errors.
        self.least = CONFIG.graph_search.relative_threshold * abs(sum(empty))

    def score(self, v: int, parents: int) -> float:
        """Return the local score of a variable with a bit set of parents."""
        key = v, parents
        if key not in self._scores:
            words = to_words([parents], self.cache.n_words)
            self._scores[key] = float(self.cache.many(np.array([v], dtype=np.int64), words)[0])
        return self._scores[key]

    def gain(self, i: int, j: int, given: int) -> float:
        """Return what ``i`` adds to the score of ``j`` with other parents ``given``."""
        return self.score(j, given | 1 << i) - self.score(j, given)

    def best_parents(self, v: int, among: int) -> tuple[int, float]:
        """Return parents of a variable among others, by growing and shrinking, and their score."""
        key = v, among & self.allowed[v]
        if key not in self._parents:
            parents = self.required[v]
            for sign in (1, -1):
                while True:
                    free = (key[1] & ~parents) if sign > 0 else (parents & ~self.required[v])
                    if sign > 0 and parents.bit_count() >= self.most:
                        break
                    now = self.score(v, parents)
                    found = [(self.score(v, parents ^ 1 << u) - now, -u) for u in bits(free)]
                    best = max(found, default=(0.0, 0))
                    if not best[0] > self.least:
                        break
                    parents ^= 1 << -best[1]
            self._parents[key] = parents, self.score(v, parents)
        return self._parents[key]

    def result(self, dag: NDArray[np.int8], n_steps: int) -> Result:
        """Return the result of a search that ended at a DAG."""
        return orient_by_knowledge(dag_to_cpdag(dag), self.constraints), n_steps, None


def boss(
    cache: ScoreCache,
    n: int,
    constraints: NDArray[np.uint8] | None,
    required: NDArray[np.int8] | None,
    max_parents: int | None,
) -> Result:
    """Search permutations, then delete edges of the class: best order score search.

    Each variable moves to its best position until nothing improves (Andrews et al. 2023).
    """
    dag, n_steps = _best_order(Candidates(cache, n, constraints, required, max_parents))
    search = ClassSearch(cache, n, constraints, max_parents)
    state = search.start(dag)
    search.climb(state, DELETE)
    return search.adjacency(state), n_steps + search.n_steps, None


def _best_order(candidates: Candidates) -> tuple[NDArray[np.int8], int]:
    n = candidates.n

    def value(order: list[int]) -> float:
        total, before = 0.0, 0
        for v in order:
            if candidates.required[v] & ~before:
                return -np.inf
            total += candidates.best_parents(v, before)[1]
            before |= 1 << v
        return total

    # The start does not depend on the order of the columns, unless their scores are equal.
    order: list[int] = []
    left = sorted(range(n), key=lambda v: (candidates.score(v, 0), v))
    while left:
        before = _union(order)
        order.append(next(v for v in left if not candidates.required[v] & ~before))
        left.remove(order[-1])
    best, n_steps, improved = value(order), 0, True
    while improved:
        improved = False
        for v in list(order):
            rest = [u for u in order if u != v]
            trials = [[*rest[:k], v, *rest[k:]] for k in range(n)]
            values = [value(trial) for trial in trials]
            top = int(np.argmax(values))
            if values[top] > best + candidates.least:
                order, best, improved, n_steps = trials[top], values[top], True, n_steps + 1
    dag = np.zeros((n, n), dtype=np.int8)
    for position, v in enumerate(order):
        for u in bits(candidates.best_parents(v, _union(order[:position]))[0]):
            dag[u, v] = 1
    return dag, n_steps


def pc(
    cache: ScoreCache,
    n: int,
    constraints: NDArray[np.uint8] | None,
    required: NDArray[np.int8] | None,
    max_parents: int | None,
) -> Result:
    """Search by tests of independence: skeleton, v-structures by their evidence, Meek rules.

    The skeleton is that of PC-stable, and does not depend on the order of the variables. Where the
    tests contradict each other and no DAG has their v-structures, parents are searched within the
    skeleton.
    """
    candidates = Candidates(cache, n, constraints, required, max_parents)
    joined, separators, n_steps = _skeleton(candidates)
    graph = MixedGraph([0] * n, [0] * n, list(joined))
    for i, j in combinations(range(n), 2):
        for a, b in ((i, j), (j, i)):
            if graph.neighbours[a] >> b & 1 and not candidates.allowed[b] >> a & 1:
                graph.orient(b, a)
    evidence = []
    for i, k, j in find_v_structures(MixedGraph(list(joined), [0] * n, [0] * n)):
        given = separators.get((min(i, j), max(i, j)))
        if given is not None and not given >> k & 1:
            evidence.append((-candidates.gain(i, j, given | 1 << k), k, i, j))
    for _, k, i, j in sorted(evidence):
        if all((graph.neighbours[u] | graph.children[u]) >> k & 1 for u in (i, j)):
            for u in (i, j):
                if graph.neighbours[u] >> k & 1:
                    graph.orient(u, k)
    dag = extend_to_dag(apply_meek_rules(graph))
    if dag is None or not _obeys(candidates, dag):
        candidates.allowed = [a & m for a, m in zip(candidates.allowed, joined, strict=True)]
        dag, more = _best_order(candidates)
        n_steps += more
    return candidates.result(dag, n_steps)


def _skeleton(candidates: Candidates) -> tuple[list[int], dict[tuple[int, int], int], int]:
    """Return adjacent variables as bit sets, what separates the others, and the removed edges."""
    n = candidates.n
    joined, separators, size = [0] * n, {}, 0
    for i, j in combinations(range(n), 2):
        if (candidates.allowed[j] >> i | candidates.allowed[i] >> j) & 1:
            joined[i] |= 1 << j
            joined[j] |= 1 << i
    while any(m.bit_count() > size for m in joined):
        fixed = list(joined)
        for i, j in combinations(range(n), 2):
            needed = candidates.required[j] >> i | candidates.required[i] >> j
            if not joined[i] >> j & 1 or needed & 1:
                continue
            sets = {
                _union(chosen)
                for u, v in ((i, j), (j, i))
                for chosen in combinations(bits(fixed[u] & ~(1 << v)), size)
            }
            # Of all sets that separate, the one with the strongest evidence.
            found = min(((candidates.gain(i, j, s), s) for s in sorted(sets)), default=(1.0, 0))
            if found[0] <= candidates.least:
                separators[i, j] = found[1]
                joined[i] &= ~(1 << j)
                joined[j] &= ~(1 << i)
        size += 1
    return joined, separators, len(separators)


def _obeys(candidates: Candidates, dag: NDArray[np.int8]) -> bool:
    """Return whether a DAG agrees with knowledge and the largest number of parents."""
    for v in range(candidates.n):
        parents = _mask(dag[:, v] == 1)
        if parents & ~candidates.allowed[v] or candidates.required[v] & ~parents:
            return False
        if parents.bit_count() > candidates.most:
            return False
    return True


def _mask(members: NDArray[np.bool_]) -> int:
    return _union(np.flatnonzero(members).tolist())


def _union(members: list[int] | tuple[int, ...]) -> int:
    return sum(1 << v for v in members)


#: By the names of their settings.
OTHER_SEARCHES: dict[str, Callable[..., Result]] = {"pc": pc, "boss": boss}
