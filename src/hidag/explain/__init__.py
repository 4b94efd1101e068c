"""Explain: what people do with a fit: how sure it is, whether it fits, who is where, what if."""

from __future__ import annotations

from hidag.explain.average_effects import AverageEffects, average_effects
from hidag.explain.exports import to_bif, to_dot, to_dowhy, to_gml
from hidag.explain.interventions import Questions, WhatIf, what_if
from hidag.explain.law_draws import draws_of_law

__all__ = [
    "AverageEffects",
    "Questions",
    "WhatIf",
    "average_effects",
    "draws_of_law",
    "to_bif",
    "to_dot",
    "to_dowhy",
    "to_gml",
    "what_if",
]
