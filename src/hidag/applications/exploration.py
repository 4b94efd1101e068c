"""Exploring a table of which nothing is known: how many latents, what they are, what comes back.

Real tables have no true number of latents: with enough rows every criterion of fit asks for more,
because no table is exactly what the model says. So the number is not left to fit alone. It is the
largest for which every latent is found again by fits to two halves of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.applications.naming import direct_effects, names_by_items, renamed
from hidag.applications.replication import (
    COMES_BACK,
    Agreement,
    edge_support,
    split_half_agreement,
)
from hidag.criteria import information_criteria
from hidag.result import FitResult
from hidag.select import Selection, select
from hidag.select.candidates import Table

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Exploration:
    """A table explored.

    Attributes
    ----------
    table : Table
    selection : Selection
        Criteria of fit for each number of latents.
    halves : mapping from int to Agreement
        How fits to two halves of the rows agree, by number of latents.
    chosen : int
    result : FitResult
        The fit with the chosen number, latents named by their items.
    effects : ndarray, shape (J, K)
        What switching a latent does to an item, in standard deviations.
    edges : list of (cause, effect, share with the edge, share with the direction)
        Over the refits.
    latents_again : ndarray, shape (n_refits, K)
        Correlations of each latent with its partner in a refit.
    refits : tuple of str
        What the refits were.
    """

    table: Table
    selection: Selection
    halves: Mapping[int, Agreement]
    chosen: int
    result: FitResult
    effects: Array
    edges: list[tuple[int, int, float, float]]
    latents_again: Array
    refits: tuple[str, ...]

    @property
    def all_come_back(self) -> bool:
        """Whether every latent of the chosen number comes back in the other half."""
        return self.halves[self.chosen].lowest >= COMES_BACK

    @property
    def criterion_at_end(self) -> bool:
        """Whether EBIC would have the largest of several numbers that were fitted."""
        fitted = list(self.selection.fitted)
        return len(fitted) > 1 and self.selection.votes["EBIC"] == fitted[-1]

    def posterior(self) -> Array:
        """Return the chance of each latent for each row, shape (N, K)."""
        return self.result.posterior(self.table.values)


def explore(
    table: Table,
    numbers: Sequence[int],
    *,
    seed: int,
    n_seeds: int = 2,
    settings: Mapping[str, Any] | None = None,
    raised_only: bool = False,
) -> Exploration:
    """Fit several numbers of latents, choose the largest that comes back, and look at it closely.

    Parameters
    ----------
    table : Table
    numbers : sequence of int
        Numbers of latents to fit.
    seed : int
    n_seeds : int
        More fits of the chosen number to all rows, from other seeds; the best by EBIC is kept, and
        the others show how stable it is.
    settings : mapping, optional
        Of the estimator.
    raised_only : bool
        Whether latents are named by the items that they raise alone.
    """
    given = dict(settings or {})
    selection = select(
        table.observations,
        numbers,
        family=list(table.families),
        fits="all",
        folds=0,
        sample_weight=table.weights,
        random_state=seed,
        **given,
    )
    halves, half_fits = {}, {}
    for k in selection.fitted:
        halves[k], half_fits[k] = split_half_agreement(table, k, {**given, "random_state": seed})
    chosen = largest_that_comes_back({k: met.lowest for k, met in halves.items()})
    first = selection.result_with(chosen)
    assert first is not None
    whole = {seed: first}
    for other in np.random.SeedSequence(seed).generate_state(n_seeds).tolist():
        whole[int(other)] = table.fit(chosen, None, {**given, "random_state": int(other)}).result_
    # The likelihood has local optima: of fits to all rows the best is the one to look at.
    best = min(whole, key=lambda s: information_criteria(whole[s], table.n_counted).ebic)
    fitted = whole.pop(best)
    refits = [*half_fits[chosen], *whole.values()]
    labels = ["first half of the rows", "second half of the rows"]
    labels += [f"all rows, seed {other}" for other in whole]
    effects = direct_effects(fitted, table)
    result = renamed(fitted, names_by_items(fitted, effects, raised_only=raised_only))
    edges, again = edge_support(result, refits, table)
    return Exploration(
        table, selection, halves, chosen, result, effects, edges, again, tuple(labels)
    )


def largest_that_comes_back(lowest: Mapping[int, float]) -> int:
    """Return the largest number of latents of which all come back, else the one that does best.

    Parameters
    ----------
    lowest : mapping from int to float
        The lowest correlation of a latent with its partner, by number of latents.
    """
    good = [k for k, value in lowest.items() if value >= COMES_BACK]
    return max(good) if good else max(lowest, key=lambda k: (lowest[k], -k))
