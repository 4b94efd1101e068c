"""What a latent does to the items, and a name for it from those it does most to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hidag.discover import CPDAG
from hidag.estimate.column_sums import mean_and_spread
from hidag.result import FitResult
from hidag.select.candidates import Table

Array = NDArray[np.float64]

#: Items in a latent's name.
ITEMS_IN_NAME = 2


def direct_effects(result: FitResult, table: Table) -> Array:
    """Return what switching each binary latent does to each item, in standard deviations, (J, K).

    The item's mean with the latent at 1 less that with it at 0, the others as they are, averaged
    over the others' states and divided by the item's standard deviation in the table: one scale
    for counts, grades, yeses and measurements. A pair of states that differ in the latent alone
    weighs as much as both of them occur, because nothing is known of a state that does not; and
    means beyond anything in the table are taken as the nearest value there.
    """
    states = result.law.space.states()
    chance = np.asarray(result.law.probabilities)
    means = within_table(result.item_means(states), table)
    strides = result.law.space.number(np.eye(states.shape[1], dtype=np.int64))
    effects = np.zeros((means.shape[1], states.shape[1]))
    for k, stride in enumerate(strides):
        low = np.flatnonzero(states[:, k] == 0)
        without, having = chance[low], chance[low + stride]
        weight = without * having / np.maximum(without + having, 1e-300)
        step = means[low + stride] - means[low]
        effects[:, k] = weight @ step / max(float(weight.sum()), 1e-300)
    return np.asarray(effects / _spreads(table)[:, None])


def within_table(values: Array, table: Table) -> Array:
    """Return values (n, J) of items cut to the range that the items have in the table."""
    return np.clip(values, np.nanmin(table.values, axis=0), np.nanmax(table.values, axis=0))


def _spreads(table: Table) -> Array:
    """Return the standard deviations of the items in the table, shape (J,)."""
    counts = None if table.weights is None else table.weights
    out = np.empty(table.values.shape[1])
    for j, column in enumerate(table.values.T):
        seen = np.isfinite(column)
        out[j] = mean_and_spread(column[seen], None if counts is None else counts[seen])[1]
    return out


def names_by_items(
    result: FitResult, effects: Array, *, raised_only: bool = False
) -> tuple[str, ...]:
    """Return a name for each latent: its strongest items, a minus before those that it lowers.

    With ``raised_only`` those that it lowers are left out: a word that a subject does not use says
    little about the subject.

    Latents that would share a name take more items in; an idle latent keeps its own name.
    """
    names: list[str] = []
    for k in range(effects.shape[1]):
        order = [
            j
            for j in np.argsort(-np.abs(effects[:, k]), kind="stable")
            if result.q_matrix[j, k] and (effects[j, k] > 0 or not raised_only)
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
