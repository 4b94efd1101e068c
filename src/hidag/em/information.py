"""Observed information of the items, information ratio, and evidence of the loadings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.e_step import Statistics, run_e_step
from hidag.em.m_step import Basis, coefficient_scales
from hidag.em.posterior import PosteriorBlocks
from hidag.latent.laws import LatentLaw
from hidag.measurement.parameters import MeasurementParameters, columns_of

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class DerivativeMeans:
    """Posterior means of derivatives (functions of the state) times terms.

    Those linear in the terms (Gaussian items, one latent) need means of products of two terms only.
    """

    # (S, Q): other derivatives times the design, and products of pairs of its columns
    products: NDArray[np.float32]
    pairs: Indices  # (P, P): column of ``products`` for each pair of columns of the design
    # derivatives that are linear in the terms, and those that are not
    linear: Indices
    other: Indices
    coefficients: Array  # (P, number of linear derivatives)

    @classmethod
    def of(cls, derivatives: Array, basis: Basis, order: NDArray[np.int64]) -> DerivativeMeans:
        """Return them for derivatives (m, S); posteriors have states in ``order``."""
        design = basis.design
        size = design.shape[1]
        is_linear = np.zeros(len(derivatives), dtype=bool)
        coefficients: Array = np.zeros((size, len(derivatives)))
        if not basis.collinear:
            coefficients = np.asarray(np.linalg.solve(design.T @ design, design.T @ derivatives.T))
            error = np.abs(derivatives - (design @ coefficients).T).max(axis=1)
            largest = np.abs(derivatives).max(axis=1)
            is_linear = error <= CONFIG.information.linear_tolerance * largest
        if is_linear.sum() * size <= basis.products.shape[1]:
            is_linear[:] = False
        other = np.flatnonzero(~is_linear)
        columns = (derivatives[other, None, :] * design.T).reshape(-1, len(design)).T
        if is_linear.any():
            columns = np.hstack([columns, basis.products])
        left, right = np.triu_indices(size)
        pairs = np.empty((size, size), dtype=np.intp)
        pairs[left, right] = pairs[right, left] = len(other) * size + np.arange(len(left))
        # Second moments need two digits; single precision has seven.
        products = np.ascontiguousarray(columns[order], dtype=np.float32)
        return cls(products, pairs, np.flatnonzero(is_linear), other, coefficients[:, is_linear])

    def under(self, posteriors: PosteriorBlocks) -> Iterator[tuple[slice, Array]]:
        """Yield row ranges and means of each derivative times each term, shape (n, m, P)."""
        if posteriors.all_additive and len(self.other) == 0:
            for rows, moments in posteriors.second_moments():
                size = len(self.coefficients)
                by_term = moments.reshape(-1, size) @ self.coefficients
                yield rows, by_term.reshape(len(moments), size, -1).transpose(0, 2, 1)
            return
        for rows, posterior in posteriors:
            yield rows, self._of_block(posterior)

    def _of_block(self, posterior: Array) -> Array:
        """Return means under posteriors, shape (n, S)."""
        floored = np.maximum(posterior, CONFIG.information.min_probability)
        means = floored.astype(np.float32) @ self.products
        n_rows, size = len(means), len(self.pairs)
        out = np.empty((n_rows, len(self.linear) + len(self.other), size))
        n_own = len(self.other) * size
        out[:, self.other] = means[:, :n_own].reshape(n_rows, -1, size)
        if len(self.linear):
            second = means[:, self.pairs].reshape(-1, size) @ self.coefficients
            out[:, self.linear] = second.reshape(n_rows, size, -1).transpose(0, 2, 1)
        return out


def observed_information(
    parameters: MeasurementParameters,
    probabilities: Array,
    statistics: Statistics,
    data: WorkingData,
    basis: Basis,
) -> tuple[Array, Array]:
    """Return the observed-data score (J, P) and empirical information (J, P, P) of each item.

    The score of a coefficient is the sum of ``E[phi_a(z) (x theta'(z) - A'(z)) | x_i]`` over rows
    and columns; the information is N times an average over the first rows.
    """
    n_counted, n_items, columns = data.n_counted, data.n_items, data.columns
    derivatives = state_derivatives(parameters, basis.design)
    gradient = _observed_scores(derivatives, statistics, data, basis)
    data = data.first_rows(CONFIG.information.n_rows)
    size = basis.design.shape[1]
    features = np.ascontiguousarray(basis.features)
    posteriors = PosteriorBlocks.of(parameters, probabilities, features, data)
    means = DerivativeMeans.of(derivatives, basis, posteriors.order)
    information = np.zeros((n_items, size, size))
    for rows, both in means.under(posteriors):
        of_columns, of_items = both[:, : columns.n_columns], both[:, columns.n_columns :]
        score = columns.add_up(data.x[rows][:, :, None] * of_columns, axis=1) - of_items
        if data.observed is not None:
            score *= data.observed[rows][:, :, None]
        by_item = np.ascontiguousarray(score.transpose(1, 0, 2))
        weighted = by_item
        if data.weights is not None:
            weighted = by_item * data.weights[rows][None, :, None]
        information += by_item.transpose(0, 2, 1) @ weighted
    return gradient, information * (n_counted / data.n_counted)


def state_derivatives(parameters: MeasurementParameters, design: Array) -> Array:
    """Return derivatives by state: ``theta'`` of each column, then ``A'`` of items, (D + J, S).

    ``design`` (S, 1 + T) has a one and the terms' values.
    """
    columns = columns_of(parameters.families)
    out = np.empty((columns.n_columns + parameters.n_items, len(design)))
    dtheta, dpartition = out[: columns.n_columns], out[columns.n_columns :]
    for family, items in parameters.groups():
        eta = parameters.coefficients[items] @ design.T
        found = family.slopes(eta, parameters.auxiliary(family, items)[:, None])
        dtheta[columns.of(family, items)], dpartition[items] = found[0], found[1]
    return out


def _observed_scores(
    derivatives: Array, statistics: Statistics, data: WorkingData, basis: Basis
) -> Array:
    """Return the scores of the observed data for all coefficients, (J, P), from all rows."""
    columns = data.columns
    dtheta, dpartition = derivatives[: columns.n_columns], derivatives[columns.n_columns :]
    counts = statistics.item_counts(np.arange(data.n_items), data.incomplete)
    summed = columns.add_up(statistics.sum_x * dtheta)
    return np.asarray((summed - counts * dpartition) @ basis.design)


def _join_blocks(blocks: Iterator[tuple[slice, Array]]) -> Iterator[tuple[slice, Array]]:
    """Yield consecutive blocks of rows together, while they have few cells."""
    waiting: list[Array] = []
    start = 0
    for rows, means in blocks:
        waiting.append(means)
        if (rows.stop - start) * means.shape[1] >= CONFIG.e_step.listed_block_cells:
            yield slice(start, rows.stop), np.concatenate(waiting)
            waiting, start = [], rows.stop
    if waiting:
        yield slice(start, start + sum(map(len, waiting))), np.concatenate(waiting)


def score_tests(
    parameters: MeasurementParameters,
    probabilities: Array,
    data: WorkingData,
    basis: Basis,
    tested: NDArray[np.bool_],
    *,
    n_threads: int = 1,
) -> Array:
    """Return absolute score statistics of zero loadings ``tested`` (J, T), and 0 elsewhere.

    Each is efficient with respect to the item's nonzero coefficients; variances are N times an
    average over the first rows. Steps have a limited length: without it, levels in which an item is
    certain, so that scores hardly vary, would be significant.
    """
    z, design, columns = np.zeros(tested.shape), basis.design, data.columns
    items = np.flatnonzero(tested.any(axis=1))
    if len(items) == 0:
        return z
    derivatives = state_derivatives(parameters, basis.design)
    present = np.hstack([np.ones((len(tested), 1), dtype=bool), parameters.loadings != 0])
    features = np.ascontiguousarray(basis.features)
    expected, _ = run_e_step(parameters, probabilities, data, features, n_threads=n_threads)
    gradients = _observed_scores(derivatives, expected, data, basis)
    # The item's own coefficients, then those that are tested.
    own = [
        np.concatenate([np.flatnonzero(present[j]), 1 + np.flatnonzero(tested[j])]) for j in items
    ]
    cells = [basis.distinct_rows(mine)[1] for mine in own]
    # Items with the same latents have the same cells: their posteriors are computed once.
    sets = {place.tobytes(): place for place in cells}
    indicators = [np.eye(1 + place.max())[place] for place in sets.values()]
    ends = np.cumsum([part.shape[1] for part in indicators])[:-1]
    sums = [np.zeros((len(mine), len(mine))) for mine in own]
    n_counted, data = data.n_counted, data.first_rows(CONFIG.information.n_rows_for_tests)
    weights = data.row_weights
    posteriors = PosteriorBlocks.of(parameters, probabilities, features, data)
    terms_of = []
    for j, mine, place in zip(items, own, cells, strict=True):
        _, first = np.unique(place, return_index=True)
        which = np.append(np.flatnonzero(columns.item == j), columns.n_columns + j)
        terms_of.append((derivatives[np.ix_(which, first)], design[np.ix_(first, mine)]))
    for rows, means in _join_blocks(posteriors.means(np.hstack(indicators))):
        shares = dict(zip(sets, np.split(means, ends, axis=1), strict=True))
        x = np.hstack([data.x[rows], np.full((len(means), 1), -1.0)])
        for j, place, total, (by_cell, features) in zip(items, cells, sums, terms_of, strict=True):
            mine = np.append(np.flatnonzero(columns.item == j), columns.n_columns)
            score = (shares[place.tobytes()] * (x[:, mine] @ by_cell)) @ features
            if data.observed is not None:
                score *= data.observed[rows][:, [j]]
            total += (score.T * weights[rows]) @ score
    reach = CONFIG.support.max_step * coefficient_scales(data)
    for j, mine, total in zip(items, own, sums, strict=True):
        n, gradient = int(present[j].sum()), gradients[j, mine]
        information = total * (n_counted / data.n_counted)
        block = information[:n, :n] + CONFIG.support.absolute_ridge * np.eye(n)
        block[np.diag_indices(n)] *= 1.0 + CONFIG.support.relative_ridge
        slopes = np.linalg.solve(block, information[:n, n:])
        whole = np.diag(information)[n:]
        variance = whole - (information[:n, n:] * slopes).sum(axis=0)
        # Where some combinations of levels are impossible, present loadings imply others.
        implied = variance < CONFIG.interactions.min_own_variance * whole
        # EM has not quite reached the maximum over the item's own coefficients.
        left = np.where(implied, 0.0, np.abs(gradient[n:] - gradient[:n] @ slopes))
        variance = np.maximum(variance, CONFIG.support.absolute_ridge)
        step = np.minimum(left / variance, reach[j])
        z[j, tested[j]] = np.sqrt(2.0 * step * left - step**2 * variance)
    return z


def information_ratio(
    parameters: MeasurementParameters, law: LatentLaw, data: WorkingData
) -> float:
    """Return the share of the latents' pairwise information that the items carry, from 0 to 1.

    For a level of each of two latents, ``s = (1{z_a >= u} - p)(1{z_b >= v} - q)`` has the ratio
    ``Var(E[s | x]) / Var(s)``: harmonic means over levels, as noise is its inverse, then the mean.
    Linear steps have their score in place of the indicators.
    """
    data = data.first_rows(CONFIG.information.n_rows_for_ratio)
    main = parameters.terms.main_only
    wide = law.space.widened(parameters.terms.levels)
    states = wide.states()
    steps = main.features(states)
    probabilities = wide.with_nuisances(np.asarray(law.probabilities))
    left, right = np.triu_indices(int((main.main_latents < law.space.n_latents).sum()), 1)
    apart = main.main_latents[left] != main.main_latents[right]
    left, right = left[apart], right[apart]
    if len(left) == 0:
        return 1.0
    mean = probabilities @ steps
    centred = steps - mean
    products = centred[:, left] * centred[:, right]
    total, squares = np.zeros(len(left)), np.zeros(len(left))
    features = parameters.terms.features(states)
    posteriors = PosteriorBlocks.of(parameters, probabilities, features, data)
    weights = data.row_weights
    for rows, expected in _pair_means(posteriors, products, mean, left, right):
        total += weights[rows] @ expected
        squares += weights[rows] @ expected**2
    explained = squares / data.n_counted - (total / data.n_counted) ** 2
    variance = probabilities @ products**2 - (probabilities @ products) ** 2
    share = np.where(variance > 1e-12, explained / np.maximum(variance, 1e-12), 1.0)
    pair = main.main_latents[left] * law.space.n_latents + main.main_latents[right]
    return mean_of_pairs(np.clip(share, 0.0, 1.0), pair)


def _pair_means(
    posteriors: PosteriorBlocks, products: Array, mean: Array, left: Indices, right: Indices
) -> Iterator[tuple[slice, Array]]:
    """Yield row ranges and posterior means of products of centred terms by state, (n, pairs)."""
    if not posteriors.all_additive:
        yield from posteriors.means(products)
        return
    for rows, moments in posteriors.second_moments():
        single = moments[:, 0, 1:] - mean
        both = moments[:, 1 + left, 1 + right]
        centre = mean[left] * single[:, right] + mean[right] * single[:, left]
        yield rows, both - centre - mean[left] * mean[right]


def mean_of_pairs(shares: Array, pairs: NDArray[np.integer]) -> float:
    """Return the mean over pairs (n,) of latents of the harmonic means of their shares (n,)."""
    _, place = np.unique(pairs, return_inverse=True)
    number = np.bincount(place)
    smallest = CONFIG.information.min_pair_ratio
    harmonic = number / np.bincount(place, 1.0 / np.maximum(shares, smallest))
    # For a pair of binary latents the mean is the share itself, to the last bit.
    single = number == 1
    harmonic[single] = np.bincount(place, shares)[single]
    return float(harmonic.mean())


def effective_sample_ratio(ratio: float, n_steps: int) -> float:
    """Return the effective rows per row for expected counts that a graph is learned from.

    After ``n_steps`` EM steps the counts contain a share ``a = 1 - (1 - ratio)^n_steps`` of a new
    dependence; dividing by ``a^2`` gives an edge the weight of the observed-data score test.
    """
    contained = 1.0 - (1.0 - min(max(ratio, CONFIG.information.min_ratio), 1.0)) ** n_steps
    return float(min(ratio / contained**2, CONFIG.information.max_effective_ratio))


def log_evidence(
    parameters: MeasurementParameters,
    information: Array,
    scales: Array,
    optional: NDArray[np.bool_],
) -> float:
    """Return the log evidence of the loadings and their support, relative to the likelihood.

    A Laplace approximation with an empirical Bayes prior, observed information (J, 1 + T, 1 + T),
    typical coefficients ``scales`` (J,) and the loadings ``optional`` (J, T) that data select.
    """
    loadings = parameters.loadings / scales[:, None]
    sign = np.where(loadings.sum(axis=0) < 0, -1.0, 1.0)
    values, blocks = [], []
    for j in range(len(loadings)):
        inside = np.flatnonzero(loadings[j])
        if len(inside):
            own = sign[inside]
            values.append(loadings[j, inside] * own)
            block = _marginal_information(information[j], inside)
            blocks.append(block * scales[j] ** 2 * np.outer(own, own))
    # The steps of a latent are one entry of Q.
    entries = np.unique(parameters.terms.main_latents, return_index=True)[1]
    optional = optional[:, entries]
    n_chosen, n_optional = int((optional & parameters.support).sum()), int(optional.sum())
    # Uniform prior of the number of loadings, and of the supports with this number.
    choice = float(betaln(n_chosen + 1.0, n_optional - n_chosen + 1.0))
    if not values:
        return choice
    prior = fit_loading_prior(values, blocks)
    return choice + sum(_log_marginal(*own, *prior) for own in zip(values, blocks, strict=True))


def fit_loading_prior(values: list[Array], information: list[Array]) -> tuple[float, float]:
    """Return the empirical Bayes prior of loadings (n,) with information (n, n), item by item."""
    settings = CONFIG.information
    found = np.concatenate(values)
    errors = np.concatenate([np.diag(np.linalg.inv(block)) for block in information])
    errors = np.minimum(errors, settings.max_sampling_variance)
    variance = max(float(found.var() - errors.mean()), settings.prior_variance / 2.0)
    mean = float(found.mean())
    for _ in range(settings.prior_iterations):
        weights = 1.0 / (errors + variance)
        mean = float((weights * found).sum() / weights.sum())
        expected = (found * variance + mean * errors) * weights
        total = float(((expected - mean) ** 2 + variance * errors * weights).sum())
        prior = settings.prior_weight * settings.prior_variance
        variance = (prior + total) / (settings.prior_weight + len(found))
    return mean, variance


def _marginal_information(information: Array, inside: Indices) -> Array:
    """Return the information about some loadings with the intercept unknown."""
    ridge = CONFIG.information.ridge
    rows = inside + 1
    block = information[np.ix_(rows, rows)]
    cross = information[rows, 0]
    block = block - np.outer(cross, cross) / max(float(information[0, 0]), ridge)
    return np.asarray(block + ridge * np.eye(len(rows)))


def _log_marginal(value: Array, information: Array, mean: float, variance: float) -> float:
    """Return the log of the likelihood averaged over the prior, relative to the maximum."""
    spread = np.eye(len(value)) + variance * information
    off = (value - mean) / np.sqrt(variance)
    _, log_determinant = np.linalg.slogdet(spread)
    return float(-0.5 * log_determinant - 0.5 * (off @ off - off @ np.linalg.solve(spread, off)))
