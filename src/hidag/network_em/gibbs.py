"""Gibbs sampling of latent states under a network, and sufficient statistics of the sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.e_step import SufficientStatistics, map_lanes
from hidag.em.layout import ItemLayout, NetworkLayout
from hidag.kernels import gibbs, sufficient_statistics
from hidag.latent.laws import NetworkLaw
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]


def run_lanes(work: Callable[[int, int, int], None], n_rows: int, n_threads: int) -> None:
    """Call ``work(lane, start, stop)`` for each lane of consecutive rows."""
    edges = np.linspace(0, n_rows, CONFIG.e_step.n_lanes + 1).astype(int)
    map_lanes(lambda lane: work(lane, int(edges[lane]), int(edges[lane + 1])), n_threads)


@dataclass(frozen=True)
class NetworkStatistics(SufficientStatistics):
    """Complete-data sums by the items' sub-states and the latents' parent configurations."""

    # (cells of the item layout,): rows that observed the item, and sums of columns, by sub-state
    count: Array
    sum_x: Array
    # (cells of the network layout,): rows by a latent's parent configuration and own level
    families: Array


@dataclass(frozen=True)
class NetworkModel:
    """Item parameters on the working scale and a network, with their layouts."""

    parameters: MeasurementParameters
    law: NetworkLaw
    items: ItemLayout
    network: NetworkLayout

    @classmethod
    def of(cls, parameters: MeasurementParameters, law: NetworkLaw) -> NetworkModel:
        """Return the model with the layouts of the support and the parent sets."""
        return cls(parameters, law, ItemLayout.of(parameters), NetworkLayout.of_law(law))


class NetworkSampler:
    """Latent states (N, K), updated by Gibbs sweeps; addresses (N,) are the rows' streams."""

    def __init__(
        self,
        data: WorkingData,
        states: NDArray[np.uint8],
        seed: int,
        *,
        addresses: NDArray[np.uint64] | None = None,
        n_threads: int = 1,
    ) -> None:
        self.data = data
        self.states = np.array(states, dtype=np.uint8, order="C")
        self.n_threads = n_threads
        rows = np.arange(len(states), dtype=np.uint64)
        self._addresses = rows if addresses is None else addresses
        self._seed = np.uint64(seed)
        self._iteration = 0

    def draw(
        self,
        model: NetworkModel,
        *,
        n_sweeps: int = 1,
        inverse_temperature: float = 1.0,
        sums: Array | None = None,
    ) -> None:
        """Update all rows by Gibbs sweeps of the posterior's power: 1 samples, large ones maximise.

        ``sums`` (N, F) receives the sums of the probabilities of each level above 0.
        """
        items, network = model.items, model.network
        rows = (self.data.extended, *self.data.observed_mask)
        tables = (items.table_arrays, items.tables(model.parameters), items.latent_arrays)
        law = (network.table_arrays, network.log_tables(model.law), network.child_arrays)
        stream = (self._seed, self._iteration, self._addresses, n_sweeps, inverse_temperature)
        out = np.zeros((0, 0)) if sums is None else sums
        totals = (sums is not None, out, np.cumsum(items.levels - 1) - (items.levels - 1))
        constant = (rows, items.levels, *tables, *law, stream, totals)

        def work(lane: int, start: int, stop: int) -> None:
            gibbs.sweep_network(self.states, start, stop, *constant)

        run_lanes(work, len(self.states), self.n_threads)
        self._iteration += 1

    def retain(self, model: NetworkModel, *, n_draws: int, n_sweeps: int = 2) -> NDArray[np.uint8]:
        """Return ``n_draws`` draws, ``n_sweeps`` sweeps apart, shape (n_draws, N, K)."""
        out = np.empty((n_draws, *self.states.shape), dtype=np.uint8)
        for r in range(n_draws):
            self.draw(model, n_sweeps=n_sweeps)
            out[r] = self.states
        return out

    def log_joint(self, model: NetworkModel) -> Array:
        """Return ``log f(x, z)`` of the current states without the items' bases, shape (N,)."""
        items, network = model.items, model.network
        rows = (self.data.extended, *self.data.observed_mask)
        law = network.table_arrays, network.log_tables(model.law)
        out, tables = np.empty(len(self.states)), items.tables(model.parameters)
        gibbs.log_joint(self.states, rows, items.table_arrays, tables, *law, out)
        return out

    def statistics(self, model: NetworkModel) -> NetworkStatistics:
        """Return the sufficient statistics of the current states."""
        items, network, n_lanes = model.items, model.network, CONFIG.e_step.n_lanes
        rows = (self.data.extended, *self.data.observed_mask)
        constant = (rows, items.table_arrays, network.table_arrays, self.data.row_weights)
        sums = [np.zeros((n_lanes, size)) for size in (items.size, items.size, network.size)]

        def work(lane: int, start: int, stop: int) -> None:
            own = (part[lane] for part in sums)
            sufficient_statistics.tally(self.states, start, stop, *constant, *own)

        run_lanes(work, len(self.states), self.n_threads)
        return NetworkStatistics(*(part.sum(axis=0) for part in sums))
