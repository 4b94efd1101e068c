"""Second tables about the same people, drawn from the model, and how alike they place rows.

Pairs of rows tell how a profile is placed where each profile has many rows of which the same cells
were seen. Where profiles outnumber rows, those that share a profile at all are mostly rows that
hardly belong to it, and rows of different booklets are placed otherwise than each by itself. Then a
state is drawn for each row given its answers, and from that state answers to the same items: row
and state are a draw from the model together, so that both tables are about one profile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.posterior import state_posteriors
from hidag.estimate.state_draws import listed_states, summed_states
from hidag.estimate.tree_posterior import TreePosterior
from hidag.explain.draws import canonical_rows, drawn_answers
from hidag.explain.placement_agreement import Agreement, beyond_chance
from hidag.result import FitResult
from hidag.row_posteriors import by_level

Array = NDArray[np.float64]
Levels = NDArray[np.int64]

#: Rows that are drawn at least: a share of .95 is known within .002 then, one of .6 within .005.
FEWEST_DRAWN = 10_000
#: What is told of placements is no chance: the same rows have the same second tables.
SEED = 0


def second_agreements(
    result: FitResult,
    values: Array,
    levels: Levels,
    profiles: Levels,
    tree: TreePosterior | None = None,
) -> tuple[list[Agreement], Agreement, int]:
    """Return consistency and kappa of each latent and of whole profiles, and how many rows tell it.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
        The rows; second ones lack the same cells.
    levels : ndarray of int, shape (N, K)
        Where rows are placed on each latent by itself.
    profiles : ndarray of int, shape (N, K)
        Where rows are placed on all latents together.
    tree : TreePosterior, optional
        For sums over small tables; without it all joint states are listed.
    """
    n_latents = result.law.space.n_latents
    if not len(values):
        unknown = (float("nan"), float("nan"))
        return [unknown] * n_latents, unknown, 0
    rows, places = canonical_rows(result, values)
    rows = np.tile(rows, -(-FEWEST_DRAWN // len(values)))
    second = _second_table(result, values[rows], places, tree)
    again, profiles_again = _placed(result, second, tree)
    same = (levels[rows] == again).mean(axis=0)
    alike = [beyond_chance(float(same[k]), _counts(levels[:, [k]])) for k in range(n_latents)]
    whole = float((profiles[rows] == profiles_again).all(axis=1).mean())
    return alike, beyond_chance(whole, _counts(profiles)), len(rows)


def _second_table(
    result: FitResult, values: Array, places: NDArray[np.intp], tree: TreePosterior | None
) -> Array:
    """Return other answers of the people behind rows, with the rows' missing cells, (n, R)."""
    rng = np.random.default_rng(SEED)
    expanded = result.responses.expand(values)
    if tree is None:
        states = listed_states(result.parameters, result.law, expanded, rng)
    else:
        states = summed_states(tree, expanded, rng)
    second = drawn_answers(result, states, places, (SEED,))
    second[np.isnan(values)] = np.nan
    return np.asarray(result.responses.expand(second))


def _placed(
    result: FitResult, expanded: Array, tree: TreePosterior | None
) -> tuple[Levels, Levels]:
    """Return where rows (n, R) are placed on each latent and on all together, (n, K) both."""
    space = result.law.space
    if tree is not None:
        tables = by_level(tree.marginals(expanded), result.terms)
        return np.column_stack([one.argmax(axis=1) for one in tables]), tree.modes(expanded)
    states = space.states()
    indicators = [states[:, [k]] == np.arange(m) for k, m in enumerate(space.levels)]
    levels, profiles = np.empty((2, len(expanded), space.n_latents), dtype=np.int64)
    for rows, posterior in state_posteriors(result.parameters, result.law, expanded):
        for k, indicator in enumerate(indicators):
            levels[rows, k] = (posterior @ indicator).argmax(axis=1)
        profiles[rows] = states[posterior.argmax(axis=1)]
    return levels, profiles


def _counts(levels: Levels) -> Array:
    """Return how many rows (N, k) are at each place that occurs."""
    return np.unique(levels, axis=0, return_counts=True)[1].astype(np.float64)
