"""Evidence of the observed data about the graph among latents, the items held."""

from hidag.evidence.edge_tests import Confirmed, EdgeTest, confirm_edges
from hidag.evidence.likelihood_graph import better_by_likelihood
from hidag.evidence.likelihood_search import LikelihoodSearch, goes_by_likelihood
from hidag.evidence.observed import ObservedFit
from hidag.evidence.single_changes import SingleChanges

__all__ = [
    "Confirmed",
    "EdgeTest",
    "LikelihoodSearch",
    "ObservedFit",
    "SingleChanges",
    "better_by_likelihood",
    "confirm_edges",
    "goes_by_likelihood",
]
