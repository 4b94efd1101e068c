"""Which way round latents are, where that changes the model: items that need all their latents.

Main effects do not care which level of a latent is called 1; a product of latents does. An item
that needs all its latents is, with their levels reversed, one that any of them is enough for. So
the two models differ only once levels are said to go up with the items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.loop import Estimate
from hidag.estimate.working import WorkingData
from hidag.latent import StateSpace
from hidag.stage_one.labels import settle_labels
from hidag.stage_one.rising import shares_of_law
from hidag.start.records import StageOne

Array = NDArray[np.float64]


def latest(stage_one: StageOne) -> Estimate:
    """Return the estimate that counts: under the law over a graph, where there is one."""
    return stage_one.best if stage_one.network is None else stage_one.network.estimate


def levels_rising(stage_one: StageOne, data: WorkingData, space: StateSpace) -> StageOne:
    """Return the same answer with latents' levels going up with the items on the whole."""
    now = latest(stage_one)
    shares = shares_of_law(now.probabilities.reshape(space.levels))
    _, orders, _ = settle_labels(now.parameters, data, shares, reorder=False)
    return turned(stage_one, space, orders)


def all_turned(stage_one: StageOne, space: StateSpace) -> StageOne:
    """Return the same answer with all latents' levels reversed."""
    return turned(stage_one, space, [np.arange(m)[::-1] for m in space.levels])


def turned(stage_one: StageOne, space: StateSpace, orders: Sequence[NDArray[np.intp]]) -> StageOne:
    """Return the same answer when level ``orders[k][v]`` of latent k is called level v."""

    def law(probabilities: Array) -> Array:
        cube = probabilities.reshape(space.levels)[np.ix_(*orders)]
        return np.ascontiguousarray(cube.ravel())

    def both(estimate: Estimate) -> Estimate:
        return replace(
            estimate,
            parameters=estimate.parameters.relevelled(orders),
            probabilities=law(estimate.probabilities),
        )

    network = stage_one.network
    if network is not None:
        network = replace(network, estimate=both(network.estimate), freed=law(network.freed))
    return replace(stage_one, best=both(stage_one.best), network=network)
