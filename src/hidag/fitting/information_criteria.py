"""Free parameters of a fit, and its information criteria (AIC, BIC, EBIC)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hidag.config import CONFIG
from hidag.latent.laws import LatentLaw, NetworkLaw, n_free_probabilities
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms
from hidag.results import FitResult

Array = NDArray[np.float64]

#: Rounding error of a squared length that should be zero.
_ROUNDING = 1e-9


def free_terms(result: FitResult) -> NDArray[np.bool_]:
    """Return each response's terms (R, T): all that a given Q allows, else those with loadings."""
    effects = result.effects
    terms = result.parameters.terms
    given = result.q_given is not None and bool((result.q_given >= 0).all())
    if given and effects.selected:
        # Interactions of a given Q are those that were selected.
        main = np.arange(terms.n_terms) < terms.n_main
        possible = terms.support(result.responses.of_items(result.q_matrix))
        return np.asarray(possible & (main | (result.parameters.loadings != 0)))
    if given or effects.conjunctive:
        return effects.support(terms, result.responses.of_items(result.q_matrix))
    return np.asarray(result.parameters.loadings != 0)


def item_designs(result: FitResult) -> tuple[list[Array], tuple[Array, ...]]:
    """Return each response's design over states, (S, P_r), and its coefficient map.

    The map, shape (1 + T, P_r), takes free coefficients to intercept and loadings. It selects
    columns, except for disjunctive items (DINO), whose features are products of absences.
    """
    features = features_over(result, result.law.space.states())
    return [features[:, c] for c in free_columns(result)], coefficient_maps(result)


def features_over(result: FitResult, states: NDArray[np.integer]) -> Array:
    """Return the features of all terms in states (S, K), shape (S, 1 + T)."""
    return all_features(result.parameters.terms, states, reverse=result.effects.reversed)


def free_columns(result: FitResult) -> list[NDArray[np.intp]]:
    """Return the columns of `features_over` that each response uses."""
    return [np.flatnonzero(np.concatenate([[True], row])) for row in free_terms(result)]


def coefficient_maps(result: FitResult) -> tuple[Array, ...]:
    """Return each response's map from free coefficients to all coefficients, (1 + T, P_r)."""
    terms = result.parameters.terms
    every = _reversal(terms) if result.effects.reversed else np.eye(1 + terms.n_terms)
    return tuple(every[:, c] for c in free_columns(result))


def all_features(terms: Terms, states: NDArray[np.integer], *, reverse: bool) -> Array:
    """Return the intercept's and the terms' features, or products of absences, (S, 1 + T)."""
    if reverse:
        states = np.array(terms.levels) - 1 - states
    return np.hstack([np.ones((len(states), 1)), terms.features(states)])


def feature_names(result: FitResult) -> list[list[str]]:
    """Return the names of each response's free coefficients."""
    names = np.array(["intercept", *result.terms.names(result.latent_names)], dtype=object)
    if result.effects.reversed:
        names[1:] = [f"absence of {name}" for name in names[1:]]
    return [["intercept", *names[1:][row].tolist()] for row in free_terms(result)]


def n_free_loadings(result: FitResult) -> int:
    """Return the number of identified loadings of a fit.

    A hierarchy that excludes states leaves some loadings identified in sums only: if B requires A,
    the main effect of B and its interaction with A always occur together.
    """
    if result.ruled_out is None:
        return int(free_terms(result).sum())
    designs, _ = item_designs(result)
    return sum(design_rank(design[~result.ruled_out]) - 1 for design in designs)


def known_in_sum(result: FitResult) -> list[NDArray[np.bool_]]:
    """Return which free coefficients of each response occur in identified sums only."""
    if result.ruled_out is None:
        return [np.zeros(len(c), dtype=bool) for c in free_columns(result)]
    return [
        np.asarray((_null_space(design, result.ruled_out) ** 2).sum(axis=0) > _ROUNDING)
        for design in item_designs(result)[0]
    ]


def coefficients_in_sum(result: FitResult) -> NDArray[np.bool_]:
    """Return which intercepts and loadings are identified in sums only, (R, 1 + T)."""
    out = np.zeros(result.parameters.coefficients.shape, dtype=bool)
    if result.ruled_out is None:
        return out
    for r, (design, to_all) in enumerate(zip(*item_designs(result), strict=True)):
        out[r] = ((to_all @ _null_space(design, result.ruled_out).T) ** 2).sum(axis=1) > _ROUNDING
    return out


def known_combinations(
    design: Array, ruled_out: NDArray[np.bool_] | None, chosen: NDArray[np.intp]
) -> Array:
    """Return the identified combinations of some coefficients, orthonormal rows (n, len(chosen)).

    ``chosen`` are columns of the design (S, P). Without excluded states there is one combination
    for each coefficient.
    """
    _, singular, right = np.linalg.svd(_null_space(design, ruled_out)[:, chosen])
    return np.asarray(right[int((singular > _ROUNDING).sum()) :])


def states_known(result: FitResult) -> NDArray[np.bool_]:
    """Return in which states, possible or by extrapolation, predictors are identified, (S, R)."""
    designs, _ = item_designs(result)
    outside = [design @ _null_space(design, result.ruled_out).T for design in designs]
    return np.column_stack([(part**2).sum(axis=1) <= _ROUNDING for part in outside])


def _null_space(design: Array, ruled_out: NDArray[np.bool_] | None) -> Array:
    """Return directions of coefficients that change no possible state, shape (n, P)."""
    if ruled_out is None:
        return np.zeros((0, design.shape[1]))
    _, _, right = np.linalg.svd(design[~ruled_out])
    return np.asarray(right[design_rank(design[~ruled_out]) :])


def design_rank(features: Array) -> int:
    """Return the number of identified coefficients of a design over states, shape (S, P)."""
    return int(np.linalg.matrix_rank(features))


def _reversal(terms: Terms) -> Array:
    """Return the map from coefficients of absences to those of the levels, (1 + T, 1 + T)."""
    units = np.eye(1 + terms.n_terms)
    rows = MeasurementParameters.linear(units[:, 0], units[:, 1:], terms)
    return rows.flipped(np.ones(terms.n_latents, dtype=bool)).coefficients.T


@dataclass(frozen=True)
class InformationCriteria:
    """Information criteria of a fit; smaller is better.

    EBIC is BIC plus twice the log number of supports of the same size (Chen and Chen 2008).
    """

    log_likelihood: float  # of the observed cells; NaN, like the criteria, without joint states
    # intercepts, identified loadings, dispersions, cutpoints and probabilities of possible states
    n_parameters: int
    n_rows: float  # rows, or sum of weights
    aic: float
    bic: float
    ebic: float


def information_criteria(result: FitResult, n_rows: float | None = None) -> InformationCriteria:
    """Return the information criteria of a fit, by default with its rows or sum of weights."""
    rows = result.n_counted if n_rows is None else float(n_rows)
    log_choices = log_number_of_q(result)
    return criteria_of(result.log_likelihood, count_parameters(result), log_choices, rows)


def criteria_of(
    log_likelihood: float, n_parameters: int, log_choices: float, n_rows: float
) -> InformationCriteria:
    """Return the criteria of a likelihood, given the log number of supports of the same size."""
    twice = -2.0 * log_likelihood
    bic = twice + np.log(n_rows) * n_parameters
    aic, ebic = twice + 2.0 * n_parameters, bic + 2.0 * CONFIG.selection.ebic_weight * log_choices
    return InformationCriteria(
        log_likelihood, n_parameters, n_rows, float(aic), float(bic), float(ebic)
    )


def count_parameters(result: FitResult) -> int:
    """Return the number of free parameters of a fit."""
    own = item_parameters(result.parameters.families)
    return own + n_free_loadings(result) + law_parameters(result.law, result.ruled_out)


def item_parameters(families: Sequence[str]) -> int:
    """Return the number of free parameters of items besides their loadings."""
    named = [family_named(name) for name in families]
    return sum(1 + family.has_dispersion + family.n_cutpoints for family in named)


def law_parameters(law: LatentLaw, ruled_out: NDArray[np.bool_] | None = None) -> int:
    """Return the number of free probabilities of a law; those of excluded states are not free."""
    possible = None if ruled_out is None else ~ruled_out
    if isinstance(law, NetworkLaw):
        return n_free_probabilities(law.parents, law.space, possible)
    return (law.space.n_states if possible is None else int(possible.sum())) - 1


def log_number_of_q(result: FitResult) -> float:
    """Return the log number of Q-matrices with as many estimated ones as the fit."""
    q, given = result.q_matrix, result.q_given
    free = np.ones(q.shape, dtype=bool) if given is None else given < 0
    return log_number_of_supports(int(free.sum()), int(q[free].sum()))


def log_number_of_supports(n_free: int, n_chosen: int) -> float:
    """Return the logarithm of the binomial coefficient."""
    return float(gammaln(n_free + 1) - gammaln(n_chosen + 1) - gammaln(n_free - n_chosen + 1))
