"""What a response family offers: densities linear in the response, given the linear predictor.

Every family writes ``log f(x | eta, gamma) = x * theta(eta) - A(eta) + base(x, gamma)``: the E-step
then needs only tables of ``theta`` and ``A`` over latent states, and the M-step only sums of ``x``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Family(Protocol):
    """A response family with its link; arrays broadcast, the last axis runs over latent states."""

    name: str
    has_dispersion: bool
    #: Smallest admissible linear predictor (``-inf`` when every real number will do).
    lowest_predictor: float

    def to_working(self, x: Array) -> Array:
        """Return responses on the working scale (the logarithm for lognormal items)."""
        ...

    def from_working(self, x: Array) -> Array:
        """Return responses on the user's scale; the inverse of ``to_working``."""
        ...

    def natural(self, eta: Array, dispersion: Array) -> tuple[Array, Array]:
        """Return ``theta`` and ``A`` at the predictor."""
        ...

    def slopes(self, eta: Array, dispersion: Array) -> tuple[Array, Array, Array]:
        """Return ``theta'``, ``A'`` and the Fisher information of one response about ``eta``."""
        ...

    def base(self, x: Array, dispersion: Array) -> Array:
        """Return the part of the log density, on the user's scale, that has no predictor."""
        ...

    def mean(self, eta: Array) -> Array:
        """Return the working-scale mean."""
        ...

    def response_mean(self, eta: Array, dispersion: Array) -> Array:
        """Return the mean on the user's scale."""
        ...

    def predictor(self, mean: Array) -> Array:
        """Return the predictor of a working-scale mean; the inverse of ``mean``."""
        ...

    def clip_mean(self, mean: Array, epsilon: float) -> Array:
        """Return means moved into the range of the responses, at distance ``epsilon``."""
        ...

    def first_look(self, x: Array) -> Array:
        """Return working-scale responses where latents act about linearly, without a fit."""
        ...

    def coefficient_scale(self, mean: Array, variance: Array) -> Array:
        """Return the size of a typical coefficient, given the items' means and variances."""
        ...

    def sample(self, eta: Array, dispersion: Array, rng: np.random.Generator) -> Array:
        """Return draws on the user's scale."""
        ...


class OwnScale:
    """Families whose responses are worked with as they are."""

    def to_working(self, x: Array) -> Array:
        """Return the responses as they are."""
        return x

    def from_working(self, x: Array) -> Array:
        """Return the responses as they are."""
        return x

    def first_look(self, x: Array) -> Array:
        """Return the responses as they are."""
        return x

    def mean(self, eta: Array) -> Array:
        """Return the mean."""
        raise NotImplementedError

    def response_mean(self, eta: Array, dispersion: Array) -> Array:
        """Return the mean: there is one scale only."""
        return self.mean(eta)
