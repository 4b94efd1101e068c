"""The answer to a question what if: numbers before and after, with the least and the most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.errors import SettingError
from hidag.explain.outcomes import Outcome
from hidag.explain.untold import REASON
from hidag.identify.findings import listed

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WhatIf:
    """What follows, before and after, for latents and items.

    Attributes
    ----------
    latent_names : tuple of str
    do, given : mapping from name to value
    outcomes : tuple of Outcome
        The numbers about items, in the order of the columns below.
    latents_before : tuple of K arrays, shape (M_k,)
        Probabilities of each latent's levels given what is known, with nothing set: of the fitted
        law, and where something is set of the law over the graph that is nearest to it.
    latents_after : tuple of K arrays, shape (C, M_k)
        After setting, one row for each choice of the parents of what is set; one row if the
        graph leaves no choice.
    items_before : ndarray, shape (O,)
    items_after : ndarray, shape (C, O)
    shares : tuple of float, length C, or None
        Share of the graph's members behind each row; None where they are too many to count.
    complete : bool
        Whether the rows are all there are.
    exact : bool
        False where the graph is so dense that the law was drawn from.
    ruled_out : tuple of float, length C
        Share of everybody whom setting puts into states that prerequisites rule out. Numbers after
        that depend on what these people would do are NaN: see :mod:`hidag.explain.untold`.
    """

    latent_names: tuple[str, ...]
    do: Mapping[str, int]
    given: Mapping[str, float]
    outcomes: tuple[Outcome, ...]
    latents_before: tuple[Array, ...]
    latents_after: tuple[Array, ...]
    items_before: Array
    items_after: Array
    shares: tuple[float, ...] | None
    complete: bool
    exact: bool
    ruled_out: tuple[float, ...]

    @property
    def n_choices(self) -> int:
        """How many different answers the graph allows, C."""
        return len(self.items_after)

    @property
    def determined(self) -> bool:
        """Whether the graph leaves one answer only."""
        return self.complete and self.n_choices == 1

    @property
    def untold(self) -> tuple[str, ...]:
        """Latents and items that have no number after, because no data tell it."""
        names = [row["name"] for row in self.rows() if "reason" in row]
        return tuple(dict.fromkeys(names))

    def about_untold(self) -> str | None:
        """Return what has no number and why, in a sentence; None if everything has one."""
        names = self.untold
        if not names:
            return None
        low, high = f"{min(self.ruled_out):.1%}", f"{max(self.ruled_out):.1%}"
        share = low if low == high else f"{low} to {high}"
        return (
            f"this puts {share} of all people into states that prerequisites rule out; no data "
            f"tell what follows there, and what depends on it has no number: {listed(names)}"
        )

    def latent(self, name: str) -> tuple[Array, Array, Array]:
        """Return a latent's level probabilities before, and the least and most after, (M_k,)."""
        if name not in self.latent_names:
            raise SettingError(
                f"there is no latent {name!r}; the latents are {', '.join(self.latent_names)}"
            )
        k = self.latent_names.index(name)
        after = self.latents_after[k]
        return self.latents_before[k], after.min(axis=0), after.max(axis=0)

    def rows(self) -> list[dict[str, Any]]:
        """Return all numbers as rows: name, what, before, low, high (equal if determined).

        Items that are given are left out. Where low and high are NaN there is a reason too.
        """
        out: list[dict[str, Any]] = []
        for name in self.latent_names:
            before, low, high = self.latent(name)
            first = 1 if len(before) == 2 else 0
            out += [
                _row("latent", name, f"P(={v})", before[v], low[v], high[v])
                for v in range(first, len(before))
            ]
        low, high = self.items_after.min(axis=0), self.items_after.max(axis=0)
        for o, outcome in enumerate(self.outcomes):
            if outcome.item in self.given:
                continue
            numbers = self.items_before[o], low[o], high[o]
            out.append(_row("item", outcome.item, outcome.what, *numbers))
        return out


def _row(kind: str, name: str, what: str, before: float, low: float, high: float) -> dict[str, Any]:
    numbers = {"before": float(before), "low": float(low), "high": float(high)}
    reason = {"reason": REASON} if np.isnan(low) else {}
    return {"kind": kind, "name": name, "what": what, **numbers, **reason}
