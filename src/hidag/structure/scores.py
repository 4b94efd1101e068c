"""Local scores: how well a set of parents explains a variable, BDeu and BIC.

The score of a graph is the sum of its variables' local scores. Both scores give equal values to
Markov-equivalent graphs, take any number of levels and weights that are not whole. A third, for
variables whose levels are in order, lets tables be lean ones where that pays.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from hidag.exceptions import SettingError
from hidag.kernels import local_scores
from hidag.latent.conditional_tables import free_log_likelihood, table_price
from hidag.latent.counts import LatentCounts
from hidag.latent.laws import possible_cells
from hidag.latent.state_space import StateSpace

#: Up to this many cells a table of counts is filled from bit planes, beyond from row codes;
#: about where the two cost the same.
MAX_PLANE_CELLS = 128

#: Whole weights are written out as rows (and their bit planes) while that is at most this many
#: times longer than the table of configurations: one word holds 64 rows.
MAX_ROWS_PER_CONFIGURATION = 16.0

#: What a score may be, in words.
KNOWN_SCORES = "'bdeu', 'bic', 'lean' or a LocalScore"

#: Digits after the point that a score of lean tables has: below them is the order of the rows.
DIGITS = 6

#: Weights that are whole multiples of the smallest up to this share of themselves count as such.
ROUNDING = 1e-9


@runtime_checkable
class LocalScore(Protocol):
    """What every score offers; the searches only maximise a sum of these numbers.

    It should give equal sums to Markov-equivalent graphs. With one that does not, a search still
    ends and returns a completed graph, but its score depends on the member looked at.
    """

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of variable ``node`` with these parents (ascending indices)."""
        ...


def graph_score(score: LocalScore, parents: Iterable[tuple[int, ...]]) -> float:
    """Return the score of a DAG given by its parent sets; exact to the last bit in any order."""
    return math.fsum(score.local(k, tuple(sorted(pa))) for k, pa in enumerate(parents))


def _checked_sample_size(value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise SettingError(f"equivalent_sample_size must be a positive number, got {value!r}")
    return float(value)


def _checked_total(counts: LatentCounts) -> float:
    # fsum: the order of the rows must not show, not even in the last bit.
    total = math.fsum(counts.weights.tolist())
    if not total > 0:
        raise SettingError("a score needs data: the weights sum to 0")
    return total


def _checked_kind(kind: str) -> str:
    if kind not in ("bdeu", "bic"):
        raise SettingError(f"score must be {KNOWN_SCORES}, got {kind!r}")
    return kind


class ScoreOfCounts:
    """The counts, and which score of them."""

    def __init__(
        self, counts: LatentCounts, kind: str = "bdeu", equivalent_sample_size: float = 1.0
    ) -> None:
        self.counts = counts
        self.kind = _checked_kind(kind)
        self.equivalent_sample_size = _checked_sample_size(equivalent_sample_size)
        self._total = _checked_total(counts)

    def _fixed_point(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
        """Return weights as whole multiples of a power of 2, and its exponent: sums are exact."""
        # 61 bits for the whole sum: as exact as the weights are themselves.
        exponent = 61 - math.ceil(math.log2(self._total) + 1e-9)
        return np.rint(np.ldexp(weights, exponent)).astype(np.int64), -exponent


class PlainScore(ScoreOfCounts):
    """Reference scores: the formulas, cell by cell, in plain Python.

    Parameters
    ----------
    counts : LatentCounts
    kind : "bdeu" or "bic"
    equivalent_sample_size : float
        Weight of BDeu's prior, in rows; not used by BIC.
    """

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of variable ``node`` with these parents."""
        cells: dict[tuple[int, ...], dict[int, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for state, weight in zip(self.counts.states, self.counts.weights, strict=True):
            if weight > 0:
                cells[tuple(int(state[k]) for k in parents)][int(state[node])].append(float(weight))
        r = self.counts.levels[node]
        q = math.prod(self.counts.levels[k] for k in parents)
        terms: list[float] = []
        for of_node in cells.values():
            n_jk = [math.fsum(weights) for weights in of_node.values()]
            n_j = math.fsum(n_jk)
            if self.kind == "bdeu":
                a_j = self.equivalent_sample_size / q
                a_jk = self.equivalent_sample_size / (q * r)
                terms.append(math.lgamma(a_j) - math.lgamma(a_j + n_j))
                terms.extend(math.lgamma(a_jk + n) - math.lgamma(a_jk) for n in n_jk)
            else:
                terms.extend(n * math.log(n / n_j) for n in n_jk)
        if self.kind == "bic":
            terms.append(-0.5 * math.log(self._total) * q * (r - 1))
        return math.fsum(terms)


class CountScore(ScoreOfCounts):
    """BDeu or BIC with compiled counting; answers many questions at once.

    Scores do not depend on the order of rows, columns or levels, not even in the last bit:
    weights and terms are added in fixed point.

    Parameters as of :class:`PlainScore`.
    """

    def __init__(
        self, counts: LatentCounts, kind: str = "bdeu", equivalent_sample_size: float = 1.0
    ) -> None:
        super().__init__(counts, kind, equivalent_sample_size)
        self._levels = np.asarray(counts.levels, dtype=np.int64)
        self._offset = np.concatenate([[0], np.cumsum(self._levels)[:-1]]).astype(np.int64)
        weights = counts.weights
        unit, repeats = _unit_of(weights)
        if unit > 0 and repeats.sum() <= MAX_ROWS_PER_CONFIGURATION * max(1, len(weights)):
            states = np.repeat(counts.states, repeats, axis=0)
            self._states = np.ascontiguousarray(states.T)
            self._weights = np.ones(len(states), dtype=np.int64)
            self._unit = unit
            self._planes = _bit_planes(self._states, counts.levels)
            self._max_plane_cells = MAX_PLANE_CELLS
        else:
            kept = weights > 0
            self._states = np.ascontiguousarray(counts.states[kept].T)
            self._weights, exponent = self._fixed_point(weights[kept])
            self._unit = math.ldexp(1.0, exponent)
            self._planes = np.zeros((int(self._levels.sum()), 0), dtype=np.uint64)
            self._max_plane_cells = 0
        # A score is a sum of at most this size, whatever the parents: the terms of n rows.
        n_cells = len(self._weights) + 1
        largest = self._total * (math.log(self._total + 2.0) + 1.0) + n_cells * 800.0
        self._resolution = math.ldexp(1.0, math.ceil(math.log2(largest)) - 60)

    def many(
        self, nodes: NDArray[np.int64], parent_words: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        """Return the scores of many questions, shape (n,).

        Parameters
        ----------
        nodes : ndarray of int64, shape (n,)
        parent_words : ndarray of uint64, shape (n, n_words)
            Bit sets of the parents, 64 variables to a word, the lowest bit first.
        """
        values: NDArray[np.float64] = local_scores.score_many(
            local_scores.BDEU if self.kind == "bdeu" else local_scores.BIC,
            nodes,
            parent_words,
            self._levels,
            self._states,
            self._weights,
            self._offset,
            self._planes,
            self._max_plane_cells,
            self.equivalent_sample_size,
            self._total,
            self._unit,
            self._resolution,
        )
        return values

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of variable ``node`` with these parents."""
        words = np.zeros((1, (len(self._levels) + 63) // 64), dtype=np.uint64)
        for k in parents:
            words[0, k // 64] |= np.uint64(1 << k % 64)
        return float(self.many(np.array([node], dtype=np.int64), words)[0])


class LeanScore(ScoreOfCounts):
    """BIC in which each table may be a lean one (see :mod:`hidag.latent.conditional_tables`).

    With several levels free tables have so many numbers that weak edges cannot pay for them. Where
    a lean table does as well, only its numbers are paid for. Equivalent graphs need not score
    alike: the reverse of a lean table may not be lean. The class of the best graph is meant.

    Parameters
    ----------
    counts : LatentCounts
    possible : ndarray of bool, one axis per variable, optional
        Joint states that may occur; all unless given.
    """

    def __init__(self, counts: LatentCounts, possible: NDArray[np.bool_] | None = None) -> None:
        super().__init__(counts, "bic")
        self._possible = None if possible is None else possible.ravel()

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of variable ``node`` with these parents."""
        levels = self.counts.levels
        given = [levels[k] for k in parents]
        code = np.zeros(len(self.counts.states), dtype=np.int64)
        for k in (*parents, node):
            code = code * levels[k] + self.counts.states[:, k]
        size = math.prod(given) * levels[node]
        cells = np.bincount(code, self.counts.weights, minlength=size)
        table = np.asarray(cells.reshape(-1, levels[node]), dtype=np.float64)
        allowed = None
        if self._possible is not None:
            allowed = possible_cells(self._possible, StateSpace(levels), node, parents)
        price = table_price(table, given, 0.5 * math.log(self._total), allowed)
        return round(free_log_likelihood(table) - price, DIGITS)


def _unit_of(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.int64]]:
    """Return a weight of which all are whole multiples and how often each has it; or 0.

    Whole weights have the unit 1; rows that all count for the same share of a row, that share.
    """
    if (weights == np.rint(weights)).all():
        return 1.0, weights.astype(np.int64)
    unit = float(weights[weights > 0].min())
    none = 0.0, np.zeros(0, dtype=np.int64)
    # Before dividing: a weight next to nothing would overflow it.
    if ROUNDING * weights.max() > unit:
        return none
    multiples = weights / unit
    repeats = np.rint(multiples)
    if (np.abs(multiples - repeats) > ROUNDING * repeats).any():
        return none
    return unit, repeats.astype(np.int64)


def _bit_planes(states: NDArray[np.uint8], levels: tuple[int, ...]) -> NDArray[np.uint64]:
    n_variables, n = states.shape
    n_words = (n + 63) // 64
    out = np.zeros((sum(levels), n_words * 8), dtype=np.uint8)
    row = 0
    for k in range(n_variables):
        for level in range(levels[k]):
            packed = np.packbits(states[k] == level, bitorder="little")
            out[row, : len(packed)] = packed
            row += 1
    return out.view(np.uint64)


# --- BDeu and BIC where a hierarchy rules joint states out: no score pays for what cannot be

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


# --- Local scores that the greedy searches ask for, computed in batches and kept

_FIRST_CAPACITY = 1 << 14
_MAX_QUESTIONS = 1 << 16


class ScoreCache:
    """Local scores by (variable, parent set), asked for in batches and computed once."""

    def __init__(self, score: LocalScore, n_variables: int) -> None:
        self.score = score
        self.n_words = max(1, (n_variables + 63) // 64)
        self.keys = np.zeros((_FIRST_CAPACITY, self.n_words + 1), dtype=np.uint64)
        self.values = np.zeros(_FIRST_CAPACITY)
        self.asked = np.zeros(_MAX_QUESTIONS, dtype=np.int64)
        self.counters = np.zeros(2, dtype=np.int64)

    @property
    def table(self) -> tuple[NDArray[Any], ...]:
        """The scores as the kernels take them."""
        return self.keys, self.values, self.asked, self.counters

    @property
    def n_scores(self) -> int:
        """Number of local scores computed so far."""
        return int(self.counters[0])

    def answer(self) -> None:
        """Compute the scores that were asked for; make room for more."""
        slots = self.asked[: self.counters[1]]
        nodes = self.keys[slots, 0].astype(np.int64) - 1
        words = np.ascontiguousarray(self.keys[slots, 1:])
        if hasattr(self.score, "many"):
            self.values[slots] = self.score.many(nodes, words)
        else:
            self.values[slots] = [
                float(self.score.local(int(node), _members(row)))
                for node, row in zip(nodes, words, strict=True)
            ]
        finite = np.isfinite(self.values[slots])
        if not finite.all():
            first = int(np.argmin(finite))
            raise SettingError(
                f"the score of variable {nodes[first]} with parents {_members(words[first])} is "
                f"{self.values[slots[first]]}; a local score must be a finite number"
            )
        self.counters[1] = 0
        if 3 * self.n_scores > len(self.values):
            keys = np.zeros((2 * len(self.values), self.n_words + 1), dtype=np.uint64)
            values = np.zeros(len(keys))
            local_scores.move_scores(self.table, (keys, values, self.asked, self.counters))
            self.keys, self.values = keys, values

    def many(self, nodes: NDArray[np.int64], rows: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return many scores, shape (n,), for bit sets of parents, shape (n, n_words)."""
        while True:
            out: NDArray[np.float64] = local_scores.ask_many(self.table, nodes, rows)
            if not np.isnan(out).any():
                return out
            self.answer()


def _members(words: NDArray[np.uint64]) -> tuple[int, ...]:
    found = np.unpackbits(words.view(np.uint8), bitorder="little")
    return tuple(np.flatnonzero(found).tolist())
