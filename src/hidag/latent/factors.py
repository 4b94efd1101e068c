"""Factors: tables over some of the latents, multiplied and summed out one latent at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Factor:
    """A table with one axis for each of its variables.

    Attributes
    ----------
    variables : tuple of int
    table : ndarray, one axis per variable
    """

    variables: tuple[int, ...]
    table: Array

    def summed_to(self, variables: Sequence[int]) -> Factor:
        """Return the factor with all other variables summed out, axes in the given order."""
        return product([self], variables)


def product(factors: Sequence[Factor], keep: Iterable[int]) -> Factor:
    """Return the product of factors, summed over all variables but ``keep``, axes in that order.

    Parameters
    ----------
    factors : sequence of Factor, at least one
        Together they have all variables of ``keep``.
    keep : iterable of int
    """
    kept = tuple(keep)
    running = factors[0]
    for other in factors[1:]:
        both = tuple(dict.fromkeys((*running.variables, *other.variables)))
        running = Factor(both, _einsum([running, other], both))
    return Factor(kept, _einsum([running], kept))


def _einsum(factors: Sequence[Factor], out: tuple[int, ...]) -> Array:
    # Letters of einsum are few, so variables get the numbers that this product needs.
    place = {v: i for i, v in enumerate(dict.fromkeys(v for f in factors for v in f.variables))}
    operands: list[Any] = []
    for factor in factors:
        operands += [factor.table, [place[v] for v in factor.variables]]
    return np.asarray(np.einsum(*operands, [place[v] for v in out]), dtype=np.float64)


def indicator(variable: int, level: int, n_levels: int) -> Factor:
    """Return the factor that is 1 at one level of a variable and 0 elsewhere."""
    return Factor((variable,), np.eye(n_levels)[level])
