"""Interface of the baselines: input checks, results, and the graph search that they share.

A baseline receives what the estimator receives: the table, the families of the items, the number of
latents and a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.data.table import read_table
from hidag.data.value_checks import check_values
from hidag.exceptions import Advice, DataError, Setting, SettingError
from hidag.fitting.settings import checked_count, root_seed
from hidag.latent.counts import LatentCounts
from hidag.latent.state_space import StateSpace
from hidag.parallel import one_blas_thread
from hidag.structure.graph_search import discover
from hidag.structure.graphs import CPDAG

Floats = NDArray[np.float64]

#: Families that are conditionally normal, lognormal items after a log transform.
NORMAL_FAMILIES = ("gaussian", "lognormal")


@dataclass(frozen=True)
class BaselineResult:
    """Estimates of a baseline.

    Attributes
    ----------
    q_matrix : ndarray of int8, shape (J, K)
        1 where an item depends on a latent.
    graph : CPDAG
        Over the K latents, in the order of the columns of ``q_matrix``.
    notes : dict
        Further results by name, as plain values.
    """

    q_matrix: NDArray[np.int8]
    graph: CPDAG
    notes: dict[str, Any] = field(default_factory=dict)


#: Arguments: complete table, shape (N, J), families, K and a seed.
Method = Callable[[Floats, tuple[str, ...], int, int], BaselineResult]


@dataclass(frozen=True)
class Baseline:
    """A method for comparison.

    Attributes
    ----------
    name : str
        Its key in ``BASELINES``.
    summary : str
        Description in one line.
    method : callable
        Called by `run` after the checks.
    """

    name: str
    summary: str
    method: Method

    def run(
        self, values: ArrayLike, families: Sequence[str], n_latents: int, seed: int
    ) -> BaselineResult:
        """Check the input and apply the method.

        Parameters
        ----------
        values : array_like, shape (N, J)
            Without missing cells.
        families : sequence of str, length J
        n_latents : int
            Number of binary latents.
        seed : int
        """
        try:
            table = np.array(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                "not-numeric", "{method} needs a numeric table", method=self.name
            ) from error
        if table.ndim != 2 or table.size == 0:
            raise DataError(
                "array-shape",
                "{method} needs a table of shape (N, J), got shape {shape}",
                method=self.name,
                shape=table.shape,
            )
        n_missing = int((~np.isfinite(table)).sum())
        if n_missing:
            raise DataError(
                "missing-cells",
                "{method} needs a complete table, but {n} of {size} cells are missing or infinite",
                advice=Advice("drop-missing", "drop rows or items with missing cells"),
                method=self.name,
                n=n_missing,
                size=table.size,
            )
        names = tuple(families)
        if len(names) != table.shape[1]:
            raise SettingError(
                "family-count",
                "{setting} must have {n_items} entries, one per item, got {n}",
                setting=Setting("families"),
                n_items=table.shape[1],
                n=len(names),
            )
        size = checked_count("n_latents", n_latents)
        constant = np.flatnonzero(np.ptp(table, axis=0) == 0)
        if len(constant):
            raise DataError(
                "constant-item",
                "{method} needs items that vary, but {n} of {n_items} columns are constant, the "
                "first is column {first} (from 0)",
                method=self.name,
                n=len(constant),
                n_items=table.shape[1],
                first=int(constant[0]),
            )
        check_values(read_table(table), names)
        root = root_seed(seed)
        # A canonical column order makes the result invariant to permutations of the items.
        order = np.lexsort(table[::-1])
        # Several threads are no faster and could change the order of summation.
        with one_blas_thread():
            found = self.method(
                np.ascontiguousarray(table[:, order]),
                tuple(names[j] for j in order),
                size,
                root,
            )
        return replace(found, q_matrix=found.q_matrix[np.argsort(order)])


def normal_values(values: Floats, families: Sequence[str]) -> Floats:
    """Return the table with the logarithm of lognormal items, shape (N, J)."""
    logged = np.array([family == "lognormal" for family in families])
    out = values.copy()
    out[:, logged] = np.log(values[:, logged])
    return out


def check_families(families: Sequence[str], known: Sequence[str], method: str) -> None:
    """Raise an error for a family that a method does not support."""
    for family in families:
        if family not in known:
            raise SettingError(
                "unsupported-family",
                "{method} supports the families {known}, got {family!r}",
                advice=Advice("another-baseline", "use another baseline"),
                method=method,
                known=" and ".join(known),
                family=family,
            )


def search_distribution(probabilities: Floats, n_latents: int, n_rows: float) -> CPDAG:
    """Search the graph of a distribution of binary latents, shape (2^K,), with sample size N."""
    space = StateSpace.binary(n_latents)
    positive = probabilities > 0
    weights = n_rows * probabilities[positive]
    names = tuple(f"Z{k + 1}" for k in range(n_latents))
    counts = LatentCounts(space.states()[positive].astype(np.uint8), weights, space.levels, names)
    if n_latents == 1:
        return CPDAG(np.zeros((1, 1), dtype=np.int8), names)
    return discover(counts)
