"""Weighted counts of latent configurations: what Stage II hands to the graph search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError


@dataclass(frozen=True)
class LatentCounts:
    """Distinct latent configurations with weights.

    Attributes
    ----------
    states : ndarray of uint8, shape (n_configurations, K)
        Levels, 0-based; column k takes values in ``range(levels[k])``.
    weights : ndarray of float64, shape (n_configurations,)
        Non-negative, not necessarily whole, number of rows per configuration.
    levels : tuple of int, length K
    names : tuple of str, length K
    """

    states: NDArray[np.uint8]
    weights: NDArray[np.float64]
    levels: tuple[int, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        states = np.ascontiguousarray(self.states, dtype=np.uint8)
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        if states.ndim != 2 or weights.shape != (states.shape[0],):
            raise DataError(
                f"states must be (n, K) and weights (n,), got {states.shape} and {weights.shape}"
            )
        if len(self.levels) != states.shape[1] or len(self.names) != states.shape[1]:
            raise DataError(
                f"{states.shape[1]} variables need as many levels and names, "
                f"got {len(self.levels)} and {len(self.names)}"
            )
        if states.size and (states.max(axis=0) >= np.asarray(self.levels)).any():
            k = int(np.argmax(states.max(axis=0) >= np.asarray(self.levels)))
            raise DataError(
                f"variable {self.names[k]!r} has {self.levels[k]} levels, "
                f"but state {int(states[:, k].max())} occurs"
            )
        if not np.all(np.isfinite(weights)) or (weights < 0).any():
            raise DataError("weights must be finite and not negative")
        states.setflags(write=False)
        weights.setflags(write=False)
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "weights", weights)

    @property
    def n_variables(self) -> int:
        """Number of latents, K."""
        return int(self.states.shape[1])

    @property
    def total(self) -> float:
        """Number of rows the counts stand for."""
        return float(self.weights.sum())

    @classmethod
    def from_rows(
        cls,
        rows: NDArray[np.integer],
        *,
        levels: tuple[int, ...] | None = None,
        names: tuple[str, ...] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> LatentCounts:
        """Return the counts of rows of states; equal rows are merged.

        Parameters
        ----------
        rows : ndarray of int, shape (n, K)
            From 0 to 255.
        levels : tuple of int, length K, optional
            By default as many as the largest state asks for, two at least.
        names : tuple of str, length K, optional
            Z1, Z2, ... by default.
        weights : ndarray, shape (n,), optional
            What each row counts for; one by default.
        """
        rows = np.asarray(rows)
        if rows.ndim != 2:
            raise DataError(f"rows of states must be a two-dimensional array, got {rows.ndim}-d")
        if rows.size and (rows.min() < 0 or rows.max() > 255):
            raise DataError("states must be whole numbers from 0 to 255")
        n_variables = rows.shape[1]
        if levels is None:
            top = rows.max(axis=0) if len(rows) else np.ones(n_variables)
            levels = tuple(max(2, int(m) + 1) for m in top)
        if names is None:
            names = tuple(f"Z{k + 1}" for k in range(n_variables))
        packed = np.ascontiguousarray(rows.astype(np.uint8))
        keys = packed.view(np.dtype((np.void, max(1, packed.shape[1])))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        total = np.bincount(inverse, weights=weights, minlength=len(first)).astype(np.float64)
        return cls(packed[first], total, levels, names)
