"""Minimax concave penalty (Zhang 2010): the derivative falls linearly from the start."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class MinimaxConcave:
    """``p = lambda (2 u - u^2)`` for ``u = |b| / tau <= 1``.

    Zhang's parameters are the slope at zero ``2 lambda / tau`` and ``gamma = tau^2 / (2 lambda)``.
    """

    def value(self, u: Array, strength: float) -> Array:
        """Return the penalty."""
        return np.asarray(strength * u * (2.0 - u))

    def derivative(self, u: Array, strength: float) -> Array:
        """Return the derivative with respect to ``u``."""
        return np.asarray(2.0 * strength * np.maximum(1.0 - u, 0.0))

    def pieces(
        self, strength: float, threshold: Array
    ) -> list[tuple[Array, Array, Array, Array, Array]]:
        """Return one quadratic piece."""
        zero = np.zeros_like(threshold)
        slope = 2.0 * strength / threshold
        return [(zero, threshold, slope, slope / threshold, threshold)]
