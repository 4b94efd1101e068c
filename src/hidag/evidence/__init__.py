"""Evidence of the observed data about the graph among latents, the items held."""

from hidag.evidence.edge_tests import Confirmed, EdgeTest, confirm_edges
from hidag.evidence.observed import ObservedFit

__all__ = ["Confirmed", "EdgeTest", "ObservedFit", "confirm_edges"]
