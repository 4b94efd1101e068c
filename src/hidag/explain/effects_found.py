"""Average effects that were found: least and most, intervals, and what is to be said with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.explain.estimable import NO_INTERVAL
from hidag.explain.intervals import LEVEL
from hidag.explain.untold import REASON
from hidag.identify.findings import listed

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AverageEffects:
    """What setting each cause from its lowest to its highest level adds, on average.

    Attributes
    ----------
    causes : tuple of str, length C
    effects : tuple of str, length E
        Latents (their expected level), then items (their mean, or a category's probability).
    n_latents : int
        How many of the effects are latents.
    low, high : ndarray, shape (C, E)
        Least and most over the choices that the graph leaves; equal where it leaves one. NaN where
        cause and effect are one latent, and where no data tell: see :mod:`hidag.explain.untold`.
    n_choices : tuple of int, length C
        Different sets of parents that the cause has among the graph's members.
    ruled_out : tuple of float, length C
        Share of people, at the most, whom setting the cause puts into states that prerequisites
        rule out.
    lower, upper : ndarray, shape (C, E), or None
        Interval for the true effect, wherever from low to high it is. NaN also where rows tell
        nothing of something that the effect depends on: see :mod:`hidag.explain.estimable`.
    level : float
        Share of such intervals that should hold the true effect.
    how : str
        Where the intervals come from, in words.
    hidden : str or None
        What the rows do not tell, in words, where that leaves effects without an interval.
    cut : tuple of str
        Causes with more sets of parents than were looked at, in the fit or in a replicate: low
        and high are the least and the most of those only.
    """

    causes: tuple[str, ...]
    effects: tuple[str, ...]
    n_latents: int
    low: Array
    high: Array
    n_choices: tuple[int, ...]
    ruled_out: tuple[float, ...]
    lower: Array | None = None
    upper: Array | None = None
    level: float = LEVEL
    how: str = "none"
    hidden: str | None = None
    cut: tuple[str, ...] = ()

    def about_intervals(self) -> str | None:
        """Return how many effects have no interval and why, in a sentence; None if all have one."""
        if self.hidden is None:
            return None
        number = sum(row.get("reason") == NO_INTERVAL for row in self.rows())
        have = "effect that depends on it has" if number == 1 else "effects that depend on it have"
        return f"{self.hidden}; {number} {have} no interval"

    def about_choices(self) -> str | None:
        """Return whose least and most may lie further out, in a sentence; None if nobody's."""
        if not self.cut:
            return None
        many = len(self.cut) > 1
        return (
            f"the graph leaves {listed(list(self.cut))} more sets of parents than were looked at: "
            f"the least and the most effect of {'these' if many else 'this latent'} may lie "
            "further out; give average_effects a higher limit"
        )

    def about_untold(self) -> str | None:
        """Return which effects have no number and why, in a sentence; None if all have one."""
        n_untold = sum(row.get("reason") == REASON for row in self.rows())
        if not n_untold:
            return None
        shares = [
            f"{share:.1%} by setting {cause}"
            for cause, share in zip(self.causes, self.ruled_out, strict=True)
            if share > 0
        ]
        have = "effect that depends on them has"
        if n_untold > 1:
            have = "effects that depend on them have"
        return (
            f"of all people {listed(shares)} would come into states that prerequisites rule out; "
            f"no data tell what follows there, and {n_untold} {have} no number"
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per pair: cause, effect, kind, low, high, lower, upper.

        Where some of these are NaN there is a reason too.
        """
        out = []
        for c, cause in enumerate(self.causes):
            for e, effect in enumerate(self.effects):
                if e < self.n_latents and cause == effect:
                    continue
                row: dict[str, Any] = {"cause": cause, "effect": effect}
                row["kind"] = "latent" if e < self.n_latents else "item"
                row |= {"low": float(self.low[c, e]), "high": float(self.high[c, e])}
                if self.lower is not None and self.upper is not None:
                    row |= {"lower": float(self.lower[c, e]), "upper": float(self.upper[c, e])}
                if np.isnan(self.low[c, e]):
                    row["reason"] = REASON
                elif self.hidden is not None and np.isnan(row.get("lower", 0.0)):
                    row["reason"] = NO_INTERVAL
                out.append(row)
        return out
