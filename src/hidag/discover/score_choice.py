"""Which score a search maximises: by its name, and over the joint states that may occur."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hidag.discover.knowledge import Knowledge
from hidag.discover.possible_scores import PossibleScore
from hidag.discover.scores import KNOWN_SCORES, CountScore, LeanScore, LocalScore
from hidag.errors import SettingError
from hidag.latent import LatentCounts, StateSpace

#: With more joint states than this lean tables would take too long to fit.
MOST_LEAN_STATES = 1 << 13


def score_for(levels: tuple[int, ...]) -> str:
    """Return the score that suits variables with so many ordered levels, by name.

    BDeu for binary ones. Free tables of more levels have so many cells that weak edges cannot pay
    for them, whatever the score: there tables may be lean, unless variables are too many for it.
    """
    if max(levels) == 2:
        return "bdeu"
    return "lean" if math.prod(levels) <= MOST_LEAN_STATES else "bic"


def make_score(
    score: str | LocalScore,
    counts: LatentCounts,
    equivalent_sample_size: float = 1.0,
    knowledge: Knowledge | None = None,
) -> LocalScore:
    """Return the named score of these counts, or ``score`` itself if it is one already.

    Parameters
    ----------
    score : str or LocalScore
    counts : LatentCounts
    equivalent_sample_size : float
        Weight of BDeu's prior, in rows.
    knowledge : Knowledge, optional
        Of which a hierarchy rules joint states out, see :func:`possible_of`.
    """
    if not isinstance(score, str):
        if not isinstance(score, LocalScore):
            raise SettingError(f"score must be {KNOWN_SCORES}, got {score!r}")
        return score
    possible = possible_of(counts, knowledge)
    if score == "lean":
        return LeanScore(counts, possible)
    if possible is None:
        return CountScore(counts, score, equivalent_sample_size)
    return PossibleScore(counts, score, equivalent_sample_size, possible)


def possible_of(counts: LatentCounts, knowledge: Knowledge | None) -> NDArray[np.bool_] | None:
    """Return the joint states that a hierarchy allows, one axis per variable.

    None where there is no hierarchy, where some row contradicts it, and where states are too many
    to be listed: then no state counts as ruled out.
    """
    if knowledge is None or not knowledge.hierarchy or not StateSpace(counts.levels).listable:
        return None
    possible = knowledge.possible_states(counts.names, counts.levels)
    seen = counts.states[counts.weights > 0]
    return possible if bool(possible[tuple(seen.T)].all()) else None
