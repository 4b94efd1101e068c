"""Tables of a study as text, and the formats of their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

from hidag_paper.studies.summary import Estimate

#: Placeholder of missing numbers.
NOTHING = "-"


@dataclass(frozen=True)
class StudyTable:
    """A table as text.

    Attributes
    ----------
    title : str
    headings : tuple of str
        The first column has names, the others numbers.
    rows : tuple of tuple of str
    notes : tuple of (str, str)
        Headings and their meanings.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[tuple[str, str], ...]


def format_number(value: float) -> str:
    """Return a number with two decimals."""
    return NOTHING if isnan(value) else f"{value:.2f}"


def format_estimate(estimate: Estimate) -> str:
    """Return a mean with its standard error."""
    return f"{format_number(estimate.mean)} ({format_number(estimate.error)})"
