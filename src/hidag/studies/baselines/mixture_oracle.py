"""Latent causal graphs by counting mixture components (Kivva, Rajendran, Ravikumar, Aragam 2021).

Components of the mixtures of single items, pairs and triples are counted, which tells how many
latents are behind each set; Q is the matrix that explains the numbers; the joint law of the latents
is that of the mixture of all items whose components have the means that Q allows; and a search
for the graph goes over that law.

What the method's paper leaves to an oracle, the counting, is done here with all that the library's
own estimator may assume too: the number of latents, that they are binary, and that items are normal
with a constant variance given the latents, which factor analysis estimates where effects add up.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import FactorAnalysis

from hidag.discover import CPDAG
from hidag.errors import HidagWarning, SettingError
from hidag.estimator import DCRL
from hidag.studies.baselines.component_counts import count_latents
from hidag.studies.baselines.contract import (
    NORMAL_FAMILIES,
    Baseline,
    BaselineResult,
    Floats,
    normal_values,
    refuse_other_families,
)
from hidag.studies.baselines.count_decomposition import closest_q

#: All triples of more items would take hours; the rows of Q are searched among all patterns.
MOST_ITEMS, MOST_LATENTS = 20, 8
#: Variances given the latents are at least this share of their median: factor analysis may find
#: that an item is all factor, and every row would be a component.
LEAST_SHARE = 0.25


def mixture_oracle(
    values: Floats, families: tuple[str, ...], n_latents: int, seed: int
) -> BaselineResult:
    """Return Q from numbers of components, and the graph of the law of the mixture over it."""
    refuse_other_families(families, NORMAL_FAMILIES, "mixture-oracle")
    table = normal_values(values, families)
    n_items = table.shape[1]
    if n_items > MOST_ITEMS or n_latents > MOST_LATENTS:
        raise SettingError(
            f"mixture-oracle counts the components of every triple of items: at most {MOST_ITEMS} "
            f"items and {MOST_LATENTS} latents, got {n_items} and {n_latents}"
        )
    if n_latents >= n_items or n_items < 3:
        raise SettingError(
            f"mixture-oracle needs at least 3 items and fewer latents than items, got {n_items} "
            f"items and {n_latents} latents"
        )
    rng = np.random.default_rng(seed)
    numbers = count_latents(_in_units_of_noise(table, n_latents), n_latents, rng)
    q_matrix, misfit, of_tensor = closest_q(numbers, n_latents, rng)
    graph = _graph_of_mixture(table, q_matrix, seed)
    notes = {
        "misfit_of_counts": misfit,
        "misfit_of_tensor_decomposition": of_tensor,
        "latents_behind_items": [int(m) for m in numbers.single],
    }
    return BaselineResult(q_matrix, graph, notes)


def _in_units_of_noise(table: Floats, n_latents: int) -> Floats:
    """Return centred items in units of their standard deviation given the latents, (N, J)."""
    centred = table - table.mean(axis=0)
    spread = table.std(axis=0)
    model = FactorAnalysis(n_latents, svd_method="lapack", max_iter=2000).fit(centred / spread)
    unique = np.maximum(model.noise_variance_, LEAST_SHARE * np.median(model.noise_variance_))
    return np.asarray(centred / (spread * np.sqrt(unique)))


def _graph_of_mixture(table: Floats, q_matrix: NDArray[np.int8], seed: int) -> CPDAG:
    """Return the graph of the latents when items have a mean for each state of their latents.

    The mixture's joint law is one free probability for each state, and counts for N rows. Latents
    without items stand alone.
    """
    n_latents = q_matrix.shape[1]
    adjacency = np.zeros((n_latents, n_latents), dtype=np.int8)
    busy = np.flatnonzero(q_matrix.any(axis=0))
    used = q_matrix.any(axis=1)
    if len(busy) > 1:
        mixture = DCRL(
            len(busy),
            family="gaussian",
            q_matrix=q_matrix[np.ix_(used, busy)],
            effects="all",
            law="saturated",
            effective_size="all",
            random_state=seed,
        )
        with warnings.catch_warnings():
            # What the library says of a Q that is not its own is of no interest here.
            warnings.simplefilter("ignore", HidagWarning)
            mixture.fit(table[:, used])
        adjacency[np.ix_(busy, busy)] = mixture.graph_.adjacency
    return CPDAG(adjacency)


MIXTURE_ORACLE = Baseline(
    "mixture-oracle",
    "numbers of mixture components of items, pairs and triples (Kivva et al. 2021)",
    mixture_oracle,
)
