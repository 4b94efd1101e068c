"""Which numbers rows tell, where they tell nothing of some directions of a model's parameters.

A number can be estimated if its gradient has no part in directions that the information is nothing
in: then it is the same however far parameters go there. So a fit is moved a small step in such
directions, at random, and in any direction, and what the first do to a number is compared with what
the second do. A step at random in several directions moves whatever depends on one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.explain.expected_information import FLAT
from hidag.result import FitResult

Array = NDArray[np.float64]

#: Parameters are moved by so much, at the most: little enough for a difference to be a derivative.
STEP = 1e-3
#: Directions at the bound of what is told have so much in them of those that are told well.
NEARLY_NONE = float(np.sqrt(FLAT))
#: Changes below this share of a number's unit are rounding.
ROUNDING = 1e-13

#: Why an effect has no interval, for tables.
NO_INTERVAL = "no interval: the rows tell nothing of something that it depends on"


@dataclass(frozen=True)
class Nudge:
    """A fit moved forth and back along one direction, and how far, in units of the direction."""

    forth: FitResult
    back: FitResult
    length: float


@dataclass(frozen=True)
class Nudges:
    """A fit moved in directions that rows tell nothing of, ``n_untold`` of them, and in any."""

    n_untold: int
    untold: tuple[Nudge, ...]
    anywhere: tuple[Nudge, ...]

    def in_words(self) -> str:
        """Return that rows do not tell everything, and where that happens."""
        return (
            f"the rows tell nothing of the law or of coefficients in {self.n_untold} "
            f"{'direction' if self.n_untold == 1 else 'directions'}, as where a latent has too few "
            "items or no row has the items of two latents"
        )

    def decide(self, numbers: Callable[[FitResult], Array], units: Array) -> NDArray[np.bool_]:
        """Return which numbers of a fit (..., E) depend on what the rows do not tell.

        Parameters
        ----------
        numbers : callable
            From a fit to the numbers.
        units : ndarray, shape (E,)
            How large what they are differences of can be.
        """
        hidden, all_in_all = (
            _gradient(one, numbers, units) for one in (self.untold, self.anywhere)
        )
        return np.asarray(hidden > NEARLY_NONE * all_in_all)


def nudges(
    moved: Callable[[Array], FitResult], n_untold: int, untold: Array, anywhere: Array
) -> Nudges | None:
    """Return a fit moved along steps (P, R) both ways; None where everything is told.

    Parameters
    ----------
    moved : callable
        From a step (P,) to the fit moved by it.
    n_untold : int
    untold, anywhere : ndarray, shape (P, R)
    """
    if not n_untold:
        return None

    def along(step: Array) -> Nudge:
        length = STEP / float(np.abs(step).max())
        return Nudge(moved(length * step), moved(-length * step), length)

    return Nudges(
        n_untold, *(tuple(along(step) for step in steps.T) for steps in (untold, anywhere))
    )


def _gradient(pairs: Sequence[Nudge], numbers: Callable[[FitResult], Array], units: Array) -> Array:
    """Return how large numbers' gradients are in directions that steps are drawn from."""
    squares = []
    for one in pairs:
        change = numbers(one.forth) - numbers(one.back)
        change = np.where(np.abs(change) > ROUNDING * units, change, 0.0)
        squares.append((change / (2.0 * one.length)) ** 2)
    return np.asarray(np.sqrt(np.mean(squares, axis=0)))
