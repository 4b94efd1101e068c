"""Report: a fit in plain words, and as one HTML page that needs nothing beside it."""

from __future__ import annotations

from hidag.report.model_words import (
    all_binary,
    effects_in_words,
    interactions_of,
    latents_in_words,
    marginals_of,
)
from hidag.report.summary import render_summary, write_summary
from hidag.report.words import concerns, edges_in_words, family_counts, what_was_fitted

__all__ = [
    "all_binary",
    "concerns",
    "edges_in_words",
    "effects_in_words",
    "family_counts",
    "interactions_of",
    "latents_in_words",
    "marginals_of",
    "render_summary",
    "what_was_fitted",
    "write_summary",
]
