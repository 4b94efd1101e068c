"""A small integer program, built row by row and solved exactly (HiGHS, through scipy)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

Terms = Sequence[tuple[int | np.integer, float]]


class Programme:
    """Variables between zero and a bound, linear constraints, and a cost to be made small."""

    def __init__(self) -> None:
        self._upper: list[float] = []
        self._whole: list[bool] = []
        self._cost: dict[int, float] = {}
        self._entries: list[tuple[int, int, float]] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def variables(
        self, shape: tuple[int, ...], *, whole: bool = False, upper: ArrayLike = 1.0
    ) -> NDArray[np.int64]:
        """Return the numbers of new variables, in an array of that shape."""
        bounds = np.broadcast_to(np.asarray(upper, dtype=np.float64), shape)
        first = len(self._upper)
        self._upper += bounds.ravel().tolist()
        self._whole += [whole] * bounds.size
        return np.arange(first, first + bounds.size, dtype=np.int64).reshape(shape)

    def at_least(self, terms: Terms, bound: float) -> None:
        """Demand that a sum of terms (variable, factor) reaches the bound."""
        self._add(terms, bound, np.inf)

    def at_most(self, terms: Terms, bound: float) -> None:
        """Demand that a sum of terms does not pass the bound."""
        self._add(terms, -np.inf, bound)

    def cost(self, variable: int | np.integer, price: float) -> None:
        """Set what one unit of a variable costs."""
        self._cost[int(variable)] = price

    def solve(self, max_nodes: int) -> tuple[NDArray[np.float64] | None, bool]:
        """Return a cheapest solution (None if none was found), and whether that is certain.

        A solution that was found fulfils all demands even where it is not certain to be the
        cheapest. Nodes are counted, not seconds, so that the answer is the same on every machine.
        """
        n = len(self._upper)
        price = np.zeros(n)
        for variable, value in self._cost.items():
            price[variable] = value
        lines, columns, factors = zip(*self._entries, strict=True)
        # A sparse array keeps the type of its places, and scipy 1.11 solves with 32 bits alone.
        places = (np.array(lines, dtype=np.int32), np.array(columns, dtype=np.int32))
        matrix = coo_array((np.array(factors), places), shape=(len(self._low), n)).tocsr()
        found = milp(
            price,
            integrality=np.array(self._whole, dtype=np.int64),
            bounds=Bounds(0, np.array(self._upper)),
            constraints=LinearConstraint(matrix, self._low, self._high),
            options={"node_limit": max_nodes, "mip_rel_gap": 0.0},
        )
        solution = None if found.x is None else np.asarray(found.x, dtype=np.float64)
        return solution, found.status in (0, 2)

    def _add(self, terms: Terms, low: float, high: float) -> None:
        line = len(self._low)
        self._entries += [(line, int(variable), factor) for variable, factor in terms]
        self._low.append(low)
        self._high.append(high)
