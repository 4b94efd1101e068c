"""Where rows are placed, with how far that can be trusted: all joint states listed, or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.estimate.posterior import state_posteriors
from hidag.estimate.tree_posterior import TreePosterior
from hidag.explain.criteria import largest_doubt
from hidag.explain.placement_agreement import (
    Agreement,
    add_placements,
    consistency,
    lone_share,
)
from hidag.explain.second_tables import second_agreements
from hidag.explain.state_tables import MOST_STATES
from hidag.result import FitResult
from hidag.row_posteriors import by_level

Array = NDArray[np.float64]
Levels = NDArray[np.int64]

#: With a larger share of rows that may be alone in their profile, pairs of rows tell too little of
#: how a profile is placed: consistency would come out too low by up to about this much.
MOST_ALONE = 0.05
FEW_ROWS = "rows are too few for so many joint states"
UNEQUAL_ROWS = "rows lack different cells"


@dataclass(frozen=True)
class Placements:
    """Where N rows are, and the quality of such placements.

    Attributes
    ----------
    probabilities : tuple of K arrays, shape (N, M_k)
        Posteriors of levels.
    profiles : ndarray of int, shape (N, K)
        Jointly most probable levels.
    top : ndarray, shape (N,)
        Probabilities of the profiles; NaN where joint states cannot be summed over.
    agreements : list of (float, float)
        Each latent's consistency with its kappa.
    whole : tuple of float
        Accuracy, consistency, kappa and entropy of whole profiles.
    n_drawn : int
        Rows that were drawn for consistency; 0 where pairs of rows tell it.
    untold : str
        Why pairs of rows do not tell it.
    joint : bool
        Whether consistency is given all latents; else given each latent alone.
    """

    probabilities: tuple[Array, ...]
    profiles: Levels
    top: Array
    agreements: list[Agreement]
    whole: tuple[float, ...]
    n_drawn: int = 0
    untold: str = ""
    joint: bool = True


def placements(result: FitResult, values: Array) -> Placements:
    """Return where rows are, shape (N, J)."""
    if result.law.space.n_states <= MOST_STATES:
        return _listed(result, values)
    tree = TreePosterior.of(result.parameters, result.law)
    if tree is not None:
        return _summed(result, values, tree)
    probabilities = tuple(result.posterior_levels(values))
    agreements = [_given_latent(table) for table in probabilities]
    unknown = np.full(len(values), np.nan)
    profiles = result.classify(values)
    return Placements(probabilities, profiles, unknown, agreements, (np.nan,) * 4, joint=False)


def levels_of(probabilities: Sequence[Array]) -> Levels:
    """Return the most probable level of each latent by itself, (N, K), of K posteriors (N, M_k)."""
    return np.column_stack([table.argmax(axis=1) for table in probabilities])


def _listed(result: FitResult, values: Array) -> Placements:
    """Return where rows are, by a sum over all joint states."""
    space = result.law.space
    states = space.states()
    indicators = [
        (states[:, [k]] == np.arange(m)).astype(np.float64) for k, m in enumerate(space.levels)
    ]
    tables = [np.empty((len(values), m)) for m in space.levels]
    place = np.empty(len(values), dtype=np.int64)
    top = np.empty(len(values))
    by_level: list[dict[int, Array]] = [{} for _ in space.levels]
    by_profile: dict[int, Array] = {}
    squares, doubt = np.zeros(space.n_states), 0.0
    expanded = result.responses.expand(values)
    for rows, posterior in state_posteriors(result.parameters, result.law, expanded):
        for table, indicator, sums in zip(tables, indicators, by_level, strict=True):
            table[rows] = posterior @ indicator
            add_placements(sums, table[rows].argmax(axis=1), posterior)
        here = posterior.argmax(axis=1)
        place[rows] = here
        top[rows] = posterior[np.arange(len(here)), here]
        doubt -= float(xlogy(posterior, posterior).sum())
        squares += np.einsum("ns,ns->s", posterior, posterior)
        add_placements(by_profile, here, posterior)
    agreements = [consistency(sums, squares) for sums in by_level]
    agreement, n_drawn = consistency(by_profile, squares), 0
    untold = FEW_ROWS if lone_share(by_profile) > MOST_ALONE else _unequal(values)
    if untold:
        levels = levels_of(tables)
        agreements, agreement, n_drawn = second_agreements(result, values, levels, states[place])
    whole: tuple[float, ...] = (np.nan,) * 4
    if len(values):
        entropy = 1.0 - doubt / (len(values) * largest_doubt(result))
        whole = (float(top.mean()), *agreement, entropy)
    return Placements(tuple(tables), states[place], top, agreements, whole, n_drawn, untold)


def _unequal(values: Array) -> str:
    """Return that rows (N, J) lack different cells, if they do.

    A second table about a row lacks the same ones, and rows of which others were seen are placed
    otherwise: pairs of them would tell of too little consistency.
    """
    missing = np.isnan(values)
    return UNEQUAL_ROWS if (missing != missing[:1]).any() else ""


def _summed(result: FitResult, values: Array, tree: TreePosterior) -> Placements:
    """Return where rows are, by sums over small tables."""
    expanded = result.responses.expand(values)
    probabilities = tuple(by_level(tree.marginals(expanded), result.terms))
    profiles, densities = tree.modes_with_densities(expanded)
    top = np.exp(np.minimum(densities - tree.log_densities(expanded), 0.0))
    levels = levels_of(probabilities)
    agreements, agreement, n_drawn = second_agreements(result, values, levels, profiles, tree)
    whole: tuple[float, ...] = (np.nan,) * 4
    if len(values):
        entropy = 1.0 - float(tree.doubts(expanded).mean()) / largest_doubt(result)
        whole = (float(top.mean()), *agreement, entropy)
    return Placements(probabilities, profiles, top, agreements, whole, n_drawn, FEW_ROWS)


def _given_latent(probabilities: Array) -> Agreement:
    """Return consistency and kappa of one latent given its own level alone, posteriors (N, M)."""
    sums: dict[int, Array] = {}
    add_placements(sums, probabilities.argmax(axis=1), probabilities)
    return consistency(sums, (probabilities**2).sum(axis=0))
