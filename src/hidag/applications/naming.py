"""What a latent does to the items, and a name for it from those it does most to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG
from hidag.result import FitResult

Array = NDArray[np.float64]

#: Items in a latent's name.
ITEMS_IN_NAME = 2


def direct_effects(result: FitResult) -> Array:
    """Return what switching each binary latent does to each item, in standard deviations, (J, K).

    The item's mean with the latent at 1 less that with it at 0, the others as they are, averaged
    over the latents' law and divided by the item's standard deviation under the model: one scale
    for counts, grades, yeses and measurements.
    """
    states = result.law.space.states()
    chance = np.asarray(result.law.probabilities)
    means = result.item_means(states)
    strides = result.law.space.number(np.eye(states.shape[1], dtype=np.int64))
    effects = np.zeros((means.shape[1], states.shape[1]))
    for k, stride in enumerate(strides):
        low = np.arange(len(states)) - states[:, k].astype(np.int64) * stride
        effects[:, k] = chance @ (means[low + stride] - means[low])
    spread = item_spreads(result)
    return np.asarray(effects / spread[:, None])


def item_spreads(result: FitResult, n_draws: int = 20_000) -> Array:
    """Return the standard deviations of the items under the model, by simulation, shape (J,)."""
    rng = np.random.default_rng(0)
    drawn = result.sample_items(result.law.sample(n_draws, rng), rng)
    return np.asarray(np.maximum(drawn.std(axis=0), 1e-12))


def names_by_items(result: FitResult, effects: Array) -> tuple[str, ...]:
    """Return a name for each latent: its strongest items, a minus before those that it lowers.

    Latents that would share a name take more items in; an idle latent keeps its own name.
    """
    names: list[str] = []
    for k in range(effects.shape[1]):
        order = [
            j for j in np.argsort(-np.abs(effects[:, k]), kind="stable") if result.q_matrix[j, k]
        ]
        words = [
            ("\N{MINUS SIGN}" if effects[j, k] < 0 else "") + result.item_names[j] for j in order
        ]
        name = result.latent_names[k]
        for size in range(ITEMS_IN_NAME, len(words) + 1):
            name = ", ".join(words[:size])
            if name not in names:
                break
        names.append(name if words and name not in names else result.latent_names[k])
    return tuple(names)


def renamed(result: FitResult, names: tuple[str, ...]) -> FitResult:
    """Return the same fit with other names for its latents."""
    graph = CPDAG(np.asarray(result.graph.adjacency), names)
    new = dict(zip(result.latent_names, names, strict=True))
    tests = tuple(
        replace(
            test, pair=(new.get(test.pair[0], test.pair[0]), new.get(test.pair[1], test.pair[1]))
        )
        for test in result.edge_tests
    )
    return replace(result, latent_names=names, graph=graph, edge_tests=tests)
