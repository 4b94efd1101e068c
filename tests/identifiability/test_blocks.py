"""Block condition: large and difficult matrices, and proofs of shortages."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse.csgraph import maximum_flow

from hidag import check_identifiability
from hidag.identifiability import blocks
from hidag.identifiability.blocks import (
    antichain_items,
    assign_items,
    distinct_rows,
    find_blocks,
    find_shortages,
    items_per_block,
    minimal_hall_violator,
    subset_violations,
)
from hidag.identifiability.generic_conditions import sufficient_additions


def cover_by_triples(n_elements: int, triples: list[tuple[int, ...]]) -> np.ndarray:
    """Return a matrix that has blocks and a rest exactly if some triples partition the elements.

    Elements have two items of their own each, which their block places take. Further latents take
    all triples but as many as a partition has, and what is left over must cover every element.
    """
    left_over = n_elements // 3
    n_takers, odd = divmod(len(triples) - left_over, 2)
    assert not odd
    q = np.zeros((2 * n_elements + len(triples), n_elements + n_takers), dtype=bool)
    q[np.arange(2 * n_elements), np.repeat(np.arange(n_elements), 2)] = True
    for row, triple in enumerate(triples, start=2 * n_elements):
        q[row, list(triple)] = True
        q[row, n_elements:] = True
    return q


@pytest.mark.parametrize("solvable", [True, False])
def test_exact_covers_are_decided(solvable) -> None:
    rng = np.random.default_rng(2)
    n_elements = 12
    hidden = rng.permutation(n_elements).reshape(4, 3)
    others = [t for t in combinations(range(n_elements), 3) if 0 in t or 1 not in t]
    # Without a solution: element 0 or not element 1 in every triple, and 1 only beside 0.
    triples = [others[i] for i in rng.choice(len(others), size=14, replace=False)]
    if solvable:
        triples = [tuple(row) for row in hidden.tolist()] + triples[4:]
    else:
        triples = [t for t in triples if 1 not in t]
        triples = triples[: len(triples) // 2 * 2]
    q = cover_by_triples(n_elements, triples)
    search = find_blocks(q, np.ones(q.shape[1], dtype=np.int64))
    assert search.exact
    assert search.holds is solvable


def test_thousands_of_items_and_fifty_latents() -> None:
    rng = np.random.default_rng(3)
    for density in (0.3, 0.04, 0.0008):
        q = rng.random((5000, 50)) < density
        found = check_identifiability(q, effects="all", families="bernoulli")
        assert found.generic is not None
        larger = np.vstack(
            [q, *([name in new for name in found.design.latent_names] for new in found.additions)]
        )
        assert check_identifiability(larger, effects="all").generic is True
    assert "and 43 more" in check_identifiability(np.zeros((3, 50))).summary()


def test_few_items_for_many_latents() -> None:
    rng = np.random.default_rng(4)
    for n_items in (100, 110, 130):
        q = rng.random((n_items, 50)) < 0.15
        search = find_blocks(q, np.ones(50, dtype=np.int64))
        assert search.exact
        new = sufficient_additions(q, search, subset=False)
        assert find_blocks(np.vstack([q, new.loads]), np.ones(50, dtype=np.int64)).holds


def test_every_shortage_is_proven_and_minimal() -> None:
    rng = np.random.default_rng(5)
    kinds = set()
    for _ in range(300):
        n_latents = int(rng.integers(1, 6))
        q = rng.random((rng.integers(1, 16), n_latents)) < rng.uniform(0.15, 0.7)
        per_block = items_per_block(rng.integers(2, 5, size=n_latents).tolist())
        search = find_blocks(q, per_block)
        shortages = find_shortages(q, per_block, search)
        assert bool(shortages) == (search.holds is False)
        for shortage in shortages:
            kinds.add(shortage.kind)
            own = q[:, list(shortage.latents)].any(axis=1)
            assert tuple(np.flatnonzero(own)) == shortage.items
            if shortage.kind == "joint":
                continue
            assert len(shortage.items) < shortage.needed
            assert shortage.n_missing == shortage.needed - len(shortage.items)
            blocks_need = shortage.needed - 1
            assert (len(shortage.items) < blocks_need) == (shortage.kind == "blocks")
            for size in range(1, len(shortage.latents)):
                for some in combinations(shortage.latents, size):
                    have = q[:, list(some)].any(axis=1).sum()
                    if shortage.kind == "blocks":
                        assert have >= 2 * per_block[list(some)].sum()
    assert kinds >= {"blocks", "rest"}


def test_no_hall_violator_if_all_demands_are_met() -> None:
    rows = distinct_rows(np.vstack([np.eye(3, dtype=bool)] * 2))
    demands = np.full(3, 2)
    assert (assign_items(rows.loads, rows.counts, demands).sum(axis=0) == 2).all()
    assert minimal_hall_violator(rows.loads, rows.counts, demands) is None
    assert minimal_hall_violator(
        rows.loads, rows.counts, demands + np.array([0, 1, 0])
    ).tolist() == [1]


def test_equal_rows_are_one_pattern() -> None:
    q = np.array([[1, 0], [1, 1], [1, 0], [0, 1]], dtype=bool)
    rows = distinct_rows(q)
    assert rows.loads.tolist() == [[True, False], [True, True], [False, True]]
    assert [members.tolist() for members in rows.members] == [[0, 2], [1], [3]]


def test_items_per_block_count_bits() -> None:
    assert items_per_block([2, 3, 4, 5, 8, 9]).tolist() == [1, 2, 2, 3, 3, 4]


def test_equal_columns_are_separated_by_as_few_items_as_sperner_allows() -> None:
    assert [antichain_items(n) for n in (1, 2, 3, 4, 6, 7, 10, 11)] == [0, 2, 3, 4, 4, 5, 5, 6]
    q = np.ones((30, 6), dtype=bool)
    assert len(subset_violations(q)) == 30
    search = find_blocks(q, np.ones(6, dtype=np.int64))
    new = sufficient_additions(q, search, subset=True)
    assert len(new.loads) in (4, 5)
    assert new.exact == (len(new.loads) == 4)
    assert not len(subset_violations(np.vstack([q, new.loads])))


def test_flows_have_32_bit_indices(monkeypatch) -> None:
    # scipy 1.11 accepts no others, and sparse arrays keep the type of the indices.
    types = []

    def seen(graph, source, sink):
        types.append((graph.indices.dtype, graph.indptr.dtype))
        return maximum_flow(graph, source, sink)

    monkeypatch.setattr(blocks, "maximum_flow", seen)
    given = assign_items(np.eye(2, dtype=bool), np.array([2, 1]), np.array([1, 1]))
    assert given.tolist() == [[1, 0], [0, 1]]
    assert types == [(np.int32, np.int32)]
