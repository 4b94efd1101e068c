"""Discover: graphs, scores, searches and background knowledge (Stage III)."""

from hidag.discover.graphs import CPDAG, DAG

__all__ = ["CPDAG", "DAG"]
