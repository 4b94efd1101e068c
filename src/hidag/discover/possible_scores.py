"""BDeu and BIC where a hierarchy rules joint states out: no score pays for what cannot be.

Both scores of a variable with parents are a number of the two together less the same number of the
parents alone. Each is a sum over cells, here over those that some possible joint state is in:

- BIC: n log n less half log N for each cell. A family's free probabilities are its cells less its
  parents' cells.
- BDeu: what a Dirichlet prior makes of the cells' counts. BDeu spreads its prior evenly over joint
  states, here over the possible ones, and a cell has the share of its states. It is the prior of a
  joint law still, so that a combination of levels that leaves its child no choice costs nothing.

As differences of one function of sets, sums over graphs are equal for Markov-equivalent graphs.

Ruled-out states can leave an edge nothing to tell: in a line of skills who has the second has the
first, which therefore says no more of the third. Over graphs with and without such an edge laws are
the same and so are the scores; an edge costs next to nothing, and it is left out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from hidag.discover.scores import ScoreOfCounts
from hidag.latent import LatentCounts

#: Units of a score in one unit of log-likelihood. Terms are whole numbers of them, so that sums are
#: exact in any order.
UNITS = 1 << 20


class PossibleScore(ScoreOfCounts):
    """BDeu or BIC of counts that lie in possible joint states.

    Parameters
    ----------
    counts : LatentCounts
    kind : "bdeu" or "bic"
    equivalent_sample_size : float
        Weight of BDeu's prior, in rows; not used by BIC.
    possible : ndarray of bool, one axis per variable
        Joint states that may occur; all rows are in some of them.
    """

    def __init__(
        self,
        counts: LatentCounts,
        kind: str,
        equivalent_sample_size: float,
        possible: NDArray[np.bool_],
    ) -> None:
        super().__init__(counts, kind, equivalent_sample_size)
        self._states = np.argwhere(possible)
        place = np.full(possible.shape, -1, dtype=np.int64)
        place[possible] = np.arange(len(self._states))
        seen = counts.weights > 0
        # In fixed point: the order of the rows must not show.
        weights, self._exponent = self._fixed_point(counts.weights[seen])
        self._rows = np.zeros(len(self._states), dtype=np.int64)
        np.add.at(self._rows, place[tuple(counts.states[seen].T)], weights)
        self._known: dict[tuple[int, ...], int] = {}

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of variable ``node`` with these parents."""
        family = tuple(sorted((node, *parents)))
        return (self._of_set(family) - self._of_set(parents) - len(parents)) / UNITS

    def _of_set(self, members: tuple[int, ...]) -> int:
        """Return the number of a set of variables, ascending, in units."""
        if members not in self._known:
            code = np.zeros(len(self._states), dtype=np.int64)
            for k in members:
                code = code * self.counts.levels[k] + self._states[:, k]
            size = np.bincount(code)
            rows = np.zeros(len(size), dtype=np.int64)
            np.add.at(rows, code, self._rows)
            n_rows = np.ldexp(rows.astype(np.float64), self._exponent)
            occurs = size > 0
            terms = self._terms(n_rows[occurs], size[occurs] / len(self._states))
            self._known[members] = int(np.rint(terms * UNITS).astype(np.int64).sum())
        return self._known[members]

    def _terms(
        self, n_rows: NDArray[np.float64], share: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what each cell adds, of its rows and its share of the possible joint states."""
        if self.kind == "bic":
            return np.asarray(xlogy(n_rows, n_rows) - 0.5 * math.log(self._total))
        prior = self.equivalent_sample_size * share
        return np.asarray(gammaln(prior + n_rows) - gammaln(prior))
