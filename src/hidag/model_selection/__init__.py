"""The number of latents: parallel analysis, factor BIC, criteria of fits side by side."""

from hidag.model_selection.candidates import Candidate
from hidag.model_selection.selection import Selection, select

__all__ = [
    "Candidate",
    "Selection",
    "select",
]
