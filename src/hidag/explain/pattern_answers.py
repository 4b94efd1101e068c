"""What each item's answers are in each pattern of its own latents, and how surely that is known.

A coefficient that runs to the edge takes others with it: in one pattern nobody gave an answer, and
every coefficient that this pattern tells apart is unknown. Other patterns are known all the same.
So errors here are those of the predictor in each pattern, and only a pattern that itself has a part
in a flat direction of the likelihood has none.

A nominal item is asked about one category after another, and its predictors are about a category
among those left. What is told here are the probabilities of the categories themselves, which all
predictors up to theirs have a part in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp

from hidag.explain.covariances import Uncertainty
from hidag.explain.free_parameters import FreeParameters
from hidag.explain.item_channels import STEP, auxiliary_of, moved, moves
from hidag.explain.tables import Table
from hidag.measurement import categorical_named, family_named
from hidag.measurement.effects import Effects
from hidag.measurement.responses import worded

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
#: Shares of a category's log odds that a predictor moves, below which it has no say in them.
_NO_SAY = 1e-3


def pattern_answers(free: FreeParameters, known: Uncertainty, quantile: float) -> Table:
    """Return a row for each pattern of each item's latents that may occur.

    Patterns in which an item answers alike by its very form are one row: a conjunctive item has
    two, with all of its latents and without. A nominal item has rows for each of its categories,
    called ``item=category``, with the category's probability.

    Parameters
    ----------
    free : FreeParameters
    known : Uncertainty
        Of the free parameters, in the user's units.
    quantile : float
        Standard errors to either side of an interval; it is made on the predictor's scale, for
        categories on that of log odds.
    """
    return Table.of(COLUMNS, _rows(free, known, quantile))


def _rows(free: FreeParameters, known: Uncertainty, quantile: float) -> Iterator[tuple[Any, ...]]:
    result = free.result
    levels = result.law.space.levels
    predictors = np.array([c for c, one in enumerate(free.channels) if one.kind == "predictor"])
    for j, name in enumerate(result.item_names):
        latents = np.flatnonzero(result.q_matrix[j])
        if np.prod([levels[k] for k in latents]) > MOST_PATTERNS:
            continue
        channels = predictors[result.responses.item == j]
        table = free.table_of(int(channels[0]))
        states, shares = free.tables.states(table), free.tables.shares(table)
        design = np.hstack([free.designs[c] for c in channels])
        alike = np.unique(design, axis=0, return_inverse=True)[1].ravel()
        groups = []
        for group in dict.fromkeys(alike.tolist()):
            inside = alike == group
            share = float(shares[inside].sum())
            if share > _NOBODY:
                words = _patterns(states[inside & (shares > _NOBODY)][:, latents])
                groups.append((int(np.flatnonzero(inside)[0]), share, words))
        among = "*".join(result.latent_names[k] for k in latents)
        nominal = categorical_named(result.families[j])
        for place, category in enumerate((None,) if nominal is None else nominal.categories):
            for at, share, words in groups:
                if category is None:
                    called = _called(free, j, states[at, latents], len(set(alike.tolist())))
                    numbers = _numbers(free, known, int(channels[0]), at, quantile)
                    yield (name, among, words, called, share, *numbers)
                else:
                    numbers = _category(free, known, channels, place, at, quantile)
                    answer = f"{name}={worded(category, result.answer_words.get(name))}"
                    yield (answer, among, words, "", share, *numbers)


def _numbers(
    free: FreeParameters, known: Uncertainty, channel: int, state: int, quantile: float
) -> tuple[float, float, float, float]:
    """Return a response's mean in a state, its standard error and the ends of its interval."""
    parameters = free.result.parameters
    r = free.channels[channel].response
    family, own = family_named(parameters.families[r]), auxiliary_of(parameters, r)
    at = free.tables.states(free.table_of(channel))[[state]]
    eta = float(parameters.predictors(at)[r, 0])

    def mean(at: float, auxiliary: Array) -> float:
        return float(family.response_mean(np.array([[at]]), auxiliary[None])[0, 0])

    rise = (mean(eta + STEP, own) - mean(eta - STEP, own)) / (2 * STEP)
    slope = np.zeros(free.n_parameters)
    mine = free.of_channel(channel)
    slope[mine] = free.designs[channel][state]
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


def _category(
    free: FreeParameters,
    known: Uncertainty,
    channels: NDArray[np.intp],
    place: int,
    state: int,
    quantile: float,
) -> tuple[float, float, float, float]:
    """Return the probability of a nominal item's category in a state, as :func:`_numbers`.

    Parameters
    ----------
    free, known, quantile
        As in :func:`pattern_answers`.
    channels : ndarray of int, shape (C - 1,)
        Of the item's predictors, in the order in which categories are asked about.
    place : int
        Of the category in that order; C - 1 for the last one, which needs no asking.
    state : int
    """
    responses = [free.channels[c].response for c in channels]
    at = free.tables.states(free.table_of(int(channels[0])))[[state]]
    eta = free.result.parameters.predictors(at)[responses, 0]
    # Logarithms, because one less a chance near one would be lost to rounding.
    none_before = np.concatenate([[0.0], np.cumsum(log_expit(-eta))])
    logs = none_before + np.concatenate([log_expit(eta), [0.0]])
    log_rest = float(logsumexp(np.delete(logs, place)))
    log_odds = float(logs[place]) - log_rest
    # By each predictor: a yes to an earlier category rules this one out.
    rise = np.where(np.arange(len(eta)) < place, -expit(eta), 0.0)
    if place < len(eta):
        rise[place] = expit(-eta[place])
    # An earlier category that nobody gives has no say, however little is known of its predictor.
    rise[np.abs(rise) < _NO_SAY * np.abs(rise).max()] = 0.0
    slope = np.zeros(free.n_parameters)
    for c, by in zip(channels, rise * np.exp(-log_rest), strict=True):
        mine = free.of_channel(c)
        slope[mine] = by * free.designs[c][state]
    error = known.error(slope)
    chance = float(np.exp(logs[place]))
    if np.isnan(error):
        return chance, error, error, error
    low, high = expit(log_odds + quantile * error * np.array([-1.0, 1.0]))
    return chance, chance * float(np.exp(log_rest)) * error, float(low), float(high)


def _patterns(levels: NDArray[np.integer]) -> str:
    """Return the patterns of a group, as in 00 01 10; items without a latent have none."""
    return " ".join(dict.fromkeys("".join(map(str, row)) for row in levels.tolist()))


def _called(free: FreeParameters, item: int, levels: NDArray[np.int64], n_groups: int) -> str:
    """Return what the answer is called in models of that name, or nothing."""
    effects = Effects.of(free.result.settings.get("effects", "main"))
    binary = free.result.families[item].startswith("bernoulli")
    if not (effects.conjunctive and binary and n_groups == 2):
        return ""
    mastered = levels.any() if effects.reversed else levels.all()
    return "1 - slip" if mastered else "guess"
