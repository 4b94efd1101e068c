"""Decomposable scores of DAGs over discrete variables: BDeu, BIC, and BIC with lean tables.

The score of a DAG is the sum of the local scores of its variables given their parents. A search
needs an object with one method, ``local(node, parents)``; users can pass one of their own as
``score=``, and :data:`SCORES` has those with a name (docs/how_to_add.md adds one).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from hidag.config import CONFIG
from hidag.exceptions import Choices, DataError, SettingError, invalid_setting
from hidag.kernels import local_scores
from hidag.latent.counts import LatentCounts
from hidag.latent.laws import free_log_likelihood, possible_cells, table_complexity
from hidag.latent.state_space import StateSpace
from hidag.structure.knowledge import Knowledge

DIGITS = 6  # Decimals of a lean score; the order of the rows affects only the digits beyond.
ROUNDING = 1e-9  # Relative rounding error allowed when weights are tested for a common unit.
#: Resolution of :class:`StructuralZeroScore` per unit of log-likelihood: its terms are integers,
#: so that sums do not depend on their order.
UNITS = 1 << 20


@runtime_checkable
class LocalScore(Protocol):
    """Interface of a score; Markov equivalent DAGs should have equal sums of local scores."""

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of variable ``node`` with these parents (ascending indices)."""
        ...


def graph_score(score: LocalScore, parents: Iterable[tuple[int, ...]]) -> float:
    """Return the ``score`` of a DAG given by its K ``parents``, independent of their order."""
    return math.fsum(score.local(k, tuple(sorted(pa))) for k, pa in enumerate(parents))


class CountBasedScore:
    """Base class of scores of weighted counts, "bdeu" (with its prior weight in rows) or "bic"."""

    def __init__(
        self, counts: LatentCounts, kind: str = "bdeu", equivalent_sample_size: float = 1.0
    ) -> None:
        if kind not in ("bdeu", "bic"):
            raise _invalid_score(kind)
        if not (math.isfinite(equivalent_sample_size) and equivalent_sample_size > 0):
            name = "equivalent_sample_size"
            raise invalid_setting(name, "a positive number", equivalent_sample_size)
        self.counts = counts
        self.kind = kind
        self.equivalent_sample_size = float(equivalent_sample_size)
        # fsum does not depend on the order of the rows, not even in the last bit.
        self._total = math.fsum(counts.weights.tolist())
        if not self._total > 0:
            raise DataError("no-data", "the score needs data, but the weights sum to 0")

    def _fixed_point(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
        """Return weights as integer multiples of a power of 2, and its exponent."""
        # 61 bits for the whole sum: as exact as the weights themselves.
        exponent = 61 - math.ceil(math.log2(self._total) + 1e-9)
        return np.rint(np.ldexp(weights, exponent)).astype(np.int64), -exponent


class CountScore(CountBasedScore):
    """BDeu or BIC with compiled counting, in fixed point: exact in any order of rows or columns.

    Parameters
    ----------
    counts : LatentCounts, weighted configurations of the variables
    kind : {"bdeu", "bic"}
    equivalent_sample_size : float, weight of the BDeu prior, in rows
    """

    def __init__(
        self, counts: LatentCounts, kind: str = "bdeu", equivalent_sample_size: float = 1.0
    ) -> None:
        super().__init__(counts, kind, equivalent_sample_size)
        self._levels = np.asarray(counts.levels, dtype=np.int64)
        self._offset = np.concatenate([[0], np.cumsum(self._levels)[:-1]]).astype(np.int64)
        weights = counts.weights
        unit, repeats = _common_unit(weights)
        most = CONFIG.graph_search.max_rows_per_configuration * max(1, len(weights))
        if unit > 0 and repeats.sum() <= most:
            states = np.repeat(counts.states, repeats, axis=0)
            self._states = np.ascontiguousarray(states.T)
            self._weights = np.ones(len(states), dtype=np.int64)
            self._unit = unit
            self._planes = _bit_planes(self._states, counts.levels)
            self._max_plane_cells = CONFIG.graph_search.max_plane_cells
        else:
            positive = weights > 0
            self._states = np.ascontiguousarray(counts.states[positive].T)
            self._weights, exponent = self._fixed_point(weights[positive])
            self._unit = math.ldexp(1.0, exponent)
            self._planes = np.zeros((int(self._levels.sum()), 0), dtype=np.uint64)
            self._max_plane_cells = 0
        # Upper bound on the size of any local score, whatever the parents.
        n_cells = len(self._weights) + 1
        largest = self._total * (math.log(self._total + 2.0) + 1.0) + n_cells * 800.0
        self._resolution = math.ldexp(1.0, math.ceil(math.log2(largest)) - 60)

    def many(self, nodes: NDArray[np.int64], parents: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return local scores (n,) of nodes (n,) with bit sets of parents (n, n_words)."""
        kind = local_scores.BDEU if self.kind == "bdeu" else local_scores.BIC
        rows = self._levels, self._states, self._weights, self._offset
        planes = self._planes, self._max_plane_cells
        scale = self.equivalent_sample_size, self._total, self._unit, self._resolution
        return np.asarray(local_scores.score_many(kind, nodes, parents, rows, planes, scale))

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of variable ``node`` with these parents."""
        mask = sum(1 << int(k) for k in parents)
        words = to_words([mask], (len(self._levels) + 63) // 64)
        return float(self.many(np.array([node], dtype=np.int64), words)[0])


def _common_unit(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.int64]]:
    """Return a unit (1, or the smallest weight) and the weights as integer multiples; or unit 0."""
    if (weights == np.rint(weights)).all():
        return 1.0, weights.astype(np.int64)
    unit = float(weights[weights > 0].min())
    none = 0.0, np.zeros(0, dtype=np.int64)
    # Tested before dividing: a tiny weight would overflow the quotient.
    if ROUNDING * weights.max() > unit:
        return none
    multiples = weights / unit
    repeats = np.rint(multiples)
    if (np.abs(multiples - repeats) > ROUNDING * repeats).any():
        return none
    return unit, repeats.astype(np.int64)


def _bit_planes(states: NDArray[np.uint8], levels: tuple[int, ...]) -> NDArray[np.uint64]:
    """Return for each level of each variable the bit set of the rows that have it."""
    return np.vstack(
        [to_bitsets(row == np.arange(m)[:, None]) for row, m in zip(states, levels, strict=True)]
    )


class LeanScore(CountBasedScore):
    """BIC in which each table may be a lean one (see :mod:`hidag.latent.laws`).

    BIC rejects weak edges between latents of several levels for their many parameters. Equivalent
    DAGs may differ in score. ``possible``, one axis per variable: the states that may occur.
    """

    def __init__(self, counts: LatentCounts, possible: NDArray[np.bool_] | None = None) -> None:
        super().__init__(counts, "bic")
        self._possible = None if possible is None else possible.ravel()

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of variable ``node`` with these parents."""
        levels = self.counts.levels
        parent_levels = [levels[k] for k in parents]
        code = _configuration_codes(self.counts.states, (*parents, node), levels)
        size = math.prod(parent_levels) * levels[node]
        cells = np.bincount(code, self.counts.weights, minlength=size)
        table = np.asarray(cells.reshape(-1, levels[node]), dtype=np.float64)
        allowed = None
        if self._possible is not None:
            allowed = possible_cells(self._possible, StateSpace(levels), node, parents)
        cost = table_complexity(table, parent_levels, 0.5 * math.log(self._total), allowed)
        return round(free_log_likelihood(table) - cost, DIGITS)


class StructuralZeroScore(CountBasedScore):
    """BDeu or BIC of the ``possible`` joint states under a hierarchy, one axis per variable."""

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
        observed = counts.weights > 0
        # In fixed point, so that the order of the rows has no effect.
        weights, self._exponent = self._fixed_point(counts.weights[observed])
        self._rows = np.zeros(len(self._states), dtype=np.int64)
        np.add.at(self._rows, place[tuple(counts.states[observed].T)], weights)
        self._set_scores: dict[tuple[int, ...], int] = {}

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of variable ``node`` with these parents."""
        family = tuple(sorted((node, *parents)))
        # One unit per parent, so that an edge without any effect on the score is not added.
        return (self._set_score(family) - self._set_score(parents) - len(parents)) / UNITS

    def _set_score(self, members: tuple[int, ...]) -> int:
        """Return the score of a set of variables (ascending indices), in units."""
        if members not in self._set_scores:
            code = _configuration_codes(self._states, members, self.counts.levels)
            size = np.bincount(code)
            rows = np.zeros(len(size), dtype=np.int64)
            np.add.at(rows, code, self._rows)
            n_rows = np.ldexp(rows.astype(np.float64), self._exponent)[size > 0]
            if self.kind == "bic":
                terms = xlogy(n_rows, n_rows) - 0.5 * math.log(self._total)
            else:
                prior = self.equivalent_sample_size * (size[size > 0] / len(self._states))
                terms = gammaln(prior + n_rows) - gammaln(prior)
            self._set_scores[members] = int(np.rint(terms * UNITS).astype(np.int64).sum())
        return self._set_scores[members]


def _configuration_codes(
    states: NDArray[Any], variables: tuple[int, ...], levels: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return the number of each state's configuration of some variables, shape (n,)."""
    code = np.zeros(len(states), dtype=np.int64)
    for k in variables:
        code = code * levels[k] + states[:, k]
    return code


#: A function of the counts, the equivalent sample size, and the joint states that a hierarchy
#: allows (None for all).
ScoreMaker = Callable[[LatentCounts, float, NDArray[np.bool_] | None], LocalScore]


def _table_score(
    kind: str, counts: LatentCounts, size: float, possible: NDArray[np.bool_] | None
) -> LocalScore:
    if possible is None:
        return CountScore(counts, kind, size)
    return StructuralZeroScore(counts, kind, size, possible)


#: Scores by name.
SCORES: dict[str, ScoreMaker] = {
    "bdeu": partial(_table_score, "bdeu"),
    "bic": partial(_table_score, "bic"),
    "lean": lambda counts, _, possible: LeanScore(counts, possible),
}


def _invalid_score(value: object) -> SettingError:
    return invalid_setting("score", Choices(tuple(SCORES), python_only="a LocalScore"), value)


def choose_score(levels: tuple[int, ...]) -> str:
    """Return the score for these levels: BDeu if binary, else lean, or BIC for many states."""
    if max(levels) == 2:
        return "bdeu"
    return "lean" if math.prod(levels) <= CONFIG.graph_search.max_lean_states else "bic"


def make_score(
    score: str | LocalScore,
    counts: LatentCounts,
    equivalent_sample_size: float = 1.0,
    knowledge: Knowledge | None = None,
) -> LocalScore:
    """Return the named score of these counts, or ``score`` itself if it is a score already.

    States that a hierarchy excludes are structural zeros if no row has one and they can be listed.
    """
    if not isinstance(score, str) and isinstance(score, LocalScore):
        return score
    if not isinstance(score, str) or score not in SCORES:
        raise _invalid_score(score)
    possible = None
    if knowledge is not None and knowledge.hierarchy and StateSpace(counts.levels).listable:
        allowed = knowledge.possible_states(counts.names, counts.levels)
        if allowed[tuple(counts.states[counts.weights > 0].T)].all():
            possible = allowed
    return SCORES[score](counts, equivalent_sample_size, possible)


class ScoreCache:
    """Local score cache: scores by (variable, parent set), requested in batches, computed once."""

    def __init__(self, score: LocalScore, n_variables: int) -> None:
        self.score = score
        self.n_words = max(1, (n_variables + 63) // 64)
        capacity = CONFIG.graph_search.initial_capacity
        self.keys = np.zeros((capacity, self.n_words + 1), dtype=np.uint64)
        self.values = np.zeros(capacity)
        self.requests = np.zeros(CONFIG.graph_search.max_requests, dtype=np.int64)
        self.counters = np.zeros(2, dtype=np.int64)

    @property
    def table(self) -> tuple[NDArray[Any], ...]:
        """The arrays that the kernels take."""
        return self.keys, self.values, self.requests, self.counters

    @property
    def n_scores(self) -> int:
        """Number of local scores computed so far."""
        return int(self.counters[0])

    def compute_requests(self) -> None:
        """Compute the requested scores; enlarge the table if it is getting full."""
        slots = self.requests[: self.counters[1]]
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
            value = float(self.values[slots[first]])
            text = "local scores must be finite, but that of variable {node} with parents "
            text += "{parents} is {value}"
            params = {"node": int(nodes[first]), "parents": _members(words[first]), "value": value}
            raise SettingError("score-not-finite", text, params)
        self.counters[1] = 0
        if 3 * self.n_scores > len(self.values):
            keys = np.zeros((2 * len(self.values), self.n_words + 1), dtype=np.uint64)
            values = np.zeros(len(keys))
            local_scores.move_scores(self.table, (keys, values, self.requests, self.counters))
            self.keys, self.values = keys, values

    def many(self, nodes: NDArray[np.int64], rows: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return many scores, shape (n,), for bit sets of parents, shape (n, n_words)."""
        while True:
            out: NDArray[np.float64] = local_scores.ask_many(self.table, nodes, rows)
            if not np.isnan(out).any():
                return out
            self.compute_requests()


def _members(words: NDArray[np.uint64]) -> tuple[int, ...]:
    return tuple(np.flatnonzero(from_bitsets(words[None], 64 * len(words))).tolist())


# Sets of variables as rows of 64-bit words.


def to_bitsets(matrix: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the rows of a 0-1 matrix, shape (n, K), as bit sets, shape (n, n_words)."""
    out = np.zeros((len(matrix), 8 * max(1, (matrix.shape[1] + 63) // 64)), dtype=np.uint8)
    packed = np.packbits(matrix.astype(bool), axis=1, bitorder="little")
    out[:, : packed.shape[1]] = packed
    return out.view(np.uint64)


def from_bitsets(words: NDArray[np.uint64], n_variables: int) -> NDArray[np.int8]:
    """Return the 0-1 matrix, shape (n, K), of rows of bit sets, shape (n, n_words)."""
    flat = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little")
    return flat[:, :n_variables].astype(np.int8)


def to_words(masks: list[int], n_words: int) -> NDArray[np.uint64]:
    """Return bit sets given as Python integers, shape (n, n_words)."""
    data = b"".join(mask.to_bytes(8 * n_words, "little") for mask in masks)
    # A copy: kernels would be compiled again for a read-only array.
    return np.frombuffer(data, dtype=np.uint64).reshape(len(masks), n_words).copy()
