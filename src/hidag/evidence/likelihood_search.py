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

from hidag.estimate.posterior import HARDLY_SEEN
from hidag.evidence.move_estimates import move_estimates
from hidag.evidence.observed import ObservedFit
from hidag.evidence.single_changes import SingleChanges, edges_of
from hidag.latent import Parents
from hidag.latent.factorise import Class, class_of, n_free_probabilities

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
    changes : SingleChanges
        Those that may be made.
    """

    observed: ObservedFit
    changes: SingleChanges = field(default_factory=SingleChanges)
    _known: dict[Class, FittedGraph] = field(default_factory=dict)

    @property
    def price(self) -> float:
        """What each of the law's numbers costs."""
        return 0.5 * float(np.log(max(self.observed.data.n_counted, 2.0)))

    def fitted(self, parents: Parents, begin: Array) -> FittedGraph:
        """Return the graph with the best law over it, by EM from a law of another graph."""
        which = class_of(parents)
        if which not in self._known:
            law, value = self.observed.law_over(parents, begin)
            criterion = value - self.price * self._numbers(parents)
            self._known[which] = FittedGraph(parents, law, value, criterion)
        return self._known[which]

    def best_from(self, parents: Parents) -> FittedGraph:
        """Return the graph from which no single change leads to a better one."""
        best = self.fitted(parents, self.observed.law)
        while len(self._known) < fits_allowed(self.observed):
            better = self._first_better(best, self._estimated(best), MOST_TRIED)
            if better is None:
                turned = self.changes.all_turned(best.parents)
                better = self._first_better(best, turned, MOST_FITS)
            if better is None:
                break
            best = better
        return best

    def _first_better(
        self, best: FittedGraph, graphs: Iterator[Parents], most: int
    ) -> FittedGraph | None:
        """Return the first of some graphs that is better, or None."""
        tried = {class_of(best.parents)}
        for parents in graphs:
            which = class_of(parents)
            if which in tried:
                continue
            if len(tried) > most or len(self._known) >= fits_allowed(self.observed):
                break
            tried.add(which)
            found = self.fitted(parents, best.law)
            if found.criterion > best.criterion + LEAST_GAIN:
                return found
        return None

    def _estimated(self, best: FittedGraph) -> Iterator[Parents]:
        """Yield graphs with an edge more or less, the most promising first."""
        estimates = move_estimates(self.observed, best.parents, best.law)
        now = self._numbers(best.parents)
        moves: list[tuple[float, Parents]] = []
        for member in self.changes.members(best.parents):
            changed = [
                (self.changes.parted(member, *edge), -estimates.loss(member, *edge))
                for edge in edges_of(member)
            ]
            for (a, b), gain in estimates.gains.items():
                if gain > self.price - WITHIN_REACH:
                    both = (self.changes.joined(member, *edge) for edge in ((a, b), (b, a)))
                    changed += [(one, gain) for one in both]
            for parents, gain in changed:
                if parents is not None:
                    more = self._numbers(parents) - now
                    moves.append((gain - self.price * more, parents))
        moves.sort(key=lambda move: -move[0])
        return (parents for value, parents in moves if value > -WITHIN_REACH)

    def _numbers(self, parents: Parents) -> int:
        return n_free_probabilities(parents, self.observed.space, self.observed.possible)
