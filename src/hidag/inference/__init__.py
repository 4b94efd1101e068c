"""Uncertainty of a fit: standard errors, asymptotic draws and the bootstrap."""

from hidag.inference.asymptotic_draws import draw_asymptotic
from hidag.inference.bootstrap import BootstrapProgress, bootstrap
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.inference.standard_errors import StandardErrors, standard_errors

__all__ = [
    "BootstrapProgress",
    "BootstrapResult",
    "StandardErrors",
    "bootstrap",
    "draw_asymptotic",
    "standard_errors",
]
