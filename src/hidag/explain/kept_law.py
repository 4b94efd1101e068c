"""The law of a refit as plain arrays: a joint table while it is small, else parents and tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hidag.latent import LatentLaw, NetworkLaw, StateSpace

Array = NDArray[np.float64]

#: Laws with more joint states than this are kept as a network, if they are one. A saturated law is
#: nothing but its joint table, so tables are kept as far as hundreds of refits have room.
MOST_JOINT_STATES = 1 << 13


def can_be_kept(law: LatentLaw) -> bool:
    """Return whether refits keep laws of this kind."""
    return isinstance(law, NetworkLaw) or law.space.n_states <= MOST_JOINT_STATES


def kept_joint(law: LatentLaw) -> Array:
    """Return the probabilities of joint states, none where they are too many."""
    if law.space.n_states > MOST_JOINT_STATES:
        return np.zeros(0)
    return np.asarray(law.probabilities)


def no_edges() -> NDArray[np.int8]:
    """Return what stands for the parents of a law that is not kept as a network."""
    return np.zeros((0, 0), dtype=np.int8)


def no_cells() -> Array:
    """Return what stands for the tables of a law that is not kept as a network."""
    return np.zeros(0)


def kept_network(law: LatentLaw) -> tuple[NDArray[np.int8], Array]:
    """Return parents and tables of a large network; nothing where the joint table is kept.

    Returns
    -------
    edges : ndarray of int8, shape (K, K)
        1 where the row's latent is a parent of the column's.
    cells : ndarray
        All tables one after the other, each over its parents from the lowest index up.
    """
    if not isinstance(law, NetworkLaw) or law.space.n_states <= MOST_JOINT_STATES:
        return no_edges(), no_cells()
    edges = np.zeros((law.space.n_latents,) * 2, dtype=np.int8)
    cells = []
    for k, (parents, table) in enumerate(zip(law.parents, law.tables, strict=True)):
        edges[list(parents), k] = 1
        cells.append(table.transpose([*np.argsort(parents), len(parents)]).ravel())
    return edges, np.concatenate(cells)


def network_of(levels: tuple[int, ...], edges: NDArray[np.int8], cells: Array) -> NetworkLaw:
    """Return the law that :func:`kept_network` took apart; cells beyond its tables are ignored."""
    parents = tuple(tuple(np.flatnonzero(column).tolist()) for column in edges.T)
    tables, start = [], 0
    for k, own in enumerate(parents):
        shape = (*(levels[a] for a in own), levels[k])
        size = int(np.prod(shape))
        tables.append(cells[start : start + size].reshape(shape))
        start += size
    return NetworkLaw(StateSpace(levels), parents, tuple(tables))


def stacked_networks(
    edges: Sequence[NDArray[np.int8]], cells: Sequence[Array]
) -> tuple[NDArray[np.int8], Array]:
    """Return the networks of refits with a first axis over them; none if some refit has none.

    Refits have tables of other sizes: NaN stands after the cells of the smaller ones.
    """
    if not all(len(one) for one in edges):
        return np.zeros((len(edges), 0, 0), dtype=np.int8), np.zeros((len(cells), 0))
    out = np.full((len(cells), max(len(one) for one in cells)), np.nan)
    for row, one in zip(out, cells, strict=True):
        row[: len(one)] = one
    return np.stack(edges), out
