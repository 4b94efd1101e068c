"""Explain: what people do with a fit: how sure it is, whether it fits, who is where, what if."""

from __future__ import annotations

from hidag.explain.answers import WhatIf
from hidag.explain.average_effects import AverageEffects, average_effects
from hidag.explain.bootstrap import BootstrapProgress, bootstrap
from hidag.explain.bootstrap_result import BootstrapResult
from hidag.explain.classification import Classification, classify
from hidag.explain.edge_strengths import edge_strengths
from hidag.explain.exports import to_bif, to_dot, to_dowhy, to_gml
from hidag.explain.fit_statistics import FitStatistics, fit_statistics
from hidag.explain.interventions import Questions, what_if
from hidag.explain.law_draws import draws_of_law
from hidag.explain.person_fit import PersonFit, person_fit
from hidag.explain.q_validation import validate_q
from hidag.explain.q_verdict import QValidation
from hidag.explain.standard_errors import StandardErrors, standard_errors

__all__ = [
    "BootstrapProgress",
    "BootstrapResult",
    "AverageEffects",
    "Classification",
    "FitStatistics",
    "PersonFit",
    "QValidation",
    "Questions",
    "StandardErrors",
    "WhatIf",
    "average_effects",
    "classify",
    "draws_of_law",
    "edge_strengths",
    "fit_statistics",
    "person_fit",
    "standard_errors",
    "to_bif",
    "to_dot",
    "to_dowhy",
    "to_gml",
    "validate_q",
    "bootstrap",
    "what_if",
]
