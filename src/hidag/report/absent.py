"""What a report leaves out, and which command tells it."""

from __future__ import annotations

from collections.abc import Iterable

from hidag.report.headings import (
    EFFECTS_HEADING,
    FIT_HEADING,
    PLACEMENT_HEADING,
    SURE_HEADING,
)
from hidag.report.parts import Section

#: Sections that every report should have, and the commands that say the same.
_COMMANDS = {
    SURE_HEADING: "`hidag bootstrap`, or `hidag errors` for this Q and this graph",
    PLACEMENT_HEADING: "`hidag classify`",
    EFFECTS_HEADING: "`hidag whatif --effects`",
    FIT_HEADING: "`hidag goodness`",
}


def absent_section(headings: Iterable[str], n_latents: int) -> Section | None:
    """Return a section about those that are not there; None where all are.

    Parameters
    ----------
    headings : iterable of str
        Of the sections that are there.
    n_latents : int
        With a single latent nothing can be said of setting it for others.
    """
    there = set(headings)
    wanted = [name for name in _COMMANDS if name != EFFECTS_HEADING or n_latents > 1]
    absent = [name for name in wanted if name not in there]
    if not absent:
        return None
    told = "; ".join(f"{name}: {_COMMANDS[name]}" for name in absent)
    return Section(
        "What is not here",
        (
            "This page was made from the fit alone, without its table; `hidag fit --out` makes a "
            f"whole one, and other commands say what is left out. {told}.",
        ),
    )
