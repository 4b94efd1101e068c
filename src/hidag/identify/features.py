"""The features that an item's coefficients multiply: thresholds of its latents, and products."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from hidag.identify.question import Question
from hidag.latent import StateSpace

Array = NDArray[np.float64]


def item_designs(asked: Question) -> tuple[list[Array], list[list[str]]]:
    """Return, for each item, its features in every joint state, shape (S, P_j), and their names.

    The features are one, 1{Z_k >= u} for each latent of the item and each threshold u = 1, ...,
    M_k - 1, and products of such indicators of different latents up to the order asked for.
    """
    states = StateSpace(asked.levels).states()
    found = [item_design(asked, row, states) for row in asked.q]
    return [design for design, _ in found], [words for _, words in found]


def item_design(
    asked: Question, row: NDArray[np.bool_], states: NDArray[np.integer]
) -> tuple[Array, list[str]]:
    """Return the features of an item with a row of Q (K,) in states (n, K), (n, P), and names."""
    columns, words = [np.ones(len(states))], ["intercept"]
    for size in range(1, asked.order + 1):
        for latents in combinations(np.flatnonzero(row).tolist(), size):
            for steps in product(*(range(1, asked.levels[k]) for k in latents)):
                reached = states[:, latents] >= np.array(steps)
                columns.append(np.asarray(reached.all(axis=1), dtype=np.float64))
                words.append(
                    "*".join(_word(asked, k, u) for k, u in zip(latents, steps, strict=True))
                )
    return np.column_stack(columns), words


def _word(asked: Question, latent: int, step: int) -> str:
    name = asked.latent_names[latent]
    return name if asked.levels[latent] == 2 else f"{name}>={step}"
