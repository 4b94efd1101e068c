"""Evidence of the observed data about the graph among latents, the items held."""

from hidag.evidence.edge_tests import Confirmed, EdgeTest, confirm_edges
from hidag.evidence.knowledge_cost import KnowledgeCost, cost_of_knowledge, cost_on_counts
from hidag.evidence.likelihood_graph import better_by_likelihood
from hidag.evidence.likelihood_search import LikelihoodSearch, goes_by_likelihood
from hidag.evidence.observed import ObservedFit
from hidag.evidence.single_changes import SingleChanges

__all__ = [
    "Confirmed",
    "EdgeTest",
    "KnowledgeCost",
    "LikelihoodSearch",
    "ObservedFit",
    "SingleChanges",
    "better_by_likelihood",
    "confirm_edges",
    "cost_of_knowledge",
    "cost_on_counts",
    "goes_by_likelihood",
]
