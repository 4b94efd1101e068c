"""Every DAG on four variables, grouped by brute force into Markov equivalence classes."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, product

import numpy as np
import pytest

from hidag.exceptions import GraphError
from hidag.kernels import equivalence_classes
from hidag.structure import DAG
from hidag.structure.greedy_search import from_bitsets, to_bitsets
from hidag.structure.knowledge import FORBIDDEN, orient_by_constraints


def all_dags(n: int) -> list[DAG]:
    out = []
    pairs = list(combinations(range(n), 2))
    for ways in product(range(3), repeat=len(pairs)):
        adjacency = np.zeros((n, n), dtype=int)
        for (i, j), way in zip(pairs, ways, strict=True):
            if way == 1:
                adjacency[i, j] = 1
            elif way == 2:
                adjacency[j, i] = 1
        try:
            out.append(DAG(adjacency))
        except GraphError:
            continue
    return out


def separations(dag: DAG) -> frozenset[tuple[int, int, tuple[int, ...]]]:
    """All (i, j, S) with i and j d-separated by S, by the moralised ancestral graph."""
    n = dag.n_variables
    reach = np.eye(n, dtype=bool)
    for _ in range(n):
        reach |= (reach.astype(int) @ dag.adjacency) > 0
    out = set()
    for i, j in combinations(range(n), 2):
        rest = [k for k in range(n) if k not in (i, j)]
        for size in range(len(rest) + 1):
            for given in combinations(rest, size):
                keep = [k for k in range(n) if reach[k, [i, j, *given]].any()]
                moral = np.zeros((n, n), dtype=bool)
                for child in keep:
                    parents = np.flatnonzero(dag.adjacency[:, child])
                    moral[parents, child] = moral[child, parents] = True
                    for a, b in combinations(parents, 2):
                        moral[a, b] = moral[b, a] = True
                seen, front = {i}, [i]
                while front:
                    at = front.pop()
                    for k in np.flatnonzero(moral[at]):
                        if k not in seen and k not in given:
                            seen.add(int(k))
                            front.append(int(k))
                if j not in seen:
                    out.add((i, j, given))
    return frozenset(out)


@pytest.fixture(scope="module")
def classes() -> list[list[DAG]]:
    groups = defaultdict(list)
    for dag in all_dags(4):
        groups[separations(dag)].append(dag)
    return list(groups.values())


def test_known_numbers(classes) -> None:
    assert sum(len(members) for members in classes) == 543
    assert len(classes) == 185


def test_completed_graph_directs_what_all_members_share(classes) -> None:
    for members in classes:
        union = np.max([member.adjacency for member in members], axis=0)
        for member in members:
            assert np.array_equal(member.to_cpdag().adjacency, union)


def test_members_counts_and_extensions(classes) -> None:
    for members in classes:
        graph = members[0].to_cpdag()
        assert graph.is_valid()
        assert graph.is_closed()
        assert set(graph.members()) == set(members)
        assert graph.to_dag() in members
        assert len(graph.members(limit=1)) == 1


def test_compiled_completion_agrees(classes) -> None:
    for members in classes:
        for member in members:
            out = np.zeros((5, 4, 1), dtype=np.uint64)
            equivalence_classes.complete(to_bitsets(member.adjacency.T), out)
            assert np.array_equal(from_bitsets(out[1] | out[2], 4), member.to_cpdag().adjacency)


def random_dag(rng: np.random.Generator, n: int, share: float) -> DAG:
    order = rng.permutation(n)
    upper = np.triu(rng.random((n, n)) < share, 1).astype(int)
    adjacency = np.zeros((n, n), dtype=int)
    adjacency[np.ix_(order, order)] = upper
    return DAG(adjacency)


@pytest.mark.parametrize("n", [9, 63, 64, 65, 130])
def test_compiled_completion_agrees_across_words(n) -> None:
    rng = np.random.default_rng(n)
    for share in (1.5 / n, 4 / n):
        dag = random_dag(rng, n, share)
        out = np.zeros((5, n, (n + 63) // 64), dtype=np.uint64)
        equivalence_classes.complete(to_bitsets(dag.adjacency.T), out)
        plain = dag.to_cpdag()
        assert np.array_equal(from_bitsets(out[1] | out[2], n), plain.adjacency)
        assert plain.is_valid()


def test_counting_agrees_with_listing() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        graph = random_dag(rng, 7, 0.5).to_cpdag()
        assert len(graph.members()) == len(set(graph.members()))


def test_knowledge_directs_what_all_obeying_members_share(classes) -> None:
    rng = np.random.default_rng(2)
    for members in classes:
        graph = members[0].to_cpdag().adjacency
        undirected = np.argwhere(np.triu(graph & graph.T))
        if not len(undirected):
            continue
        for member in members:
            # Any directions that some member has are a piece of knowledge without contradiction.
            for size in range(1, len(undirected) + 1):
                rules = np.zeros((4, 4), dtype=np.uint8)
                for i, j in undirected[rng.permutation(len(undirected))[:size]]:
                    a, b = (i, j) if member.adjacency[i, j] else (j, i)
                    rules[b, a] = FORBIDDEN
                obeying = [m.adjacency for m in members if not (m.adjacency & rules).any()]
                union = np.max(obeying, axis=0)
                plain = orient_by_constraints(graph, rules)
                np.testing.assert_array_equal(plain, union)
                compiled = np.zeros((5, 4, 1), dtype=np.uint64)
                equivalence_classes.complete(to_bitsets(member.adjacency.T), compiled)
                assert equivalence_classes.direct_by_rules(compiled, rules)
                np.testing.assert_array_equal(from_bitsets(compiled[1] | compiled[2], 4), union)


def test_rules_without_an_obeying_member_are_found_out() -> None:
    collider = DAG.from_edges(["a", "b", "c"], [("a", "c"), ("b", "c")]).to_cpdag()
    rules = np.zeros((3, 3), dtype=np.uint8)
    rules[0, 2] = FORBIDDEN
    assert orient_by_constraints(collider.adjacency, rules) is None
