"""Free parameters of a latent law: log ratios inside each distribution that it is made of.

A saturated law is one distribution over all joint states; a law over a graph is one distribution
for each latent and each combination of its parents' levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.law_rounds import OCCUPIED
from hidag.explain.state_tables import ListedTables, StateTables
from hidag.latent import LatentLaw, NetworkLaw

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LawBlock:
    """One distribution of the law.

    Attributes
    ----------
    subject : str
        The latent, or "profile" for the distribution over joint states.
    given : str
        The parents' levels in words; empty without parents.
    words : tuple of str, length m
        The outcomes.
    inside : ndarray of bool, shape (S,)
        The states that the distribution is about, without those that prerequisites rule out: joint
        states, or those of a smaller table.
    outcome : ndarray of int, shape (S,)
        The outcome that each state is.
    probabilities : ndarray, shape (m,)
    free : ndarray of int
        Outcomes whose log ratio to the most probable one is estimated. Those that less than half
        a row is expected in are at the edge, where there is nothing to estimate.
    latent : int
        Whose distribution it is; -1 for one over joint states.
    configuration : tuple of int
        The parents' levels.
    table : int
        Whose states ``inside`` and ``outcome`` are about.
    """

    subject: str
    given: str
    words: tuple[str, ...]
    inside: NDArray[np.bool_]
    outcome: NDArray[np.intp]
    probabilities: Array
    free: NDArray[np.intp]
    latent: int = -1
    configuration: tuple[int, ...] = ()
    table: int = 0

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Outcomes that prerequisites leave possible, whatever was estimated, shape (m,)."""
        return np.bincount(self.outcome[self.inside], minlength=len(self.words)) > 0

    @property
    def estimated(self) -> NDArray[np.bool_]:
        """Outcomes whose probability has a standard error, shape (m,)."""
        out = np.zeros(len(self.words), dtype=bool)
        out[self.free] = True
        if len(self.free):
            out[int(np.argmax(self.probabilities))] = True
        return out

    def scores(self) -> Array:
        """Return derivatives of a state's log probability by the free parameters, (S, L)."""
        here = self.outcome[:, None] == self.free
        return np.asarray(self.inside[:, None] * (here - self.probabilities[self.free]))

    def curvature(self, counts: Array) -> Array:
        """Return minus the second derivatives, summed over counts of states (S,), (L, L)."""
        p = self.probabilities[self.free]
        return float(counts[self.inside].sum()) * (np.diag(p) - np.outer(p, p))

    def moved(self, parameter: int, by: float) -> Array:
        """Return the probabilities with one of the free log ratios moved, shape (m,)."""
        turned = self.probabilities.copy()
        turned[self.free[parameter]] *= np.exp(by)
        return np.asarray(turned / turned.sum())

    def slopes(self) -> Array:
        """Return derivatives of the probabilities by the free parameters, shape (m, L)."""
        p = self.probabilities
        chosen = np.eye(len(p))[:, self.free]
        return np.asarray(p[:, None] * (chosen - p[self.free]))


def law_blocks(
    law: LatentLaw,
    names: Sequence[str],
    n_rows: float,
    ruled_out: NDArray[np.bool_] | None = None,
    tables: StateTables | None = None,
) -> list[LawBlock]:
    """Return the distributions that a law is made of.

    Parameters
    ----------
    law : LatentLaw
    names : sequence of str, length K
    n_rows : float
        Rows that the law was estimated from.
    ruled_out : ndarray of bool, shape (S,), optional
        Joint states that prerequisites rule out.
    tables : StateTables, optional
        Whose states blocks are about; all joint states unless given.
    """
    over = ListedTables(law, 0) if tables is None else tables
    if not isinstance(law, NetworkLaw):
        states = over.states(0)
        may_occur = np.ones(len(states), dtype=bool) if ruled_out is None else ~ruled_out
        words = tuple("".join(map(str, state)) for state in states.tolist())
        p = np.asarray(law.probabilities)
        return [
            LawBlock("profile", "", words, may_occur, np.arange(len(states)), p, _free(n_rows * p))
        ]
    out = []
    for k, causes in enumerate(law.parents):
        table = int(over.of_latent[k])
        states, shares = over.states(table), over.shares(table)
        levels = [law.space.levels[a] for a in causes]
        for configuration in product(*(range(m) for m in levels)):
            inside = np.all(states[:, list(causes)] == np.array(configuration, dtype=int), axis=1)
            if ruled_out is not None:
                inside &= ~ruled_out
            given = ", ".join(
                f"{names[a]}={level}" for a, level in zip(causes, configuration, strict=True)
            )
            words = tuple(str(level) for level in range(law.space.levels[k]))
            p = np.asarray(law.tables[k][configuration])
            mass = n_rows * float(shares[inside].sum())
            outcome = np.asarray(states[:, k], dtype=np.intp)
            out.append(
                LawBlock(
                    names[k],
                    given,
                    words,
                    inside,
                    outcome,
                    p,
                    _free(mass * p),
                    k,
                    configuration,
                    table,
                )
            )
    return out


def _free(expected: Array) -> NDArray[np.intp]:
    """Return the outcomes that enough rows are expected in, (m,), but for the most probable."""
    occupied = np.flatnonzero(expected >= OCCUPIED)
    return np.asarray(occupied[occupied != int(np.argmax(expected))])
