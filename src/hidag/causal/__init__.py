"""Interventions, average causal effects, possible parents, and exports of the causal model."""

from hidag.causal.causal_effects import AverageEffects, average_effects
from hidag.causal.exports import to_bif, to_dot, to_dowhy, to_gml
from hidag.causal.interventions import InterventionModel, WhatIfResult, what_if
from hidag.causal.probability_queries import edge_strengths, expected_responses

__all__ = [
    "AverageEffects",
    "InterventionModel",
    "WhatIfResult",
    "average_effects",
    "edge_strengths",
    "expected_responses",
    "to_bif",
    "to_dot",
    "to_dowhy",
    "to_gml",
    "what_if",
]
