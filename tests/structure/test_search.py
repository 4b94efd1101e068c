from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from hidag.exceptions import DataError, GraphError, SettingError
from hidag.latent import LatentCounts, expected_counts
from hidag.simulation import random_dag, random_law
from hidag.structure import (
    CPDAG,
    DAG,
    CountScore,
    Knowledge,
    discover,
    graph_score,
    search_graph,
)
from hidag.structure.graph_search import SEARCHES, as_counts
from hidag.structure.scores import LeanScore, ScoreCache, make_score

from ..reference_scores import ReferenceScore


def network_rows(rng, n_variables, n, share=0.5, levels=None):
    """Rows of a random network, shape (n, K), and its graph."""
    levels = levels or (2,) * n_variables
    order = rng.permutation(n_variables)
    adjacency = np.zeros((n_variables, n_variables), dtype=int)
    adjacency[np.ix_(order, order)] = np.triu(rng.random((n_variables, n_variables)) < share, 1)
    rows = np.zeros((n, n_variables), dtype=np.int64)
    for v in order:
        code = np.zeros(n, dtype=np.int64)
        for k in np.flatnonzero(adjacency[:, v]):
            code = code * levels[k] + rows[:, k]
        tables = rng.dirichlet(np.full(levels[v], 0.6), size=int(code.max()) + 1)
        rows[:, v] = (rng.random(n)[:, None] > np.cumsum(tables[code], axis=1)[:, :-1]).sum(axis=1)
    return rows, DAG(adjacency)


def every_dag(n):
    pairs = list(combinations(range(n), 2))
    for ways in product(range(3), repeat=len(pairs)):
        adjacency = np.zeros((n, n), dtype=int)
        for (i, j), way in zip(pairs, ways, strict=True):
            adjacency[i, j], adjacency[j, i] = way == 1, way == 2
        try:
            yield DAG(adjacency)
        except GraphError:
            continue


ALL = {n: list(every_dag(n)) for n in (2, 3, 4)}


def test_against_listing_all_graphs() -> None:
    rng = np.random.default_rng(0)
    reached = dict.fromkeys(SEARCHES, 0)
    n_problems = 40
    for problem in range(n_problems):
        n = 2 + problem % 3
        levels = tuple(rng.integers(2, 4, n).tolist())
        rows, _ = network_rows(rng, n, int(rng.choice([30, 200, 1000])), 0.7, levels)
        kind = ("bdeu", "bic")[problem % 2]
        score = CountScore(LatentCounts.from_rows(rows, levels=levels), kind)
        table = {}
        best = -np.inf
        for dag in ALL[n]:
            total = 0.0
            for node, parents in enumerate(dag.parents):
                if (node, parents) not in table:
                    table[node, parents] = score.local(node, parents)
                total += table[node, parents]
            best = max(best, total)
        for search in SEARCHES:
            found = search_graph(score.counts, score=kind, search=search)
            assert found.graph.is_valid()
            assert found.score <= best + 1e-7
            if search == "exact":
                assert found.score == pytest.approx(best, abs=1e-7)
            else:
                reached[search] += found.score > best - 1e-7
    assert reached["xges"] >= 0.9 * n_problems
    assert reached["ges"] <= reached["xges"]


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("score", ["bdeu", "bic"])
def test_reported_score_is_the_graphs(search, score) -> None:
    rng = np.random.default_rng(1)
    for levels in ((2,) * 6, (2, 3, 2, 4, 2, 3)):
        rows, _ = network_rows(rng, 6, 400, 0.4, levels)
        counts = LatentCounts.from_rows(rows, levels=levels)
        found = search_graph(counts, search=search, score=score)
        plain = ReferenceScore(counts, score)
        for member in found.graph.members(limit=3):
            assert graph_score(plain, member.parents) == pytest.approx(found.score, rel=1e-10)
        assert found.n_scores > 0


@pytest.mark.parametrize("search", SEARCHES)
def test_scores_known_from_another_search_change_nothing(search) -> None:
    rows, _ = network_rows(np.random.default_rng(2), 6, 400, 0.4, (2,) * 6)
    counts = LatentCounts.from_rows(rows)
    score = make_score("bdeu", counts, 1.0)
    cache = ScoreCache(score, 6)
    for knowledge in (None, Knowledge(forbidden=((0, 1), (1, 0))), None):
        alone = search_graph(counts, score=score, search=search, knowledge=knowledge)
        shared = search_graph(counts, score=score, search=search, knowledge=knowledge, cache=cache)
        assert (shared.graph.adjacency == alone.graph.adjacency).all()
        assert shared.score == alone.score
    assert shared.n_scores == 0
    assert shared.n_steps == alone.n_steps


@pytest.mark.parametrize("search", ["ges", "xges", "boss"])
def test_always_a_completed_graph(search) -> None:
    rng = np.random.default_rng(2)
    for n_variables, share in ((1, 0.5), (12, 0.3), (25, 0.15), (70, 0.03)):
        rows, _ = network_rows(rng, n_variables, 300, share)
        assert discover(rows, search=search).is_valid()


def test_xges_is_never_below_its_own_climb_and_beats_ges() -> None:
    rng = np.random.default_rng(3)
    better = 0
    for _ in range(12):
        rows, _ = network_rows(rng, 12, 1000, 0.3)
        greedy, extreme = (search_graph(rows, search=s) for s in ("ges", "xges"))
        better += (extreme.score > greedy.score + 1e-6) - (extreme.score < greedy.score - 1e-6)
    assert better >= 3


def test_a_clear_network_is_found_exactly() -> None:
    rng = np.random.default_rng(4)
    n = 20000
    a, b = rng.integers(0, 2, (2, n))
    c = np.where(rng.random(n) < 0.9, a | b, rng.integers(0, 2, n))
    d = np.where(rng.random(n) < 0.8, c, rng.integers(0, 2, n))
    truth = DAG.from_edges(["a", "b", "c", "d"], [("a", "c"), ("b", "c"), ("c", "d")]).to_cpdag()
    for search in SEARCHES:
        assert discover(np.stack([a, b, c, d], 1), names="abcd", search=search) == truth


def test_weights_rows_and_counts_give_the_same_graph() -> None:
    rng = np.random.default_rng(5)
    rows, _ = network_rows(rng, 5, 800)
    counts = LatentCounts.from_rows(rows)
    expected = search_graph(rows)
    assert search_graph(counts) == expected
    weighted = search_graph(as_counts(counts.states, weights=counts.weights))
    assert weighted.graph == expected.graph
    assert weighted.score == pytest.approx(expected.score, rel=1e-12)
    halved = search_graph(as_counts(counts.states, weights=counts.weights * 0.5))
    assert halved.graph.n_edges <= expected.graph.n_edges


def test_custom_score() -> None:
    rng = np.random.default_rng(6)
    rows, _ = network_rows(rng, 5, 300)
    counts = LatentCounts.from_rows(rows)
    for search in SEARCHES:
        built_in = search_graph(counts, search=search, equivalent_sample_size=2.0)
        own = search_graph(counts, search=search, score=ReferenceScore(counts, "bdeu", 2.0))
        assert own.graph == built_in.graph
        assert own.score == pytest.approx(built_in.score, rel=1e-11)


@pytest.mark.parametrize("search", SEARCHES)
def test_a_score_that_is_no_number(search) -> None:
    class Broken:
        def local(self, node, parents):
            return float("nan") if parents == (0,) else -1.0

    with pytest.raises(SettingError) as caught:
        discover(np.zeros((5, 3), dtype=int), score=Broken(), search=search)
    assert str(caught.value) == (
        "local scores must be finite, but that of variable 1 with parents (0,) is nan"
    )


@pytest.mark.parametrize("search", SEARCHES)
def test_search_ends_if_equivalent_graphs_have_different_scores(search) -> None:
    class Uneven:
        """Numbers that have nothing to do with each other."""

        def local(self, node, parents):
            key = (node * 7919 + sum(104729 * (k + 1) ** 2 for k in parents)) % 1009
            return -float(key)

    for n_variables in (3, 5, 7):
        rows = np.zeros((5, n_variables), dtype=int)
        assert discover(rows, score=Uneven(), search=search).is_valid()


def test_custom_search() -> None:
    rows = np.random.default_rng(7).integers(0, 2, (50, 3))

    def chain(score, names, knowledge):
        assert score.local(0, ()) < 0
        assert knowledge is None
        return np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])

    found = search_graph(rows, search=chain, names=["a", "b", "c"])
    assert found.graph == CPDAG.from_edges("abc", undirected=[("a", "b"), ("b", "c")])
    by_graph = discover(rows, search=lambda *_: CPDAG([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    assert by_graph.n_edges == 2

    with pytest.raises(GraphError) as caught:
        discover(rows, search=lambda *_: np.zeros((2, 2)))
    assert str(caught.value) == "the search returned a graph of shape (2, 2) for 3 variables"
    with pytest.raises(GraphError) as caught:
        discover(rows, search=chain_of_three, knowledge=Knowledge(required=[(0, 2)]))
    assert str(caught.value) == (
        "the search returned a graph that contradicts the background knowledge"
    )


def chain_of_three(score, names, knowledge):
    return np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_max_parents() -> None:
    rng = np.random.default_rng(8)
    n = 4000
    causes = rng.integers(0, 2, (4, n))
    effect = (causes.sum(axis=0) + (rng.random(n) < 0.1)) % 2
    noisy = np.where(rng.random(n) < 0.8, causes.sum(axis=0) >= 2, effect)
    rows = np.stack([*causes, noisy], axis=1)
    assert discover(rows).to_dag().adjacency[:, 4].sum() == 4
    for search in SEARCHES:
        limited = discover(rows, search=search, max_parents=2)
        assert limited.is_valid()
        assert limited.to_dag().adjacency.sum(axis=0).max() <= 2
        assert discover(rows, search=search, max_parents=0).n_edges == 0


@pytest.mark.parametrize("search", ["ges", "xges"])
def test_extreme_data_have_a_result(search) -> None:
    rng = np.random.default_rng(9)
    column = rng.integers(0, 2, (100, 1))
    assert discover(np.repeat(column, 5, axis=1), search=search).is_valid()  # equal columns
    constant = np.zeros((100, 3), dtype=int)
    assert discover(constant, search=search, score="bic").n_edges == 0
    # BDeu itself favours edges among constant columns; the search only has to agree with it.
    best = search_graph(constant, search="exact").score
    assert search_graph(constant, search=search).score == pytest.approx(best)
    assert discover(rng.integers(0, 2, (1, 4)), search=search).is_valid()  # one row
    light = as_counts(rng.integers(0, 2, (20, 3)), weights=np.full(20, 1e-9))
    tiny = search_graph(light, search=search)
    assert tiny.graph.is_valid()
    many = rng.integers(0, 200, (300, 3))
    assert discover(many, search=search).is_valid()


@pytest.mark.parametrize(
    ("error", "arguments", "sentence"),
    [
        (
            GraphError,
            {"data": np.zeros((4, 13), dtype=int), "search": "exact"},
            "search='exact' takes at most 12 variables, because it lists all their subsets, got "
            "13; use search='xges'",
        ),
        (
            SettingError,
            {"search": "gies"},
            "search must be 'xges', 'ges', 'exact', 'pc', 'boss' or a callable, got 'gies'",
        ),
        (
            SettingError,
            {"score": "aic"},
            "score must be 'bdeu', 'bic', 'lean' or a LocalScore, got 'aic'",
        ),
        (SettingError, {"score": 3}, "score must be 'bdeu', 'bic', 'lean' or a LocalScore, got 3"),
        (
            SettingError,
            {"equivalent_sample_size": 0.0},
            "equivalent_sample_size must be a positive number, got 0.0",
        ),
        (
            SettingError,
            {"max_parents": -1},
            "max_parents must be an integer >= 0 or None, got -1",
        ),
        (
            DataError,
            {"data": np.array([[0.5, 1.0]])},
            "levels must be integers 0, 1, ...; discretise real values first",
        ),
        (
            DataError,
            {"data": np.zeros(3, dtype=int)},
            "rows of levels must have shape (n, K) with K >= 1, got (3,)",
        ),
        (
            DataError,
            {"data": np.zeros((0, 2), dtype=int)},
            "the score needs data, but the weights sum to 0",
        ),
        (DataError, {"names": ["a", "a"]}, "names must be unique, but 'a' occurs repeatedly"),
        (
            DataError,
            {"weights": [1.0]},
            "states must be (n, K) and weights (n,), got (4, 2) and (1,)",
        ),
    ],
)
def test_invalid_arguments_raise(error, arguments, sentence) -> None:
    arguments = {"data": np.array([[0, 1], [1, 0], [1, 1], [0, 0]]), **arguments}
    with pytest.raises(error) as caught:
        discover(arguments.pop("data"), **arguments)
    assert str(caught.value) == sentence


def test_counts_have_weights_already() -> None:
    counts = LatentCounts.from_rows(np.array([[0, 1], [1, 0]]))
    with pytest.raises(SettingError) as caught:
        discover(counts, weights=[1.0, 2.0])
    assert str(caught.value) == (
        "weights and levels are for rows of levels; LatentCounts contain both already"
    )


def test_names_of_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [0, 1, 1, 0], "y": [0, 1, 1, 0]})
    assert discover(frame).names == ("x", "y")


def test_lean_tables_find_three_weak_causes_that_free_tables_miss() -> None:
    levels = (4, 4, 4, 4)
    causes = DAG(np.array([[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]]))
    law = random_law(causes, levels=levels, effects=(0.5, 0.6), rng=4)
    counts = expected_counts(law, 2000, ("a", "b", "c", "d"))
    truth = causes.to_cpdag().adjacency
    assert np.array_equal(discover(counts, score="lean").adjacency, truth)
    for score, weight in (("bic", 1.0), ("bdeu", "auto")):
        found = discover(counts, score=score, equivalent_sample_size=weight)
        assert not np.array_equal(found.adjacency, truth)


def test_the_returned_member_has_the_returned_score() -> None:
    law = random_law(random_dag(4, 1.3, rng=3), levels=(3, 2, 3, 4), rng=3)
    counts = expected_counts(law, 3000, ("a", "b", "c", "d"))
    score = LeanScore(counts)
    found = search_graph(counts, score="lean")
    assert np.array_equal(found.dag.to_cpdag().adjacency, found.graph.adjacency)
    assert found.score == graph_score(score, found.dag.parents)
    assert found.score == search_graph(counts, score="lean", search="exact").score
    assert found.score >= search_graph(counts, score="bic").score


def test_lean_scores_are_at_least_bic_and_do_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(8)
    rows = rng.integers(0, (3, 2, 4), size=(300, 3))
    counts = LatentCounts.from_rows(rows, levels=(3, 2, 4))
    mixed = LatentCounts.from_rows(rng.permutation(rows), levels=(3, 2, 4))
    lean, bic = LeanScore(counts), CountScore(counts, "bic")
    for node in range(3):
        others = [k for k in range(3) if k != node]
        assert lean.local(node, ()) == pytest.approx(bic.local(node, ()), abs=1e-5)
        for parents in (tuple(others), tuple(others[:1])):
            assert lean.local(node, parents) >= bic.local(node, parents) - 1e-5
            assert lean.local(node, parents) == LeanScore(mixed).local(node, parents)
