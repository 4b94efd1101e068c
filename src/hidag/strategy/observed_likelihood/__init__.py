"""Evidence of the observed data about the graph among latents, the items held."""

from hidag.strategy.observed_likelihood.edge_tests import (
    Confirmed,
    EdgeTest,
    KnowledgeCost,
    better_by_likelihood,
    confirm_edges,
    cost_of_knowledge,
    cost_on_counts,
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
    "better_by_likelihood",
    "confirm_edges",
    "cost_of_knowledge",
    "cost_on_counts",
    "use_likelihood_search",
]
