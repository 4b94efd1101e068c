"""Factor analysis, thresholded loadings, and a graph search on dichotomised factor scores.

This is what a user without a model for discrete latents could try.
"""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import FactorAnalysis

from hidag.exceptions import SettingError
from hidag.initialization.rotations import geomin, varimax
from hidag.latent.state_space import StateSpace
from hidag_paper.baselines.baseline import (
    Baseline,
    BaselineResult,
    Floats,
    normal_values,
    search_distribution,
)

#: Smallest standardised loading that counts, by convention of applied factor analysis.
MIN_LOADING = 0.3
#: Lower bound of the uniquenesses, for finite weights.
MIN_UNIQUENESS = 1e-3


def factor_ges(
    values: Floats, families: tuple[str, ...], n_latents: int, seed: int
) -> BaselineResult:
    """Estimate Q from rotated loadings, and the graph from factor scores dichotomised at zero.

    Varimax is followed by the oblique geomin rotation, because causally related latents are
    correlated. The method is deterministic.
    """
    n_rows, n_items = values.shape
    if n_latents >= n_items:
        raise SettingError(
            "too-many-latents",
            "factor-ges needs fewer latents than items, got {k} latents and {n_items} items",
            k=n_latents,
            n_items=n_items,
        )
    table = normal_values(values, families)
    standard = (table - table.mean(axis=0)) / table.std(axis=0)
    model = FactorAnalysis(n_latents, svd_method="lapack", max_iter=2000).fit(standard)
    plain = model.components_.T
    loadings = geomin(plain, varimax(plain))
    weighted = loadings / np.maximum(model.noise_variance_, MIN_UNIQUENESS)[:, None]
    # Bartlett's factor scores, by weighted least squares.
    scores = standard @ weighted @ np.linalg.pinv(loadings.T @ weighted)
    space = StateSpace.binary(n_latents)
    states = space.number((scores > 0).astype(np.int64))
    shares = np.bincount(states, minlength=space.n_states) / n_rows
    return BaselineResult(
        (np.abs(loadings) >= MIN_LOADING).astype(np.int8),
        search_distribution(shares, n_latents, n_rows),
        {"n_iter": int(model.n_iter_), "smallest_uniqueness": float(model.noise_variance_.min())},
    )


FACTOR_GES = Baseline(
    "factor-ges",
    "factor analysis, thresholds, graph search on dichotomised factor scores",
    factor_ges,
)
