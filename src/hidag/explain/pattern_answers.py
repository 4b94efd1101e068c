"""What each item's answers are in each pattern of its own latents, and how surely that is known.

A coefficient that runs to the edge takes others with it: in one pattern nobody gave an answer, and
every coefficient that this pattern tells apart is unknown. Other patterns are known all the same.
So errors here are those of the predictor in each pattern, and only a pattern that itself has a part
in a flat direction of the likelihood has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.explain.covariances import Uncertainty
from hidag.explain.free_parameters import FreeParameters
from hidag.explain.item_channels import STEP, auxiliary_of, moved, moves
from hidag.explain.tables import Table
from hidag.measurement import family_named
from hidag.measurement.effects import Effects

Array = NDArray[np.float64]

COLUMNS = (
    "item",
    "latents",
    "pattern",
    "called",
    "share",
    "estimate",
    "standard_error",
    "lower",
    "upper",
)
NO_PATTERNS = Table(COLUMNS, ())
#: An item with more patterns of its latents than this has no rows: nobody would read them.
MOST_PATTERNS = 64
#: A pattern with a smaller share does not occur.
_NOBODY = 1e-12


def pattern_answers(free: FreeParameters, known: Uncertainty, quantile: float) -> Table:
    """Return a row for each pattern of each item's latents that may occur.

    Patterns in which an item answers alike by its very form are one row: a conjunctive item has
    two, with all of its latents and without.

    Parameters
    ----------
    free : FreeParameters
    known : Uncertainty
        Of the free parameters, in the user's units.
    quantile : float
        Standard errors to either side of an interval; it is made on the predictor's scale.
    """
    return Table.of(COLUMNS, _rows(free, known, quantile))


def _rows(free: FreeParameters, known: Uncertainty, quantile: float) -> Iterator[tuple[Any, ...]]:
    result = free.result
    levels, states = result.law.space.levels, result.law.space.states()
    q, names = result.q_matrix, result.response_names
    for c, one in enumerate(free.channels):
        if one.kind != "predictor":
            continue
        r = one.response
        latents = np.flatnonzero(q[result.responses.item[r]])
        if np.prod([levels[k] for k in latents]) > MOST_PATTERNS:
            continue
        own = free.of_channel(c)
        alike = np.unique(free.design[:, own], axis=0, return_inverse=True)[1].ravel()
        for group in dict.fromkeys(alike.tolist()):
            inside = alike == group
            share = float(free.probabilities[inside].sum())
            if share <= _NOBODY:
                continue
            words = _patterns(states[inside & (free.probabilities > _NOBODY)][:, latents])
            at = int(np.flatnonzero(inside)[0])
            numbers = _numbers(free, known, c, at, quantile)
            called = _called(free, r, states[at, latents], len(set(alike.tolist())))
            described = "*".join(result.latent_names[k] for k in latents), words, called
            yield (names[r], *described, share, *numbers)


def _numbers(
    free: FreeParameters, known: Uncertainty, channel: int, state: int, quantile: float
) -> tuple[float, float, float, float]:
    """Return a response's mean in a state, its standard error and the ends of its interval."""
    parameters = free.result.parameters
    r = free.channels[channel].response
    family, own = family_named(parameters.families[r]), auxiliary_of(parameters, r)
    eta = float(parameters.predictors(free.result.law.space.states()[[state]])[r, 0])

    def mean(at: float, auxiliary: Array) -> float:
        return float(family.response_mean(np.array([[at]]), auxiliary[None])[0, 0])

    rise = (mean(eta + STEP, own) - mean(eta - STEP, own)) / (2 * STEP)
    slope = np.zeros(free.n_parameters)
    mine = free.of_channel(channel)
    slope[mine] = free.design[state, mine]
    if rise != 0:
        # Auxiliaries have the channels after the predictor's, one parameter each.
        for place, move in enumerate(moves(family)):
            up, down = (mean(eta, moved(family, own, sign * STEP * move)) for sign in (1, -1))
            slope[free.of_channel(channel + 1 + place)] = (up - down) / (2 * STEP) / rise
    error = known.error(slope)
    if np.isnan(error):
        return mean(eta, own), error, error, error
    low, high = sorted(mean(eta + sign * quantile * error, own) for sign in (-1, 1))
    return mean(eta, own), abs(rise) * error, low, high


def _patterns(levels: NDArray[np.integer]) -> str:
    """Return the patterns of a group, as in 00 01 10; items without a latent have none."""
    return " ".join(dict.fromkeys("".join(map(str, row)) for row in levels.tolist()))


def _called(free: FreeParameters, response: int, levels: NDArray[np.int64], n_groups: int) -> str:
    """Return what the answer is called in models of that name, or nothing."""
    effects = Effects.of(free.result.settings.get("effects", "main"))
    binary = free.result.parameters.families[response].startswith("bernoulli")
    if not (effects.conjunctive and binary and n_groups == 2):
        return ""
    mastered = levels.any() if effects.reversed else levels.all()
    return "1 - slip" if mastered else "guess"
