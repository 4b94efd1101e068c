"""Latents exchange their numbers of levels: who has how many, judged by the likelihood.

Before anything is fitted only the shape of scores tells how many levels a latent has, and scores
made of few binary items hardly do. Afterwards the likelihood does: two latents with different
numbers of levels exchange their items, everything settles again, and the exchange stays if that is
better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hidag.measurement import MeasurementParameters, Terms
from hidag.start.points import steps_of_levels

Array = NDArray[np.float64]
Candidate = TypeVar("Candidate")

#: Exchanges tried in a round, and rounds.
MOST_EXCHANGES, MOST_ROUNDS = 12, 3
#: An exchange must gain this much, in units of log-likelihood: less is a step of EM.
LEAST_GAIN = 1.0


def exchanges(parameters: MeasurementParameters) -> Iterator[MeasurementParameters]:
    """Yield the parameters with the items of two latents exchanged, for latents that differ.

    Main effects only: interactions wait until latents are settled. A latent that comes to have
    other levels gets steps of one size that give its items the variance they had.
    """
    levels = parameters.terms.levels
    pairs = [(a, b) for a, b in combinations(range(len(levels)), 2) if levels[a] != levels[b]]
    for a, b in pairs[:MOST_EXCHANGES]:
        yield _exchanged(parameters, a, b)


def _exchanged(parameters: MeasurementParameters, a: int, b: int) -> MeasurementParameters:
    terms = Terms.main(parameters.terms.levels)
    plain = parameters if parameters.terms == terms else parameters.with_terms(terms)
    step, reach = steps_of_levels(terms.levels)
    before = parameters.strengths
    loadings, intercept = plain.loadings.copy(), plain.intercept.copy()
    for mine, other in ((a, b), (b, a)):
        apart = before[:, other] / reach[other]
        loadings[:, terms.main_latents == mine] = (apart * step[mine])[:, None]
        # Predictors keep their means under even levels.
        intercept += 0.5 * (before[:, mine] - apart * reach[mine])
    moved = replace(plain, intercept=intercept, loadings=loadings)
    inside = moved.in_range()
    return replace(
        plain,
        intercept=np.where(inside, intercept, plain.intercept),
        loadings=np.where(inside[:, None], loadings, plain.loadings),
    )


def with_better_levels(
    now: Candidate,
    parameters_of: Callable[[Candidate], MeasurementParameters],
    value_of: Callable[[Candidate], float],
    rough: Callable[[MeasurementParameters], Candidate],
    finish: Callable[[Candidate], Candidate],
) -> Candidate:
    """Return the estimate after all exchanges of levels that make it better, or as it was.

    Parameters
    ----------
    now : estimate of any kind
    parameters_of, value_of : callable
        An estimate's items, and what it is worth, in units of log-likelihood.
    rough : callable
        Settles new items roughly: of the exchanges of a round the best goes on.
    finish : callable
        Settles an estimate as finely as ``now`` is.
    """
    for _ in range(MOST_ROUNDS):
        tried = [rough(items) for items in exchanges(parameters_of(now))]
        if not tried:
            break
        found = finish(max(tried, key=value_of))
        if value_of(found) <= value_of(now) + LEAST_GAIN:
            break
        now = found
    return now
