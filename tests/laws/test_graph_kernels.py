"""Compiled search kernels against their plain-Python bodies."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.discover import Knowledge, engine, score_cache, search_graph
from hidag.kernels import (
    graph_classes,
    graph_moves,
    graph_operators,
    graph_ratings,
    graph_score_table,
    graph_validity,
)


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
    monkeypatch.setattr(engine, "graph_operators", PlainBodies(graph_operators))
    monkeypatch.setattr(engine, "graph_ratings", PlainBodies(graph_ratings))
    monkeypatch.setattr(engine, "graph_moves", PlainBodies(graph_moves))
    monkeypatch.setattr(engine, "graph_classes", PlainBodies(graph_classes))
    monkeypatch.setattr(score_cache, "graph_score_table", PlainBodies(graph_score_table))
    with np.errstate(over="ignore"):  # plain Python warns where machine numbers wrap around
        plain = search_graph(rows, search=search, knowledge=knowledge)
    assert plain == compiled


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
        graph_classes.complete(engine.to_words(dag.T), graph)
        adjacency = engine.from_words(graph[1] | graph[2], n)
        found = engine.from_words(graph[4], n)
        for y in range(n):
            assert set(np.flatnonzero(found[y])) == below(adjacency, y)
            assert y not in below(adjacency, y)


@pytest.mark.parametrize("seed", range(6))
def test_ratings_kept_between_steps_equal_fresh_ones(seed) -> None:
    # What mark_dirty leaves alone must not have changed, wherever a walk of valid steps leads.
    rng = np.random.default_rng(seed)
    n = 9
    machine = engine.Engine(engine_counts(rng.integers(0, 2, (60, n))), n)
    every = engine.DELETE | engine.REVERSE | engine.INSERT
    kept = machine.start()
    pairs = np.array([(x, y) for x in range(n) for y in range(n) if x != y])
    for _ in range(60):
        for state in (kept, fresh := kept.copy()):
            if state is fresh:
                state.forget_ratings()
            while propose_only(machine, state, every) == graph_operators.ASKS:
                machine.cache.answer()
        np.testing.assert_array_equal(fresh.ratings, kept.ratings)
        gains, sets = machine.rate(kept, pairs)
        i = rng.choice(np.flatnonzero(np.isfinite(gains)))
        x, y = (int(k) for k in pairs[i])
        kind = int(graph_validity.kind_of(x, y, kept.graph))
        assert machine.apply(kept, kind, x, y, sets[i], float(gains[i]))


def engine_counts(rows):
    from hidag.discover import CountScore
    from hidag.latent import LatentCounts

    return CountScore(LatentCounts.from_rows(rows, levels=(2,) * rows.shape[1]))


def propose_only(machine, state, allowed) -> int:
    cache = machine.cache
    return graph_operators.propose(
        state.graph,
        state.kept,
        machine.ranks,
        machine.mix,
        machine.rules,
        allowed,
        -1,
        -1,
        machine.max_parents,
        machine.threshold,
        cache.table,
        np.zeros((0, 2), dtype=np.int64),
        np.zeros((0, cache.n_words), dtype=np.uint64),
        np.zeros(cache.n_words, dtype=np.uint64),
        np.zeros(4),
    )
