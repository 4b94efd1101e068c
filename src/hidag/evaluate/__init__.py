"""Evaluate: an estimate against a truth, whatever either calls its latents."""

from hidag.callable_room import make_callable
from hidag.evaluate.evaluation import Evaluation, TruthLike, evaluate
from hidag.evaluate.graphs import GraphComparison, evaluate_graph
from hidag.evaluate.matching import Matching, match_latents, total_variation
from hidag.evaluate.parts import Parts, relabel_law
from hidag.evaluate.relabel import relabel_result

__all__ = [
    "Evaluation",
    "GraphComparison",
    "Matching",
    "Parts",
    "TruthLike",
    "evaluate",
    "evaluate_graph",
    "match_latents",
    "relabel_law",
    "relabel_result",
    "total_variation",
]

make_callable(__name__)
