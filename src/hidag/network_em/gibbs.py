"""The E-step for laws that are networks: sampled states, and tables of what they add up to."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.em.layout import FamilyLayout, ItemLayout
from hidag.kernels import gibbs, sufficient_statistics
from hidag.latent.laws import NetworkLaw
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]

#: Rows are summed in this many lanes, always, so that sums have the same bits for any threads.
N_LANES = 4


def run_lanes(work: Callable[[int, int, int], None], n_rows: int, n_threads: int) -> None:
    """Call ``work(lane, start, stop)`` for each lane of rows, on as many threads as asked for."""
    edges = np.linspace(0, n_rows, N_LANES + 1).astype(int)

    def run(lane: int) -> None:
        work(lane, int(edges[lane]), int(edges[lane + 1]))

    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(run, range(N_LANES)))
    else:
        for lane in range(N_LANES):
            run(lane)


@dataclass(frozen=True)
class NetworkStatistics:
    """Complete-data sums by the sub-states of items and the configurations of families.

    Attributes
    ----------
    count, sum_x : ndarray, shape (cells of the item layout,)
        Rows that observed the item, and sums of its columns, by sub-state.
    families : ndarray, shape (cells of the family layout,)
        Rows by a latent's configuration of parents and its own level.
    """

    count: Array
    sum_x: Array
    families: Array

    def blend(self, fresh: NetworkStatistics, step: float) -> NetworkStatistics:
        """Return ``(1 - step) * self + step * fresh``, the Robbins-Monro average."""
        keep = 1.0 - step
        return NetworkStatistics(
            keep * self.count + step * fresh.count,
            keep * self.sum_x + step * fresh.sum_x,
            keep * self.families + step * fresh.families,
        )


def observed_mask(data: WorkingData) -> tuple[NDArray[np.uint8], bool]:
    """Return the mask as kernels take it, and whether it has to be read."""
    mask = data.observed_columns
    return (np.zeros((0, 0), dtype=np.uint8), False) if mask is None else (mask, True)


class NetworkSampler:
    """Latent states of N rows, moved by coordinate-wise Gibbs sweeps under a network's law.

    Parameters
    ----------
    data : WorkingData
    states : ndarray of uint8, shape (N, K)
        Where to start.
    seed : int
        Root of all random numbers of this sampler.
    addresses : ndarray of uint64, shape (N,), or None
        Where each row's random numbers come from; None takes its place in the table.
    n_threads : int
        Changes the time, never the bits.
    """

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
        parameters: MeasurementParameters,
        law: NetworkLaw,
        items: ItemLayout,
        families: FamilyLayout,
        *,
        n_sweeps: int = 1,
        coldness: float = 1.0,
        sums: Array | None = None,
    ) -> None:
        """Move all rows by sweeps that leave their posterior invariant.

        Parameters
        ----------
        parameters, law : MeasurementParameters, NetworkLaw
        items, families : ItemLayout, FamilyLayout
            Of their supports and parent sets.
        n_sweeps : int
        coldness : float
            The power that the posterior is taken to: 1 samples, much more climbs.
        sums : ndarray, shape (N, F), or None
            Where the probability of each level above 0 is added, latent by latent.
        """
        theta, partition = items.tables(parameters)
        log_law = families.log_tables(law)
        observed, has_gaps = observed_mask(self.data)
        nowhere = np.zeros((0, 0))
        sum_ptr = np.cumsum(items.levels - 1) - (items.levels - 1)

        def work(lane: int, start: int, stop: int) -> None:
            gibbs.sweep_network(
                self.states,
                start,
                stop,
                self.data.extended,
                observed,
                has_gaps,
                items.levels,
                items.item_ptr,
                items.item_parents,
                items.item_strides,
                items.table_ptr,
                theta,
                partition,
                items.latent_ptr,
                items.latent_items,
                items.latent_strides,
                families.parent_ptr,
                families.parents,
                families.parent_strides,
                families.table_ptr,
                log_law,
                families.child_ptr,
                families.children,
                families.child_strides,
                self._seed,
                self._iteration,
                self._addresses,
                n_sweeps,
                coldness,
                sums is not None,
                nowhere if sums is None else sums,
                sum_ptr,
            )

        run_lanes(work, len(self.states), self.n_threads)
        self._iteration += 1

    def retain(
        self,
        parameters: MeasurementParameters,
        law: NetworkLaw,
        items: ItemLayout,
        families: FamilyLayout,
        *,
        n_draws: int,
        n_sweeps: int = 2,
    ) -> NDArray[np.uint8]:
        """Return ``n_draws`` draws, ``n_sweeps`` sweeps apart, shape (n_draws, N, K)."""
        out = np.empty((n_draws, *self.states.shape), dtype=np.uint8)
        for r in range(n_draws):
            self.draw(parameters, law, items, families, n_sweeps=n_sweeps)
            out[r] = self.states
        return out

    def log_joint(
        self,
        parameters: MeasurementParameters,
        law: NetworkLaw,
        items: ItemLayout,
        families: FamilyLayout,
    ) -> Array:
        """Return ``log f(x, z)`` of the current states without the part no latent enters, (N,)."""
        theta, partition = items.tables(parameters)
        observed, has_gaps = observed_mask(self.data)
        out = np.empty(len(self.states))
        gibbs.log_joint(
            self.states,
            self.data.extended,
            observed,
            has_gaps,
            items.item_ptr,
            items.item_parents,
            items.item_strides,
            items.table_ptr,
            theta,
            partition,
            families.parent_ptr,
            families.parents,
            families.parent_strides,
            families.table_ptr,
            families.log_tables(law),
            out,
        )
        return out

    def statistics(self, items: ItemLayout, families: FamilyLayout) -> NetworkStatistics:
        """Return the statistics of the current states."""
        weights = self.data.row_weights
        observed, has_gaps = observed_mask(self.data)
        count = np.zeros((N_LANES, items.size))
        sum_x = np.zeros((N_LANES, items.size))
        configurations = np.zeros((N_LANES, families.size))

        def work(lane: int, start: int, stop: int) -> None:
            sufficient_statistics.tally(
                self.states,
                start,
                stop,
                self.data.extended,
                observed,
                has_gaps,
                items.item_ptr,
                items.item_parents,
                items.item_strides,
                items.table_ptr,
                families.parent_ptr,
                families.parents,
                families.parent_strides,
                families.table_ptr,
                weights,
                count[lane],
                sum_x[lane],
                configurations[lane],
            )

        run_lanes(work, len(self.states), self.n_threads)
        return NetworkStatistics(count.sum(axis=0), sum_x.sum(axis=0), configurations.sum(axis=0))
