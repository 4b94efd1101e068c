"""Measurement parameters: intercepts, loadings and dispersions of items, and their families."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError
from hidag.measurement.families import Family, family_named

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MeasurementParameters:
    """Coefficients of J items on K latents (main effects).

    Attributes
    ----------
    families : tuple of str, length J
    intercept : ndarray, shape (J,)
    loadings : ndarray, shape (J, K)
    dispersion : ndarray, shape (J,)
        Variance of Gaussian and lognormal items; 1 where a family has no dispersion.
    """

    families: tuple[str, ...]
    intercept: Array
    loadings: Array
    dispersion: Array

    def __post_init__(self) -> None:
        n_items = len(self.families)
        for name in ("intercept", "loadings", "dispersion"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.shape[0] != n_items:
                raise DataError(f"{n_items} items need as many rows of {name}, got {len(values)}")
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return len(self.families)

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return int(self.loadings.shape[1])

    @property
    def q_matrix(self) -> NDArray[np.int8]:
        """Support of the loadings, shape (J, K)."""
        return np.asarray(self.loadings != 0, dtype=np.int8)

    def groups(self) -> Iterator[tuple[Family, NDArray[np.intp]]]:
        """Yield each family that occurs with the positions of its items."""
        names = np.array(self.families)
        for name in sorted(set(self.families)):
            yield family_named(name), np.flatnonzero(names == name)

    def tables(self, features: Array) -> tuple[Array, Array]:
        """Return ``theta`` and ``A`` of every item in every row of features, both (J, n_states)."""
        theta = np.empty((self.n_items, len(features)))
        partition = np.empty_like(theta)
        for family, items in self.groups():
            eta = self.intercept[items, None] + self.loadings[items] @ features.T
            theta[items], partition[items] = family.natural(eta, self.dispersion[items, None])
        return theta, partition

    def reordered(
        self, *, items: NDArray[np.intp] | None = None, latents: NDArray[np.intp] | None = None
    ) -> MeasurementParameters:
        """Return the parameters with items and latents taken in the given order."""
        rows = np.arange(self.n_items) if items is None else items
        columns = np.arange(self.n_latents) if latents is None else latents
        return MeasurementParameters(
            tuple(self.families[j] for j in rows),
            self.intercept[rows],
            self.loadings[np.ix_(rows, columns)],
            self.dispersion[rows],
        )

    def flipped(self, flips: NDArray[np.bool_]) -> MeasurementParameters:
        """Return the same items with the two levels of some binary latents exchanged."""
        moved = np.where(flips[None, :], self.loadings, 0.0)
        return replace(
            self,
            intercept=self.intercept + moved.sum(axis=1),
            loadings=np.where(flips[None, :], -self.loadings, self.loadings) + 0.0,
        )
