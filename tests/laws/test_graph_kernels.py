"""Compiled search kernels against their plain-Python bodies."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from hidag.kernels import equivalence_classes, graph_operators, local_scores
from hidag.latent import LatentCounts
from hidag.structure import CountScore, Knowledge, greedy_search, scores, search_graph


class PlainBodies:
    """A kernel file whose entry points run as plain Python."""

    def __init__(self, module) -> None:
        self._module = module

    def __getattr__(self, name):
        found = getattr(self._module, name)
        return getattr(found, "py_func", found)


@pytest.mark.parametrize("knowledge", [None, Knowledge(tiers=[[0, 1], [2, 3, 4, 5]])])
@pytest.mark.parametrize("search", ["ges", "xges"])
def test_a_whole_search_with_plain_bodies(search, knowledge, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    rows = np.cumsum(rng.random((150, 6)) < 0.35, axis=1) % 2
    compiled = search_graph(rows, search=search, knowledge=knowledge)
    monkeypatch.setattr(greedy_search, "graph_operators", PlainBodies(graph_operators))
    monkeypatch.setattr(greedy_search, "equivalence_classes", PlainBodies(equivalence_classes))
    monkeypatch.setattr(scores, "local_scores", PlainBodies(local_scores))
    with np.errstate(over="ignore"):  # plain Python warns where machine numbers wrap around
        plain = search_graph(rows, search=search, knowledge=knowledge)
    # Sums of logarithms may round differently when compiled.
    assert plain.score == pytest.approx(compiled.score, rel=1e-12)
    assert replace(plain, score=compiled.score) == compiled


def below(adjacency: np.ndarray, y: int) -> set[int]:
    """Variables reached from y along an arrow first and never against one, by definition."""
    directed = (adjacency == 1) & (adjacency.T == 0)
    front = list(np.flatnonzero(directed[y]))
    seen = set(front)
    while front:
        for k in np.flatnonzero(adjacency[front.pop()]):
            if k not in seen:
                seen.add(k)
                front.append(k)
    return seen


@pytest.mark.parametrize("n", [5, 12, 70])
def test_variables_below(n) -> None:
    rng = np.random.default_rng(n)
    for _ in range(10):
        order = rng.permutation(n)
        dag = np.zeros((n, n), dtype=np.int8)
        dag[np.ix_(order, order)] = np.triu(rng.random((n, n)) < 3 / n, 1)
        graph = np.zeros((5, n, (n + 63) // 64), dtype=np.uint64)
        equivalence_classes.complete(greedy_search.to_bitsets(dag.T), graph)
        adjacency = greedy_search.from_bitsets(graph[1] | graph[2], n)
        found = greedy_search.from_bitsets(graph[4], n)
        for y in range(n):
            assert set(np.flatnonzero(found[y])) == below(adjacency, y)
            assert y not in below(adjacency, y)


@pytest.mark.parametrize("seed", range(6))
def test_cached_gains_equal_fresh_ones(seed) -> None:
    # Gains that mark_dirty does not mark must be unchanged after any sequence of valid steps.
    rng = np.random.default_rng(seed)
    n = 9
    machine = greedy_search.ClassSearch(score_cache(rng.integers(0, 2, (60, n))), n)
    every = greedy_search.DELETE | greedy_search.REVERSE | greedy_search.INSERT
    cached = machine.start()
    pairs = np.array([(x, y) for x in range(n) for y in range(n) if x != y])
    for _ in range(60):
        for state in (cached, fresh := copy.deepcopy(cached)):
            if state is fresh:
                state.invalidate_gains()
            while propose_only(machine, state, every) == graph_operators.ASKS:
                machine.cache.compute_requests()
        np.testing.assert_array_equal(fresh.gains, cached.gains)
        gains, sets = machine.best_gains(cached, pairs)
        i = rng.choice(np.flatnonzero(np.isfinite(gains)))
        x, y = (int(k) for k in pairs[i])
        kind = int(graph_operators.kind_of(x, y, cached.graph))
        assert machine.apply(cached, kind, (x, y, sets[i], float(gains[i])))


def score_cache(rows):
    counts = LatentCounts.from_rows(rows, levels=(2,) * rows.shape[1])
    return scores.ScoreCache(CountScore(counts), rows.shape[1])


def propose_only(machine, state, allowed) -> int:
    cache = machine.cache
    return graph_operators.propose(
        state.graph,
        state.gain_arrays,
        (machine.ranks, machine.mix),
        machine.constraints,
        allowed,
        (-1, -1),
        machine.max_parents,
        machine.threshold,
        cache.table,
        (np.zeros((0, 2), dtype=np.int64), np.zeros((0, cache.n_words), dtype=np.uint64)),
        (np.zeros(cache.n_words, dtype=np.uint64), np.zeros(4)),
    )
