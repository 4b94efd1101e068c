"""Ends in which every loading points in its latent's direction, held against the best free end.

With latents that items hardly show, false loadings are the price of a latent that is not quite the
right one, and about as many of them point one way as the other. True ones mostly share a direction:
a latent's upper level makes its items rise (the monotonicity that the paper's identifiability
assumes). So where the best end has loadings that run against their latents, the starts are taken to
their ends once more without any. Such an end wins only by its criterion, in which signs are paid
for: what it takes to say which loadings run against their latent, when nothing is known beforehand
about how many do. Where items really are keyed in both directions the likelihood loses far more
than that, and the free end stays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from hidag.estimate.law_rounds import FirstLook
from hidag.estimate.loop import Observer
from hidag.estimate.maximise import Basis
from hidag.kernels.item_regression import PENALISED, RISING
from hidag.measurement import MeasurementParameters
from hidag.start.crossing import Problem, ends_of, taken_to_its_end

Array = NDArray[np.float64]

#: Where a larger share of the loadings runs against their latents, items are keyed both ways.
LARGEST_SHARE_AGAINST = 0.25


def against_their_latents(parameters: MeasurementParameters) -> NDArray[np.bool_]:
    """Return which loadings point the other way than their latent's do in sum, shape (J, K)."""
    direction = np.where(parameters.loadings.sum(axis=0) < 0, -1.0, 1.0)
    return np.asarray(parameters.loadings * direction < 0)


def price_of_signs(parameters: MeasurementParameters) -> float:
    """Return what the directions of the loadings cost, in units of log-likelihood.

    Each loading runs against its latent with the same unknown probability, all of whose values are
    possible beforehand (a beta distribution with halves): the logarithm of how improbable the
    directions found are on average over them.
    """
    n_against = int(against_their_latents(parameters).sum())
    n_along = int((parameters.loadings != 0).sum()) - n_against
    return float(betaln(0.5, 0.5) - betaln(n_against + 0.5, n_along + 0.5))


def in_one_direction(look: FirstLook, basis: Basis) -> FirstLook:
    """Return the look with its latents' directions up and no loading against them.

    Intercepts make up for loadings that go, so that items' predictors keep their means.
    """
    estimate = look.estimate
    levels = estimate.parameters.terms.levels
    turned = estimate.parameters.loadings.sum(axis=0) < 0
    items = estimate.parameters.flipped(turned)
    cube = np.flip(estimate.probabilities.reshape(levels), tuple(np.flatnonzero(turned)))
    law = np.ascontiguousarray(cube).ravel()
    falling = np.minimum(items.loadings, 0.0)
    upright = replace(
        items,
        intercept=items.intercept + falling @ (law @ basis.features),
        loadings=items.loadings - falling,
    )
    return replace(look, estimate=replace(estimate, parameters=upright, probabilities=law))


def better_in_one_direction(
    ends: list[FirstLook], looks: list[FirstLook], problem: Problem, observers: list[Observer]
) -> tuple[list[FirstLook], Problem]:
    """Return the ends, or those without loadings against their latents if their best is better.

    Parameters
    ----------
    ends : list of FirstLook
        The best end first; a single one where all starts lead to one place: then there is no doubt,
        and it comes back.
    looks : list of FirstLook
        One for each start.
    problem : Problem
    observers : list of callables

    Returns
    -------
    list of FirstLook, Problem
        Ends, the best first, and the problem as it goes on: with loadings that may not fall if such
        an end won.
    """
    best = ends[0]
    # The steps of more than two levels go up and down as levels happen to be numbered.
    if len(ends) == 1 or max(problem.space.levels) > 2:
        return ends, problem
    n_against = int(against_their_latents(best.estimate.parameters).sum())
    n_loadings = int((best.estimate.parameters.loadings != 0).sum())
    if not 0 < n_against <= LARGEST_SHARE_AGAINST * n_loadings:
        return ends, problem
    allowed = np.where(problem.allowed == PENALISED, RISING, problem.allowed).astype(np.uint8)
    rising = replace(problem, allowed=allowed)
    # The best end was crossed with others: it is one more place to begin, and the first.
    first = replace(best, criterion=np.inf)
    begun = [in_one_direction(look, problem.basis) for look in (first, *looks)]
    told = [observers[0], *observers]
    upright = ends_of(begun, rising, told, most_ends=len(begun))
    if upright[0] is begun[0]:
        # Without loadings against them all lead to one place.
        upright = [taken_to_its_end(upright[0], rising, told[0])]
    lead = upright[0].criterion - price_of_signs(upright[0].estimate.parameters)
    if lead > best.criterion - price_of_signs(best.estimate.parameters):
        return upright, rising
    return ends, problem
