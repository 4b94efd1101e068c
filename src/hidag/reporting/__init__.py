"""Report: a fit in plain words, and as one HTML page that needs nothing beside it."""

from hidag.reporting.fit_description import concerns, edges_in_words, family_counts, what_was_fitted
from hidag.reporting.fit_report import render_report, write_report
from hidag.reporting.model_description import (
    all_binary,
    effects_in_words,
    interactions_of,
    latents_in_words,
    marginals_of,
)
from hidag.reporting.sections import ReportParts, Section, Table, read_parts, write_parts

__all__ = [
    "ReportParts",
    "Section",
    "Table",
    "all_binary",
    "concerns",
    "edges_in_words",
    "effects_in_words",
    "family_counts",
    "interactions_of",
    "latents_in_words",
    "marginals_of",
    "read_parts",
    "render_report",
    "what_was_fitted",
    "write_parts",
    "write_report",
]
