"""Support selection: which loadings are zero, decided by the observed-data likelihood.

With imputed latents a false loading supports itself, and a missing one looks weaker than it is.
Here scores have the latents summed out row by row, their second moments are the empirical Fisher
information, and a stepwise selection on this quadratic model adds and drops loadings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.em import Estimate, LawStep, Problem, append_run, normalise_counts, run_em
from hidag.em.information import observed_information
from hidag.em.m_step import coefficient_scales, is_penalised, penalty_scales, total_penalty
from hidag.kernels.coordinate_descent import FREE, NONNEGATIVE, TIED, ZERO
from hidag.measurement.penalties import Penalty
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]
Support = NDArray[np.bool_]
#: From a support and the penalised coefficients, both (P - 1,), to the neighbouring supports.
Moves = Callable[[Support, Support], Iterator[Support]]


def group_moves(groups: NDArray[np.integer]) -> Moves:
    """Return the moves that add or drop all coefficients of one group, given by number."""
    numbers = np.asarray(groups)

    def moves(support: Support, penalised: Support) -> Iterator[Support]:
        for group in np.unique(numbers[penalised]):
            members = (numbers == group) & penalised
            other = support.copy()
            other[members] = not support[members].any()
            yield other

    return moves


def hierarchical_moves(terms: Terms) -> Moves:
    """Return the moves that add or drop a latent's terms together, or a single interaction.

    An interaction is added only if all its latents are in the model, and dropped with any of them.
    """
    if not terms.interactions:
        return group_moves(terms.main_latents)
    is_main = np.arange(terms.n_terms) < terms.n_main
    of_latent = terms.involved

    def moves(support: Support, penalised: Support) -> Iterator[Support]:
        inside: Support = of_latent[support].any(axis=0)  # type: ignore[assignment]
        for k in range(terms.n_latents):
            own = of_latent[:, k] & penalised
            other = support.copy()
            if support[own].any():
                other[own] = False
            elif (own & is_main).any():
                other[own & is_main] = True
            else:
                continue
            yield other
        for t in np.flatnonzero(penalised & ~is_main):
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


def select_subset(
    linear: Array,
    curvature: Array,
    allowed: NDArray[np.uint8],
    start: Support,
    cost: float,
    moves: Moves,
) -> Array:
    """Return coefficients that maximise ``h'b - b'Gb/2 - cost * (number of loadings)``.

    Stepwise from the support ``start``, with all coefficients re-estimated for each move. h is
    ``linear`` (P,), G is ``curvature`` (P, P); position 0 is the intercept, which has no cost.
    Loadings that ``allowed`` (P - 1,) declares FREE are never dropped.
    """
    penalised = is_penalised(allowed)
    nonnegative = np.concatenate([[False], allowed == NONNEGATIVE])

    def evaluate(supports: list[Support]) -> tuple[list[tuple[int, float]], Array]:
        """Return the value of each support, and its coefficients, shape (n, P)."""
        inside = np.array(supports)
        found = _solve_supports(linear, curvature, inside)
        gains = 0.5 * (found @ linear) - cost * (inside & penalised).sum(axis=1)
        # A support that would need a negative loading ranks below all others.
        negative = (found[:, nonnegative] < 0).sum(axis=1)
        return list(zip((-negative).tolist(), gains.tolist(), strict=True)), found

    support = (start & (allowed != ZERO)) | (allowed == FREE)
    values, found = evaluate([support])
    value, best = values[0], found[0]
    for _ in range(2 * len(support)):
        others = list(moves(support, penalised))
        if not others:
            break
        values, found = evaluate(others)
        top = max(range(len(others)), key=values.__getitem__)
        if values[top] <= (value[0], value[1] + 1e-9):
            break
        value, best, support = values[top], found[top], others[top]
    return np.asarray(np.where(nonnegative, np.maximum(best, 0.0), best))


def _solve_supports(linear: Array, curvature: Array, supports: Support) -> Array:
    """Return maximisers for each support, (n, P), by one padded solve; zero outside it."""
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


def loading_z_scores(beta: Array, gradient: Array, information: Array) -> Array:
    """Return |z| of loadings, (J, P - 1): Wald for nonzero ones, score statistics for zero ones."""
    n_items, size = beta.shape
    conditional = np.empty((n_items, size))
    for j in range(n_items):
        inside = np.concatenate([[True], beta[j, 1:] != 0])
        inverse = np.linalg.inv(information[j][np.ix_(inside, inside)])
        cross = information[j][np.ix_(inside, ~inside)]
        conditional[j, inside] = 1.0 / np.diag(inverse)
        explained = (cross * (inverse @ cross)).sum(axis=0)
        conditional[j, ~inside] = np.diag(information[j])[~inside] - explained
    root = np.sqrt(np.maximum(conditional, 1e-12))
    z = np.where(beta != 0, np.abs(beta) * root, np.abs(gradient) / root)
    return np.asarray(z[:, 1:])


def adapt_penalty(z: Array, included: Support, penalty: Penalty, n_samples: float) -> Penalty:
    """Return the penalty with the strength at which a loading is as likely true as false.

    The density of |z| of false loadings (standard normal) and a kernel estimate of that of the
    included ones, weighted by their numbers, intersect at z*. The strength is z*^2 / 2, between
    log(n)/2 (BIC's; n times T gives EBIC's) and four times the log of the number of terms more.
    """
    n_in = int(included.sum())
    if n_in < CONFIG.support.min_loadings:
        return penalty
    least = 0.5 * np.log(n_samples)
    most = least + CONFIG.support.log_terms_factor * np.log(max(2, z.shape[1]))
    grid = np.linspace(np.sqrt(2.0 * least), np.sqrt(2.0 * most), CONFIG.support.n_thresholds)
    kernels = np.exp(-0.5 * (grid[:, None] - z[included][None, :]) ** 2)
    # Without the nearest loading: a single weak one would support itself.
    density = kernels.sum(axis=1) - kernels.max(axis=1)
    noise = 2.0 * (z.size - n_in) * np.exp(-0.5 * grid**2)
    likely_true = np.flatnonzero(density > noise)
    threshold = grid[likely_true[0]] if len(likely_true) else grid[-1]
    return replace(penalty, strength=float(0.5 * threshold**2))


def _derivatives(estimate: Estimate, problem: Problem) -> tuple[Array, Array]:
    """Return observed-data scores (J, P) and the empirical information (J, P, P), invertible."""
    point = estimate.parameters, estimate.probabilities, estimate.statistics
    gradient, information = observed_information(*point, problem.data, problem.basis)
    diagonal = np.arange(information.shape[1])
    information[:, diagonal, diagonal] *= 1.0 + CONFIG.support.relative_ridge
    information[:, diagonal, diagonal] += CONFIG.support.absolute_ridge
    return gradient, information


def _hold(linear: Array, information: Array, beta: Array, held: Support) -> tuple[Array, Array]:
    """Return quadratic models (J, P), (J, P, P) in which held coefficients keep their values."""
    fixed = np.where(held, beta, 0.0)
    linear = np.where(held, beta, linear - np.einsum("jab,jb->ja", information, fixed))
    apart = ~held[:, :, None] & ~held[:, None, :]
    return linear, np.where(apart, information, 0.0) + held[:, :, None] * np.eye(held.shape[1])


def _propose(
    estimate: Estimate, derivatives: tuple[Array, Array], problem: Problem, scale: Array
) -> Array:
    """Return coefficients (J, P) after a step with support selection on the quadratic model.

    Thresholds of a latent enter and leave together, with their interactions. Items whose model
    stays the same keep their coefficients, and so do those that would leave their family's range.
    """
    parameters = estimate.parameters
    terms = parameters.terms
    moves = hierarchical_moves(terms)
    groups = np.concatenate([terms.main_latents, np.full(len(terms.interactions), -1)])
    beta = parameters.coefficients
    gradient, information = derivatives
    linear = gradient + np.einsum("jab,jb->ja", information, beta)
    out = beta.copy()
    if (tied := problem.allowed == TIED).any():
        linear, information = _hold(linear, information, beta, tied)
    for j in range(len(beta)):
        start = beta[j, 1:] != 0
        whole = start | np.isin(groups, terms.main_latents[start[: terms.n_main]])
        own, strength = problem.allowed[j, 1:], problem.penalty.strength
        found = select_subset(linear[j], information[j], own, whole, strength, moves)
        if not same_model(found[1:] != 0, start, terms):
            reach = CONFIG.support.max_step * scale[j]
            out[j] = np.where(found != 0, np.clip(found, beta[j] - reach, beta[j] + reach), 0.0)
    inside = replace(parameters, intercept=out[:, 0], loadings=out[:, 1:]).in_range()
    return np.where(inside[:, None], out, beta)


def select_support(
    problem: Problem,
    estimate: Estimate,
    *,
    adapt: bool = True,
    law_step: LawStep = normalise_counts,
) -> tuple[Estimate, Penalty]:
    """Return an estimate with its support selected by the observed data, and the penalty used.

    A proposed support is accepted only if EM from it reaches a higher objective. The threshold of
    the penalty is narrowed for items with little noise: their false loadings would cost too little.
    With ``adapt`` the strength of the penalty is first learned from the table.
    """
    penalty, data = problem.penalty, problem.data
    if penalty.name is None:
        return estimate, penalty
    derivatives = _derivatives(estimate, problem)
    if adapt:
        beta = estimate.parameters.coefficients
        z = loading_z_scores(beta, *derivatives)
        penalty = adapt_penalty(z, beta[:, 1:] != 0, penalty, data.n_counted)
    scale = coefficient_scales(data)
    data = data.with_estimated_noise(derivatives[1][:, 0, 0], scale)
    problem = replace(problem, data=data, penalty=penalty)
    cost = total_penalty(estimate.parameters, penalty, penalty_scales(data), problem.allowed)
    estimate = replace(estimate, objective=estimate.log_likelihood - cost)
    for _ in range(CONFIG.support.max_rounds):
        old = estimate.parameters
        beta = _propose(estimate, derivatives, problem, scale)
        pairs = zip(beta[:, 1:] != 0, old.loadings != 0, strict=True)
        if all(same_model(new, before, old.terms) for new, before in pairs):
            break
        proposal = replace(old, intercept=beta[:, 0], loadings=beta[:, 1:])
        found = run_em(problem, proposal, estimate.probabilities, law_step=law_step)
        if found.objective <= estimate.objective:
            break
        estimate = append_run(estimate, found)
        derivatives = _derivatives(estimate, problem)
    return estimate, penalty
