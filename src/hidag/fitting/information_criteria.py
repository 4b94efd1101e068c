"""Which coefficients the items of a fit have, and how many of them are free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hidag.latent.laws import LatentLaw, NetworkLaw, n_free_probabilities
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Effects, Terms
from hidag.results import FitResult

Array = NDArray[np.float64]

#: What a coefficient has in directions that change nothing, where it should have no part in them.
_ROUNDING = 1e-9


def free_terms(result: FitResult) -> NDArray[np.bool_]:
    """Return which terms each response has, shape (R, T).

    With Q given all that it allows, otherwise the loadings that are not zero. Items of which any
    latent is enough are written in the latents' absences: see :func:`item_designs`.
    """
    effects = Effects.of(result.settings.get("effects", "main"))
    terms = result.parameters.terms
    given = result.q_given is not None and bool((result.q_given >= 0).all())
    if given or effects.conjunctive:
        return effects.support(terms, result.responses.of_items(result.q_matrix))
    return np.asarray(result.parameters.loadings != 0)


def item_designs(result: FitResult) -> tuple[list[Array], tuple[Array, ...]]:
    """Return each response's free features over states, (S, P_r), and its coefficient map.

    The map, shape (1 + T, P_r), takes free coefficients to intercept and loadings. It only selects,
    except for items of which any latent is enough: there the features are products of absences.
    """
    features = features_over(result, result.law.space.states())
    return [features[:, c] for c in free_columns(result)], coefficient_maps(result)


def features_over(result: FitResult, states: NDArray[np.integer]) -> Array:
    """Return what coefficients may multiply in states (S, K), shape (S, 1 + T)."""
    return all_features(result.parameters.terms, states, turned=_reversed(result))


def free_columns(result: FitResult) -> list[NDArray[np.intp]]:
    """Return which columns of :func:`features_over` each response has a coefficient for."""
    return [np.flatnonzero(np.concatenate([[True], row])) for row in free_terms(result)]


def coefficient_maps(result: FitResult) -> tuple[Array, ...]:
    """Return for each response what its free coefficients are as coefficients, (1 + T, P_r)."""
    terms = result.parameters.terms
    every = _turning(terms) if _reversed(result) else np.eye(1 + terms.n_terms)
    return tuple(every[:, c] for c in free_columns(result))


def _reversed(result: FitResult) -> bool:
    return Effects.of(result.settings.get("effects", "main")).reversed


def all_features(terms: Terms, states: NDArray[np.integer], *, turned: bool) -> Array:
    """Return a one for the intercept and the terms' features in each state, shape (S, 1 + T).

    Parameters
    ----------
    terms : Terms
    states : ndarray of int, shape (S, K)
    turned : bool
        Whether features are products of the latents' absences.
    """
    if turned:
        states = np.array(terms.levels) - 1 - states
    return np.hstack([np.ones((len(states), 1)), terms.features(states)])


def feature_names(result: FitResult) -> list[list[str]]:
    """Return the names of each response's free coefficients."""
    names = np.array(["intercept", *result.terms.names(result.latent_names)], dtype=object)
    if _reversed(result):
        names[1:] = [f"absence of {name}" for name in names[1:]]
    return [["intercept", *names[1:][row].tolist()] for row in free_terms(result)]


def n_free_loadings(result: FitResult) -> int:
    """Return how many loadings of a fit can be told apart.

    Where prerequisites rule states out, some loadings are known in sum only: in a line of skills
    nobody has the later one alone, so that its main effect and the interaction are one number.
    """
    if result.ruled_out is None:
        return int(free_terms(result).sum())
    designs, _ = item_designs(result)
    return sum(n_told_apart(design[~result.ruled_out]) - 1 for design in designs)


def known_in_sum(result: FitResult) -> list[NDArray[np.bool_]]:
    """Return which free coefficients of each response prerequisites leave known in sum only.

    In states that occur, their features are combinations of other coefficients' features: adding
    to the one and taking from the others changes no probability of any answer.
    """
    if result.ruled_out is None:
        return [np.zeros(len(c), dtype=bool) for c in free_columns(result)]
    return [
        np.asarray((_idle(design, result.ruled_out) ** 2).sum(axis=0) > _ROUNDING)
        for design in item_designs(result)[0]
    ]


def coefficients_in_sum(result: FitResult) -> NDArray[np.bool_]:
    """Return which intercepts and loadings prerequisites leave known in sum only, (R, 1 + T).

    A coefficient that hangs on several free ones is known where these are in a known combination.
    """
    out = np.zeros(result.parameters.coefficients.shape, dtype=bool)
    if result.ruled_out is None:
        return out
    for r, (design, turn) in enumerate(zip(*item_designs(result), strict=True)):
        out[r] = ((turn @ _idle(design, result.ruled_out).T) ** 2).sum(axis=1) > _ROUNDING
    return out


def known_combinations(
    design: Array, ruled_out: NDArray[np.bool_] | None, chosen: NDArray[np.intp]
) -> Array:
    """Return what of some of a response's coefficients is known, as weights (n, len(chosen)).

    Orthonormal combinations of these coefficients that have no part in directions which change no
    state that occurs: one for each coefficient where prerequisites rule nothing out.

    Parameters
    ----------
    design : ndarray, shape (S, P)
    ruled_out : ndarray of bool, shape (S,), or None
    chosen : ndarray of int
        Columns of the design.
    """
    _, sizes, turned = np.linalg.svd(_idle(design, ruled_out)[:, chosen])
    return np.asarray(turned[int((sizes > _ROUNDING).sum()) :])


def states_known(result: FitResult) -> NDArray[np.bool_]:
    """Return in which states each response's predictor follows from states that occur, (S, R).

    Those that prerequisites rule out may be among them: main effects add up there too.
    """
    return np.column_stack(
        [
            ((design @ _idle(design, result.ruled_out).T) ** 2).sum(axis=1) <= _ROUNDING
            for design in item_designs(result)[0]
        ]
    )


def _idle(design: Array, ruled_out: NDArray[np.bool_] | None) -> Array:
    """Return directions of coefficients that change no state that occurs, shape (n, P)."""
    if ruled_out is None:
        return np.zeros((0, design.shape[1]))
    possible = design[~ruled_out]
    _, _, turned = np.linalg.svd(possible)
    return np.asarray(turned[n_told_apart(possible) :])


def n_told_apart(features: Array) -> int:
    """Return how many coefficients of features over states, shape (S, P), can be told apart."""
    return int(np.linalg.matrix_rank(features))


def _turning(terms: Terms) -> Array:
    """Return what coefficients on reversed levels are on the levels, shape (1 + T, 1 + T)."""
    units = np.eye(1 + terms.n_terms)
    rows = MeasurementParameters.linear(units[:, 0], units[:, 1:], terms)
    return rows.flipped(np.ones(terms.n_latents, dtype=bool)).coefficients.T


# --- Information criteria of a fit: its likelihood less the price of what was free

#: Weight of the extended criterion's price for having chosen among so many supports.
EBIC_WEIGHT = 1.0


@dataclass(frozen=True)
class InformationCriteria:
    """Criteria of a fit, all of them the smaller the better.

    Attributes
    ----------
    log_likelihood : float
        Of the observed cells; NaN, and the criteria with it, where joint states are not listed.
    n_parameters : int
        Intercepts, loadings that can be told apart, dispersions, cutpoints and the law's
        probabilities, without what prerequisites rule out.
    n_rows : float
        Rows, or sum of weights, that were counted on.
    aic, bic : float
    ebic : float
        BIC that also pays for choosing the loadings among all that could have been: twice the
        logarithm of the number of supports of that size (Chen and Chen 2008).
    """

    log_likelihood: float
    n_parameters: int
    n_rows: float
    aic: float
    bic: float
    ebic: float


def information_criteria(result: FitResult, n_rows: float | None = None) -> InformationCriteria:
    """Return the information criteria of a fit.

    Parameters
    ----------
    result : FitResult
    n_rows : float, optional
        What the likelihood counts on; by default the fit's rows, or the sum of their weights.
    """
    rows = result.n_counted if n_rows is None else float(n_rows)
    return criteria_of(
        result.log_likelihood, count_parameters(result), log_number_of_q(result), rows
    )


def criteria_of(
    log_likelihood: float, n_parameters: int, log_choices: float, n_rows: float
) -> InformationCriteria:
    """Return the information criteria of a likelihood.

    Parameters
    ----------
    log_likelihood : float
    n_parameters : int
    log_choices : float
        Logarithm of how many supports of that size there are to choose from.
    n_rows : float
    """
    twice = -2.0 * log_likelihood
    bic = twice + np.log(n_rows) * n_parameters
    return InformationCriteria(
        log_likelihood=log_likelihood,
        n_parameters=n_parameters,
        n_rows=n_rows,
        aic=float(twice + 2.0 * n_parameters),
        bic=float(bic),
        ebic=float(bic + 2.0 * EBIC_WEIGHT * log_choices),
    )


def count_parameters(result: FitResult) -> int:
    """Return how many free numbers a fit has."""
    own = item_parameters(result.parameters.families)
    return own + n_free_loadings(result) + law_parameters(result.law, result.ruled_out)


def item_parameters(families: Sequence[str]) -> int:
    """Return how many free numbers items have beside their loadings."""
    named = [family_named(name) for name in families]
    return sum(1 + family.has_dispersion + family.n_cutpoints for family in named)


def law_parameters(law: LatentLaw, ruled_out: NDArray[np.bool_] | None = None) -> int:
    """Return how many free probabilities a law has.

    Parameters
    ----------
    law : LatentLaw
    ruled_out : ndarray of bool, shape (S,), optional
        Joint states that cannot occur, whatever the data: their probabilities are not free.
    """
    possible = None if ruled_out is None else ~ruled_out
    if isinstance(law, NetworkLaw):
        return n_free_probabilities(law.parents, law.space, possible)
    return (law.space.n_states if possible is None else int(possible.sum())) - 1


def log_number_of_q(result: FitResult) -> float:
    """Return the logarithm of how many Q-matrices have as many of the open entries as the fit."""
    q, given = result.q_matrix, result.q_given
    free = np.ones(q.shape, dtype=bool) if given is None else given < 0
    return log_number_of_supports(int(free.sum()), int(q[free].sum()))


def log_number_of_supports(n_free: int, n_chosen: int) -> float:
    """Return the logarithm of how many ways there are to choose so many of the open entries."""
    return float(gammaln(n_free + 1) - gammaln(n_chosen + 1) - gammaln(n_free - n_chosen + 1))
