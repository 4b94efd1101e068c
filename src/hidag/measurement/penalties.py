"""Sparsity penalties on loadings: truncated lasso and SCAD, on the scale of the log-likelihood.

Both rise from 0 at a zero loading to ``strength`` at ``threshold`` and stay there (the shape
conditions of the paper's Section "Assumptions regarding the penalty function").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import SettingError
from hidag.kernels.coordinate_descent import NO_PENALTY, SCAD, SCAD_SHAPE, TLP

Array = NDArray[np.float64]

_CODES = {None: NO_PENALTY, "tlp": TLP, "scad": SCAD}


@dataclass(frozen=True)
class Penalty:
    """An entrywise penalty ``p(b)`` with ``p(b) = strength`` for ``|b| >= threshold * scale``.

    Attributes
    ----------
    name : {"tlp", "scad", None}
    strength : float
        lambda_N, in units of log-likelihood.
    threshold : float
        tau_N, in units of an item's ``scale``.
    """

    name: str | None
    strength: float
    threshold: float

    @property
    def code(self) -> int:
        """Number by which the kernel knows the penalty."""
        return _CODES[self.name]

    def value(self, loadings: Array, scale: Array | float = 1.0) -> Array:
        """Return the penalty of each entry; ``scale`` broadcasts against the loadings."""
        if self.name is None:
            return np.zeros(np.shape(loadings))
        u = np.minimum(np.abs(loadings) / (self.threshold * np.asarray(scale)), 1.0)
        if self.name == "tlp":
            return np.asarray(self.strength * u)
        # SCAD: constant slope up to 1/a of the threshold, then falling linearly to zero.
        a = SCAD_SHAPE
        slope = 2.0 * self.strength / (1.0 + 1.0 / a)
        bend = 1.0 / a
        past = u - bend
        curved = bend + past - 0.5 * past * past / (1.0 - bend)
        return np.asarray(slope * np.where(u <= bend, u, curved))


def default_penalty(name: str | None, n_samples: float, n_latents: int) -> Penalty:
    """Return the penalty with lambda = log(N K) / 2 and tau = sqrt(lambda / N) / 2.

    A loading then has to be worth what the extended Bayesian information criterion (gamma = 1/2)
    asks of one of K candidates. The rates satisfy 1/sqrt(N) << tau << lambda/sqrt(N) << 1 (Theorem
    "estimation consistency"): tau goes down as the geometric mean of its two bounds. A larger tau,
    such as the research code's 2 N^(-0.275), has a slope below the noise of a gradient and leaves
    small loadings standing.
    """
    if not isinstance(name, (str, type(None))) or name not in _CODES:
        raise SettingError(f"penalty must be 'tlp', 'scad' or None, got {name!r}")
    strength = 0.5 * np.log(n_samples * n_latents)
    return Penalty(name, float(strength), 0.5 * float(np.sqrt(strength / n_samples)))


NO_SPARSITY = Penalty(None, 0.0, 1.0)
