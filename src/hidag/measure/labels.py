"""Which latent comes where and which way round, and whether two graphs are the same class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG, DAG
from hidag.estimate.working import WorkingData
from hidag.latent import NetworkLaw
from hidag.measurement import MeasurementParameters


def settle_labels(
    working: MeasurementParameters, data: WorkingData, *, reorder: bool
) -> tuple[MeasurementParameters, NDArray[np.bool_], NDArray[np.intp]]:
    """Return parameters with signs and order of latents settled, flips (K,) and order (K,).

    Parameters
    ----------
    working : MeasurementParameters
        On the working scale of ``data``.
    data : WorkingData
    reorder : bool
        Whether latents are put in an order of their own, the strongest first.

    Returns
    -------
    parameters : MeasurementParameters
        Latent ``order[k]`` in place k, its loadings summing to a positive number.
    flips : ndarray of bool, shape (K,)
        Latents, in the old order, whose levels change places.
    order : ndarray of int, shape (K,)
    """
    flips = data.to_user(working).strengths.sum(axis=0) < 0
    turned = working.flipped(flips)
    order = np.arange(working.n_latents)
    if reorder:
        order = strongest_first(turned)
    return turned.reordered(latents=order), flips, order


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
    """Return whether a law's own graph is a member of the class."""
    adjacency = np.zeros(graph.adjacency.shape, dtype=np.int8)
    for child, causes in enumerate(law.parents):
        adjacency[list(causes), child] = 1
    return bool(np.array_equal(DAG(adjacency).to_cpdag().adjacency, graph.adjacency))
