"""Which latent comes where and which way round, and whether two graphs are the same class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG, DAG
from hidag.estimate.level_order import levels_in_line
from hidag.estimate.working import WorkingData
from hidag.latent import NetworkLaw
from hidag.measurement import MeasurementParameters
from hidag.stage_one.rising import Shares, votes_for_rising

#: For each latent, which of its levels comes to be level v.
LevelOrders = tuple[NDArray[np.intp], ...]


def settle_labels(
    working: MeasurementParameters,
    data: WorkingData,
    shares: Shares,
    *,
    reorder: bool,
    relevel: bool = True,
) -> tuple[MeasurementParameters, LevelOrders, NDArray[np.intp]]:
    """Return parameters with levels and latents in a settled order, and the two orders.

    Parameters
    ----------
    working : MeasurementParameters
        On the working scale of ``data``.
    data : WorkingData
    shares : callable
        From some latents to the shares of their joint levels under the fitted law.
    reorder : bool
        Whether latents are put in an order of their own, the strongest first.
    relevel : bool
        Whether levels are put in order.

    Returns
    -------
    parameters : MeasurementParameters
        Latent ``order[k]`` in place k, its items higher on the whole at its higher level.
    levels : tuple of ndarray of int
        For each latent, in the old order, which of its levels comes to be level v.
    order : ndarray of int, shape (K,)
    """
    levels = tuple(np.arange(m) for m in working.terms.levels)
    if relevel:
        rises = votes_for_rising(working, data, shares).sum(axis=0) >= 0
        levels = tuple(
            levels_in_line(working, k) if m > 2 else np.array([0, 1] if rises[k] else [1, 0])
            for k, m in enumerate(working.terms.levels)
        )
    turned = working.relevelled(levels)
    order = np.arange(working.n_latents)
    if reorder:
        order = strongest_first(turned)
    return turned.reordered(latents=order), levels, order


def strongest_first(parameters: MeasurementParameters) -> NDArray[np.intp]:
    """Return latents by falling strength among those with as many levels, shape (K,).

    That does not depend on how columns stand in the table.
    """
    strength = np.abs(parameters.strengths).sum(axis=0)
    levels = np.array(parameters.terms.levels)
    order = np.arange(len(levels))
    for m in set(parameters.terms.levels):
        alike = np.flatnonzero(levels == m)
        order[alike] = alike[np.argsort(-strength[alike], kind="stable")]
    return order


def same_class(graph: CPDAG, law: NetworkLaw) -> bool:
    """Return whether a law's own graph is one of those that the graph stands for."""
    return graph.contains(DAG.from_parents(law.parents, graph.names))
