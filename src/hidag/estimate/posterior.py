"""Latents given responses: marginals, most probable states, log densities of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.exact import StateScores, block_rows, iterate_posteriors
from hidag.estimate.working import WorkingData
from hidag.latent import LatentLaw
from hidag.measurement import MeasurementParameters, Terms, family_named

Array = NDArray[np.float64]

#: However little items say, a row of the table never counts for more rows than this.
MOST_ROWS_WORTH = 4.0
#: Averages over rows that need no more than two digits are taken from this many.
ROWS_FOR_AVERAGES = 2000
#: A mean over all pairs of latents needs fewer.
ROWS_FOR_RATIO = 1000


def _blocks(
    parameters: MeasurementParameters, law: LatentLaw, values: Array
) -> Iterator[tuple[slice, Array, Array]]:
    """Yield row ranges, posteriors (rows, S) and log densities without their base (rows,)."""
    features = parameters.terms.features(law.space.states())
    probabilities = np.asarray(law.probabilities)
    # Working copies are made for a few blocks at a time: memory stays that of the table.
    step = 64 * block_rows(law.space.n_states)
    for start in range(0, len(values), step):
        data = WorkingData.around(parameters, values[start : start + step])
        working = data.to_working(parameters)
        scores = StateScores.of(working, probabilities, features, data.gappy)
        for rows, posterior, marginal in iterate_posteriors(scores, data):
            yield slice(start + rows.start, start + rows.stop), posterior, marginal


def posterior_marginals(parameters: MeasurementParameters, law: LatentLaw, values: Array) -> Array:
    """Return the probability of each level above 0 given each row, shape (N, F).

    Latent by latent, levels ascending: for binary latents P(Z_k = 1), shape (N, K). NaN cells are
    missing.
    """
    terms = Terms.main(law.space.levels)
    at_level = (law.space.states()[:, terms.main_latents] == terms.main_levels).astype(np.float64)
    out = np.empty((len(values), terms.n_main))
    for rows, posterior, _ in _blocks(parameters, law, values):
        out[rows] = posterior @ at_level
    return np.clip(out, 0.0, 1.0)


def most_probable_states(
    parameters: MeasurementParameters, law: LatentLaw, values: Array
) -> NDArray[np.int64]:
    """Return the jointly most probable latent state of each row, shape (N, K)."""
    states = law.space.states()
    out = np.empty((len(values), law.space.n_latents), dtype=np.int64)
    for rows, posterior, _ in _blocks(parameters, law, values):
        out[rows] = states[posterior.argmax(axis=1)]
    return out


def row_log_likelihood(parameters: MeasurementParameters, law: LatentLaw, values: Array) -> Array:
    """Return the observed-data log density of each row, shape (N,); 0 for empty rows."""
    out = np.empty(len(values))
    for rows, _, marginal in _blocks(parameters, law, values):
        out[rows] = marginal
    for j, name in enumerate(parameters.families):
        family = family_named(name)
        seen = ~np.isnan(values[:, j])
        cells = values[seen, j]
        if family.is_location_scale:
            # The blocks scored (x - intercept) / sd: the base is that of the same variable.
            gaussian = family_named("gaussian")
            working = family.to_working(cells)
            scaled = (working - parameters.intercept[j]) / np.sqrt(parameters.dispersion[j])
            unit = np.ones(1)
            jacobian = family.base(cells, unit) - gaussian.base(working, unit)
            out[seen] += gaussian.base(scaled, unit) + jacobian
            out[seen] -= 0.5 * np.log(parameters.dispersion[j])
        else:
            out[seen] += family.base(cells, parameters.auxiliary(family, np.array([j]))[0])
    return out


def information_ratio(
    parameters: MeasurementParameters, law: LatentLaw, data: WorkingData
) -> float:
    """Return which share of the latents' pairwise information the items carry, between 0 and 1.

    For each pair of latents with ``s = (z_a - mu_a)(z_b - mu_b)`` the share is
    ``Var(E[s | x]) / Var(s)``; the mean over pairs comes back (1 for a single latent).
    ``parameters`` are on the working scale of ``data``; averages are over its first few thousand
    rows.
    """
    data = data.first_rows(ROWS_FOR_RATIO)
    states = law.space.states().astype(np.float64)
    probabilities = np.asarray(law.probabilities)
    left, right = np.triu_indices(law.space.n_latents, 1)
    if len(left) == 0:
        return 1.0
    centred = states - probabilities @ states
    products = centred[:, left] * centred[:, right]
    total = np.zeros(len(left))
    squares = np.zeros(len(left))
    features = parameters.terms.features(law.space.states())
    scores = StateScores.of(parameters, probabilities, features, data.gappy)
    counts = data.row_weights
    for rows, posterior, _ in iterate_posteriors(scores, data):
        expected = posterior @ products
        total += counts[rows] @ expected
        squares += counts[rows] @ expected**2
    explained = squares / data.n_counted - (total / data.n_counted) ** 2
    variance = probabilities @ products**2 - (probabilities @ products) ** 2
    share = np.where(variance > 1e-12, explained / np.maximum(variance, 1e-12), 1.0)
    return float(np.clip(share.mean(), 0.0, 1.0))


def rows_worth(ratio: float, n_steps: int) -> float:
    """Return how many rows counts are worth per row of the table, when a graph is read from them.

    Seen latents would give one. Items carry a share ``ratio`` of that, once the law has settled. A
    law that was free for ``n_steps`` EM steps only shows a share ``a = 1 - (1 - ratio)^n_steps`` of
    a dependence it did not have before: its squares are made up for, so that an edge weighs what
    the score test of the observed data would give it.
    """
    shown = 1.0 - (1.0 - min(max(ratio, 1e-6), 1.0)) ** n_steps
    return float(min(ratio / shown**2, MOST_ROWS_WORTH))
