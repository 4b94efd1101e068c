"""The Gibbs E-step: latent states sampled row by row, statistics tallied from the sample."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.exact import log_probabilities
from hidag.estimate.statistics import Statistics
from hidag.estimate.working import WorkingData
from hidag.kernels import gibbs as kernel
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters, family_named

Array = NDArray[np.float64]


def _item_tables(
    parameters: MeasurementParameters, parents: list[NDArray[np.intp]]
) -> tuple[NDArray[np.int64], Array, Array]:
    """Return where each item's table starts, and the tables of theta and A over sub-states."""
    thetas, partitions, starts, position = [], [], [], 0
    for j, latents in enumerate(parents):
        codes = np.arange(1 << len(latents))
        bits = (codes[:, None] >> np.arange(len(latents))) & 1
        eta = parameters.intercept[j] + bits @ parameters.loadings[j, latents]
        theta, partition = family_named(parameters.families[j]).natural(
            eta, parameters.dispersion[j]
        )
        thetas.append(theta)
        partitions.append(partition)
        starts.append(position)
        position += len(codes)
    return np.array(starts, dtype=np.int64), np.concatenate(thetas), np.concatenate(partitions)


class GibbsSampler:
    """Latent states of N rows, moved by coordinate-wise Gibbs sweeps.

    Parameters
    ----------
    data : WorkingData
    space : StateSpace
        Binary latents whose joint states can be listed.
    states : ndarray of int64, shape (N,)
        State numbers to start from.
    seed : int
        Root of all random numbers of this sampler.
    """

    def __init__(
        self, data: WorkingData, space: StateSpace, states: NDArray[np.int64], seed: int
    ) -> None:
        self.data = data
        self.space = space
        self.states = np.array(states, dtype=np.int64)
        self._seed = np.uint64(seed)
        self._iteration = 0

    def draw(
        self,
        parameters: MeasurementParameters,
        probabilities: Array,
        *,
        n_sweeps: int = 1,
        n_threads: int = 1,
    ) -> None:
        """Move all rows by ``n_sweeps`` sweeps that leave their posterior invariant."""
        q = parameters.loadings != 0
        parents = [np.flatnonzero(row) for row in q]
        item_ptr = np.concatenate([[0], np.cumsum([len(p) for p in parents])]).astype(np.int64)
        item_parents = np.concatenate(parents).astype(np.int64)
        bits = np.cumsum(q, axis=1) - 1
        items_of = [np.flatnonzero(column) for column in q.T]
        latent_ptr = np.concatenate([[0], np.cumsum([len(p) for p in items_of])]).astype(np.int64)
        latent_items = np.concatenate(items_of).astype(np.int64)
        latent_bits = np.concatenate(
            [1 << bits[items, k] for k, items in enumerate(items_of)]
        ).astype(np.int64)
        table_ptr, theta, partition = _item_tables(parameters, parents)
        log_law = log_probabilities(probabilities)
        has_gaps = self.data.observed is not None
        observed = self.data.observed if has_gaps else np.zeros((0, 0), dtype=np.uint8)
        n_rows = len(self.states)
        edges = np.linspace(0, n_rows, max(1, n_threads) + 1).astype(int)

        def run(part: int) -> None:
            kernel.sweep(
                self.states,
                edges[part],
                edges[part + 1],
                self.data.x,
                observed,
                has_gaps,
                log_law,
                self.space.strides(),
                latent_ptr,
                latent_items,
                latent_bits,
                item_ptr,
                item_parents,
                table_ptr,
                theta,
                partition,
                self._seed,
                self._iteration,
                n_sweeps,
            )

        if n_threads > 1:
            with ThreadPoolExecutor(n_threads) as pool:
                list(pool.map(run, range(n_threads)))
        else:
            run(0)
        self._iteration += 1

    def statistics(self) -> Statistics:
        """Return the statistics of the current states."""
        n_states = self.space.n_states
        count = np.zeros(n_states)
        sum_x = np.zeros((n_states, self.data.n_items))
        gap_count = np.zeros((n_states, len(self.data.gappy)))
        kernel.tally(self.states, self.data.x, self.data.gaps, count, sum_x, gap_count)
        return Statistics(count, np.ascontiguousarray(sum_x.T), np.ascontiguousarray(gap_count.T))
