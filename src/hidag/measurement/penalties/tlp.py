"""Truncated lasso penalty (Shen, Pan and Zhu 2012): linear up to the threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class TruncatedLasso:
    """``p = lambda u`` for ``u = |b| / tau <= 1``."""

    def value(self, u: Array, strength: float) -> Array:
        """Return the penalty."""
        return np.asarray(strength * u)

    def derivative(self, u: Array, strength: float) -> Array:
        """Return the derivative with respect to ``u``."""
        return np.where(u < 1.0, strength, 0.0)

    def pieces(
        self, strength: float, threshold: Array
    ) -> list[tuple[Array, Array, Array, Array, Array]]:
        """Return one linear piece."""
        zero = np.zeros_like(threshold)
        return [(zero, threshold, strength / threshold, zero, threshold)]
