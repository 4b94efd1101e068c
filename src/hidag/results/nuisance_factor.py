"""Effects of a nuisance, such as a response style, on the items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NuisanceFactor:
    """A person-level factor that is no latent of the graph.

    ``loadings``, shape (R,), are effects of its highest versus its lowest level; its levels have
    equal steps and a binomial law.
    """

    name: str
    loadings: Array
    n_levels: int

    @property
    def sd(self) -> Array:
        """Standard deviation of each response's predictor that it causes, shape (R,)."""
        return np.asarray(0.5 * np.abs(self.loadings) / np.sqrt(self.n_levels - 1.0))
