"""Posteriors of the latents: over listed states, by a junction tree, or else by Gibbs sampling.

Random numbers of a row depend on its contents and the seed only, not on the other rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.posterior import (
    log_bases,
    most_probable_states,
    posterior_marginals,
    row_log_likelihood,
    state_posteriors,
)
from hidag.exceptions import Advice, SettingError
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms
from hidag.network_em.gibbs import NetworkModel, NetworkSampler
from hidag.network_em.junction_tree import TreePosterior, draw_index

Array = NDArray[np.float64]


def _hash_rows(values: Array) -> NDArray[np.uint64]:
    """Return a hash of the contents of each row, shape (N,)."""
    rows = np.ascontiguousarray(np.where(np.isnan(values), np.inf, values + 0.0))
    words = [int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest()) for row in rows]
    return np.array(words, dtype=np.uint64)


def _samplers(
    parameters: MeasurementParameters,
    law: NetworkLaw,
    values: Array,
    *,
    seed: int = 0,
    n_threads: int = 1,
) -> Iterator[tuple[slice, NetworkModel, NetworkSampler]]:
    """Yield blocks of rows with the model on their scale and a sampler started at level 0."""
    n_rows = CONFIG.network_em.sampled_block_rows
    model = NetworkModel.of(parameters, law)
    for start in range(0, len(values), n_rows):
        block = slice(start, start + n_rows)
        data = WorkingData.around(parameters, values[block])
        own = NetworkModel(data.to_working(parameters), law, model.items, model.network)
        states = np.zeros((data.n_samples, law.space.n_latents), dtype=np.uint8)
        addresses = _hash_rows(values[block])
        sampler = NetworkSampler(data, states, seed, addresses=addresses, n_threads=n_threads)
        yield block, own, sampler


def sampled_marginals(
    parameters: MeasurementParameters, law: NetworkLaw, values: Array, **sampling: int
) -> Array:
    """Return P(Z_k = u), u > 0, averaged over Gibbs sweeps (Rao-Blackwell), (N, F)."""
    n_sweeps = CONFIG.network_em.averaged_sweeps
    out = np.zeros((len(values), sum(law.space.levels) - law.space.n_latents))
    for block, model, sampler in _samplers(parameters, law, values, **sampling):
        sampler.draw(model, n_sweeps=CONFIG.network_em.burn_in_sweeps)
        sampler.draw(model, n_sweeps=n_sweeps, sums=out[block])
    return np.asarray(np.clip(out / n_sweeps, 0.0, 1.0))


def sampled_modes(
    parameters: MeasurementParameters, law: NetworkLaw, values: Array, **sampling: int
) -> NDArray[np.int64]:
    """Return each row's mode (N, K): the best of several runs of simulated annealing."""
    settings = CONFIG.network_em
    out = np.zeros((len(values), law.space.n_latents), dtype=np.int64)
    for block, model, sampler in _samplers(parameters, law, values, **sampling):
        best = np.full(len(sampler.states), -np.inf)
        for _ in range(settings.annealing_runs):
            for power in settings.inverse_temperatures:
                sampler.draw(model, n_sweeps=settings.annealing_sweeps, inverse_temperature=power)
            value = sampler.log_joint(model)
            better = value > best
            best[better] = value[better]
            out[block][better] = sampler.states[better]
    return out


def sampled_states(
    parameters: MeasurementParameters, law: NetworkLaw, values: Array, **sampling: int
) -> NDArray[np.uint8]:
    """Return a joint state of each row by Gibbs sampling, shape (N, K)."""
    out = np.zeros((len(values), law.space.n_latents), dtype=np.uint8)
    for block, model, sampler in _samplers(parameters, law, values, **sampling):
        sampler.draw(model, n_sweeps=CONFIG.network_em.burn_in_sweeps)
        out[block] = sampler.states
    return out


def draw_listed_states(
    parameters: MeasurementParameters, law: LatentLaw, values: Array, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a joint state drawn from the posterior of each row (N, R), shape (N, K)."""
    uniforms = rng.random(len(values))
    numbers = np.empty(len(values), dtype=np.int64)
    for rows, posterior in state_posteriors(parameters, law, values):
        numbers[rows] = draw_index(posterior, uniforms[rows])
    return law.space.states()[numbers].astype(np.int64)


def _are_listed(law: LatentLaw) -> bool:
    return law.space.n_states <= CONFIG.network_em.max_listed_states


def upper_level_probabilities(
    parameters: MeasurementParameters, law: LatentLaw, values: Array, *, seed: int
) -> Array:
    """Return the posterior probability of each level above 0, (N, F), given responses (N, R)."""
    if _are_listed(law) or not isinstance(law, NetworkLaw):
        return posterior_marginals(parameters, law, values)
    tree = TreePosterior.of(parameters, law)
    return tree.marginals(values) if tree else sampled_marginals(parameters, law, values, seed=seed)


def level_probabilities(upper: Array, terms: Terms) -> list[Array]:
    """Return the probabilities of all levels, K arrays (N, M_k), from those above 0, (N, F)."""
    out = []
    every = Terms.main(terms.levels)
    for k in range(terms.n_latents):
        own = upper[:, every.main_latents == k]
        out.append(np.hstack([np.clip(1.0 - own.sum(axis=1, keepdims=True), 0.0, 1.0), own]))
    return out


def posterior_modes(
    parameters: MeasurementParameters, law: LatentLaw, values: Array, *, seed: int
) -> NDArray[np.int64]:
    """Return the most probable joint state of each row, shape (N, K)."""
    if _are_listed(law) or not isinstance(law, NetworkLaw):
        return most_probable_states(parameters, law, values)
    tree = TreePosterior.of(parameters, law)
    return tree.modes(values) if tree else sampled_modes(parameters, law, values, seed=seed)


def has_exact_posterior(parameters: MeasurementParameters, law: LatentLaw) -> bool:
    """Return whether posteriors are exact, not sampled."""
    enumerated = _are_listed(law) or not isinstance(law, NetworkLaw)
    return enumerated or TreePosterior.of(parameters, law) is not None


def row_log_densities(parameters: MeasurementParameters, law: LatentLaw, values: Array) -> Array:
    """Return rows' log densities (N,), 0 for empty rows; raise if the treewidth is too large."""
    if _are_listed(law):
        return row_log_likelihood(parameters, law, values)
    tree = TreePosterior.of(parameters, law)
    if tree is None:
        raise SettingError(
            "treewidth-too-large",
            "row densities need a sum over {n_states} latent states, and the treewidth of Q and "
            "graph is too large for a junction tree",
            advice=Advice("sparser-model", "use a sparser Q or graph, or fewer latents"),
            n_states=law.space.n_states_text(),
        )
    return tree.log_densities(values) + log_bases(parameters, values)
