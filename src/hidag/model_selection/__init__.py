"""Selection of the number of latents: correlations, information criteria, cross-validation."""

from hidag.model_selection.candidates import Candidate
from hidag.model_selection.number_search import select
from hidag.model_selection.selection import Selection

__all__ = ["Candidate", "Selection", "select"]
