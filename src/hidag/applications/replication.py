"""Do latents come back: in the other half of the rows, from another seed?

Fits are compared by what they say of rows: the chances that they give a row to have a latent.
Names, order and direction of latents are arbitrary, and so is what a coefficient's size means in
different families; who has a latent is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hidag.estimate.canonical import canonical_order
from hidag.result import FitResult
from hidag.select.candidates import Table

Array = NDArray[np.float64]

#: A latent is said to come back if the chances of rows correlate at least so much.
COMES_BACK = 0.8


@dataclass(frozen=True)
class Agreement:
    """How a fit's latents are met by those of another.

    Attributes
    ----------
    partner : ndarray of int, shape (K,)
        The other fit's latent for each latent.
    correlation : ndarray, shape (K,)
        Of the rows' chances, up to its sign.
    """

    partner: NDArray[np.intp]
    correlation: Array

    @property
    def lowest(self) -> float:
        """The correlation of the latent that is met least well."""
        return float(self.correlation.min())


def agreement(one: Array, other: Array, weights: Array | None = None) -> Agreement:
    """Return which latents of two fits go together, from rows' chances (N, K) under both."""
    counts = np.ones(len(one)) if weights is None else weights
    sides = []
    for chances in (one, other):
        centred = chances - np.average(chances, axis=0, weights=counts)
        length = np.sqrt(counts @ centred**2)
        sides.append(centred / np.maximum(length, 1e-12))
    table = np.abs(sides[0].T @ (sides[1] * counts[:, None]))
    rows, columns = linear_sum_assignment(table, maximize=True)
    partner = np.full(one.shape[1], -1, dtype=np.intp)
    partner[rows] = columns
    return Agreement(partner, np.asarray(table[rows, columns]))


def halves_of(table: Table) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two halves of the rows, shape (N,) each; by contents, so that order is nothing."""
    rows, _ = canonical_order(table.values, table.families, table.weights)
    first = np.zeros(len(rows), dtype=bool)
    first[rows[::2]] = True
    return first, ~first


def split_half_agreement(
    table: Table, n_latents: int, settings: Mapping[str, Any]
) -> tuple[Agreement, tuple[FitResult, FitResult]]:
    """Return how fits to two halves of the rows agree about all rows, and the fits."""
    one, two = (table.fit(n_latents, None, settings, half).result_ for half in halves_of(table))
    met = agreement(one.posterior(table.values), two.posterior(table.values), table.weights)
    return met, (one, two)


def edge_support(
    result: FitResult, others: Sequence[FitResult], table: Table
) -> tuple[list[tuple[int, int, float, float]], Array]:
    """Return how often each edge, and each latent, is found again by other fits.

    Returns
    -------
    list of (cause, effect, share with the edge, share with the same direction)
        For each edge of the fit's graph; undirected ones with the smaller number first.
    ndarray, shape (n_others, K)
        Correlations of each latent with its partner.
    """
    own = result.posterior(table.values)
    found = [agreement(own, other.posterior(table.values), table.weights) for other in others]
    adjacency = np.asarray(result.graph.adjacency, dtype=bool)
    edges = []
    for i, j in zip(*np.nonzero(np.triu(adjacency | adjacency.T, 1)), strict=True):
        cause, effect = (j, i) if adjacency[j, i] and not adjacency[i, j] else (i, j)
        joined, same = 0, 0
        for other, met in zip(others, found, strict=True):
            theirs = np.asarray(other.graph.adjacency, dtype=bool)
            a, b = met.partner[cause], met.partner[effect]
            joined += bool(theirs[a, b] or theirs[b, a])
            same += bool(
                theirs[a, b] == adjacency[cause, effect]
                and theirs[b, a] == adjacency[effect, cause]
            )
        n = max(len(others), 1)
        edges.append((int(cause), int(effect), joined / n, same / n))
    return edges, np.array([met.correlation for met in found]).reshape(len(others), own.shape[1])
