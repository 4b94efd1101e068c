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
        The joint states that the distribution is about, without those that prerequisites rule
        out.
    outcome : ndarray of int, shape (S,)
        The outcome that each joint state is.
    probabilities : ndarray, shape (m,)
    free : ndarray of int
        Outcomes whose log ratio to the most probable one is estimated. Those that less than half
        a row is expected in are at the edge, where there is nothing to estimate.
    """

    subject: str
    given: str
    words: tuple[str, ...]
    inside: NDArray[np.bool_]
    outcome: NDArray[np.intp]
    probabilities: Array
    free: NDArray[np.intp]

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
) -> list[LawBlock]:
    """Return the distributions that a law over listed states is made of.

    Parameters
    ----------
    law : LatentLaw
    names : sequence of str, length K
    n_rows : float
        Rows that the law was estimated from.
    ruled_out : ndarray of bool, shape (S,), optional
        Joint states that prerequisites rule out.
    """
    states = law.space.states()
    may_occur = np.ones(len(states), dtype=bool) if ruled_out is None else ~ruled_out
    if not isinstance(law, NetworkLaw):
        words = tuple("".join(map(str, state)) for state in states.tolist())
        return [_block("profile", "", words, may_occur, np.arange(len(states)), law, n_rows, None)]
    out = []
    shares = np.asarray(law.probabilities)
    for k, causes in enumerate(law.parents):
        levels = [law.space.levels[a] for a in causes]
        for configuration in product(*(range(m) for m in levels)):
            inside = np.all(states[:, list(causes)] == np.array(configuration, dtype=int), axis=1)
            inside &= may_occur
            given = ", ".join(
                f"{names[a]}={level}" for a, level in zip(causes, configuration, strict=True)
            )
            words = tuple(str(level) for level in range(law.space.levels[k]))
            mass = n_rows * float(shares[inside].sum())
            table = law.tables[k][configuration]
            out.append(_block(names[k], given, words, inside, states[:, k], law, mass, table))
    return out


def _block(
    subject: str,
    given: str,
    words: tuple[str, ...],
    inside: NDArray[np.bool_],
    outcome: NDArray[np.intp],
    law: LatentLaw,
    mass: float,
    probabilities: Array | None,
) -> LawBlock:
    p = np.asarray(law.probabilities if probabilities is None else probabilities)
    occupied = np.flatnonzero(mass * p >= OCCUPIED)
    free = occupied[occupied != int(np.argmax(p))]
    return LawBlock(subject, given, words, inside, np.asarray(outcome, dtype=np.intp), p, free)
