"""Observed-data likelihood of graphs among the latents, with the items fixed."""

from hidag.strategy.observed_likelihood.edge_tests import (
    Confirmed,
    EdgeTest,
    KnowledgeCost,
    confirm_edges,
    cost_of_knowledge,
    cost_on_counts,
    search_by_likelihood,
)
from hidag.strategy.observed_likelihood.likelihood_search import (
    LikelihoodSearch,
    ObservedFit,
    SingleChanges,
    use_likelihood_search,
)

__all__ = [
    "Confirmed",
    "EdgeTest",
    "KnowledgeCost",
    "LikelihoodSearch",
    "ObservedFit",
    "SingleChanges",
    "search_by_likelihood",
    "confirm_edges",
    "cost_of_knowledge",
    "cost_on_counts",
    "use_likelihood_search",
]
