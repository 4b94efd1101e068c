"""Which loadings to keep, judged by the observed data.

EM judges a loading by latents that were filled in under the current loadings: a false one holds
itself up, and a true one that is missing looks weaker than it is. Here the scores of all
coefficients are taken with the latents summed out, row by row; their second moments are the
information that the observed data carry (the empirical Fisher information). A stepwise
selection on that scale adds and drops loadings by what they are worth in observed likelihood.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.exact import StateScores, iterate_posteriors
from hidag.estimate.loop import Estimate, Observer, Schedule, run_em
from hidag.estimate.maximise import Basis
from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters, Penalty

Array = NDArray[np.float64]

MAX_ROUNDS = 3


def observed_information(
    parameters: MeasurementParameters, probabilities: Array, data: WorkingData, basis: Basis
) -> tuple[Array, Array]:
    """Return the observed-data score (J, P) and empirical information (J, P, P) of each item.

    The score of coefficient a of item j in row i is ``E[phi_a(z) (x theta'(z) - A'(z)) | x_i]``.
    """
    size = basis.design.shape[1]
    n_items = data.n_items
    gradient = np.zeros((n_items, size))
    information = np.zeros((n_items, size, size))
    beta = np.hstack([parameters.intercept[:, None], parameters.loadings])
    dtheta = np.empty((n_items, len(basis.design)))
    dpartition = np.empty_like(dtheta)
    for family, items in parameters.groups():
        eta = beta[items] @ basis.design.T
        slopes = family.slopes(eta, parameters.dispersion[items, None])
        dtheta[items], dpartition[items] = slopes[0], slopes[1]
    # Columns run over (item, coefficient): one matrix product serves all of them.
    weighted = (dpartition[:, None, :] * basis.design.T[None]).reshape(
        n_items * size, len(basis.design)
    ).T
    flat = np.ptp(dtheta, axis=1) == 0
    steep = np.flatnonzero(~flat)
    slanted = (dtheta[steep, None, :] * basis.design.T[None]).reshape(
        len(steep) * size, len(basis.design)
    ).T
    weighted, slanted = np.ascontiguousarray(weighted), np.ascontiguousarray(slanted)
    scores = StateScores.of(
        parameters, probabilities, np.ascontiguousarray(basis.features), data.gappy
    )
    for rows, posterior, _ in iterate_posteriors(scores, data):
        n_rows = len(posterior)
        x = data.x[rows]
        falling = (posterior @ weighted).reshape(n_rows, n_items, size)
        rising = (posterior @ basis.design)[:, None, :] * dtheta[None, :, :1]
        if len(steep):
            rising[:, steep] = (posterior @ slanted).reshape(n_rows, len(steep), size)
        score = x[:, :, None] * rising - falling
        if data.observed is not None:
            score *= data.observed[rows][:, :, None]
        by_item = np.ascontiguousarray(score.transpose(1, 0, 2))
        gradient += by_item.sum(axis=1)
        information += by_item.transpose(0, 2, 1) @ by_item
    return gradient, information


def best_subset(
    linear: Array, curvature: Array, allowed: NDArray[np.bool_], begin: NDArray[np.bool_], cost: float
) -> Array:
    """Return coefficients that maximise ``h'b - b'Gb/2 - cost * (number of loadings)``.

    Stepwise from the support ``begin``: the one addition or removal that gains most, until none
    gains. Other coefficients, the intercept first of all, move along with each step: that is what
    coordinate descent from a settled estimate cannot do.

    Parameters
    ----------
    linear, curvature : ndarray, shapes (P,) and (P, P)
        h and G; position 0 is the intercept, which is free of cost.
    allowed, begin : ndarray of bool, shape (P - 1,)
    cost : float
    """

    def solve(support: NDArray[np.bool_]) -> tuple[float, Array]:
        active = np.concatenate([[0], 1 + np.flatnonzero(support)])
        solution = np.linalg.solve(curvature[np.ix_(active, active)], linear[active])
        out = np.zeros(len(linear))
        out[active] = solution
        return 0.5 * float(linear[active] @ solution) - cost * (len(active) - 1), out

    support = begin & allowed
    value, best = solve(support)
    for _ in range(2 * len(support)):
        trials = []
        for k in np.flatnonzero(allowed):
            other = support.copy()
            other[k] = ~other[k]
            trials.append((*solve(other), k))
        if not trials:
            break
        top = max(trials, key=lambda trial: trial[0])
        if top[0] <= value + 1e-9:
            break
        value, best = top[0], top[1]
        support[top[2]] = ~support[top[2]]
    return best


def _newton_step(
    estimate: Estimate,
    data: WorkingData,
    basis: Basis,
    allowed: NDArray[np.uint8],
    penalty: Penalty,
) -> MeasurementParameters:
    """Return the parameters after a step with support selection on the observed data's scale."""
    parameters = estimate.parameters
    gradient, information = observed_information(
        parameters, estimate.probabilities, data, basis
    )
    diagonal = np.arange(information.shape[1])
    information[:, diagonal, diagonal] *= 1.0 + 1e-6
    information[:, diagonal, diagonal] += 1e-9
    beta = np.hstack([parameters.intercept[:, None], parameters.loadings])
    linear = gradient + np.einsum("jab,jb->ja", information, beta)
    moved = beta.copy()
    for j in range(len(beta)):
        begin = beta[j, 1:] != 0
        found = best_subset(
            linear[j], information[j], allowed[j, 1:] == 1, begin, penalty.strength
        )
        if not np.array_equal(found[1:] != 0, begin):
            moved[j] = found
    return MeasurementParameters(
        parameters.families, moved[:, 0], moved[:, 1:], parameters.dispersion
    )


def select_support(
    estimate: Estimate,
    data: WorkingData,
    basis: Basis,
    allowed: NDArray[np.uint8],
    penalty: Penalty,
    schedule: Schedule,
    *,
    n_threads: int = 1,
    observer: Observer | None = None,
) -> Estimate:
    """Return an estimate whose support was judged by the observed data.

    A step is kept only when, after EM has settled again, the penalised observed-data likelihood is
    higher; so the objective never gets worse.
    """
    if penalty.name is None:
        return estimate
    for _ in range(MAX_ROUNDS):
        proposal = _newton_step(estimate, data, basis, allowed, penalty)
        before = estimate.parameters.loadings != 0
        if np.array_equal(proposal.loadings != 0, before):
            break
        again = run_em(
            _feasible(proposal, estimate.parameters),
            estimate.probabilities,
            data,
            basis,
            allowed,
            penalty,
            schedule,
            n_threads=n_threads,
            observer=observer,
        )
        if again.objective <= estimate.objective:
            break
        estimate = replace(
            again,
            n_iter=estimate.n_iter + again.n_iter,
            trace=np.vstack([estimate.trace, again.trace]),
        )
    return estimate


def _feasible(
    proposal: MeasurementParameters, fallback: MeasurementParameters
) -> MeasurementParameters:
    """Return the proposal, with items kept as they were where it left the family's range."""
    intercept, loadings = proposal.intercept.copy(), proposal.loadings.copy()
    for family, items in proposal.groups():
        lowest = intercept[items] + np.minimum(loadings[items], 0.0).sum(axis=1)
        outside = items[lowest < family.lowest_predictor]
        intercept[outside] = fallback.intercept[outside]
        loadings[outside] = fallback.loadings[outside]
    return replace(proposal, intercept=intercept, loadings=loadings)
