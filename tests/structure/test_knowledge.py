from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from hidag.exceptions import GraphError, SettingError
from hidag.latent import LatentCounts
from hidag.structure import CPDAG, DAG, CountScore, Knowledge, discover, search_graph

NAMES = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("knowledge", "sentence"),
    [
        (
            Knowledge(required=[("a", "b")], forbidden=[("a", "b")]),
            "a -> b is required and also forbidden",
        ),
        (
            Knowledge(required=[("a", "b"), ("b", "c"), ("c", "a")]),
            "the required edges form a cycle: a -> b -> c -> a; remove or reverse one of them",
        ),
        (
            Knowledge(required=[("a", "b"), ("b", "a")]),
            "the required edges form a cycle: a -> b -> a; remove or reverse one of them",
        ),
        (
            Knowledge(required=[("c", "a")], tiers=[["a", "b"], ["c"]]),
            "c -> a is required, but c is in tier 2 and a in the earlier tier 1",
        ),
        (
            Knowledge(tiers=[["a"], ["b", "a"]]),
            "a is in tier 1 and in tier 2; a variable has one tier",
        ),
        (
            Knowledge(required=[("a", "x")]),
            "the knowledge names the variable 'x'; expected one of a, b, c, d",
        ),
        (
            Knowledge(forbidden=[(0, 4)]),
            "the knowledge names the variable 4; expected an index from 0 to 3",
        ),
        (
            Knowledge(required=[("a", "a")]),
            "required contains the pair (a, a); a pair must name two different variables",
        ),
        (
            Knowledge(forbidden=[("a", "b"), ("c", 2)]),
            "forbidden contains the pair (c, c); a pair must name two different variables",
        ),
        (
            Knowledge(required=[("c", "b"), ("b", "a")], tiers=[["a"], ["c"]]),
            "the required edges c -> b -> a lead from tier 2 to the earlier tier 1",
        ),
        (
            Knowledge(hierarchy=[("a", "b"), ("b", "c"), ("c", "a")]),
            "the steps of the hierarchy form a cycle: a -> b -> c -> a; remove or reverse one of "
            "them",
        ),
        (
            Knowledge(hierarchy=[("a", "b")], required=[("b", "c"), ("c", "a")]),
            "the required edges and the hierarchy form a cycle: a -> b -> c -> a; remove or "
            "reverse one of them",
        ),
        (
            Knowledge(hierarchy=[("a", "b")], forbidden=[("a", "b")]),
            "a -> b is a step of the hierarchy and also forbidden",
        ),
        (
            Knowledge(hierarchy=[("b", "a")], tiers=[["a"], ["b"]]),
            "b -> a is a step of the hierarchy, but b is in tier 2 and a in the earlier tier 1",
        ),
        (
            Knowledge(hierarchy=[("a", "a")]),
            "hierarchy contains the pair (a, a); a pair must name two different variables",
        ),
        (
            Knowledge(required=("a", "b")),
            "required must be pairs of variables, such as [('A', 'B')], got 'a'",
        ),
        (
            Knowledge(tiers=["ab", "c"]),
            "tiers must be lists of variables, such as [['A', 'B'], ['C']], got 'ab'",
        ),
        (
            Knowledge(tiers=[1, 2]),
            "tiers must be lists of variables, such as [['A', 'B'], ['C']], got 1",
        ),
        (
            Knowledge(required=[(0.5, 1)]),
            "the knowledge names the variable 0.5; expected a name or an index",
        ),
        (
            Knowledge(hierarchy=[("a", None)]),
            "the knowledge names the variable None; expected a name or an index",
        ),
        (
            Knowledge(forbidden=[1]),
            "forbidden must be pairs of variables, such as [('A', 'B')], got 1",
        ),
        (Knowledge(required=None), "required must be a list, got None"),
    ],
)
@pytest.mark.parametrize("search", ["ges", "xges", "exact"])
def test_invalid_knowledge_raises(knowledge, sentence, search) -> None:
    rows = np.random.default_rng(0).integers(0, 2, (20, 4))
    with pytest.raises(GraphError) as caught:
        discover(rows, names=NAMES, knowledge=knowledge, search=search)
    assert str(caught.value) == sentence


def test_the_type_of_knowledge_is_checked() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (20, 4))
    with pytest.raises(SettingError) as caught:
        discover(rows, knowledge={"required": [(0, 1)]})
    assert str(caught.value) == "knowledge must be a hidag.Knowledge, got 'dict'"
    # Arrays of numbers are pairs too.
    known = Knowledge(required=np.array([[0, 1]]))
    assert ("Z1", "Z2") in discover(rows, knowledge=known).directed_edges


def random_knowledge(rng: np.random.Generator, n: int) -> Knowledge:
    order = rng.permutation(n)
    pairs = [(int(order[i]), int(order[j])) for i, j in combinations(range(n), 2)]
    picked = rng.permutation(len(pairs))
    required = [pairs[k] for k in picked[: rng.integers(0, 3)]]
    forbidden = [pairs[k][::-1] for k in picked[3 : 3 + rng.integers(0, 4)]]
    tiers = [order[: n // 2].tolist(), order[n // 2 :].tolist()] if rng.random() < 0.5 else []
    return Knowledge(required=required, forbidden=forbidden, tiers=tiers)


def obeys(adjacency: np.ndarray, rules: np.ndarray, required: np.ndarray) -> bool:
    return not (adjacency & rules & 1).any() and bool((adjacency >= required).all())


@pytest.mark.parametrize("search", ["ges", "xges", "exact"])
def test_knowledge_is_honoured(search) -> None:
    rng = np.random.default_rng(1)
    for _ in range(25):
        n = 6
        rows = np.cumsum(rng.random((200, n)) < 0.4, axis=1) % 2
        rows = rows[:, rng.permutation(n)]
        knowledge = random_knowledge(rng, n)
        names = [f"Z{k + 1}" for k in range(n)]
        rules, required = knowledge.constraints(names), knowledge.required_adjacency(names)
        found = search_graph(rows, knowledge=knowledge, search=search)
        graph = found.graph
        assert graph.is_closed()
        for member in graph.members(limit=50):
            assert obeys(member.adjacency, rules, required)
        # Nothing is lost: the members are all those of the class that obey.
        whole = graph.to_dag().to_cpdag()
        obeying = {m for m in whole.members() if obeys(m.adjacency, rules, required)}
        assert set(graph.members()) == obeying
        assert found.score <= search_graph(rows, knowledge=knowledge, search="exact").score + 1e-7


def test_exact_is_the_best_of_all_that_obey() -> None:
    rng = np.random.default_rng(2)
    upper = [(i, j) for i, j in combinations(range(4), 2)]
    for _ in range(10):
        rows = np.cumsum(rng.random((150, 4)) < 0.4, axis=1) % 2
        knowledge = random_knowledge(rng, 4)
        rules, required = knowledge.constraints(NAMES), knowledge.required_adjacency(NAMES)
        score = CountScore(LatentCounts.from_rows(rows))
        best = -np.inf
        for code in range(3**6):
            adjacency = np.zeros((4, 4), dtype=int)
            for i, j in upper:
                code, way = divmod(code, 3)
                adjacency[i, j], adjacency[j, i] = way == 1, way == 2
            if not obeys(adjacency, rules, required):
                continue
            try:
                dag = DAG(adjacency)
            except GraphError:
                continue
            total = sum(score.local(k, pa) for k, pa in enumerate(dag.parents))
            best = max(best, total)
        found = search_graph(rows, names=NAMES, knowledge=knowledge, search="exact")
        assert found.score == pytest.approx(best, abs=1e-7)


def test_tiers_direct_edges() -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, 500)
    b = np.where(rng.random(500) < 0.8, a, 1 - a)
    rows = np.stack([a, b], axis=1)
    assert discover(rows).undirected_edges == [("Z1", "Z2")]
    for search in ("ges", "xges", "exact"):
        later = discover(rows, knowledge=Knowledge(tiers=[["Z2"], ["Z1"]]), search=search)
        assert later == CPDAG.from_edges(["Z1", "Z2"], [("Z2", "Z1")])
        apart = Knowledge(forbidden=[(0, 1), (1, 0)])
        assert discover(rows, knowledge=apart, search=search).n_edges == 0


def test_no_knowledge_changes_nothing() -> None:
    rows = np.random.default_rng(4).integers(0, 2, (100, 5))
    rows[:, 1] = rows[:, 0] ^ (rows[:, 1] & rows[:, 2])
    for search in ("ges", "xges", "exact"):
        assert discover(rows, knowledge=Knowledge(), search=search) == discover(rows, search=search)


@pytest.mark.parametrize(
    ("known", "left"),
    [
        (Knowledge(required=[("a", "b"), ("b", "c")]), Knowledge(required=((0, 1),))),
        (Knowledge(hierarchy=[("a", "b"), ("b", "c")]), Knowledge(hierarchy=((0, 1),))),
        # One of a kind makes an edge of the chain: who lacks a may have c all the same.
        (
            Knowledge(required=[("a", "b")], hierarchy=[("b", "c")]),
            Knowledge(required=((0, 1),)),
        ),
        # No edge beside b was allowed, but where b is gone the edge is what b did.
        (
            Knowledge(required=[("a", "b"), ("b", "c")], forbidden=[("a", "c"), ("c", "d")]),
            Knowledge(required=((0, 1),), forbidden=((1, 2),)),
        ),
        (Knowledge(tiers=[["a"], ["b"], ["c"]]), Knowledge(tiers=((0,), (), (1,)))),
        (
            Knowledge(hierarchy=[("a", "b"), ("b", "c"), ("a", "d"), ("d", "c")]),
            Knowledge(hierarchy=((0, 2), (2, 1), (0, 1))),
        ),
    ],
)
def test_chains_through_variables_that_are_left_out_remain(known, left):
    found = known.reindex(NAMES, [0, 2, 3])
    assert found == left
    found.constraints(["a", "c", "d"])


def test_chains_through_several_that_are_left_out_remain():
    known = Knowledge(required=[("a", "b"), ("b", "c"), ("c", "d")])
    assert known.reindex(NAMES, [3, 0]) == Knowledge(required=((1, 0),))


def test_reindexing_over_all_variables_does_not_change_knowledge():
    known = Knowledge(
        required=((2, 1), (1, 0)), forbidden=((0, 3),), tiers=((2,), (3, 0)), hierarchy=((2, 3),)
    )
    assert known.reindex(NAMES) == known
