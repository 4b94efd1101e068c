"""What no data tell after setting: it depends on people in states that prerequisites rule out.

Setting a skill in everybody gives it to those who lack its prerequisites too. Nobody was ever seen
in such a state, so what these people's other latents and items would do is anybody's guess, and a
fitted number there is an accident of how coefficients are written. Some things are known all the
same: latents that what is set does not reach, and items whose coefficients follow from states that
do occur, such as those with main effects only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.causal.item_outcomes import Outcome
from hidag.causal.probability_queries import ListedLaw, factors_of, intervened
from hidag.fitting.information_criteria import states_known
from hidag.latent.junction_tree import Factor
from hidag.latent.laws import NetworkLaw, Parents
from hidag.results import FitResult

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Why a number is missing, for tables.
REASON = "depends on states that prerequisites rule out"
#: A smaller share of people is nobody: rounding.
_NOBODY = 1e-9


@dataclass(frozen=True)
class Untold:
    """What has no number after setting.

    Attributes
    ----------
    share : float
        Share of everybody whom setting puts into states that prerequisites rule out.
    latents : ndarray of bool, shape (K,)
    outcomes : ndarray of bool, shape (O,)
    """

    share: float
    latents: Mask
    outcomes: Mask


class Prerequisites:
    """What a fit's prerequisites leave unknown, to be asked after many settings.

    Parameters
    ----------
    result : FitResult
    outcomes : sequence of Outcome
        The numbers about items.
    """

    def __init__(self, result: FitResult, outcomes: Sequence[Outcome]) -> None:
        self.levels = result.law.space.levels
        self.outcomes = tuple(outcomes)
        self.ruled_out = result.ruled_out
        if self.ruled_out is None:
            return
        known = states_known(result)
        rows = {name: result.responses.item == j for j, name in enumerate(result.item_names)}
        #: States in which each item's answers do not follow from those that occur, (S,) each.
        self.unknown = {name: ~known[:, own].all(axis=1) for name, own in rows.items()}

    def untold(
        self,
        law: NetworkLaw,
        do: Mapping[int, int],
        likelihoods: Sequence[Factor] = (),
        given: Iterable[int | str] = (),
    ) -> Untold:
        """Return what has no number after setting.

        Parameters
        ----------
        law : NetworkLaw
            Before setting, over the DAG that has the directions right.
        do : mapping from latent to level
        likelihoods : sequence of Factor
            How probable what is known then is in the states of some latents.
        given : iterable of int or str
            What that is: latents by number, items by name.
        """
        n_latents, n_outcomes = len(self.levels), len(self.outcomes)
        latents, outcomes = np.zeros(n_latents, dtype=bool), np.zeros(n_outcomes, dtype=bool)
        if self.ruled_out is None or not do:
            return Untold(0.0, latents, outcomes)
        after = intervened(law, do)
        share = float(np.asarray(after.probabilities)[self.ruled_out].sum())
        shares = ListedLaw.of([*factors_of(after), *likelihoods], self.levels).table
        latents[:] = [
            k not in do and self._strange(shares, law.parents, k) for k in range(n_latents)
        ]
        items = {one.item: self._unknown_item(one, shares, latents) for one in self.outcomes}
        given = tuple(given)
        if any(items[one] if isinstance(one, str) else latents[one] for one in given):
            # How much what is known then tells about anything else is itself a guess.
            latents[:] = [k not in do for k in range(n_latents)]
            latents[[one for one in given if not isinstance(one, str)]] = False
            items = {one.item: self._unknown_item(one, shares, latents) for one in self.outcomes}
        outcomes[:] = [items[one.item] for one in self.outcomes]
        return Untold(share, latents, outcomes)

    def _strange(self, shares: Array, parents: Parents, k: int) -> bool:
        """Return whether some people's ancestors of a latent are as nobody's can be.

        All ancestors, not its parents alone: that others do not matter beside these is a thing
        that the data cannot show where they never differ.
        """
        assert self.ruled_out is not None
        others = tuple(a for a in range(len(self.levels)) if a not in _ancestors(parents, k))
        never = self.ruled_out.reshape(self.levels).all(axis=others)
        return bool(shares.sum(axis=others)[never].sum() > _NOBODY)

    def _unknown_item(self, one: Outcome, shares: Array, latents: Mask) -> bool:
        there = float(shares.ravel()[self.unknown[one.item]].sum())
        return bool(latents[list(one.latents)].any() or there > _NOBODY)


def _ancestors(parents: Parents, k: int) -> set[int]:
    out: set[int] = set()
    front = list(parents[k])
    while front:
        a = front.pop()
        if a not in out:
            out.add(a)
            front += parents[a]
    return out
