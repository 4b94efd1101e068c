"""Report: a fit in plain words, and as one HTML page that needs nothing beside it."""

from __future__ import annotations

from hidag.report.full import render_report, write_report
from hidag.report.model_words import (
    all_binary,
    effects_in_words,
    interactions_of,
    latents_in_words,
    marginals_of,
)
from hidag.report.parts import Section, Table
from hidag.report.parts_file import ReportParts, read_parts, write_parts
from hidag.report.words import concerns, edges_in_words, family_counts, what_was_fitted

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
