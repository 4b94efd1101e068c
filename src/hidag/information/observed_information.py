"""The observed information with the latents summed out (Louis 1982), and the covariance from it.

It is the information of complete data minus the part lost because the latents are not observed:
``E[B | x] - Var(S | x)`` for each row, with S the complete-data score and B minus its derivative.
If there are too many joint states to list, exact scores are differentiated numerically.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.e_step import run_e_step
from hidag.em.m_step import dispersion_floor
from hidag.exceptions import Setting, SettingError
from hidag.information.free_parameters import (
    FreeParameters,
    RowChannels,
    iterate_scores,
    observed_responses,
    row_bases,
    row_scores,
)
from hidag.information.item_derivatives import (
    auxiliary_directions,
    boundary_directions,
    channels_of_response,
    complement,
    curvature_of,
    information_in_rows,
    response_auxiliary,
    shift_auxiliary,
)
from hidag.information.posterior_tables import TreeTables
from hidag.latent.laws import NetworkLaw
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]


def numerical_information(free: FreeParameters) -> Array:
    """Return the negative second derivatives of the log-likelihood by differences, shape (P, P)."""
    out, weights = np.empty((free.n_parameters,) * 2), free.data.row_weights

    def total_score(parameter: int, by: float) -> Array:
        total = np.zeros(free.n_parameters)
        for rows, scores in iterate_scores(with_moved(free, parameter, by)):
            total += weights[rows] @ scores
        return total

    step = CONFIG.derivatives.larger_step
    for p in range(free.n_parameters):
        out[p] = (total_score(p, -step) - total_score(p, step)) / (2 * step)
    return np.asarray(0.5 * (out + out.T))


def with_moved(free: FreeParameters, parameter: int, by: float) -> FreeParameters:
    """Return the free parameters of a fit with one of them changed, on the working scale."""
    channel = int(free.channel[parameter])
    if channel == len(free.channels):
        return _with_moved_law(free, parameter, by)
    one = free.channels[channel]
    r, place = one.response, int(np.flatnonzero(free.of_channel(channel) == parameter)[0])
    working = free.working
    if one.kind == "predictor":
        step = by * free.coefficient_maps[r][:, place]
        intercept, loadings = working.intercept.copy(), working.loadings.copy()
        intercept[r] += step[0]
        loadings[r] += step[1:]
        working = replace(working, intercept=intercept, loadings=loadings)
    else:
        working = with_moved_shape(working, r, one.place, by)
    eta = list(free.eta)
    eta[r] = working.predictors(free.tables.states(free.table_of(channel)))[r]
    updated = iter(channels_of_response(working, r, eta[r]))
    channels = [next(updated) if old.response == r else old for old in free.channels]
    return replace(free, working=working, eta=tuple(eta), channels=channels)


def with_moved_shape(
    parameters: MeasurementParameters, response: int, place: int, by: float
) -> MeasurementParameters:
    """Return parameters with the dispersion or one cutpoint of a response changed."""
    family = family_named(parameters.families[response])
    step = by * list(auxiliary_directions(family))[place]
    own = shift_auxiliary(family, response_auxiliary(parameters, response), step)
    dispersion, cutpoints = parameters.dispersion.copy(), parameters.cutpoints.copy()
    if family.n_cutpoints:
        cutpoints[response, : family.n_cutpoints] = own
    else:
        dispersion[response] = own
    return replace(parameters, dispersion=dispersion, cutpoints=cutpoints)


def _with_moved_law(free: FreeParameters, parameter: int, by: float) -> FreeParameters:
    """Return the free parameters of a fit with one log ratio of the law changed."""
    assert isinstance(free.tables, TreeTables)
    ends = free.n_of_items + np.cumsum([len(block.free) for block in free.blocks])
    b = int(np.searchsorted(ends, parameter, side="right"))
    block = free.blocks[b]
    p = block.moved(parameter - int(ends[b]) + len(block.free), by)
    tree = free.tables.tree
    tables = list(tree.law.tables)
    tables[block.latent] = tables[block.latent].copy()
    tables[block.latent][block.configuration] = p
    law = NetworkLaw(tree.law.space, tree.law.parents, tuple(tables))
    blocks = [replace(one, probabilities=p) if one is block else one for one in free.blocks]
    return replace(free, tables=replace(free.tables, tree=replace(tree, law=law)), blocks=blocks)


def _expected_statistics(free: FreeParameters) -> tuple[list[Array], list[Array], list[Array]]:
    """Return expected counts of states (S_t,), and counts (S_t,) and sums (D, S_t) by response."""
    data, responses = free.data, np.arange(free.data.n_items)
    starts = data.columns.starts
    if free.is_listed:
        features = free.working.terms.features(free.tables.states(0))
        statistics, _ = run_e_step(free.working, free.probabilities, data, features)
        counts = statistics.item_counts(responses, data.incomplete)
        sums = [statistics.sum_x[starts[r] : starts[r + 1]] for r in responses]
        return [statistics.count], list(counts), sums
    tables, weights = free.tables, data.row_weights
    states = [np.zeros(len(tables.shares(t))) for t in range(tables.n_tables)]
    counted = [np.zeros(len(own)) for own in free.eta]
    sums = [np.zeros((starts[r + 1] - starts[r], len(own))) for r, own in enumerate(free.eta)]
    for block in free.row_blocks():
        by = weights[block.rows]
        for total, posterior in zip(states, block.posteriors, strict=True):
            total += by @ posterior
        x = data.x[block.rows] * by[:, None]
        for r in responses:
            posterior = block.posteriors[tables.of_response[r]]
            seen = by if data.observed is None else by * data.observed[block.rows, r]
            counted[r] += seen @ posterior
            sums[r] += x[:, starts[r] : starts[r + 1]].T @ posterior
    return states, counted, sums


def complete_information(free: FreeParameters) -> tuple[Array, list[Array]]:
    """Return the information of complete data (P, P), and that on predictors in rows, (S_t,)."""
    states, counts, sums = _expected_statistics(free)
    out = np.zeros((free.n_parameters, free.n_parameters))
    weights = free.data.row_weights
    of_predictors = []
    place = 0
    for r in range(free.data.n_items):
        family = family_named(free.working.families[r])
        seen, cells = observed_responses(free, r)
        own = response_auxiliary(free.working, r)
        summary = np.stack([cells, weights[seen]])
        sizes = sums[r], counts[r], summary
        predictor, mixed, auxiliary = curvature_of(family, own, free.eta[r], *sizes)
        of_predictors.append(information_in_rows(family, own, predictor, counts[r]))
        size = free.coefficient_maps[r].shape[1]
        end = place + size + len(auxiliary)
        here, more = slice(place, place + size), slice(place + size, end)
        design = free.designs[free.channel[place]]
        out[here, here] = design.T @ (predictor[:, None] * design)
        out[more, here] = mixed @ design
        out[here, more] = out[more, here].T
        out[more, more] = auxiliary
        place = end
    for block in free.blocks:
        here = slice(place, place + len(block.free))
        out[here, here] = block.curvature(states[block.table])
        place += len(block.free)
    return out, of_predictors


def _lost_information(free: FreeParameters, scores: Array) -> Array:
    """Return the conditional variance (P, P) of the complete-data scores given the rows."""
    n_states, n_channels = len(free.probabilities), len(free.channels)
    work = free.data.n_samples * n_states * n_channels**2 + n_states * free.n_parameters**2
    if work > CONFIG.derivatives.max_work:
        raise SettingError(
            "too-much-work",
            "the observed information of {n_parameters} parameters over {n_states} joint states "
            "and {n_rows:,} rows takes too long",
            {"n_parameters": free.n_parameters, "n_rows": free.data.n_samples},
            advice="use {kind}, which is much faster",
            n_states=n_states,
            kind=Setting("kind", "scores"),
        )
    channels = RowChannels(free, 0, row_bases(free))
    weights = free.data.row_weights
    # The parameters of the law share one more channel, which is 1 in every row.
    moments = np.zeros((n_states, n_channels + 1, n_channels + 1))
    for block in free.row_blocks():
        rows, posterior = block.rows, block.posteriors[0]
        columns, seen, bases = channels.columns(rows), channels.seen(rows), channels.bases[rows]
        for s in range(n_states):
            inside = np.flatnonzero(posterior[:, s] > CONFIG.derivatives.smallest_posterior)
            value = bases[inside] - channels.falls[s]
            for d in range(len(columns)):
                value += columns[d][inside] * channels.slopes[d, s]
            value = np.hstack([value * seen[inside], np.ones((len(inside), 1))])
            counted = posterior[inside, s] * weights[rows][inside]
            moments[s] += value.T @ (counted[:, None] * value)
    out = -(scores.T @ (weights[:, None] * scores))
    own = free.channel
    for s in range(n_states):
        active = np.flatnonzero(free.design[s])
        at = free.design[s, active]
        inner = moments[s][np.ix_(own[active], own[active])]
        out[np.ix_(active, active)] += at[:, None] * inner * at
    return out


def observed_information(
    free: FreeParameters, scores: Array, complete: Array | None = None
) -> Array:
    """Return the negative second derivatives of the log-likelihood, shape (P, P)."""
    if not free.is_listed:
        return numerical_information(free)
    known = complete_information(free)[0] if complete is None else complete
    return known - _lost_information(free, scores)


@dataclass(frozen=True)
class Uncertainty:
    """The covariance of the free parameters, in the user's units."""

    covariance: Array  # (P, P), outside flat directions; meaningless for parameters in these
    size: Array  # (P,), root of the complete-data information on each parameter
    flat: Array  # (F, P), orthonormal in units of 1 / size
    boundary: Array  # (E, P), orthonormal; coefficients on the boundary are fixed in these
    distance: float  # of the fit from the nearest maximum of the likelihood, in standard errors

    @property
    def not_estimated(self) -> NDArray[np.bool_]:
        """Whether each parameter has a part in flat or boundary directions, shape (P,)."""
        return _has_part(self.flat, self.size, self.boundary)

    def error(self, slope: Array) -> float:
        """Return the standard error of a linear combination (P,); NaN if it is not estimated."""
        config = CONFIG.derivatives
        affected = slope[self.boundary.any(axis=0)]
        inside = float(((self.boundary @ slope) ** 2).sum())
        length = float(((slope / self.size) ** 2).sum())
        if (
            inside > config.boundary_share * float(affected @ affected)
            or length == 0
            or float(((self.flat @ slope) ** 2).sum()) > config.flat_share * length
        ):
            return float("nan")
        return float(np.sqrt(max(float(slope @ self.covariance @ slope), 0.0)))


def estimate_uncertainty(free: FreeParameters, kind: str) -> Uncertainty:
    """Return the covariance of the free parameters; ``kind`` as in `hidag.standard_errors`."""
    scores = row_scores(free)
    weights = free.data.row_weights
    complete, of_predictors = complete_information(free)
    if kind == "scores":
        information = scores.T @ (weights[:, None] * scores)
    else:
        information = observed_information(free, scores, complete)
    boundary, basis = _split_boundary(free, of_predictors)
    size = _sizes(complete)
    if basis is None:
        inverse, flat = _invert(information, size)
    else:
        inverse, flat = _invert(basis.T @ information @ basis, _sizes(basis.T @ complete @ basis))
        inverse, flat = basis @ inverse @ basis.T, flat @ basis.T
    gradient = np.where(_has_part(flat, size, boundary), 0.0, weights @ scores)
    distance = float(np.sqrt(max(float(gradient @ inverse @ gradient), 0.0)))
    if kind == "sandwich":
        weighted = weights[:, None] * scores
        inverse = inverse @ (weighted.T @ weighted) @ inverse
    scale = np.ones(free.n_parameters)
    for c, one in enumerate(free.channels):
        if one.kind == "predictor":
            scale[free.of_channel(c)] = free.data.scale[one.response]
    covariance = inverse * (scale[:, None] * scale)
    return Uncertainty(covariance, size / scale, flat * scale, boundary, distance)


def _split_boundary(free: FreeParameters, information: list[Array]) -> tuple[Array, Array | None]:
    """Return boundary directions (E, P), and a basis of all others (P, P - E); None for all.

    Dispersions at their bound are among them. Cutpoints around an empty category move together.
    """
    found: list[Array] = []
    others: list[Array] = []
    tied = False
    identity = np.eye(free.n_parameters)
    for c, one in enumerate(free.channels):
        own = free.of_channel(c)
        if one.kind == "predictor":
            directions = boundary_directions(free.designs[c], information[one.response])
            if len(directions):
                found.append(directions @ identity[own])
                others.append(complement(directions).T @ identity[own])
                continue
        elif one.kind == "dispersion" and _at_bound(free, one.response):
            found.append(identity[own])
            continue
        elif one.kind == "cutpoint":
            ties = _ties(free.working, one.response)
            if len(ties):
                # All cutpoints of the response are handled with the first.
                if one.place == 0:
                    others.append(complement(ties).T @ identity[own[0] :][: ties.shape[1]])
                tied = True
                continue
        others.append(identity[own])
    boundary = np.vstack(found) if found else np.zeros((0, free.n_parameters))
    if not found and not tied:
        return boundary, None
    return boundary, np.vstack([*others, identity[free.n_of_items :]]).T


def _ties(parameters: MeasurementParameters, response: int) -> Array:
    """Return directions in which the cutpoints of a response cannot move, shape (T, C)."""
    family = family_named(parameters.families[response])
    steps = np.eye(family.n_cutpoints)
    steps[1:] -= steps[:-1].copy()
    gaps = steps @ parameters.cutpoints[response, : family.n_cutpoints]
    return np.asarray(steps[gaps <= family.smallest_gap])


def _at_bound(free: FreeParameters, response: int) -> bool:
    """Return whether the dispersion of a response is at a bound of its estimation."""
    family = family_named(free.working.families[response])
    column = free.data.columns.starts[response]
    low = float(dispersion_floor(family, free.data.variance[column : column + 1])[0])
    high, share = family.dispersion_bounds[1], CONFIG.m_step.boundary_share
    value = float(free.working.dispersion[response])
    return value <= low * (1.0 + share) or value >= high * (1.0 - share)


def _has_part(flat: Array, size: Array, boundary: Array) -> NDArray[np.bool_]:
    """Return which parameters have a part in flat or boundary directions, shape (P,)."""
    share = ((flat * size) ** 2).sum(axis=0)
    config = CONFIG.derivatives
    on_boundary = (boundary**2).sum(axis=0) > config.boundary_share
    return np.asarray((share > config.flat_share) | on_boundary)


def _invert(information: Array, size: Array) -> tuple[Array, Array]:
    """Return the inverse of an information (P, P) outside its flat directions, and these (F, P)."""
    values, vectors = np.linalg.eigh(information / (size[:, None] * size))
    good = values > CONFIG.derivatives.flat
    axes = vectors[:, good]
    inverse = (axes / values[good]) @ axes.T / (size[:, None] * size)
    return inverse, (vectors[:, ~good] / size[:, None]).T


def _sizes(complete: Array) -> Array:
    """Return the square root of the complete-data information on each parameter, 1 if zero."""
    size = np.sqrt(np.maximum(np.diag(complete), 0.0))
    return np.where(size <= 1e-150, 1.0, size)
