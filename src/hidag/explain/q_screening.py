"""Which entries of Q look wrong, at a glance: score tests of zeros and Wald tests of ones.

Nothing is fitted again: the scores of coefficients that are not in the model say what they would
gain, the covariance of those that are says what would be lost. Both know that everything else was
estimated from the same rows.

A row's weight says how many rows like it there are. So does the weighted log-likelihood, and the
statistics are meant to be near what that gains or loses: they are those of a table in which every
row stands as often as its weight says. Weights of a survey have to add up to what the rows are
worth beforehand (:func:`hidag.row_weights.survey_weights`), or all of these are too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from hidag.explain.free_parameters import FreeParameters
from hidag.explain.given_q import GivenQ, changed
from hidag.explain.local_scores import ROWS_FOR_ONE, LocalScores, items_of
from hidag.explain.moment_tests import ScoreSpace, chi_square
from hidag.explain.new_entries import scores_of_loadings
from hidag.explain.row_scores import item_scores, row_scores
from hidag.free_coefficients import known_combinations

Array = NDArray[np.float64]

#: What is told of a change that makes no difference in any state that occurs.
NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Screened:
    """What one change of Q is worth, at a glance.

    Attributes
    ----------
    item, latent : int
    action : {"add", "drop", "not judged"}
        What the change does; or that no data can judge it, as prerequisites leave items with and
        without the entry no state in which they differ.
    statistic : float
        About twice the log-likelihood that the change gains ("add") or costs ("drop").
    degrees : int
        Coefficients that come or go.
    """

    item: int
    latent: int
    action: str
    statistic: float
    degrees: int


def screened_entries(model: GivenQ) -> list[Screened]:
    """Return every change of a single entry that leaves each latent an item.

    A row counts as so many as its weight says, as in the log-likelihood.
    Conjunctive items have one coefficient whatever their latents: for them nothing is known without
    a refit, and the statistic is NaN.
    """
    changes = [
        (item, latent, other)
        for item, latent in np.ndindex(*model.q.shape)
        if (other := changed(model.q, item, latent))[:, latent].any()
    ]
    actions = [_action(model, *change) for change in changes]
    if model.effects.conjunctive:
        return [
            Screened(item, latent, action, np.nan, 0)
            for (item, latent, _), action in zip(changes, actions, strict=True)
        ]
    free = FreeParameters.of(model.result, model.values, model.weights)
    scores = row_scores(free)
    own = {one.response: c for c, one in enumerate(free.channels) if one.kind == "predictor"}
    adding = [entry for entry, action in zip(changes, actions, strict=True) if action == "add"]
    gains = iter(_gained(model, free, LocalScores.of_repeated(free, scores), own, adding))
    covariance = _covariance(free, _repeated(scores, model))
    out = []
    for (item, latent, other), action in zip(changes, actions, strict=True):
        degrees = abs(model.n_coefficients(other, item) - model.n_coefficients(model.q, item))
        value = np.nan
        if action == "add":
            value = next(gains)
        elif action == "drop":
            value = _lost(free, covariance, own, item, latent)
        out.append(Screened(item, latent, action, value, degrees))
    return out


def _action(model: GivenQ, item: int, latent: int, other: NDArray[np.int8]) -> str:
    if model.answers_alike(other, item):
        return NOT_JUDGED
    return "add" if other[item, latent] else "drop"


def _gained(
    model: GivenQ,
    free: FreeParameters,
    local: LocalScores,
    own: dict[int, int],
    adding: Sequence[tuple[int, int, NDArray[np.int8]]],
) -> list[float]:
    """Return the score statistics of the coefficients that new entries bring."""
    spaces = {item: local.of_item(item) for item, _, _ in adding}
    if not free.is_listed:
        return _gained_by_small_sums(model, free, spaces, adding)
    states = model.result.law.space.states()
    channel: list[int] = []
    columns: list[Array] = []
    ends = []
    for item, _, other in adding:
        terms, support = model.terms_of(other)
        features = terms.features(states)
        for r in np.flatnonzero(model.result.responses.item == item):
            c = own[int(r)]
            had = {column.tobytes() for column in free.designs[c].T.copy()}
            for t in np.flatnonzero(support[r]):
                column = np.ascontiguousarray(features[:, t])
                if column.tobytes() not in had:
                    channel.append(c)
                    columns.append(column)
        ends.append(len(channel))
    if not columns:
        return []
    new = item_scores(free, np.array(channel, dtype=np.intp), np.column_stack(columns))
    new = _repeated(new, model)
    parts = np.split(new, ends[:-1], axis=1)
    return [
        chi_square(spaces[item], part)[0] for (item, _, _), part in zip(adding, parts, strict=True)
    ]


def _gained_by_small_sums(
    model: GivenQ,
    free: FreeParameters,
    spaces: dict[int, ScoreSpace],
    adding: Sequence[tuple[int, int, NDArray[np.int8]]],
) -> list[float]:
    """Return the same where joint states are not listed: an entry brings its latent's steps."""
    latents = {item: [k for j, k, _ in adding if j == item] for item, _, _ in adding}
    of_latent = model.result.terms.main_latents
    parts: dict[tuple[int, int], list[Array]] = {}
    for response, scores in scores_of_loadings(free):
        item = int(model.result.responses.item[response])
        for k in latents.get(item, ()):
            new = _repeated(scores[:, of_latent == k], model)
            parts.setdefault((item, k), []).append(new)
    return [chi_square(spaces[j], np.hstack(parts[j, k]))[0] for j, k, _ in adding]


def _repeated(scores: Array, model: GivenQ) -> Array:
    """Return scores (N, P) whose squares are those of as many rows as each row stands for."""
    return scores if model.weights is None else scores * np.sqrt(model.weights)[:, None]


def _covariance(free: FreeParameters, scores: Array) -> Array:
    """Return the covariance of the free parameters from their scores, shape (P, P).

    Scores, shape (N, P), come times the roots of the rows' weights.

    Of more parameters than a tenth of the rows, scores tell no covariance of all: there an item's
    parameters are taken with those of the law alone, as in :mod:`hidag.explain.local_scores`.
    """
    n_rows = free.data.n_counted
    if ROWS_FOR_ONE * scores.shape[1] <= n_rows:
        return _inverse(scores.T @ scores)
    owner = items_of(free)
    out = np.zeros((scores.shape[1],) * 2)
    law = ScoreSpace.of(scores[:, owner < 0]).basis[:, : int(n_rows / ROWS_FOR_ONE)]
    for item in np.unique(owner[owner >= 0]):
        mine = np.flatnonzero(owner == item)
        rest = scores[:, mine] - law @ (law.T @ scores[:, mine])
        out[np.ix_(mine, mine)] = _inverse(rest.T @ rest)
    return out


def _inverse(information: Array) -> Array:
    return np.asarray(np.linalg.pinv(information, rcond=1e-10, hermitian=True), dtype=np.float64)


def _lost(
    free: FreeParameters, covariance: Array, own: dict[int, int], item: int, latent: int
) -> float:
    """Return the Wald statistic of the coefficients that an entry has.

    Where prerequisites rule states out, of their combinations that states which occur tell: others
    cost nothing to drop, and a fit leaves them anywhere.
    """
    result = free.result
    involved = np.concatenate([[False], result.terms.involved[:, latent]])
    places: list[NDArray[np.intp]] = []
    parts: list[Array] = []
    values: list[Array] = []
    for r in np.flatnonzero(result.responses.item == item):
        place = free.coefficient_maps[r].argmax(axis=0)
        mine = np.flatnonzero(involved[place])
        channel = own[int(r)]
        places.append(free.of_channel(channel)[mine])
        parts.append(known_combinations(free.designs[channel], result.ruled_out, mine))
        coefficients = result.parameters.coefficients[r][place[mine]]
        values.append(parts[-1] @ coefficients / free.data.scale[r])
    every, known, b = np.concatenate(places), block_diag(*parts), np.concatenate(values)
    inner = known @ covariance[np.ix_(every, every)] @ known.T
    return float(b @ np.linalg.lstsq(inner, b, rcond=1e-10)[0])
