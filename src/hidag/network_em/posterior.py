"""Latents given responses by sampling, for laws whose joint states are too many to list.

A row's random numbers come from its own contents and the seed, so its answer does not depend on the
rows it is asked about together with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.em.layout import FamilyLayout, ItemLayout
from hidag.em.posterior import state_posteriors
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.measurement.parameters import MeasurementParameters
from hidag.network_em.gibbs import NetworkSampler
from hidag.network_em.junction_tree import TreePosterior

Array = NDArray[np.float64]

#: Sweeps before anything is kept, and sweeps whose conditional probabilities are averaged.
BURN_IN, KEPT_SWEEPS = 20, 200
#: Powers of the posterior on the way to a maximum, the last of which only climbs.
COOLING = (1.0, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 1e6, 1e6)
#: Sweeps at each power, and how often the way is gone; each row keeps its best end.
SWEEPS_EACH, N_CLIMBS = 4, 4
#: Rows that are worked on at once.
BLOCK_ROWS = 65536


def _addresses(values: Array) -> NDArray[np.uint64]:
    """Return a number for each row that depends on its contents alone, shape (N,)."""
    rows = np.ascontiguousarray(np.where(np.isnan(values), np.inf, values + 0.0))
    words = [int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest()) for row in rows]
    return np.array(words, dtype=np.uint64)


class _Rows:
    """A block of rows with its sampler, started from even odds."""

    def __init__(
        self,
        parameters: MeasurementParameters,
        law: NetworkLaw,
        values: Array,
        seed: int,
        n_threads: int,
    ) -> None:
        data = WorkingData.around(parameters, values)
        self.parameters = data.to_working(parameters)
        self.law = law
        self.items, self.families = ItemLayout.of(parameters), FamilyLayout.of_law(law)
        states = np.zeros((len(values), law.space.n_latents), dtype=np.uint8)
        self.sampler = NetworkSampler(
            data, states, seed, addresses=_addresses(values), n_threads=n_threads
        )

    def draw(self, n_sweeps: int, *, coldness: float = 1.0, sums: Array | None = None) -> None:
        self.sampler.draw(
            self.parameters,
            self.law,
            self.items,
            self.families,
            n_sweeps=n_sweeps,
            coldness=coldness,
            sums=sums,
        )

    def log_joint(self) -> Array:
        return self.sampler.log_joint(self.parameters, self.law, self.items, self.families)


def _blocks(
    parameters: MeasurementParameters, law: NetworkLaw, values: Array, seed: int, n_threads: int
) -> Iterator[tuple[slice, _Rows]]:
    """Yield a block of rows at a time: where they are among ``values``, and a sampler of them."""
    for start in range(0, len(values), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        yield block, _Rows(parameters, law, values[block], seed, n_threads)


def sampled_marginals(
    parameters: MeasurementParameters,
    law: NetworkLaw,
    values: Array,
    *,
    seed: int = 0,
    n_threads: int = 1,
) -> Array:
    """Return the probability of each level above 0 given each row, shape (N, F), latent by latent.

    The average of the conditional probabilities of 200 Gibbs sweeps.

    Parameters
    ----------
    parameters : MeasurementParameters
        In the user's units.
    law : NetworkLaw
    values : ndarray, shape (N, J)
        NaN cells are missing.
    seed, n_threads : int
    """
    out = np.zeros((len(values), sum(law.space.levels) - law.space.n_latents))
    for block, rows in _blocks(parameters, law, values, seed, n_threads):
        rows.draw(BURN_IN)
        rows.draw(KEPT_SWEEPS, sums=out[block])
    return np.asarray(np.clip(out / KEPT_SWEEPS, 0.0, 1.0))


def sampled_modes(
    parameters: MeasurementParameters,
    law: NetworkLaw,
    values: Array,
    *,
    seed: int = 0,
    n_threads: int = 1,
) -> NDArray[np.int64]:
    """Return a jointly most probable latent state of each row, shape (N, K).

    Found by simulated annealing, four times over; in no case can the flip of one latent make it
    more probable.

    Parameters as of :func:`sampled_marginals`.
    """
    out = np.zeros((len(values), law.space.n_latents), dtype=np.int64)
    for block, rows in _blocks(parameters, law, values, seed, n_threads):
        best = np.full(len(rows.sampler.states), -np.inf)
        for _ in range(N_CLIMBS):
            for coldness in COOLING:
                rows.draw(SWEEPS_EACH, coldness=coldness)
            value = rows.log_joint()
            better = value > best
            best[better] = value[better]
            out[block][better] = rows.sampler.states[better]
    return out


def sampled_states(
    parameters: MeasurementParameters,
    law: NetworkLaw,
    values: Array,
    *,
    seed: int = 0,
    n_threads: int = 1,
) -> NDArray[np.uint8]:
    """Return a latent state of each row drawn from its posterior, shape (N, K).

    Parameters as of :func:`sampled_marginals`.
    """
    out = np.zeros((len(values), law.space.n_latents), dtype=np.uint8)
    for block, rows in _blocks(parameters, law, values, seed, n_threads):
        rows.draw(BURN_IN)
        out[block] = rows.sampler.states
    return out


# --- Joint latent states drawn given rows, from sums over all joint states or over small

Levels = NDArray[np.int64]


def listed_states(
    parameters: MeasurementParameters, law: LatentLaw, values: Array, rng: np.random.Generator
) -> Levels:
    """Return a joint state drawn given each row, shape (N, K), all states listed.

    Parameters
    ----------
    parameters : MeasurementParameters
    law : LatentLaw
    values : ndarray, shape (N, R)
        A column for each response, NaN where it is missing.
    rng : Generator
    """
    uniforms = rng.random(len(values))
    place = np.empty(len(values), dtype=np.int64)
    for rows, posterior in state_posteriors(parameters, law, values):
        place[rows] = _drawn(posterior, uniforms[rows])
    return law.space.states()[place].astype(np.int64)


def summed_states(tree: TreePosterior, values: Array, rng: np.random.Generator) -> Levels:
    """Return a joint state drawn given each row (N, R), shape (N, K), one latent after the other.

    Latents are drawn against the order in which they were summed out, each given those before it.
    """
    uniforms = rng.random((len(tree.steps), len(values)))
    out = np.zeros((len(values), len(tree.steps)), dtype=np.int64)
    for rows, groups in tree.groups(*tree.working(values)):
        found = out[rows]
        here = np.arange(len(found))
        for i in reversed(range(len(tree.steps))):
            latent, *others = tree.steps[i]
            place: Any = (slice(None), *(found[:, v] for v in others), here)
            found[:, latent] = _drawn(groups.conditionals[i][place].T, uniforms[i, rows])
    return out


def _drawn(chances: Array, uniforms: Array) -> NDArray[np.intp]:
    """Return the place that a number from 0 to 1 falls on, (n,), of chances (n, S) up to a unit."""
    ends = np.cumsum(chances, axis=1)
    # No number is beyond the last end, and no place without a chance is ever reached.
    return np.asarray((ends <= (uniforms * ends[:, -1])[:, None]).sum(axis=1))
