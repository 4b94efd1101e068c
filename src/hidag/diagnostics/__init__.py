"""Goodness of fit, item and person fit, classification, and validation of a Q-matrix."""

from hidag.diagnostics.classification import Classification, classify
from hidag.diagnostics.goodness_of_fit import FitStatistics, fit_statistics
from hidag.diagnostics.person_fit_statistics import PersonFit, person_fit
from hidag.diagnostics.q_validation import QValidation, validate_q

__all__ = [
    "Classification",
    "FitStatistics",
    "PersonFit",
    "QValidation",
    "classify",
    "fit_statistics",
    "person_fit",
    "validate_q",
]
