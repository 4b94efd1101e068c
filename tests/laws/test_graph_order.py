"""A new order of rows or columns only reorders the answer."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.structure import search_graph
from hidag.structure.graph_search import as_counts


def network_rows(rng: np.random.Generator, n_variables: int, n: int) -> np.ndarray:
    rows = np.zeros((n, n_variables), dtype=np.int64)
    for k in range(n_variables):
        parents = rng.permutation(k)[: rng.integers(0, 3)]
        code = rows[:, parents] @ (2 ** np.arange(len(parents)))
        rows[:, k] = rng.random(n) < rng.beta(0.5, 0.5, 2 ** len(parents))[code]
    return rows[:, rng.permutation(n_variables)]


def without_duplicates(rows: np.ndarray) -> np.ndarray:
    """Drop columns that repeat another one up to the names of levels: scores do not differ."""
    seen, keep = set(), []
    for k, column in enumerate(rows.T):
        pattern = (column ^ column[0]).tobytes()
        if pattern not in seen:
            seen.add(pattern)
            keep.append(k)
    return rows[:, keep]


@pytest.mark.parametrize("search", ["ges", "xges"])
@pytest.mark.parametrize("fractional", [False, True])
def test_order_of_rows_and_columns(search, fractional) -> None:
    rng = np.random.default_rng(0)
    for wanted in (4, 8, 15, 72):
        rows = without_duplicates(network_rows(rng, wanted, 400))
        n_variables = rows.shape[1]
        assert n_variables > 0.8 * wanted
        weights = rng.gamma(1.0, 1.0, 400) if fractional else None
        levels = [2] * n_variables
        names = [f"V{k}" for k in range(n_variables)]
        first = search_graph(
            as_counts(rows, weights=weights, levels=levels, names=names), search=search
        )
        for _ in range(3):
            up, across = rng.permutation(400), rng.permutation(n_variables)
            counts = as_counts(
                rows[up][:, across],
                weights=None if weights is None else weights[up],
                levels=levels,
                names=[names[k] for k in across],
            )
            moved = search_graph(counts, search=search)
            assert moved.graph == first.graph.permute(across)
            assert moved.n_scores == first.n_scores
            assert moved.n_steps == first.n_steps


@pytest.mark.parametrize("search", ["ges", "xges"])
def test_exact_ties_are_broken_by_content(search) -> None:
    # Few rows make many exactly equal gains.
    rng = np.random.default_rng(1)
    for _ in range(60):
        rows = without_duplicates(network_rows(rng, 7, 14))
        n = rows.shape[1]
        names = [f"V{k}" for k in range(n)]
        across = rng.permutation(n)
        first = search_graph(as_counts(rows, levels=[2] * n, names=names), search=search)
        counts = as_counts(rows[:, across], levels=[2] * n, names=[names[k] for k in across])
        moved = search_graph(counts, search=search)
        assert moved.graph == first.graph.permute(across)
