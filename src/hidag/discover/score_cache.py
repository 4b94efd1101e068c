"""Local scores that the greedy searches ask for, computed in batches and kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.discover.scores import LocalScore
from hidag.errors import SettingError
from hidag.kernels import graph_score_table

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
            graph_score_table.move_scores(self.table, (keys, values, self.asked, self.counters))
            self.keys, self.values = keys, values

    def many(self, nodes: NDArray[np.int64], rows: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return many scores, shape (n,), for bit sets of parents, shape (n, n_words)."""
        while True:
            out: NDArray[np.float64] = graph_score_table.ask_many(self.table, nodes, rows)
            if not np.isnan(out).any():
                return out
            self.answer()


def _members(words: NDArray[np.uint64]) -> tuple[int, ...]:
    found = np.unpackbits(words.view(np.uint8), bitorder="little")
    return tuple(np.flatnonzero(found).tolist())
