"""Which latents make up the two halves that rows are met with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: What an exponential costs, in multiplications.
EXPONENTIAL = 4


@dataclass(frozen=True)
class Split:
    """The latents in two halves, and their states.

    An item that does not add up is *between* the halves when it has latents in both. The latents of
    such items are the border: they come first in the first half and last in the second.

    Attributes
    ----------
    first, second : tuple of int
        Latents of each half, A and B joint states.
    between : ndarray of int64, shape (C, D)
        Numbers of joint states, by states of the border in the first and in the second half; other
        latents are at their lowest level. Shape (1, 1) where nothing is between.
    order : ndarray of int64, shape (A B,)
        Number of the joint state that stands at each place (a, b).
    of_first, of_second : ndarray of int64, shape (A,) and (B,)
        Numbers of the states in which the other half is at its lowest.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    between: Integers
    order: Integers
    of_first: Integers
    of_second: Integers

    @property
    def has_border(self) -> bool:
        """Whether anything is between the halves."""
        return self.between.size > 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """States of the first half's border, of its other latents, and of the second half."""
        n_border = len(self.between)
        return n_border, len(self.of_first) // n_border, len(self.of_second)

    @classmethod
    def of(cls, levels: tuple[int, ...], first: tuple[int, ...], border: frozenset[int]) -> Split:
        """Return the split with these latents first, and the latents of the border."""
        second = tuple(k for k in range(len(levels)) if k not in first)
        parts = [
            [k for k in first if k in border],
            [k for k in first if k not in border],
            [k for k in second if k not in border],
            [k for k in second if k in border],
        ]
        numbers = np.arange(prod(levels), dtype=np.int64).reshape(levels)
        sizes = [prod(levels[k] for k in part) for part in parts]
        by_parts = numbers.transpose([k for part in parts for k in part]).reshape(sizes)
        return cls(
            (*parts[0], *parts[1]),
            (*parts[2], *parts[3]),
            np.ascontiguousarray(by_parts[:, 0, 0, :]),
            by_parts.ravel(),
            by_parts[:, :, 0, 0].ravel(),
            by_parts[0, 0].ravel(),
        )


@lru_cache(maxsize=16)
def split_of(levels: tuple[int, ...], together: tuple[int, ...]) -> Split | None:
    """Return the split that costs least, or None where listing all joint states costs less.

    Parameters
    ----------
    levels : tuple of int, length K
    together : tuple of int
        Sets of latents on which some item depends without adding up, as sums of powers of two.
    """
    n_latents, n_states = len(levels), prod(levels)
    coupled = [latents for latents in sorted(set(together)) if latents.bit_count() > 1]
    if n_latents < 2:
        return None
    if not coupled:
        cuts = range(1, n_latents)
        cut = min(cuts, key=lambda cut: prod(levels[:cut]) + prod(levels[cut:]))
        return Split.of(levels, tuple(range(cut)), frozenset())
    every = (1 << n_latents) - 1
    first = np.arange(1, every, dtype=np.int64)
    border = np.zeros_like(first)
    for latents in coupled:
        inside, outside = first & latents, ~first & latents
        border |= np.where((inside > 0) & (outside > 0), latents, 0)
    sizes = _sizes(levels)
    n_second, n_between = sizes[every - first], sizes[border]
    n_outer = sizes[border & first]
    spread = np.where(border > 0, n_outer * n_second, 0)
    cost = EXPONENTIAL * (sizes[first] + n_second + n_between) + spread
    best = int(cost.argmin())
    if cost[best] >= EXPONENTIAL * n_states:
        return None
    return Split.of(levels, _members(int(first[best])), frozenset(_members(int(border[best]))))


def _sizes(levels: tuple[int, ...]) -> Integers:
    """Return the number of joint states of every set of latents, shape (2^K,)."""
    out = np.ones(1, dtype=np.int64)
    for m in levels:
        out = np.concatenate([out, m * out])
    return out


def _members(latents: int) -> tuple[int, ...]:
    return tuple(k for k in range(latents.bit_length()) if latents >> k & 1)
