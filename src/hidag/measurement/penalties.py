"""Sparsity penalties on loadings, entrywise, on the scale of the log-likelihood.

Every penalty increases from 0 at a zero loading to its strength lambda at the threshold tau and is
constant beyond (the shape conditions of the paper's Section "Assumptions regarding the penalty
function"). Its derivative is linear on a few pieces of [0, tau]. Coordinate descent needs only a
table of these pieces, so that no kernel depends on the names of penalties. A new penalty is a class
and one entry of ``SHAPES``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import Choices, invalid_setting

Array = NDArray[np.float64]
#: One piece of the derivative: start, end, slope, fall, root. The derivative is ``slope`` if
#: ``fall`` is 0, else ``fall * (root - b)``.
Piece = tuple[Array, Array, Array, Array, Array]


class PenaltyShape(Protocol):
    """The shape of a penalty as a function of ``u = |b| / tau`` in [0, 1]."""

    def value(self, u: Array, strength: float) -> Array:
        """Return the penalty; ``strength`` at ``u = 1``."""
        ...

    def derivative(self, u: Array, strength: float) -> Array:
        """Return the derivative with respect to ``u``; 0 at and beyond ``u = 1``."""
        ...

    def pieces(self, strength: float, threshold: Array) -> list[Piece]:
        """Return the pieces of the derivative with respect to ``b > 0``, for thresholds (J,)."""
        ...


class TruncatedLasso:
    """Truncated lasso (Shen, Pan and Zhu 2012): ``p = lambda u`` for ``u = |b| / tau <= 1``."""

    def value(self, u: Array, strength: float) -> Array:
        return np.asarray(strength * u)

    def derivative(self, u: Array, strength: float) -> Array:
        return np.where(u < 1.0, strength, 0.0)

    def pieces(self, strength: float, threshold: Array) -> list[Piece]:
        zero = np.zeros_like(threshold)
        return [(zero, threshold, strength / threshold, zero, threshold)]


class Scad:
    """Smoothly clipped absolute deviation (Fan and Li 2001), bent at ``u = 1 / 3.7``."""

    bend = 1.0 / 3.7  # Where the derivative starts to fall; 3.7 is the usual shape parameter.

    def value(self, u: Array, strength: float) -> Array:
        bend = self.bend
        past = u - bend
        curved = bend + past - 0.5 * past * past / (1.0 - bend)
        return np.asarray(2.0 * strength / (1.0 + bend) * np.where(u <= bend, u, curved))

    def derivative(self, u: Array, strength: float) -> Array:
        fall = np.clip((1.0 - u) / (1.0 - self.bend), 0.0, 1.0)
        return np.asarray(2.0 * strength / (1.0 + self.bend) * fall)

    def pieces(self, strength: float, threshold: Array) -> list[Piece]:
        zero = np.zeros_like(threshold)
        slope = 2.0 * strength / (1.0 + self.bend) / threshold
        bend = threshold / 3.7
        fall = slope / (threshold - bend)
        return [(zero, bend, slope, zero, threshold), (bend, threshold, slope, fall, threshold)]


class MinimaxConcave:
    """Minimax concave penalty (Zhang 2010), whose gamma is ``tau^2 / (2 lambda)``."""

    def value(self, u: Array, strength: float) -> Array:
        return np.asarray(strength * u * (2.0 - u))

    def derivative(self, u: Array, strength: float) -> Array:
        return np.asarray(2.0 * strength * np.maximum(1.0 - u, 0.0))

    def pieces(self, strength: float, threshold: Array) -> list[Piece]:
        zero = np.zeros_like(threshold)
        slope = 2.0 * strength / threshold
        return [(zero, threshold, slope, slope / threshold, threshold)]


#: The penalties by name.
SHAPES: dict[str, PenaltyShape] = {"tlp": TruncatedLasso(), "scad": Scad(), "mcp": MinimaxConcave()}


@dataclass(frozen=True)
class Penalty:
    """An entrywise penalty: a name in ``SHAPES`` or None, lambda, and tau in units of a scale."""

    name: str | None
    strength: float
    threshold: float

    def value(self, loadings: Array, scale: Array | float = 1.0) -> Array:
        """Return the penalty of each entry; ``scale`` broadcasts against the loadings."""
        if self.name is None:
            return np.zeros(np.shape(loadings))
        u = np.minimum(np.abs(loadings) / (self.threshold * np.asarray(scale)), 1.0)
        return np.asarray(SHAPES[self.name].value(u, self.strength))

    def derivative(self, loadings: Array, scale: Array | float = 1.0) -> Array:
        """Return the derivative of each entry; the one from the right at zero."""
        if self.name is None:
            return np.zeros(np.shape(loadings))
        unit = self.threshold * np.asarray(scale)
        u = np.minimum(np.abs(loadings) / unit, 1.0)
        slope = SHAPES[self.name].derivative(u, self.strength) / unit
        return np.where(np.asarray(loadings) < 0, -slope, slope)

    def pieces(self, scale: Array) -> Array:
        """Return each item's pieces (see ``Piece``) and penalties at their starts, (J, P, 6)."""
        if self.name is None:
            return np.zeros((len(scale), 0, 6))
        found = SHAPES[self.name].pieces(self.strength, self.threshold * scale)
        rows = [np.stack([*piece, self.value(piece[0], scale)], axis=-1) for piece in found]
        return np.stack(rows, axis=1)


def default_penalty(name: str | None, n_samples: float, n_latents: int) -> Penalty:
    """Return the penalty with lambda = log(N K) / 2 and tau = sqrt(lambda / N) / 2.

    A loading costs what the extended BIC (gamma = 1/2) requires of one of K candidates. The rates
    satisfy 1/sqrt(N) << tau << lambda/sqrt(N) << 1 (Theorem "estimation consistency"). Larger tau
    make the slope smaller than the noise of a gradient, so that small loadings remain.
    """
    if not isinstance(name, (str, type(None))) or name not in (None, *SHAPES):
        raise invalid_setting("penalty", Choices((*SHAPES, None)), name)
    strength = 0.5 * np.log(n_samples * n_latents)
    return Penalty(name, float(strength), 0.5 * float(np.sqrt(strength / n_samples)))


NO_SPARSITY = Penalty(None, 0.0, 1.0)
