"""A custom graph search: first-improvement hill climbing over DAGs.

A search is a function of the score, the names and the background knowledge. It returns a graph
or an adjacency; ``discover`` completes it and checks it against the knowledge.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from hidag.exceptions import GraphError
from hidag.structure import DAG, Knowledge, LocalScore, search_graph


def hill_climbing(
    score: LocalScore, names: tuple[str, ...], knowledge: Knowledge | None
) -> np.ndarray:
    """Return the adjacency, shape (K, K), of a DAG that no single edge change improves."""
    knowledge = knowledge or Knowledge()
    forbidden = knowledge.constraints(names) & 1
    required = knowledge.required_adjacency(names)
    graph = required.astype(int)

    def local(adjacency: np.ndarray, node: int) -> float:
        return score.local(node, tuple(np.flatnonzero(adjacency[:, node]).tolist()))

    improved = True
    while improved:
        improved = False
        for i, j in permutations(range(len(names)), 2):
            changed = graph.copy()
            if graph[i, j]:  # remove the edge
                changed[i, j] = 0
            elif graph[j, i]:  # turn it
                changed[j, i], changed[i, j] = 0, 1
            else:
                changed[i, j] = 1
            if (changed & forbidden).any() or (changed < required).any():
                continue
            try:
                DAG(changed)
            except GraphError:
                continue
            gain = sum(local(changed, k) - local(graph, k) for k in (i, j))
            if gain > 1e-9:
                graph, improved = changed, True
    return graph


def main() -> None:
    rng = np.random.default_rng(0)
    n = 2000
    rain = rng.random(n) < 0.3
    sprinkler = rng.random(n) < np.where(rain, 0.05, 0.5)
    wet = rng.random(n) < np.where(rain | sprinkler, 0.9, 0.05)
    slippery = rng.random(n) < np.where(wet, 0.7, 0.02)
    rows = np.stack([rain, sprinkler, wet, slippery], axis=1).astype(int)
    names = ["rain", "sprinkler", "wet", "slippery"]

    for search in (hill_climbing, "xges"):
        found = search_graph(rows, names=names, search=search)
        print(getattr(search, "__name__", search), round(found.score, 2), found.graph)
        print("  directed:", found.graph.directed_edges)
        print("  undirected:", found.graph.undirected_edges)

    tiers = Knowledge(tiers=[["rain"], ["sprinkler"], ["wet"], ["slippery"]])
    found = search_graph(rows, names=names, search=hill_climbing, knowledge=tiers)
    print("with tiers:", found.graph.directed_edges)


if __name__ == "__main__":
    main()
