"""Structure learning (Stage III): graphs, scores, searches and background knowledge."""

from hidag.structure.graph_search import GraphSearch, SearchResult, discover, search_graph
from hidag.structure.graphs import CPDAG, DAG
from hidag.structure.knowledge import Knowledge
from hidag.structure.scores import CountScore, LocalScore, graph_score

__all__ = [
    "CPDAG", "CountScore", "DAG", "GraphSearch", "Knowledge", "LocalScore", "SearchResult",
    "discover", "graph_score", "search_graph",
]  # fmt: skip
