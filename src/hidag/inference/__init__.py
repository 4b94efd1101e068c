"""Uncertainty of a fit: standard errors, asymptotic draws, bootstrap, intervals."""

from hidag.inference.asymptotic_draws import draws_of_law
from hidag.inference.bootstrap import BootstrapProgress, bootstrap
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.inference.standard_errors import StandardErrors, standard_errors

__all__ = [
    "BootstrapProgress",
    "BootstrapResult",
    "StandardErrors",
    "bootstrap",
    "draws_of_law",
    "standard_errors",
]
