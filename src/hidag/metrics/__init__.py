"""Metrics that compare an estimate with the truth, up to permutation and reversal of latents."""

from hidag.metrics.evaluation import Evaluation, GraphComparison, evaluate, evaluate_graph
from hidag.metrics.matching import (
    Matching,
    Parts,
    match_latents,
    relabel_law,
    total_variation,
)

__all__ = [
    "Evaluation",
    "GraphComparison",
    "Matching",
    "Parts",
    "evaluate",
    "evaluate_graph",
    "match_latents",
    "relabel_law",
    "total_variation",
]
