"""Refits of a model with other Q-matrix entries, and score and Wald tests of single entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from hidag.em.design_data import WorkingData
from hidag.em.em import Estimate, Problem, Schedule, extrapolate_gain, normalise_counts, run_em
from hidag.em.m_step import Basis
from hidag.fitting.information_criteria import all_features, design_rank, known_combinations
from hidag.information import moment_tests
from hidag.information.free_parameters import (
    FreeParameters,
    item_scores,
    iterate_loading_scores,
    row_scores,
)
from hidag.information.posterior_tables import can_list_states, too_many_states
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

#: EM stops when this many steps gain less than the tolerance in log-likelihood, and the predicted
#: gain of all later steps is also below it. Single steps are uninformative: they are short after an
#: overshoot, and while a new coefficient moves away from zero.
WINDOW, TOLERANCE = 20, 5e-3
#: Smaller gains are rounding errors of the sum over rows, and cannot be extrapolated.
ROUNDING = 1e-6
MAX_STEPS = 1000
#: Mass that a refit spreads over all states that may occur. EM hardly returns mass to a state that
#: the fit with another Q left empty.
UNIFORM_SHARE = 1e-3
NOT_TESTED = "not judged"  # Action for entries that make no difference in any state that occurs


@dataclass(frozen=True)
class QModel:
    """A fit with a fixed Q-matrix on a table, which can be refitted with another Q."""

    result: FitResult
    values: Array  # (N, J)
    weights: Array | None  # (N,)
    log_likelihood: float

    @cached_property
    def effects(self) -> Effects:
        """The way in which the latents of an item combine."""
        return self.result.effects

    @property
    def q(self) -> Q:
        """The Q-matrix, shape (J, K)."""
        return self.result.q_matrix

    @property
    def n_rows(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(len(self.values) if self.weights is None else self.weights.sum())

    def terms_of(self, q: Q) -> tuple[Terms, NDArray[np.bool_]]:
        """Return the terms of a Q, and those of each response, shape (R, T)."""
        rows = self.result.responses.of_items(q)
        terms = self.effects.terms(rows, self.result.terms.levels, self.result.terms.linear)
        return terms, self.effects.support(terms, rows)

    def n_coefficients(self, q: Q, item: int) -> int:
        """Return the number of identified coefficients of an item without the intercept."""
        if self.result.ruled_out is None:
            return int(self.terms_of(q)[1][self.result.responses.item == item].sum())
        return sum(design_rank(design) - 1 for design in self._possible_designs(q, item))

    def is_equivalent(self, q: Q, item: int) -> bool:
        """Return whether another Q gives an item the same model in all states that occur."""
        if self.result.ruled_out is None:
            return bool((q[item] == self.q[item]).all())
        designs = (self._possible_designs(each, item) for each in (self.q, q))
        return all(
            design_rank(np.hstack([one, other])) == design_rank(one) == design_rank(other)
            for one, other in zip(*designs, strict=True)
        )

    def _possible_designs(self, q: Q, item: int) -> list[Array]:
        """Return the design of each response of an item in states that may occur, (S', P)."""
        terms, support = self.terms_of(q)
        states = self.result.law.space.states()
        if self.result.ruled_out is not None:
            states = states[~self.result.ruled_out]
        features = all_features(terms, states, reverse=self.effects.reversed)
        own = support[self.result.responses.item == item]
        return [features[:, np.concatenate([[True], row])] for row in own]

    def refit(self, q: Q) -> QModel:
        """Return the model with another Q, refitted to the same rows from the present estimate."""
        result, levels = self.result, self.result.law.space.levels
        is_reversed = self.effects.reversed
        enumerated = can_list_states(result)
        terms, support = self.terms_of(q)
        start = result.parameters
        start = _reverse_items(start) if enumerated and is_reversed else start
        start = _initial_parameters(start, terms, support, self.effects)
        data = WorkingData.around(start, result.responses.expand(self.values), self.weights)
        if not enumerated:
            return self._refit_network(q, data, start)
        probabilities = np.asarray(result.law.probabilities)
        possible = np.ones(len(probabilities))
        if result.ruled_out is not None:
            possible[result.ruled_out] = 0.0
        if is_reversed:
            probabilities = _reverse_states(probabilities, levels)
            possible = _reverse_states(possible, levels)
        allowed = np.full((len(support), 1 + terms.n_terms), ZERO, dtype=np.uint8)
        allowed[:, 0] = FREE
        allowed[:, 1:][support] = FREE
        space, update_law = result.law.space, law_update(result.law)
        basis = Basis.over(space, terms)

        def steps(items: MeasurementParameters, law: Array, schedule: Schedule) -> Estimate:
            problem = Problem(data, space, basis, allowed, NO_SPARSITY, schedule)
            return run_em(problem, items, law, law_step=update_law)

        items = data.to_working(start)
        spread = (1.0 - UNIFORM_SHARE) * probabilities
        spread = np.asarray(spread + UNIFORM_SHARE * possible / possible.sum())
        found = _run_to_convergence(steps, items, spread)
        at_start = steps(items, probabilities, schedule=Schedule(max_iter=0))
        if found.log_likelihood < at_start.log_likelihood:
            # The spread law led to a lower maximum; EM from the estimate itself cannot end lower.
            found = _run_to_convergence(steps, items, probabilities)
        items, law = data.to_user(found.parameters), found.probabilities
        if is_reversed:
            items, law = _reverse_items(items), _reverse_states(law, levels)
        return self._with_estimate(q, items, _make_law(result.law, law), found.log_likelihood)

    def _refit_network(self, q: Q, data: WorkingData, start: MeasurementParameters) -> QModel:
        """Return the refit where joint states are not enumerated; effects are additive there."""
        allowed = self.result.responses.of_items(q)
        found = None
        if isinstance(self.result.law, NetworkLaw):
            found = run_network_em(
                data.to_working(start),
                self.result.law,
                data,
                q_matrix=allowed,
                max_iter=MAX_STEPS,
                tolerance=TOLERANCE,
            )
        if found is None:
            raise too_many_states(self.result, "a refit with another Q")
        tree = TreePosterior.of(found.parameters, found.law, allowed)
        assert tree is not None
        value = tree.log_likelihood(data, found.parameters)
        return self._with_estimate(q, data.to_user(found.parameters), found.law, value)

    def _with_estimate(
        self, q: Q, parameters: MeasurementParameters, law: LatentLaw, log_likelihood: float
    ) -> QModel:
        result = replace(self.result, parameters=parameters, law=law, log_likelihood=log_likelihood)
        result = replace(result, q_given=np.array(q, dtype=np.int8))
        return QModel(result, self.values, self.weights, log_likelihood)

    def reweight(self, weights: Array) -> QModel:
        """Return the model refitted with other weights (N,)."""
        used = weights > 0
        return QModel(self.result, self.values[used], weights[used], np.nan).refit(self.q)


def fit_given_q(result: FitResult, values: Array, weights: Array | None = None) -> QModel:
    """Return a confirmatory fit on its table, iterated to the maximum of the likelihood."""
    return QModel(result, values, weights, np.nan).refit(result.q_matrix)


def _run_to_convergence(
    steps: Callable[..., Estimate], parameters: MeasurementParameters, probabilities: Array
) -> Estimate:
    """Return the estimate after EM steps, stopped by the predicted remaining gain."""
    window = Schedule(max_iter=WINDOW, tolerance=0.0)
    found = steps(parameters, probabilities, schedule=window)
    before, gained = np.inf, found.log_likelihood - float(found.trace[0, 0])
    for _ in range(MAX_STEPS // WINDOW - 1):
        small = gained < TOLERANCE and extrapolate_gain(before, gained) < TOLERANCE
        if gained < ROUNDING or small:
            break
        last = found.log_likelihood
        found = steps(found.parameters, found.probabilities, schedule=window)
        before, gained = gained, found.log_likelihood - last
    return found


def flip_entry(q: Q, item: int, latent: int) -> Q:
    """Return Q with one entry changed."""
    out = q.copy()
    out[item, latent] = 1 - out[item, latent]
    return out


def law_update(law: LatentLaw) -> Callable[[Array], Array]:
    """Return the update of a law of the same kind from expected counts of states."""
    if isinstance(law, NetworkLaw):
        return partial(factorise_counts, parents=law.parents, space=law.space)
    return normalise_counts


def _make_law(law: LatentLaw, probabilities: Array) -> LatentLaw:
    if isinstance(law, NetworkLaw):
        return fit_network_law(probabilities, law.parents, law.space)
    return SaturatedLaw(law.space, probabilities / probabilities.sum())


def _initial_parameters(
    parameters: MeasurementParameters, terms: Terms, support: NDArray[np.bool_], effects: Effects
) -> MeasurementParameters:
    """Return parameters in other terms, new ones zero; a changed product keeps its whole effect."""
    start = parameters.with_terms(terms)
    loadings = np.where(support, start.loadings, 0.0)
    if effects.conjunctive:
        lost = (loadings == 0).all(axis=1) & support.any(axis=1)
        total = parameters.loadings.sum(axis=1, keepdims=True)
        loadings = np.where(lost[:, None] & support, total, loadings)
    return replace(start, loadings=loadings)


def _reverse_items(parameters: MeasurementParameters) -> MeasurementParameters:
    return parameters.flipped(np.ones(parameters.n_latents, dtype=bool))


def _reverse_states(probabilities: Array, levels: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(np.flip(probabilities.reshape(levels)).ravel())


@dataclass(frozen=True)
class EntryTest:
    """Score or Wald test of one entry of Q, without a refit."""

    item: int
    latent: int
    action: str  # "add", "drop", or NOT_TESTED if prerequisites leave no state in which it matters
    statistic: float  # approximates twice the gain ("add") or loss ("drop") in log-likelihood
    degrees: int  # number of coefficients added or dropped


_Change = tuple[int, int, Q]  # An entry to add: item, latent and the new Q


def screen_entries(model: QModel) -> list[EntryTest]:
    """Return the tests of all changes of a single entry that leave each latent an item.

    Conjunctive items have one coefficient whatever their latents: their statistic is NaN.
    """
    changes, actions = [], []
    for item, latent in np.ndindex(*model.q.shape):
        other = flip_entry(model.q, item, latent)
        if other[:, latent].any():
            same = model.is_equivalent(other, item)
            changes.append((item, latent, other))
            actions.append(NOT_TESTED if same else "add" if other[item, latent] else "drop")
    if model.effects.conjunctive:
        pairs = zip(changes, actions, strict=True)
        return [EntryTest(item, latent, action, np.nan, 0) for (item, latent, _), action in pairs]
    free = FreeParameters.of(model.result, model.values, model.weights)
    scores = row_scores(free)
    channels = {one.response: c for c, one in enumerate(free.channels) if one.kind == "predictor"}
    added = [change for change, action in zip(changes, actions, strict=True) if action == "add"]
    local = moment_tests.LocalScores.of(free, scores, frequency_weights=True)
    spaces = {item: local.of_item(item) for item, _, _ in added}
    new_scores = _new_scores if free.is_listed else _new_network_scores
    parts = zip(added, new_scores(model, free, channels, added), strict=True)
    gains = iter(moment_tests.chi_square(spaces[item], part)[0] for (item, _, _), part in parts)
    covariance = _parameter_covariance(free, _root_weighted(scores, model))
    out = []
    for (item, latent, other), action in zip(changes, actions, strict=True):
        degrees = abs(model.n_coefficients(other, item) - model.n_coefficients(model.q, item))
        value = next(gains) if action == "add" else np.nan
        if action == "drop":
            value = _wald_statistic(free, covariance, channels, item, latent)
        out.append(EntryTest(item, latent, action, value, degrees))
    return out


def _new_scores(
    model: QModel, free: FreeParameters, channels: dict[int, int], added: Sequence[_Change]
) -> list[Array]:
    """Return for each added entry the scores of its new coefficients, (N, new) each."""
    states = model.result.law.space.states()
    channel: list[int] = []
    columns: list[Array] = []
    ends = []
    for item, _, other in added:
        terms, support = model.terms_of(other)
        features = terms.features(states)
        for r in np.flatnonzero(model.result.responses.item == item):
            c = channels[int(r)]
            present = {column.tobytes() for column in free.designs[c].T.copy()}
            for t in np.flatnonzero(support[r]):
                column = np.ascontiguousarray(features[:, t])
                if column.tobytes() not in present:
                    channel.append(c)
                    columns.append(column)
        ends.append(len(channel))
    if not columns:
        return []
    new = item_scores(free, np.array(channel, dtype=np.intp), np.column_stack(columns))
    return np.split(_root_weighted(new, model), ends[:-1], axis=1)


def _new_network_scores(
    model: QModel, free: FreeParameters, channels: dict[int, int], added: Sequence[_Change]
) -> list[Array]:
    """Return the same where joint states are not enumerated and effects are additive."""
    latents = {item: [k for j, k, _ in added if j == item] for item, _, _ in added}
    of_latent = model.result.terms.main_latents
    parts: dict[tuple[int, int], list[Array]] = {}
    for response, scores in iterate_loading_scores(free):
        item = int(model.result.responses.item[response])
        for k in latents.get(item, ()):
            parts.setdefault((item, k), []).append(_root_weighted(scores[:, of_latent == k], model))
    return [np.hstack(parts[j, k]) for j, k, _ in added]


def _root_weighted(scores: Array, model: QModel) -> Array:
    """Return scores (N, P) times the root of the weights."""
    return scores if model.weights is None else scores * np.sqrt(model.weights)[:, None]


def _parameter_covariance(free: FreeParameters, scores: Array) -> Array:
    """Return the covariance of the free parameters (P, P) from root-weighted scores (N, P)."""
    n_rows = free.data.n_counted
    if moment_tests.ROWS_PER_DIRECTION * scores.shape[1] <= n_rows:
        return _pseudo_inverse(scores.T @ scores)
    owner = moment_tests.parameter_items(free)
    out = np.zeros((scores.shape[1],) * 2)
    law = moment_tests.ScoreSpace.of(scores[:, owner < 0]).basis[
        :, : int(n_rows / moment_tests.ROWS_PER_DIRECTION)
    ]
    for item in np.unique(owner[owner >= 0]):
        own = np.flatnonzero(owner == item)
        rest = scores[:, own] - law @ (law.T @ scores[:, own])
        out[np.ix_(own, own)] = _pseudo_inverse(rest.T @ rest)
    return out


def _pseudo_inverse(information: Array) -> Array:
    return np.asarray(np.linalg.pinv(information, rcond=1e-10, hermitian=True), dtype=np.float64)


def _wald_statistic(
    free: FreeParameters, covariance: Array, channels: dict[int, int], item: int, latent: int
) -> float:
    """Return the Wald statistic of the identified combinations of an entry's coefficients."""
    result = free.result
    involved = np.concatenate([[False], result.terms.involved[:, latent]])
    places: list[NDArray[np.intp]] = []
    parts: list[Array] = []
    values: list[Array] = []
    for r in np.flatnonzero(result.responses.item == item):
        place = free.coefficient_maps[r].argmax(axis=0)
        own = np.flatnonzero(involved[place])
        channel = channels[int(r)]
        places.append(free.of_channel(channel)[own])
        parts.append(known_combinations(free.designs[channel], result.ruled_out, own))
        coefficients = result.parameters.coefficients[r][place[own]]
        values.append(parts[-1] @ coefficients / free.data.scale[r])
    every, known, b = np.concatenate(places), block_diag(*parts), np.concatenate(values)
    inner = known @ covariance[np.ix_(every, every)] @ known.T
    return float(b @ np.linalg.lstsq(inner, b, rcond=1e-10)[0])
