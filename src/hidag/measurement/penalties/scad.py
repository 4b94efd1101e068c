"""Smoothly clipped absolute deviation penalty (Fan and Li 2001)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: The usual shape parameter: the derivative starts to fall at 1/3.7 of the threshold.
SHAPE = 3.7


class Scad:
    """Constant derivative up to ``u = 1 / 3.7``, then linearly falling to zero at ``u = 1``."""

    def value(self, u: Array, strength: float) -> Array:
        """Return the penalty."""
        slope = 2.0 * strength / (1.0 + 1.0 / SHAPE)
        bend = 1.0 / SHAPE
        past = u - bend
        curved = bend + past - 0.5 * past * past / (1.0 - bend)
        return np.asarray(slope * np.where(u <= bend, u, curved))

    def derivative(self, u: Array, strength: float) -> Array:
        """Return the derivative with respect to ``u``."""
        slope = 2.0 * strength / (1.0 + 1.0 / SHAPE)
        return np.asarray(slope * np.clip((1.0 - u) / (1.0 - 1.0 / SHAPE), 0.0, 1.0))

    def pieces(
        self, strength: float, threshold: Array
    ) -> list[tuple[Array, Array, Array, Array, Array]]:
        """Return a linear and a quadratic piece."""
        zero = np.zeros_like(threshold)
        slope = 2.0 * strength / (1.0 + 1.0 / SHAPE) / threshold
        bend = threshold / SHAPE
        fall = slope / (threshold - bend)
        return [(zero, bend, slope, zero, threshold), (bend, threshold, slope, fall, threshold)]
