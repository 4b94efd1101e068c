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

from hidag.estimate.item_information import observed_information
from hidag.estimate.loading_costs import coefficient_scales, penalty_of, penalty_scales
from hidag.estimate.loop import Estimate, LawStep, Observer, Schedule, any_law, continued, run_em
from hidag.estimate.maximise import Basis
from hidag.estimate.noise_shares import noise_told_by
from hidag.estimate.subsets import best_subset, moves_of, same_model
from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters, Penalty

Array = NDArray[np.float64]

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
    estimate: Estimate,
    data: WorkingData,
    basis: Basis,
    allowed: NDArray[np.uint8],
    penalty: Penalty,
    schedule: Schedule,
    *,
    adapt: bool = True,
    law_step: LawStep = any_law,
    n_threads: int = 1,
    observer: Observer | None = None,
) -> tuple[Estimate, Penalty]:
    """Return an estimate whose support was judged by the observed data, and the penalty used.

    With ``adapt`` the penalty's strength is first learned from the table. A step is kept only when,
    after EM has settled again, the penalised observed-data likelihood is higher; so under that
    penalty the objective never gets worse. What the estimate says of items with little noise makes
    the penalty's threshold narrower, else false loadings of theirs would cost next to nothing.
    """
    if penalty.name is None:
        return estimate, penalty
    judged = _judge(estimate, data, basis)
    if adapt:
        penalty = adapt_penalty(judged, data.n_counted, penalty)
    scale = coefficient_scales(data)
    data = replace(data, told_noise=noise_told_by(judged[2][:, 0, 0], scale, data))
    cost = penalty_of(estimate.parameters, penalty, penalty_scales(data), allowed)
    estimate = replace(estimate, objective=estimate.log_likelihood - cost)
    for _ in range(MAX_ROUNDS):
        proposal = _propose(estimate.parameters, judged, allowed, penalty, scale)
        pairs = zip(proposal.loadings != 0, estimate.parameters.loadings != 0, strict=True)
        if all(same_model(new, old, proposal.terms) for new, old in pairs):
            break
        again = run_em(
            proposal,
            estimate.probabilities,
            data,
            basis,
            allowed,
            penalty,
            schedule,
            law_step=law_step,
            n_threads=n_threads,
            observer=observer,
        )
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
