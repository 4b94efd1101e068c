"""A search along one line, for many items at once, that never goes down."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Distance of the differences that stand for derivatives.
DIFFERENCE = 1e-3
#: No step is longer, whatever the curvature says.
LONGEST_STEP = 1.5
MAX_HALVINGS = 8


def climb(
    objective: Callable[[Array], Array], start: Array, lower: float, upper: float, n_steps: int = 2
) -> Array:
    """Return points, shape (n,), at which no objective is lower than at the start.

    Newton steps with differences for derivatives; a step that does not gain is halved.

    Parameters
    ----------
    objective : callable
        Points (n,) to values (n,), item by item.
    start : ndarray, shape (n,)
    lower, upper : float
        Points stay between.
    n_steps : int
    """
    here = np.clip(start, lower, upper)
    value = objective(here)
    for _ in range(n_steps):
        ahead, behind = objective(here + DIFFERENCE), objective(here - DIFFERENCE)
        slope = (ahead - behind) / (2.0 * DIFFERENCE)
        bend = (ahead - 2.0 * value + behind) / DIFFERENCE**2
        # Where the objective is not concave, uphill is all that is known.
        newton = -slope / np.where(bend < 0.0, bend, -1.0)
        step = np.where(bend < 0.0, newton, LONGEST_STEP * np.sign(slope))
        step = np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        waiting = np.ones(len(here), dtype=bool)
        for _ in range(MAX_HALVINGS):
            trial = np.where(waiting, np.clip(here + step, lower, upper), here)
            there = objective(trial)
            gains = waiting & (there > value)
            here = np.where(gains, trial, here)
            value = np.where(gains, there, value)
            waiting &= ~gains
            # A step of no length has nothing to gain.
            waiting &= np.abs(step) > 1e-9
            if not waiting.any():
                break
            step *= 0.5
    return here
