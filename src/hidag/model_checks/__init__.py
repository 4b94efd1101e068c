"""Checks of the model after a fit: what the data show that the fitted model cannot."""

from hidag.model_checks.checks import check_model

__all__ = ["check_model"]
