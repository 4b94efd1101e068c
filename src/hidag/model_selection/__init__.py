"""Number of latents: factors in the correlations, criteria of fits, cross-validation.

:func:`hidag.select` compares numbers, and ``hidag.DCRL("auto")`` fits the one that it selects.
"""

from hidag.model_selection.candidates import Candidate
from hidag.model_selection.factor_count import FactorCount
from hidag.model_selection.selection import Selection

__all__ = ["Candidate", "FactorCount", "Selection"]
