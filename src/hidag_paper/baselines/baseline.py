"""What every baseline takes and gives back, and what none of them can do with.

A baseline sees the table, the items' families, the number of latents and a seed: what the estimator
of this library sees, and never the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from hidag.data.table import read_table
from hidag.data.value_checks import check_values
from hidag.exceptions import DataError, SettingError
from hidag.fitting.settings import checked_count, root_seed
from hidag.latent.counts import LatentCounts
from hidag.latent.state_space import StateSpace
from hidag.structure.graph_search import discover
from hidag.structure.graphs import CPDAG

Floats = NDArray[np.float64]

#: Families whose values, logged where they are lognormal, are normal given the latents.
NORMAL_FAMILIES = ("gaussian", "lognormal")


@dataclass(frozen=True)
class BaselineResult:
    """What a baseline found.

    Attributes
    ----------
    q_matrix : ndarray of int8, shape (J, K)
        1 where an item depends on a latent.
    graph : CPDAG
        Among the K latents, in the order of the columns of ``q_matrix``.
    notes : dict
        Numbers and words on how it went, by name; plain values.
    """

    q_matrix: NDArray[np.int8]
    graph: CPDAG
    notes: dict[str, Any] = field(default_factory=dict)


#: A method: the table (N, J) without gaps, families, K and a seed.
Method = Callable[[Floats, tuple[str, ...], int, int], BaselineResult]


@dataclass(frozen=True)
class Baseline:
    """A method to compare with.

    Attributes
    ----------
    name : str
        Its key in ``BASELINES``.
    summary : str
        What it does, in a line.
    method : callable
        Called by `run` after the table was checked.
    """

    name: str
    summary: str
    method: Method

    def run(
        self, values: ArrayLike, families: Sequence[str], n_latents: int, seed: int
    ) -> BaselineResult:
        """Return what the method finds in a table.

        Parameters
        ----------
        values : array_like, shape (N, J)
            Without missing cells: none of the methods knows what to do with them.
        families : sequence of str, length J
        n_latents : int
            K; latents are binary.
        seed : int
            The same seed gives the same bits.

        Raises
        ------
        HidagError
            With the reason why the method finds nothing.
        """
        try:
            table = np.array(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"{self.name} needs a table of numbers") from error
        if table.ndim != 2 or table.size == 0:
            raise DataError(f"{self.name} needs a table of shape (N, J), got shape {table.shape}")
        n_gaps = int((~np.isfinite(table)).sum())
        if n_gaps:
            raise DataError(
                f"{self.name} needs a table without missing cells, but {n_gaps} of {table.size} "
                "are missing or infinite; leave out rows or items with gaps"
            )
        names = tuple(families)
        if len(names) != table.shape[1]:
            raise SettingError(f"{table.shape[1]} items need as many families, got {len(names)}")
        size = checked_count("n_latents", n_latents)
        still = np.flatnonzero(np.ptp(table, axis=0) == 0)
        if len(still):
            raise DataError(
                f"{self.name} needs items that vary, but column {still[0]} (counting from 0) has "
                f"the same value in every row ({len(still)} of {table.shape[1]} items)"
            )
        check_values(read_table(table), names)
        root = root_seed(seed)
        # Columns in an order of their contents: what comes in another order gives the same answer.
        order = np.lexsort(table[::-1])
        # More threads would only wait for each other, and might add up in another order.
        with threadpool_limits(limits=1, user_api="blas"):
            found = self.method(
                np.ascontiguousarray(table[:, order]),
                tuple(names[j] for j in order),
                size,
                root,
            )
        return replace(found, q_matrix=found.q_matrix[np.argsort(order)])


def normal_values(values: Floats, families: Sequence[str]) -> Floats:
    """Return the table with lognormal items logged, shape (N, J)."""
    logged = np.array([family == "lognormal" for family in families])
    out = values.copy()
    out[:, logged] = np.log(values[:, logged])
    return out


def refuse_other_families(families: Sequence[str], known: Sequence[str], method: str) -> None:
    """Refuse the first family that a method does not know."""
    for family in families:
        if family not in known:
            raise SettingError(
                f"{method} needs items that are {' or '.join(known)}, got {family!r}; compare "
                "with another baseline"
            )


def graph_of_law(probabilities: Floats, n_latents: int, n_rows: float) -> CPDAG:
    """Return the graph that the library's search finds in a law of binary latents, (2^K,).

    The law counts for ``n_rows`` rows.
    """
    space = StateSpace.binary(n_latents)
    seen = probabilities > 0
    weights = n_rows * probabilities[seen]
    names = tuple(f"Z{k + 1}" for k in range(n_latents))
    counts = LatentCounts(space.states()[seen].astype(np.uint8), weights, space.levels, names)
    if n_latents == 1:
        return CPDAG(np.zeros((1, 1), dtype=np.int8), names)
    return discover(counts)
