"""The Gibbs E-step: latent states sampled row by row, statistics tallied from the sample."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.exact import log_probabilities
from hidag.estimate.network_layout import ItemLayout
from hidag.estimate.statistics import Statistics
from hidag.estimate.working import WorkingData
from hidag.kernels import gibbs_listed
from hidag.latent import StateSpace
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]


class GibbsSampler:
    """Latent states of N rows, moved by coordinate-wise Gibbs sweeps.

    Parameters
    ----------
    data : WorkingData
    space : StateSpace
        Latents whose joint states can be listed.
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
        self._layout: ItemLayout | None = None

    def draw(
        self,
        parameters: MeasurementParameters,
        probabilities: Array,
        *,
        n_sweeps: int = 1,
        n_threads: int = 1,
    ) -> None:
        """Move all rows by ``n_sweeps`` sweeps that leave their posterior invariant."""
        # Laying items out costs as much as a sweep over a small table, and supports seldom change.
        if self._layout is None or not self._layout.is_of(parameters):
            self._layout = ItemLayout.of(parameters)
        layout = self._layout
        theta, partition = layout.tables(parameters)
        log_law = log_probabilities(probabilities)
        mask = self.data.observed_columns
        has_gaps = mask is not None
        observed = np.zeros((0, 0), dtype=np.uint8) if mask is None else mask
        n_rows = len(self.states)
        edges = np.linspace(0, n_rows, max(1, n_threads) + 1).astype(int)

        def run(part: int) -> None:
            gibbs_listed.sweep_listed(
                self.states,
                edges[part],
                edges[part + 1],
                self.data.x,
                observed,
                has_gaps,
                log_law,
                self.space.strides(),
                layout.levels,
                layout.latent_ptr,
                layout.latent_items,
                layout.latent_strides,
                layout.item_ptr,
                layout.item_parents,
                layout.item_strides,
                layout.table_ptr,
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
        sum_x = np.zeros((n_states, self.data.columns.n_columns))
        gap_count = np.zeros((n_states, len(self.data.gappy)))
        weights = self.data.row_weights
        gibbs_listed.tally(
            self.states, weights, self.data.x, self.data.gaps, count, sum_x, gap_count
        )
        return Statistics(count, np.ascontiguousarray(sum_x.T), np.ascontiguousarray(gap_count.T))
