"""What items and a law say of rows: summed over joint states or, if these are too many, latent by
latent; sampled only where latents hang together so much that neither is possible.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.em.posterior import (
    log_bases,
    most_probable_states,
    posterior_marginals,
    row_log_likelihood,
)
from hidag.exceptions import SettingError
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms
from hidag.network_em.junction_tree import TreePosterior
from hidag.network_em.posterior import sampled_marginals, sampled_modes

Array = NDArray[np.float64]

#: With more joint states than this they are not listed.
MOST_EXACT_STATES = 1 << 16


def probabilities_above_zero(
    parameters: MeasurementParameters, law: LatentLaw, values: Array, *, seed: int
) -> Array:
    """Return the probability of each level above 0, shape (N, F), latent by latent.

    Parameters
    ----------
    parameters : MeasurementParameters
    law : LatentLaw
    values : ndarray, shape (N, R)
        A column for each response, NaN where it is missing.
    seed : int
        Of the draws, where latents are sampled.
    """
    if _too_many_states(law) and isinstance(law, NetworkLaw):
        tree = TreePosterior.of(parameters, law)
        if tree is not None:
            return tree.marginals(values)
        return sampled_marginals(parameters, law, values, seed=seed)
    return posterior_marginals(parameters, law, values)


def by_level(above: Array, terms: Terms) -> list[Array]:
    """Return the probabilities of each latent's levels, K arrays (N, M_k), from those above 0."""
    out = []
    for k in range(terms.n_latents):
        own = above[:, terms.main_latents == k]
        out.append(np.hstack([np.clip(1.0 - own.sum(axis=1, keepdims=True), 0.0, 1.0), own]))
    return out


def most_probable_levels(
    parameters: MeasurementParameters, law: LatentLaw, values: Array, *, seed: int
) -> NDArray[np.int64]:
    """Return the most probable joint state of each row, shape (N, K).

    Parameters as of :func:`probabilities_above_zero`.
    """
    if _too_many_states(law) and isinstance(law, NetworkLaw):
        tree = TreePosterior.of(parameters, law)
        if tree is not None:
            return tree.modes(values)
        return sampled_modes(parameters, law, values, seed=seed)
    return most_probable_states(parameters, law, values)


def are_summed(parameters: MeasurementParameters, law: LatentLaw) -> bool:
    """Return whether posteriors are sums, over joint states or over smaller tables; else draws."""
    if not (_too_many_states(law) and isinstance(law, NetworkLaw)):
        return True
    return TreePosterior.of(parameters, law) is not None


def row_log_densities(parameters: MeasurementParameters, law: LatentLaw, values: Array) -> Array:
    """Return the log density of each row of responses (N, R), shape (N,); 0 for empty rows.

    Raises
    ------
    SettingError
        If the sum over joint states is neither short nor made of short ones: draws give none.
    """
    if not _too_many_states(law):
        return row_log_likelihood(parameters, law, values)
    tree = TreePosterior.of(parameters, law)
    if tree is None:
        raise SettingError(
            f"densities of rows take a sum over {law.space.n_states_text()} latent states, and "
            "the latents hang together too closely for it to fall into small ones; a sparser Q or "
            "graph, or fewer latents, would have densities"
        )
    return tree.log_densities(values) + log_bases(parameters, values)


def _too_many_states(law: LatentLaw) -> bool:
    return law.space.n_states > MOST_EXACT_STATES
