"""Which loadings to keep, judged by the observed data.

EM judges a loading by latents that were filled in under the current loadings: a false one holds
itself up, and a true one that is missing looks weaker than it is. Here the scores of all
coefficients are taken with the latents summed out, row by row; their second moments are the
information that the observed data carry (the empirical Fisher information). A stepwise
selection on that scale adds and drops loadings by what they are worth in observed likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData, noise_told_by
from hidag.em.em import Estimate, LawStep, any_law, continued, run_em
from hidag.em.information import observed_information
from hidag.em.m_step import Basis, at_a_cost, coefficient_scales, penalty_of, penalty_scales
from hidag.em.problem import Problem
from hidag.kernels.coordinate_descent import FREE, NONNEGATIVE, ZERO
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import Penalty
from hidag.measurement.terms import Terms

# --- Choosing an item's coefficients one step at a time on a quadratic model of its likelihood

Array = NDArray[np.float64]
Support = NDArray[np.bool_]
#: From a support and what may change, both (P - 1,), to the supports one step away.
Moves = Callable[[Support, Support], Iterator[Support]]


def together(groups: NDArray[np.integer]) -> Moves:
    """Return the moves that put in or take out all coefficients with the same number."""
    numbers = np.asarray(groups)

    def moves(support: Support, open_: Support) -> Iterator[Support]:
        for group in np.unique(numbers[open_]):
            members = (numbers == group) & open_
            other = support.copy()
            other[members] = not support[members].any()
            yield other

    return moves


def moves_of(terms: Terms) -> Moves:
    """Return the moves that keep latents whole and interactions below their latents."""
    if not terms.interactions:
        return together(terms.main_latents)
    is_main = np.arange(terms.n_terms) < terms.n_main
    of_latent = terms.involved

    def moves(support: Support, open_: Support) -> Iterator[Support]:
        inside: Support = of_latent[support].any(axis=0)  # type: ignore[assignment]
        for k in range(terms.n_latents):
            own = of_latent[:, k] & open_
            other = support.copy()
            if support[own].any():
                other[own] = False
            elif (own & is_main).any():
                other[own & is_main] = True
            else:
                continue
            yield other
        for t in np.flatnonzero(open_ & ~is_main):
            if support[t] or inside[of_latent[t]].all():
                other = support.copy()
                other[t] = not support[t]
                yield other

    return moves


def same_model(one: Support, other: Support, terms: Terms) -> bool:
    """Return whether two supports have the same latents and the same interactions."""
    main = slice(0, terms.n_main)
    groups = terms.main_latents
    return bool(
        np.array_equal(np.unique(groups[one[main]]), np.unique(groups[other[main]]))
        and np.array_equal(one[terms.n_main :], other[terms.n_main :])
    )


def best_subset(
    linear: Array,
    curvature: Array,
    allowed: NDArray[np.uint8],
    begin: Support,
    cost: float,
    moves: Moves,
) -> Array:
    """Return coefficients that maximise ``h'b - b'Gb/2 - cost * (number of loadings)``.

    Stepwise from the support ``begin``: the one move that gains most, until none gains. Other
    coefficients, the intercept first of all, move along with each step: that is what coordinate
    descent from a settled estimate cannot do.

    Parameters
    ----------
    linear, curvature : ndarray, shapes (P,) and (P, P)
        h and G; position 0 is the intercept, which is free of cost.
    allowed : ndarray of uint8, shape (P - 1,)
        ZERO, PENALISED, FREE or NONNEGATIVE; free loadings always stay.
    begin : ndarray of bool, shape (P - 1,)
    cost : float
    moves : callable
    """
    open_ = at_a_cost(allowed)
    rising = np.concatenate([[False], allowed == NONNEGATIVE])

    def rated(supports: list[Support]) -> tuple[list[tuple[int, float]], Array]:
        """Return what each support is worth, and its coefficients, shape (n, P)."""
        inside = np.array(supports)
        found = _solved(linear, curvature, inside)
        gains = 0.5 * (found @ linear) - cost * (inside & open_).sum(axis=1)
        # A support that needs a loading to fall is worse than any that does not.
        falling = (found[:, rising] < 0).sum(axis=1)
        return list(zip((-falling).tolist(), gains.tolist(), strict=True)), found

    support = (begin & (allowed != ZERO)) | (allowed == FREE)
    values, found = rated([support])
    value, best = values[0], found[0]
    for _ in range(2 * len(support)):
        others = list(moves(support, open_))
        if not others:
            break
        values, found = rated(others)
        top = max(range(len(others)), key=values.__getitem__)
        if values[top] <= (value[0], value[1] + 1e-9):
            break
        value, best, support = values[top], found[top], others[top]
    return np.asarray(np.where(rising, np.maximum(best, 0.0), best))


def _solved(linear: Array, curvature: Array, supports: NDArray[np.bool_]) -> Array:
    """Return the coefficients that are best with each support, (n, P), zero outside it.

    All systems are solved at once, because one by one calls cost more than solutions. They are as
    large as the largest support; others are filled up with equations that say nothing.
    """
    active = np.hstack([np.ones((len(supports), 1), dtype=bool), supports])
    largest = int(active.sum(axis=1).max())
    members = np.argsort(~active, axis=1, kind="stable")[:, :largest]
    used = np.take_along_axis(active, members, axis=1)
    systems = curvature[members[:, :, None], members[:, None, :]]
    systems *= used[:, :, None] & used[:, None, :]
    place = np.arange(largest)
    systems[:, place, place] += ~used
    solved = np.linalg.solve(systems, (linear[members] * used)[..., None])[..., 0]
    out = np.zeros(active.shape)
    np.put_along_axis(out, members, solved, axis=1)
    return out


# ---

MAX_ROUNDS = 3
#: Largest move of a coefficient, in units of its item's scale, that a choice may begin with.
LARGEST_STEP = 8.0


def loading_z_scores(beta: Array, gradient: Array, information: Array) -> Array:
    """Return |z| of every loading given the item's other loadings, shape (J, K).

    Wald scores for loadings that are in, score-test scores for those that are out.
    """
    n_items, size = beta.shape
    left = np.empty((n_items, size))
    for j in range(n_items):
        inside = np.concatenate([[True], beta[j, 1:] != 0])
        inverse = np.linalg.inv(information[j][np.ix_(inside, inside)])
        cross = information[j][np.ix_(inside, ~inside)]
        # What is left of a coefficient's information once the others have had theirs.
        left[j, inside] = 1.0 / np.diag(inverse)
        taken = (cross * (inverse @ cross)).sum(axis=0)
        left[j, ~inside] = np.diag(information[j])[~inside] - taken
    root = np.sqrt(np.maximum(left, 1e-12))
    z = np.where(beta != 0, np.abs(beta) * root, np.abs(gradient) / root)
    return np.asarray(z[:, 1:])


#: With fewer loadings than this there is no telling what loadings look like in this table.
FEWEST_SIGNALS = 8


def adapted_strength(
    z: Array, included: NDArray[np.bool_], penalty: Penalty, bounds: tuple[float, float]
) -> float:
    """Return the penalty strength at which a loading is as likely true as false in this table.

    False loadings have |z| of a standard normal. True ones have the distribution seen among those
    included, smoothed by the normal error that every z carries. Where the two are equally likely,
    given how many there are of each, lies the threshold z*; the strength is z*^2 / 2, kept within
    bounds.

    Parameters
    ----------
    z : ndarray, shape (J, K)
    included : ndarray of bool, shape (J, K)
    penalty : Penalty
        What is used when there are too few loadings to learn from.
    bounds : tuple of float
    """
    n_in = int(included.sum())
    if n_in < FEWEST_SIGNALS:
        return penalty.strength
    grid = np.linspace(np.sqrt(2.0 * bounds[0]), np.sqrt(2.0 * bounds[1]), 200)
    signals = z[included]
    kernels = np.exp(-0.5 * (grid[:, None] - signals[None, :]) ** 2)
    # The nearest loading does not speak for itself: a lone weak one would vouch for its own truth.
    density = kernels.sum(axis=1) - kernels.max(axis=1)
    noise = 2.0 * (z.size - n_in) * np.exp(-0.5 * grid**2)
    likely_true = np.flatnonzero(density > noise)
    threshold = grid[likely_true[0]] if len(likely_true) else grid[-1]
    return float(0.5 * threshold**2)


#: Coefficients (J, P) with their observed-data scores (J, P) and information (J, P, P).
Judged = tuple[Array, Array, Array]


def _judge(estimate: Estimate, data: WorkingData, basis: Basis) -> Judged:
    """Return coefficients (J, P), their observed-data scores and information, made invertible."""
    parameters = estimate.parameters
    gradient, information = observed_information(
        parameters, estimate.probabilities, estimate.statistics, data, basis
    )
    diagonal = np.arange(information.shape[1])
    information[:, diagonal, diagonal] *= 1.0 + 1e-6
    information[:, diagonal, diagonal] += 1e-9
    beta = parameters.coefficients
    return beta, gradient, information


def adapt_penalty(judged: Judged, n_samples: float, penalty: Penalty) -> Penalty:
    """Return the penalty with its strength learned from the loadings of this table.

    It stays between what the Bayesian information criterion asks of a parameter, log(N)/2, and
    four times log(K) more.
    """
    beta, gradient, information = judged
    z = loading_z_scores(beta, gradient, information)
    least = 0.5 * np.log(n_samples)
    most = least + 4.0 * np.log(max(2, beta.shape[1] - 1))
    strength = adapted_strength(z, beta[:, 1:] != 0, penalty, (least, most))
    return replace(penalty, strength=strength)


def _propose(
    parameters: MeasurementParameters,
    judged: Judged,
    allowed: NDArray[np.uint8],
    penalty: Penalty,
    scale: Array,
) -> MeasurementParameters:
    """Return the parameters after a step with support selection on the observed data's scale.

    A latent's thresholds come and go together, and take interactions with them. Where latents tell
    answers apart without fail there is next to no information, and a step on its scale could be of
    any length: no coefficient moves by more than ``LARGEST_STEP`` of its item's ``scale`` (J,).
    """
    terms = parameters.terms
    moves = moves_of(terms)
    families = np.concatenate([terms.main_latents, np.full(len(terms.interactions), -1)])
    beta, gradient, information = judged
    linear = gradient + np.einsum("jab,jb->ja", information, beta)
    moved = beta.copy()
    for j in range(len(beta)):
        begin = beta[j, 1:] != 0
        whole = begin | np.isin(families, terms.main_latents[begin[: terms.n_main]])
        found = best_subset(
            linear[j], information[j], allowed[j, 1:], whole, penalty.strength, moves
        )
        if not same_model(found[1:] != 0, begin, terms):
            reach = LARGEST_STEP * scale[j]
            moved[j] = np.where(found != 0, np.clip(found, beta[j] - reach, beta[j] + reach), 0.0)
    return _feasible(replace(parameters, intercept=moved[:, 0], loadings=moved[:, 1:]), parameters)


def select_support(
    problem: Problem, estimate: Estimate, *, adapt: bool = True, law_step: LawStep = any_law
) -> tuple[Estimate, Penalty]:
    """Return an estimate whose support was judged by the observed data, and the penalty used.

    With ``adapt`` the penalty's strength is first learned from the table. A step is kept only when,
    after EM has settled again, the penalised observed-data likelihood is higher; so under that
    penalty the objective never gets worse. What the estimate says of items with little noise makes
    the penalty's threshold narrower, else false loadings of theirs would cost next to nothing.
    """
    data, basis, allowed, penalty = (
        problem.data,
        problem.basis,
        problem.allowed,
        problem.penalty,
    )
    if penalty.name is None:
        return estimate, penalty
    judged = _judge(estimate, data, basis)
    if adapt:
        penalty = adapt_penalty(judged, data.n_counted, penalty)
    scale = coefficient_scales(data)
    data = replace(data, told_noise=noise_told_by(judged[2][:, 0, 0], scale, data))
    problem = replace(problem, data=data, penalty=penalty)
    cost = penalty_of(estimate.parameters, penalty, penalty_scales(data), allowed)
    estimate = replace(estimate, objective=estimate.log_likelihood - cost)
    for _ in range(MAX_ROUNDS):
        proposal = _propose(estimate.parameters, judged, allowed, penalty, scale)
        pairs = zip(proposal.loadings != 0, estimate.parameters.loadings != 0, strict=True)
        if all(same_model(new, old, proposal.terms) for new, old in pairs):
            break
        again = run_em(problem, proposal, estimate.probabilities, law_step=law_step)
        if again.objective <= estimate.objective:
            break
        estimate = continued(estimate, again)
        judged = _judge(estimate, data, basis)
    return estimate, penalty


def _feasible(
    proposal: MeasurementParameters, fallback: MeasurementParameters
) -> MeasurementParameters:
    """Return the proposal, with items kept as they were where it left the family's range."""
    inside = proposal.in_range()
    return replace(
        proposal,
        intercept=np.where(inside, proposal.intercept, fallback.intercept),
        loadings=np.where(inside[:, None], proposal.loadings, fallback.loadings),
    )
