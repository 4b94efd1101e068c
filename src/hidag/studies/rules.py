"""Rules for f(N), the number of rows that Stage II draws from the fitted law of the latents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

#: Our default: expected counts, standing for as many rows as the items let through.
CALIBRATED = "calibrated"


@dataclass(frozen=True)
class Rule:
    """How many rows the graph search gets to see.

    Attributes
    ----------
    name : str
    rows : callable or None
        f(N); None for expected counts of a calibrated size.
    guaranteed : bool
        Whether the paper's theorem covers it: f(N) = o(N log N).
    """

    name: str
    rows: Callable[[int], float] | None
    guaranteed: bool

    @property
    def stage_two(self) -> dict[str, Any]:
        """Arguments of `hidag.pipeline.latent_graph`."""
        return {"rule": "expected"} if self.rows is None else {"rule": self.rows}


#: Every rule by name. The calibrated one counts at most 4 N rows, so the theorem's rate covers it.
RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("sqrt N", lambda n: sqrt(n), True),
        Rule("N", lambda n: n, True),
        Rule("2N", lambda n: 2 * n, True),
        Rule("3N", lambda n: 3 * n, True),
        Rule("N log N", lambda n: n * log(n), False),
        Rule("N^1.5", lambda n: n**1.5, False),
        Rule("N^2", lambda n: n**2, False),
        Rule(CALIBRATED, None, True),
    )
}
