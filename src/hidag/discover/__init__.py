"""Discover: graphs, scores, searches and background knowledge (Stage III)."""

from hidag.callable_room import make_callable
from hidag.discover.graphs import CPDAG, DAG
from hidag.discover.knowledge import Knowledge
from hidag.discover.scores import CountScore, LocalScore, PlainScore, graph_score
from hidag.discover.search import GraphSearch, SearchResult, discover, search_graph

__all__ = [
    "CPDAG",
    "DAG",
    "CountScore",
    "GraphSearch",
    "Knowledge",
    "LocalScore",
    "PlainScore",
    "SearchResult",
    "discover",
    "graph_score",
    "search_graph",
]

make_callable(__name__)
