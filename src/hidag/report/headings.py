"""Headings of parts of the report: a part is found, replaced or missed by its heading."""

from __future__ import annotations

#: Of whatever says how sure a fit is: what a bootstrap found takes the place of standard errors.
SURE_HEADING = "How sure it is"
PLACEMENT_HEADING = "Who is where"
EFFECTS_HEADING = "What if"
FIT_HEADING = "How well it fits"
Q_HEADING = "Is Q right"
