"""Metrics that compare an estimate with the truth, up to permutation and reversal of latents."""

from hidag.metrics.evaluation import Evaluation, GraphComparison, evaluate, evaluate_graph
from hidag.metrics.matching import Matching, match_latents, relabel_result, total_variation
from hidag.metrics.model_parts import Parts, relabel_law

__all__ = [
    "Evaluation",
    "GraphComparison",
    "Matching",
    "Parts",
    "evaluate",
    "evaluate_graph",
    "match_latents",
    "relabel_law",
    "relabel_result",
    "total_variation",
]
