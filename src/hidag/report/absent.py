"""What a report leaves out, and which command tells it."""

from __future__ import annotations

from collections.abc import Iterable

from hidag.explain.rows import can_sum_states
from hidag.report.headings import (
    EFFECTS_HEADING,
    FIT_HEADING,
    PLACEMENT_HEADING,
    SURE_HEADING,
)
from hidag.report.parts import Section
from hidag.result import FitResult

#: Sections that every report should have, and the commands that say the same.
_COMMANDS = {
    SURE_HEADING: "`hidag bootstrap`",
    PLACEMENT_HEADING: "`hidag classify`",
    EFFECTS_HEADING: "`hidag whatif --effects`",
    FIT_HEADING: "`hidag goodness`",
}
#: More of them, that refuse where joint states are too many to sum over.
_WITH_STATES_SUMMED = {SURE_HEADING: ", or `hidag errors` for this Q and this graph"}


def absent_section(headings: Iterable[str], result: FitResult) -> Section | None:
    """Return a section about those that are not there; None where all are.

    Parameters
    ----------
    headings : iterable of str
        Of the sections that are there.
    result : FitResult
        With a single latent nothing can be said of setting it for others.
    """
    there = set(headings)
    wanted = [name for name in _COMMANDS if name != EFFECTS_HEADING or len(result.latent_names) > 1]
    absent = [name for name in wanted if name not in there]
    if not absent:
        return None
    more = _WITH_STATES_SUMMED if can_sum_states(result) else {}
    told = "; ".join(f"{name}: {_COMMANDS[name]}{more.get(name, '')}" for name in absent)
    return Section(
        "What is not here",
        (
            "This page was made from the fit alone, without its table; `hidag fit --out` makes a "
            f"whole one, and other commands say what is left out. {told}.",
        ),
    )
