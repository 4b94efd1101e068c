"""The table as Stage I works with it: working scale, zeros for missing cells, sums that stay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.measurement import family_named

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WorkingData:
    """Responses ready for estimation.

    Attributes
    ----------
    x : ndarray, shape (N, J)
        Working-scale responses; 0 in missing cells.
    families : tuple of str, length J
    observed : ndarray of uint8, shape (N, J), or None
        1 where a cell was observed; None when nothing is missing.
    gappy : ndarray of int, shape (M,)
        Items with missing cells: they need counts of their own.
    gaps : ndarray of float64, shape (N, M)
        ``observed`` of the gappy items, ready for matrix products.
    n_observed, mean, variance, sum_squares : ndarray, shape (J,)
        Per item, over observed cells.
    constant : ndarray, shape (J,)
        Sum of the log densities' parts that no parameter enters.
    """

    x: Array
    families: tuple[str, ...]
    observed: NDArray[np.uint8] | None
    gappy: NDArray[np.intp]
    gaps: Array
    n_observed: Array
    mean: Array
    variance: Array
    sum_squares: Array
    constant: Array

    @property
    def n_samples(self) -> int:
        """Number of rows, N."""
        return self.x.shape[0]

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return self.x.shape[1]

    @classmethod
    def from_values(cls, values: Array, families: tuple[str, ...]) -> WorkingData:
        """Return working data of a table with NaN in missing cells, shape (N, J)."""
        seen = ~np.isnan(values)
        x = np.zeros(values.shape)
        constant = np.zeros(values.shape[1])
        for j, name in enumerate(families):
            family = family_named(name)
            cells = values[seen[:, j], j]
            x[seen[:, j], j] = family.to_working(cells)
            if family.has_dispersion:
                # What remains of the base at unit dispersion is the change of variables.
                unit = np.ones(1)
                working = x[seen[:, j], j]
                gaussian_part = -0.5 * (working * working + np.log(2.0 * np.pi))
                constant[j] = float((family.base(cells, unit) - gaussian_part).sum())
            else:
                constant[j] = float(family.base(cells, np.ones(1)).sum())
        n_observed = seen.sum(axis=0).astype(np.float64)
        safe = np.maximum(n_observed, 1.0)
        sum_squares = np.einsum("ij,ij->j", x, x)
        mean = x.sum(axis=0) / safe
        centred = np.where(seen, x - mean, 0.0)
        variance = np.einsum("ij,ij->j", centred, centred) / safe
        complete = bool(seen.all())
        gappy = np.flatnonzero(~seen.all(axis=0))
        return cls(
            x=x,
            families=families,
            observed=None if complete else seen.astype(np.uint8),
            gappy=gappy,
            gaps=seen[:, gappy].astype(np.float64),
            n_observed=n_observed,
            mean=mean,
            variance=variance,
            sum_squares=sum_squares,
            constant=constant,
        )

    def base(self, dispersion: Array) -> float:
        """Return the part of the log-likelihood that no latent enters."""
        total = float(self.constant.sum())
        for j, name in enumerate(self.families):
            if family_named(name).has_dispersion:
                total -= 0.5 * float(
                    self.sum_squares[j] / dispersion[j]
                    + self.n_observed[j] * np.log(2.0 * np.pi * dispersion[j])
                )
        return total
