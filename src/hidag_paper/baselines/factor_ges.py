"""Factor analysis, loadings cut off, factor scores cut in two, and a graph search on those.

What a user would try who has never heard of discrete latents.
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
    graph_of_law,
    normal_values,
)

#: Smallest standardised loading that is called one: the custom of applied factor analysis.
LEAST_LOADING = 0.3
#: Uniquenesses are kept above this, so that an item that is all factor still has a weight.
LEAST_UNIQUENESS = 1e-3


def factor_ges(
    values: Floats, families: tuple[str, ...], n_latents: int, seed: int
) -> BaselineResult:
    """Return Q from rotated loadings, and the graph of factor scores cut at zero.

    Varimax first, then Geomin: latents that cause each other are correlated, and an orthogonal
    rotation smears their items. Nothing is random.
    """
    n_rows, n_items = values.shape
    if n_latents >= n_items:
        raise SettingError(
            f"factor analysis needs fewer factors than items, got {n_latents} for {n_items}"
        )
    table = normal_values(values, families)
    standard = (table - table.mean(axis=0)) / table.std(axis=0)
    model = FactorAnalysis(n_latents, svd_method="lapack", max_iter=2000).fit(standard)
    plain = model.components_.T
    loadings = geomin(plain, varimax(plain))
    weighted = loadings / np.maximum(model.noise_variance_, LEAST_UNIQUENESS)[:, None]
    # Bartlett's scores: each row's factors by weighted least squares.
    scores = standard @ weighted @ np.linalg.pinv(loadings.T @ weighted)
    space = StateSpace.binary(n_latents)
    states = space.number((scores > 0).astype(np.int64))
    shares = np.bincount(states, minlength=space.n_states) / n_rows
    return BaselineResult(
        (np.abs(loadings) >= LEAST_LOADING).astype(np.int8),
        graph_of_law(shares, n_latents, n_rows),
        {"n_iter": int(model.n_iter_), "smallest_uniqueness": float(model.noise_variance_.min())},
    )


FACTOR_GES = Baseline(
    "factor-ges",
    "factor analysis, thresholds, graph search on factor scores cut in two",
    factor_ges,
)
