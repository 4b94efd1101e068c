"""The same model with another Q: refits that begin where the fit ended, and what they gain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from hidag.diagnostics.moment_tests import (
    ROWS_FOR_ONE,
    LocalScores,
    ScoreSpace,
    chi_square,
    items_of,
)
from hidag.em.design_data import WorkingData
from hidag.em.em import Estimate, extrapolate_gain, normalise_counts, run_em
from hidag.em.m_step import Basis
from hidag.em.problem import Problem, Schedule
from hidag.fitting.information_criteria import (
    all_features,
    known_combinations,
    n_told_apart,
)
from hidag.inference.fitted_rows import can_list_states
from hidag.inference.information.free_parameters import FreeParameters
from hidag.inference.information.posterior_tables import too_many_states
from hidag.inference.information.row_scores import item_scores, iterate_loading_scores, row_scores
from hidag.kernels.coordinate_descent import FREE, ZERO
from hidag.latent.laws import LatentLaw, NetworkLaw, SaturatedLaw, factorise_counts, fit_network_law
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import NO_SPARSITY
from hidag.measurement.terms import Effects, Terms
from hidag.network_em.em import run_network_em
from hidag.network_em.junction_tree import TreePosterior
from hidag.results import FitResult

Array = NDArray[np.float64]
Q = NDArray[np.int8]

#: EM ends when so many steps together gain less than this, in units of log-likelihood, and all that
#: would follow gain less, too, if they go on to gain less and less as they did. A single step says
#: little: it is short after one that overshot, and where a new coefficient crawls away from zero.
WINDOW, SMALLEST_GAIN = 20, 5e-3
#: Gains below this are the rounding of a sum over rows: what they go on to be cannot be told.
NO_GAIN = 1e-6
MAX_STEPS = 1000
#: Share that a refit begins with spread over all states that may occur. EM gives next to nothing
#: back to a state that a fit with another Q has left empty, and its steps gain nothing for long.
SPREAD = 1e-3


@dataclass(frozen=True)
class GivenQ:
    """A fit of given Q on a table, ready to be fitted again with other entries.

    Attributes
    ----------
    result : FitResult
        With its Q and the estimates that belong to it.
    values : ndarray, shape (N, J)
    weights : ndarray, shape (N,), or None
    log_likelihood : float
    """

    result: FitResult
    values: Array
    weights: Array | None
    log_likelihood: float

    @cached_property
    def effects(self) -> Effects:
        """What an item's latents do together."""
        return Effects.of(self.result.settings.get("effects", "main"))

    @property
    def q(self) -> Q:
        """The Q-matrix, shape (J, K)."""
        return self.result.q_matrix

    @property
    def n_rows(self) -> float:
        """Rows of the table, or the sum of their weights."""
        return float(len(self.values) if self.weights is None else self.weights.sum())

    def terms_of(self, q: Q) -> tuple[Terms, NDArray[np.bool_]]:
        """Return the terms of a Q, and which of them each response has, shape (R, T)."""
        rows = self.result.responses.of_items(q)
        terms = self.effects.terms(rows, self.result.law.space.levels)
        return terms, self.effects.support(terms, rows)

    def n_coefficients(self, q: Q, item: int) -> int:
        """Return how many coefficients, intercepts aside, can be told apart of an item."""
        if self.result.ruled_out is None:
            return int(self.terms_of(q)[1][self.result.responses.item == item].sum())
        return sum(n_told_apart(design) - 1 for design in self._possible_designs(q, item))

    def answers_alike(self, q: Q, item: int) -> bool:
        """Return whether an item may answer the same in all states that occur with another Q.

        Then no data tell the two apart: who has a skill has its prerequisite, so that needing both
        is needing the skill.
        """
        if self.result.ruled_out is None:
            return bool((q[item] == self.q[item]).all())
        both = zip(
            self._possible_designs(self.q, item), self._possible_designs(q, item), strict=True
        )
        return all(
            n_told_apart(np.hstack([one, other])) == n_told_apart(one) == n_told_apart(other)
            for one, other in both
        )

    def _possible_designs(self, q: Q, item: int) -> list[Array]:
        """Return what an item's coefficients multiply in states that are not ruled out, (S', P)."""
        terms, support = self.terms_of(q)
        states = self.result.law.space.states()
        if self.result.ruled_out is not None:
            states = states[~self.result.ruled_out]
        features = all_features(terms, states, turned=self.effects.reversed)
        own = support[self.result.responses.item == item]
        return [features[:, np.concatenate([[True], row])] for row in own]

    def fitted(self, q: Q) -> GivenQ:
        """Return the model with another Q, refitted to the same rows from here."""
        result = self.result
        if not can_list_states(result):
            return self._fitted_by_small_sums(q)
        terms, support = self.terms_of(q)
        parameters = _begun(result.parameters, terms, support, self.effects)
        probabilities = np.asarray(result.law.probabilities)
        turn = self.effects.reversed
        if turn:
            parameters = _begun(_turned(result.parameters), terms, support, self.effects)
            probabilities = _turned_law(probabilities, result.law.space.levels)
        data = WorkingData.around(parameters, result.responses.expand(self.values), self.weights)
        allowed = np.full((len(support), 1 + terms.n_terms), ZERO, dtype=np.uint8)
        allowed[:, 0] = FREE
        allowed[:, 1:][support] = FREE
        space, law_step = result.law.space, law_step_of(result.law)
        basis = Basis.over(space, terms)

        def steps(items: MeasurementParameters, law: Array, schedule: Schedule) -> Estimate:
            problem = Problem(data, space, basis, allowed, NO_SPARSITY, schedule)
            return run_em(problem, items, law, law_step=law_step)

        begin = data.to_working(parameters)
        found = _at_its_maximum(steps, begin, self._spread(probabilities, turn=turn))
        here = steps(begin, probabilities, schedule=Schedule(max_iter=0))
        if found.log_likelihood < here.log_likelihood:
            # The law led astray: from here itself EM cannot end below.
            found = _at_its_maximum(steps, begin, probabilities)
        items, law = data.to_user(found.parameters), found.probabilities
        if turn:
            items, law = _turned(items), _turned_law(law, result.law.space.levels)
        again = replace(
            result,
            parameters=items,
            law=_law_of(result.law, law),
            q_given=np.array(q, dtype=np.int8),
            log_likelihood=found.log_likelihood,
        )
        return GivenQ(again, self.values, self.weights, found.log_likelihood)

    def _fitted_by_small_sums(self, q: Q) -> GivenQ:
        """Return the same where joint states are too many to be listed: effects add up there."""
        result = self.result
        terms, support = self.terms_of(q)
        parameters = _begun(result.parameters, terms, support, self.effects)
        data = WorkingData.around(parameters, result.responses.expand(self.values), self.weights)
        may = result.responses.of_items(q)
        found = None
        if isinstance(result.law, NetworkLaw):
            found = run_network_em(
                data.to_working(parameters),
                result.law,
                data,
                q_matrix=may,
                max_iter=MAX_STEPS,
                tolerance=SMALLEST_GAIN,
            )
        if found is None:
            raise too_many_states(result, "a refit with another Q")
        tree = TreePosterior.of(found.parameters, found.law, may)
        assert tree is not None
        value = tree.log_likelihood(data, found.parameters)
        again = replace(
            result,
            parameters=data.to_user(found.parameters),
            law=found.law,
            q_given=np.array(q, dtype=np.int8),
            log_likelihood=value,
        )
        return GivenQ(again, self.values, self.weights, value)

    def _spread(self, probabilities: Array, *, turn: bool) -> Array:
        """Return the law, (S,), with some mass in every state that may occur."""
        ruled_out = self.result.ruled_out
        share = np.ones(len(probabilities))
        if ruled_out is not None:
            share[ruled_out] = 0.0
        if turn:
            share = _turned_law(share, self.result.law.space.levels)
        return np.asarray((1.0 - SPREAD) * probabilities + SPREAD * share / share.sum())

    def on(self, weights: Array) -> GivenQ:
        """Return the model on rows that count otherwise, (N,), refitted."""
        counted = weights > 0
        other = GivenQ(self.result, self.values[counted], weights[counted], np.nan)
        return other.fitted(self.q)


def _at_its_maximum(
    steps: Callable[..., Estimate], parameters: MeasurementParameters, probabilities: Array
) -> Estimate:
    """Return where EM steps end, by what is left to be gained."""
    window = Schedule(max_iter=WINDOW, tolerance=0.0)
    found = steps(parameters, probabilities, schedule=window)
    before, gained = np.inf, found.log_likelihood - float(found.trace[0, 0])
    for _ in range(MAX_STEPS // WINDOW - 1):
        if gained < NO_GAIN or (
            gained < SMALLEST_GAIN and extrapolate_gain(before, gained) < SMALLEST_GAIN
        ):
            break
        last = found.log_likelihood
        found = steps(found.parameters, found.probabilities, schedule=window)
        before, gained = gained, found.log_likelihood - last
    return found


def given_q(result: FitResult, values: Array, weights: Array | None = None) -> GivenQ:
    """Return a confirmatory fit on its table, taken to its maximum."""
    return GivenQ(result, values, weights, np.nan).fitted(result.q_matrix)


def changed(q: Q, item: int, latent: int) -> Q:
    """Return Q with one entry turned over."""
    out = q.copy()
    out[item, latent] = 1 - out[item, latent]
    return out


def law_step_of(law: LatentLaw) -> Callable[[Array], Array]:
    """Return how counts of states become a law of the same kind."""
    if isinstance(law, NetworkLaw):
        return partial(factorise_counts, parents=law.parents, space=law.space)
    return normalise_counts


def _law_of(law: LatentLaw, probabilities: Array) -> LatentLaw:
    if isinstance(law, NetworkLaw):
        return fit_network_law(probabilities, law.parents, law.space)
    return SaturatedLaw(law.space, probabilities / probabilities.sum())


def _begun(
    parameters: MeasurementParameters,
    terms: Terms,
    support: NDArray[np.bool_],
    effects: Effects,
) -> MeasurementParameters:
    """Return the parameters written with other terms, zero where a response has none.

    A response whose one product changes takes all of its effect along.
    """
    begun = parameters.with_terms(terms)
    loadings = np.where(support, begun.loadings, 0.0)
    if effects.conjunctive:
        lost = (loadings == 0).all(axis=1) & support.any(axis=1)
        total = parameters.loadings.sum(axis=1, keepdims=True)
        loadings = np.where(lost[:, None] & support, total, loadings)
    return replace(begun, loadings=loadings)


def _turned(parameters: MeasurementParameters) -> MeasurementParameters:
    return parameters.flipped(np.ones(parameters.n_latents, dtype=bool))


def _turned_law(probabilities: Array, levels: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(np.flip(probabilities.reshape(levels)).ravel())


# --- Which entries of Q look wrong, at a glance: score tests of zeros and Wald tests of ones

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
    for response, scores in iterate_loading_scores(free):
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
    parameters are taken with those of the law alone, as in :mod:`hidag.diagnostics.moment_tests`.
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
