"""Outcomes of an intervention that are not identified because prerequisites rule states out.

Setting a skill to 1 in the whole population also sets it in people without its prerequisites. No
such person was observed (a violation of positivity), so the data do not identify their other
latents and items. Two kinds of outcome stay identified: latents that do not descend from the
intervention, and items whose coefficients are determined by states that do occur, such as items
with main effects only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from hidag.causal.item_outcomes import Outcome
from hidag.causal.probability_queries import JointTable, intervene, law_factors
from hidag.fitting.information_criteria import states_known
from hidag.latent.junction_tree import Factor
from hidag.latent.laws import NetworkLaw
from hidag.results import FitResult

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Reason in tables for a missing value.
NOT_IDENTIFIED = "not identified: depends on states that prerequisites rule out"
#: Smaller shares of the population are rounding errors.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Unidentified:
    """Outcomes of an intervention that are not identified.

    Attributes
    ----------
    share : float
        Share of the population that the intervention moves into states ruled out by prerequisites.
    latents : ndarray of bool, shape (K,)
    outcomes : ndarray of bool, shape (O,)
    """

    share: float
    latents: Mask
    outcomes: Mask


class PositivityCheck:
    """Finds the unidentified outcomes of interventions in a fit with prerequisites.

    Parameters
    ----------
    result : FitResult
    outcomes : sequence of Outcome
    """

    def __init__(self, result: FitResult, outcomes: Sequence[Outcome]) -> None:
        self.levels = result.law.space.levels
        self.outcomes = tuple(outcomes)
        self.ruled_out = result.ruled_out
        if self.ruled_out is None:
            return
        known = states_known(result)
        # States (S,) in which an item's distribution is not determined by states that occur.
        self._unknown_states = {
            name: ~known[:, result.responses.item == j].all(axis=1)
            for j, name in enumerate(result.item_names)
        }

    def find(
        self,
        law: NetworkLaw,
        do: Mapping[int, int],
        likelihoods: Sequence[Factor] = (),
        given: Iterable[int | str] = (),
    ) -> Unidentified:
        """Return the outcomes of an intervention that are not identified.

        Parameters
        ----------
        law : NetworkLaw
            Before the intervention, over the causal DAG.
        do : mapping from latent to level
        likelihoods : sequence of Factor
            Likelihoods of the evidence observed after the intervention.
        given : iterable of int or str
            That evidence: latents by index, items by name.
        """
        n_latents, n_outcomes = len(self.levels), len(self.outcomes)
        latents, outcomes = np.zeros(n_latents, dtype=bool), np.zeros(n_outcomes, dtype=bool)
        if self.ruled_out is None or not do:
            return Unidentified(0.0, latents, outcomes)
        after = intervene(law, do)
        share = float(np.asarray(after.probabilities)[self.ruled_out].sum())
        shares = JointTable.of([*law_factors(after), *likelihoods], self.levels).table
        graph = nx.DiGraph()
        graph.add_nodes_from(range(n_latents))
        graph.add_edges_from((a, k) for k, causes in enumerate(law.parents) for a in causes)
        latents[:] = [
            k not in do and self._reaches_ruled_out(shares, nx.ancestors(graph, k))
            for k in range(n_latents)
        ]
        items = self._unidentified_items(shares, latents)
        given = tuple(given)
        if any(items[one] if isinstance(one, str) else latents[one] for one in given):
            # The likelihood of this evidence is itself not identified, nor is what follows from it.
            latents[:] = [k not in do for k in range(n_latents)]
            latents[[one for one in given if not isinstance(one, str)]] = False
            items = self._unidentified_items(shares, latents)
        outcomes[:] = [items[one.item] for one in self.outcomes]
        return Unidentified(share, latents, outcomes)

    def _reaches_ruled_out(self, shares: Array, ancestors: set[int]) -> bool:
        """Return whether ancestors of a latent are in a joint state that is ruled out.

        All ancestors and not only the parents: where the others never vary, the data cannot show
        that they are irrelevant given the parents.
        """
        assert self.ruled_out is not None
        others = tuple(a for a in range(len(self.levels)) if a not in ancestors)
        never = self.ruled_out.reshape(self.levels).all(axis=others)
        return bool(shares.sum(axis=others)[never].sum() > _ROUNDING)

    def _unidentified_items(self, shares: Array, latents: Mask) -> dict[str, bool]:
        return {
            one.item: bool(
                latents[list(one.latents)].any()
                or shares.ravel()[self._unknown_states[one.item]].sum() > _ROUNDING
            )
            for one in self.outcomes
        }
