"""Sums over rows of what they say about the latents' states: three ways to have them.

States can be listed (`hidag.estimate.exact`). By halves of the latents (`hidag.estimate.halves`)
either only sums are made, or rows' joint densities as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.exact import StateScores, block_rows, unnormalised
from hidag.estimate.halves import SMALLEST_MASS, Halves
from hidag.estimate.working import WorkingData

Array = NDArray[np.float64]

#: Rows are summed in this many lanes, always, so that sums have the same bits for any threads.
N_LANES = 4


@dataclass(frozen=True)
class Rows:
    """Some rows of a table.

    Attributes
    ----------
    extended : ndarray, shape (n, D + M + 1)
    weights : ndarray, shape (n,), or None
        How many rows each counts for; None when each counts for one.
    """

    extended: Array
    weights: Array | None

    @classmethod
    def of(cls, data: WorkingData, chosen: NDArray[np.bool_]) -> Rows:
        """Return the chosen rows of a table; all of them are not copied."""
        if chosen.all():
            return cls(data.extended, data.weights)
        return cls(data.extended[chosen], None if data.weights is None else data.weights[chosen])

    @classmethod
    def joined(cls, parts: list[Rows]) -> Rows:
        """Return all rows of several parts."""
        weights = [part.weights for part in parts if part.weights is not None]
        return cls(
            np.concatenate([part.extended for part in parts]),
            np.concatenate(weights) if weights else None,
        )

    def __len__(self) -> int:
        return len(self.extended)

    def __getitem__(self, rows: slice | NDArray[np.bool_]) -> Rows:
        return Rows(self.extended[rows], None if self.weights is None else self.weights[rows])

    @property
    def counted(self) -> Array:
        """How many rows each counts for, shape (n,)."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def lane(self, lane: int, n_rows: int) -> Iterator[Rows]:
        """Yield every fourth block of so many rows."""
        for start in range(lane * n_rows, len(self), N_LANES * n_rows):
            yield self[start : start + n_rows]


@dataclass
class RowSums:
    """Sums over a lane of rows.

    Attributes
    ----------
    by_place : ndarray, shape (m, S)
        Sums of m columns by state, by place in the split where there are halves.
    products : ndarray, shape (d, 1 + T)
        Sums of other columns times a one and the terms, those of the first half first.
    total : float
        Sum of log marginals.
    lost : list of Rows
        Rows that lost their digits and are not in the sums.
    """

    by_place: Array
    products: Array = field(default_factory=lambda: np.zeros((0, 0)))
    total: float = 0.0
    lost: list[Rows] = field(default_factory=list)

    def __iadd__(self, other: RowSums) -> Self:
        self.by_place += other.by_place
        self.products += other.products
        self.total += other.total
        self.lost += other.lost
        return self


def sum_lanes(lane_sums: Callable[[int], RowSums], n_threads: int) -> RowSums:
    """Return the sums over all lanes, added in their order."""
    lanes = range(N_LANES)
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            parts = list(pool.map(lane_sums, lanes))
    else:
        parts = [lane_sums(lane) for lane in lanes]
    sums = parts[0]
    for more in parts[1:]:
        sums += more
    return sums


def list_states(rows: Rows, lane: int, scores: StateScores, *, safe: bool, first: int) -> RowSums:
    """Return a lane's sums of extended columns from the first that is wanted on, states listed."""
    sums = RowSums(np.zeros((rows.extended.shape[1] - first, scores.n_states)))
    for block in rows.lane(lane, block_rows(scores.n_states)):
        posterior, factor, marginal = unnormalised(scores, block.extended, safe=safe)
        if block.weights is not None:
            factor, marginal = factor * block.weights, marginal * block.weights
        # Scaling the few columns of the data is cheaper than normalising the posterior.
        sums.by_place += (block.extended[:, first:] * factor[:, None]).T @ posterior
        sums.total += float(marginal.sum())
    return sums


def meet_halves(rows: Rows, lane: int, halves: Halves, *, states_only: bool) -> RowSums:
    """Return a lane's counts of states and products of additive columns.

    ``states_only`` says that products are not wanted. Nothing is between the halves.
    """
    n_adding = 0 if states_only else len(halves.additive)
    products = np.zeros((n_adding, 1 + len(halves.term_order)))
    sums = RowSums(np.zeros((1, halves.weights.size)), products)
    for block in rows.lane(lane, halves.n_rows):
        meeting = halves.meet(block.extended)
        if meeting.mass.min() < SMALLEST_MASS:
            kept = meeting.mass >= SMALLEST_MASS
            sums.lost.append(block[~kept])
            block = block[kept]
            meeting = halves.meet(block.extended)
        counted = block.counted
        factor = counted / meeting.mass
        sums.by_place += meeting.counts(factor)
        sums.total += float(meeting.marginal @ counted)
        if not states_only:
            x = halves.adding(block.extended)
            products[:, 0] += counted @ x
            products[:, 1:] += x.T @ meeting.term_means(halves, factor)
    return sums


def multiply_halves_out(
    rows: Rows, lane: int, halves: Halves, columns: NDArray[np.intp]
) -> RowSums:
    """Return a lane's sums of the columns that are wanted, shape (m,), by place of the states."""
    n_states = halves.weights.size
    n_rows = block_rows(n_states)
    sums = RowSums(np.zeros((len(columns), n_states)))
    # Made once: the memory of large arrays that come and go is asked for again each time.
    joint, product = np.empty((n_rows, n_states)), np.empty_like(sums.by_place)
    for block in rows.lane(lane, n_rows):
        mass, marginal = halves.multiply_out(block.extended, joint)
        if mass.min() < SMALLEST_MASS:
            kept = mass >= SMALLEST_MASS
            sums.lost.append(block[~kept])
            block = block[kept]
            mass, marginal = halves.multiply_out(block.extended, joint)
        factor = block.counted / mass
        scaled = block.extended[:, columns] * factor[:, None]
        np.matmul(scaled.T, joint[: len(block)], out=product)
        sums.by_place += product
        sums.total += float(marginal @ block.counted)
    return sums
