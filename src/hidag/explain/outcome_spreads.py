"""How much items vary under a fit: the unit in which changes of different items can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hidag.explain.outcomes import MEAN, item_outcomes
from hidag.result import FitResult

#: The standard deviation of so many draws is within a few per cent, enough for an order.
_N_DRAWS = 4000
_SEED = 0


def outcome_spreads(result: FitResult) -> dict[tuple[str, str], float]:
    """Return the standard deviation of what each outcome is the mean of, by item and what it is.

    The same draws whenever it is asked, and for each item whatever the others are.

    Parameters
    ----------
    result : FitResult

    Returns
    -------
    dict from (item, what) to float
        In the item's own unit; for the probability of a category that of a yes or no.
    """
    states = result.law.sample(_N_DRAWS, np.random.default_rng(_SEED))
    out = {}
    for outcome in item_outcomes(result):
        at = tuple(states[:, k] for k in outcome.latents)
        means = outcome.table[at] if at else np.full(_N_DRAWS, float(outcome.table))
        item = result.item_names.index(outcome.item)
        if outcome.what != MEAN or result.families[item].startswith("bernoulli"):
            share = float(means.mean())
            out[outcome.item, outcome.what] = float(np.sqrt(share * (1.0 - share)))
            continue
        row = result.responses.starts[[item]]
        own = result.parameters.reordered(items=row)
        drawn = own.sample(states, np.random.default_rng(_SEED))[:, 0]
        out[outcome.item, outcome.what] = float(drawn.std())
    return out


def in_spreads(change: float, spread: float) -> float:
    """Return a change in standard deviations; as it is where nothing varies."""
    return change / spread if spread > 0 and np.isfinite(spread) else change


def effect_sizes(rows: Sequence[Mapping[str, Any]], result: FitResult) -> list[float]:
    """Return how large average effects are: of levels, and of items in standard deviations.

    Parameters
    ----------
    rows : sequence of mappings
        As `AverageEffects.rows` gives them.
    result : FitResult
        That the effects are of.
    """
    spreads = {
        item if what == MEAN else f"{item} {what}": spread
        for (item, what), spread in outcome_spreads(result).items()
    }
    sizes = []
    for row in rows:
        size = float(max(abs(row["low"]), abs(row["high"])))
        own = spreads.get(row["effect"], 0.0) if row["kind"] == "item" else 0.0
        sizes.append(in_spreads(size, own))
    return sizes
