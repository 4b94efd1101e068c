"""The graph among latents by the observed data's likelihood, the items held.

Counts made from a fitted law have one number of rows for all pairs of latents. Where items say
little, what they say differs from pair to pair, and such a search finds edges that the data do not
bear out and misses others. So the graph goes on from there, one edge at a time, taken out, put in
or turned round, as long as the Bayesian information criterion of the *observed* data gets better:
for each graph that is looked at, the law over it is fitted by EM. Which graphs are worth a fit is
estimated first (`hidag.evidence.move_estimates`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hidag.discover.knowledge import FORBIDDEN, KEPT
from hidag.discover.orientation import find_cycle
from hidag.estimate.posterior import HARDLY_SEEN
from hidag.evidence.move_estimates import Pair, move_estimates
from hidag.evidence.observed import ObservedFit
from hidag.latent import Parents
from hidag.latent.factorise import equivalent, n_free_probabilities

Array = NDArray[np.float64]

#: A change is fitted although it is estimated to lose as much as this: estimates are rough.
WITHIN_REACH = 3.0
#: Changes that are fitted at most before the next one must have been made.
MOST_TRIED = 10
#: What a change must gain, in units of log-likelihood: laws are fitted with a tolerance.
LEAST_GAIN = 0.1
#: Graphs that are fitted at the most, fewer when an E-step is dear: this many multiplications
#: divided by one E-step's. With fewer than a handful a search would not get far.
MOST_FITS, WORK_FOR_FITS, FEWEST_FITS = 100, 1e10, 10


def goes_by_likelihood(observed: ObservedFit, ratio: float) -> bool:
    """Return whether a graph is to be found this way.

    Parameters
    ----------
    observed : ObservedFit
        More than two levels, or many rows and states, are left to counts.
    ratio : float
        Share of the latents' information that the items carry: where it is not small counts do.
    """
    few = max(observed.space.levels) == 2 and fits_allowed(observed) >= FEWEST_FITS
    return few and ratio < HARDLY_SEEN


def fits_allowed(observed: ObservedFit) -> int:
    """Return how many graphs may be fitted."""
    return int(min(MOST_FITS, WORK_FOR_FITS // observed.work()))


@dataclass(frozen=True)
class FittedGraph:
    """A graph with the best law over it.

    Attributes
    ----------
    parents : tuple of tuples of int
    law : ndarray, shape (S,)
    log_likelihood : float
        Of the observed data.
    criterion : float
        That less half log N for each of the law's numbers.
    """

    parents: Parents
    law: Array
    log_likelihood: float
    criterion: float


@dataclass
class LikelihoodSearch:
    """A search over graphs of binary latents.

    Attributes
    ----------
    observed : ObservedFit
        With the law that the first graph's begins from.
    rules : ndarray of uint8, shape (K, K), or None
        Of the background knowledge.
    """

    observed: ObservedFit
    rules: NDArray[np.uint8] | None = None
    _known: dict[Parents, FittedGraph] = field(default_factory=dict)

    @property
    def price(self) -> float:
        """What each of the law's numbers costs."""
        return 0.5 * float(np.log(max(self.observed.data.n_counted, 2.0)))

    def fitted(self, parents: Parents, begin: Array) -> FittedGraph:
        """Return the graph with the best law over it, by EM from a law of another graph."""
        known = self._known.get(parents)
        if known is None:
            law, value = self.observed.law_over(parents, begin)
            numbers = n_free_probabilities(parents, self.observed.space)
            known = FittedGraph(parents, law, value, value - self.price * numbers)
            self._known[parents] = known
        return known

    def best_from(self, parents: Parents) -> FittedGraph:
        """Return the graph from which no single change leads to a better one."""
        best = self.fitted(parents, self.observed.law)
        while len(self._known) < fits_allowed(self.observed):
            better = self._first_better(best, self._estimated(best), MOST_TRIED)
            if better is None:
                turns = (self._turned(best.parents, a, k) for a, k in _edges(best.parents))
                better = self._first_better(best, turns, MOST_FITS)
            if better is None:
                break
            best = better
        return best

    def _first_better(
        self, best: FittedGraph, graphs: Iterator[Parents | None], most: int
    ) -> FittedGraph | None:
        """Return the first of some graphs that is better, or None; equivalent ones are one."""
        tried = [best.parents]
        for parents in graphs:
            if len(tried) > most or len(self._known) >= fits_allowed(self.observed):
                break
            if parents is None or any(equivalent(parents, old) for old in tried):
                continue
            tried.append(parents)
            found = self.fitted(parents, best.law)
            if found.criterion > best.criterion + LEAST_GAIN:
                return found
        return None

    def _estimated(self, best: FittedGraph) -> Iterator[Parents | None]:
        """Yield graphs with an edge more or less, the most promising first."""
        estimates = move_estimates(self.observed, best.parents, best.law)
        now = n_free_probabilities(best.parents, self.observed.space)
        moves: list[tuple[float, Parents]] = []
        changed = [
            (self.without(best.parents, *edge), -loss) for edge, loss in estimates.losses.items()
        ]
        for (a, b), gain in estimates.gains.items():
            changed += [(self._with(best.parents, *edge), gain) for edge in ((a, b), (b, a))]
        for parents, gain in changed:
            if parents is None:
                continue
            more = n_free_probabilities(parents, self.observed.space) - now
            moves.append((gain - self.price * more, parents))
        moves.sort(key=lambda move: -move[0])
        return (parents for value, parents in moves if value > -WITHIN_REACH)

    def _with(self, parents: Parents, cause: int, effect: int) -> Parents | None:
        """Return the graph with one more edge; None if there may be none."""
        if self.rules is not None and self.rules[cause, effect] & FORBIDDEN:
            return None
        out = _replaced(parents, effect, {*parents[effect], cause})
        return out if find_cycle(adjacency_of(out)) is None else None

    def without(self, parents: Parents, cause: int, effect: int) -> Parents | None:
        """Return the graph without an edge; None if it has to stay."""
        if self.rules is not None and self.rules[cause, effect] & KEPT:
            return None
        return _replaced(parents, effect, set(parents[effect]) - {cause})

    def _turned(self, parents: Parents, cause: int, effect: int) -> Parents | None:
        """Return the graph with an edge the other way round; None if that may not be."""
        return self._with(_replaced(parents, effect, set(parents[effect]) - {cause}), effect, cause)


def _edges(parents: Parents) -> list[Pair]:
    return [(a, k) for k, causes in enumerate(parents) for a in causes]


def _replaced(parents: Parents, k: int, causes: set[int]) -> Parents:
    """Return the graph with other parents of one latent."""
    return (*parents[:k], tuple(sorted(causes)), *parents[k + 1 :])


def adjacency_of(parents: Parents) -> NDArray[np.int8]:
    """Return the graph as an adjacency, shape (K, K)."""
    out = np.zeros((len(parents),) * 2, dtype=np.int8)
    for a, k in _edges(parents):
        out[a, k] = 1
    return out
