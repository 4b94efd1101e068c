"""The response table as EM uses it: design columns, missing cells as zeros, and column moments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.measurement.families.base import family_named, normal_base
from hidag.measurement.parameters import Columns, MeasurementParameters, columns_of

Array = NDArray[np.float64]


def weighted_mean_and_sd(values: Array, weights: Array | None) -> tuple[float, float]:
    """Return mean and standard deviation of values (n,); 1 in place of a deviation of 0."""
    if weights is None:
        return float(values.mean()), float(values.std()) or 1.0
    mean = float(np.average(values, weights=weights))
    return mean, float(np.sqrt(np.average((values - mean) ** 2, weights=weights))) or 1.0


def _total(values: Array, weights: Array | None) -> float:
    """Return the weighted sum of values (n,)."""
    return float(values.sum() if weights is None else values @ weights)


def _moments(x: Array, n_observed: Array, weights: Array | None) -> tuple[Array, Array, Array]:
    """Return means, variances and sums of squares of columns (N, D) with zeros where missing."""
    safe = np.maximum(n_observed, 1.0 if weights is None else 1e-12)
    if weights is None:
        sum_squares, total = np.einsum("ij,ij->j", x, x), x.sum(axis=0)
    else:
        sum_squares, total = weights @ (x * x), weights @ x
    mean = total / safe
    return mean, np.maximum(sum_squares / safe - mean**2, 0.0), sum_squares


def unexplained_shares(x: Array, weights: Array | None) -> Array:
    """Return the share of each column's variance that the others do not explain, (D,).

    An upper bound of the noise share. Columns ``x`` (N, D) are centred, with 0 in missing cells.
    """
    n_rows = float(len(x) if weights is None else weights.sum())
    residual_df = n_rows - x.shape[1]
    if x.shape[1] < 2 or residual_df < CONFIG.m_step.min_rows_per_regressor * x.shape[1]:
        return np.ones(x.shape[1])
    smallest = CONFIG.m_step.min_noise_share
    moments = (x if weights is None else x * weights[:, None]).T @ x / n_rows
    # Duplicate items would make the matrix singular.
    moments[np.diag_indices_from(moments)] *= 1.0 + smallest
    shares = 1.0 / (np.diag(np.linalg.inv(moments)) * np.diag(moments))
    return np.asarray(np.clip(shares * n_rows / residual_df, smallest, 1.0))


@dataclass(frozen=True)
class WorkingData:
    """Responses ready for estimation, with D columns of J items (D = J with one column each)."""

    # (N, D + M + 1): the items' columns, then an indicator of observed cells for each item with
    # missing cells, then ones: the matrix that the E-step multiplies with
    extended: Array
    families: tuple[str, ...]  # length J
    observed: NDArray[np.uint8] | None  # (N, J): 1 for observed cells; None when nothing is missing
    incomplete: NDArray[np.intp]  # (M,): items with missing cells: they have counts of their own
    n_observed: Array  # (J,): observed cells of each item, weighted
    # (D,), per column, over observed cells
    mean: Array
    variance: Array
    sum_squares: Array
    constant: Array  # (J,): sum of the parts of the log densities that depend on no parameter
    # (J,): Gaussian and lognormal items are standardised, ``(x - shift) / scale``, so that
    # results do not depend on units; 0 and 1 for other items
    shift: Array
    scale: Array
    # length J: input for a family's sum of ``base``; empty where that sum is in ``constant``
    summaries: tuple[Array, ...]
    # (N,): row weights, which enter all sums over rows; None when all are 1
    weights: Array | None = None
    # (J,): noise shares according to an estimate; None before there is one
    estimated_noise: Array | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows, N."""
        return int(self.extended.shape[0])

    @property
    def n_counted(self) -> float:
        """Sum of the row weights; N without weights."""
        return float(self.n_samples if self.weights is None else self.weights.sum())

    def weighted(self, rows: Array) -> Array:
        """Return an array over rows, (N, ...), times the row weights."""
        if self.weights is None:
            return rows
        return rows * self.weights.reshape(-1, *(1,) * (rows.ndim - 1))

    @property
    def row_weights(self) -> Array:
        """Row weights, ones if there are none, shape (N,)."""
        return np.ones(self.n_samples) if self.weights is None else self.weights

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return len(self.families)

    @property
    def columns(self) -> Columns:
        """Columns of each item."""
        return columns_of(self.families)

    @property
    def x(self) -> Array:
        """The items' columns, 0 in missing cells, shape (N, D)."""
        return self.extended[:, : self.columns.n_columns]

    @property
    def observed_mask(self) -> tuple[NDArray[np.uint8], bool]:
        """Mask of observed cells by column, (N, D) or empty, and whether cells are missing."""
        if self.observed is None:
            return np.zeros((0, 0), dtype=np.uint8), False
        if self.columns.single:
            return self.observed, True
        return np.ascontiguousarray(self.observed[:, self.columns.item]), True

    @property
    def observed_incomplete(self) -> Array:
        """Indicators of observed cells of the incomplete items, shape (N, M)."""
        return self.extended[:, self.columns.n_columns : -1]

    @cached_property
    def complete(self) -> NDArray[np.bool_]:
        """Rows without missing cells, shape (N,)."""
        return np.asarray(self.observed_incomplete.all(axis=1))

    @cached_property
    def largest(self) -> Array:
        """Largest absolute value of each column of ``extended``, shape (D + M + 1,)."""
        return np.asarray(np.abs(self.extended).max(axis=0, initial=0.0))

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Observed cells, shape (N, J)."""
        if self.observed is None:
            return np.ones((self.n_samples, self.n_items), dtype=bool)
        return np.asarray(self.observed == 1)

    def mean_and_sd(self, x: Array, item: int) -> tuple[float, float]:
        """Return mean and standard deviation of a column (N,) over an item's observed cells."""
        if self.observed is None:
            return weighted_mean_and_sd(x, self.weights)
        seen = self.seen[:, item]
        return weighted_mean_and_sd(x[seen], None if self.weights is None else self.weights[seen])

    def linear_response(self, item: int) -> Array:
        """Return one number per response of an item that is about linear in the latents, (N,)."""
        family = family_named(self.families[item])
        columns = self.columns.of(family, np.array([item]))
        return family.linearize(np.ascontiguousarray(self.x[:, columns[..., 0]].T))

    @cached_property
    def noise_shares(self) -> Array:
        """Noise variance of each item in squares of its coefficient scale, at most 1, shape (J,).

        From means or regressions, 1 where unknown; lower if an estimate indicates less.
        """
        families = [family_named(name) for name in self.families]
        normal = np.flatnonzero([family.is_location_scale for family in families])
        out = np.ones(self.n_items)
        out[normal] = unexplained_shares(self.x[:, self.columns.starts[normal]], self.weights)
        sized = np.flatnonzero([family.has_unbounded_information for family in families])
        unexplained: dict[int, float] = {}
        for j in sized.tolist():
            family = families[j]
            by_mean = family.noise_variance(self.mean[self.columns.of(family, np.array([j]))])
            if by_mean is not None:
                out[j] = min(float(by_mean.ravel()[0]), 1.0)
            elif not family.is_location_scale:
                unexplained = unexplained or self._unexplained_responses(sized)
                out[j] = min(unexplained[j], 1.0)
        return out if self.estimated_noise is None else np.minimum(out, self.estimated_noise)

    def _unexplained_responses(self, items: NDArray[np.intp]) -> dict[int, float]:
        """Return noise shares from regressions of linear responses on each other, by item."""
        responses, deviations = np.zeros((self.n_samples, len(items))), np.ones(len(items))
        for place, j in enumerate(items.tolist()):
            response = self.linear_response(j)
            mean, deviations[place] = self.mean_and_sd(response, j)
            standardised = (response - mean) / deviations[place]
            responses[:, place] = np.where(self.seen[:, j], standardised, 0.0)
        variances = unexplained_shares(responses, self.weights) * deviations**2
        out = {}
        for j, variance in zip(items.tolist(), variances.tolist(), strict=True):
            family = family_named(self.families[j])
            columns = self.columns.of(family, np.array([j]))
            scale = float(family.coefficient_scale(self.mean[columns], self.variance[columns])[0])
            out[j] = variance / max(scale, 1e-12) ** 2
        return out

    def with_estimated_noise(self, information: Array, scale: Array) -> WorkingData:
        """Return the data with noise shares, given information about intercepts, both (J,)."""
        families = [family_named(name) for name in self.families]
        has_noise = [f.has_unbounded_information and f.has_dispersion for f in families]
        known = np.array(has_noise) & (information > 0)
        # The noise variance of a response is the inverse of the information in one row.
        share = self.n_observed / np.where(known, information * scale**2, 1.0)
        factor = CONFIG.m_step.estimated_noise_factor
        return replace(self, estimated_noise=np.where(known, np.minimum(factor * share, 1.0), 1.0))

    @classmethod
    def from_values(
        cls,
        values: Array,
        families: tuple[str, ...],
        *,
        units: tuple[Array, Array] | None = None,
        weights: Array | None = None,
    ) -> WorkingData:
        """Return the design data of a table (N, J), NaN in missing cells, with row weights (N,).

        ``units`` gives shift and scale of standardised items; None computes them from the table.
        """
        seen = ~np.isnan(values)
        counted = None if weights is None else weights[:, None] * seen
        n_items = values.shape[1]
        columns = columns_of(families)
        incomplete = np.flatnonzero(~seen.all(axis=0))
        extended = np.zeros((len(values), columns.n_columns + len(incomplete) + 1))
        extended[:, columns.n_columns : -1] = seen[:, incomplete]
        extended[:, -1] = 1.0
        x = extended[:, : columns.n_columns]
        constant = np.zeros(n_items)
        summaries = [np.zeros(0)] * n_items
        shift, scale = np.zeros(n_items), np.ones(n_items)
        for j, name in enumerate(families):
            family = family_named(name)
            cells = values[seen[:, j], j]
            counts = None if weights is None else weights[seen[:, j]]
            first = columns.starts[j]
            if family.is_location_scale:
                working = family.to_working(cells)
                if units is not None:
                    shift[j], scale[j] = units[0][j], units[1][j]
                elif len(cells):
                    shift[j], scale[j] = weighted_mean_and_sd(working, counts)
                # The base differs from a Gaussian's by the Jacobian of the transformation.
                unit = np.ones(1)
                jacobian = _total(family.base(cells, unit) - normal_base(working, unit), counts)
                constant[j] = jacobian - _total(np.ones(len(cells)), counts) * np.log(scale[j])
                x[seen[:, j], first] = (working - shift[j]) / scale[j]
                continue
            if family.has_dispersion or family.n_cutpoints:
                summaries[j] = family.base_statistics(cells, counts)
            else:
                constant[j] = _total(family.base(cells, np.ones(1)), counts)
            if family.n_columns == 1:
                x[seen[:, j], first] = family.to_working(cells)
            else:
                x[seen[:, j], first : first + family.n_columns] = family.to_working(cells).T
        n_observed = (seen if counted is None else counted).sum(axis=0).astype(np.float64)
        moments = _moments(x, n_observed[columns.item], weights)
        observed = seen.astype(np.uint8) if len(incomplete) else None
        of_cells = extended, families, observed, incomplete, n_observed
        return cls(*of_cells, *moments, constant, shift, scale, tuple(summaries), weights)

    @classmethod
    def around(
        cls, parameters: MeasurementParameters, values: Array, weights: Array | None = None
    ) -> WorkingData:
        """Return the data of a table (N, J) standardised by a fit, which keeps exponents small."""
        standardised = np.array([family_named(f).is_location_scale for f in parameters.families])
        shift = np.where(standardised, parameters.intercept, 0.0)
        scale = np.where(standardised, np.sqrt(parameters.dispersion), 1.0)
        return cls.from_values(values, parameters.families, units=(shift, scale), weights=weights)

    def first_rows(self, n_rows: int) -> WorkingData:
        """Return the data of a sample of rows, in the same units.

        The first ones, as their order is canonical; weighted rows are sampled by their weights.
        """
        if n_rows >= self.n_counted:
            return self
        rows: slice | NDArray[np.intp] = slice(n_rows)
        weights = None
        if self.weights is not None:
            ends = np.cumsum(self.weights)
            ticks = (np.arange(n_rows) + 0.5) * (ends[-1] / n_rows)
            drawn = np.minimum(np.searchsorted(ends, ticks), len(ends) - 1)
            rows, counts = np.unique(drawn, return_counts=True)
            share = min(1.0, float(ends[-1]) / n_rows)
            weights = np.asarray(share * counts, dtype=np.float64)
            n_rows = len(rows)
        extended = self.extended[rows]
        observed = None if self.observed is None else self.observed[rows]
        total = float(n_rows) if weights is None else float(weights.sum())
        seen = np.full(self.n_items, total)
        if observed is not None:
            seen = observed.sum(axis=0) if weights is None else weights @ observed
        x = extended[:, : self.columns.n_columns]
        mean, variance, sum_squares = _moments(x, seen[self.columns.item], weights)

        def summary(item: int) -> Array:
            family = family_named(self.families[item])
            columns = self.columns.of(family, np.array([item]))[..., 0]
            seen = slice(None) if observed is None else observed[:, item] == 1
            counts = None if weights is None else weights[seen]
            return family.base_statistics(family.from_working(x[seen][:, columns].T), counts)

        return replace(
            self,
            extended=extended,
            observed=observed,
            n_observed=np.asarray(seen, dtype=np.float64),
            mean=mean,
            variance=variance,
            sum_squares=sum_squares,
            constant=self.constant * (total / self.n_counted),
            weights=weights,
            summaries=tuple(summary(j) if len(s) else s for j, s in enumerate(self.summaries)),
        )

    def to_user(self, parameters: MeasurementParameters) -> MeasurementParameters:
        """Return parameters on the working scale in the user's units."""
        return replace(
            parameters,
            intercept=self.shift + self.scale * parameters.intercept,
            loadings=self.scale[:, None] * parameters.loadings,
            dispersion=self.scale**2 * parameters.dispersion,
        )

    def to_working(self, parameters: MeasurementParameters) -> MeasurementParameters:
        """Return parameters in the user's units on the working scale."""
        return replace(
            parameters,
            intercept=(parameters.intercept - self.shift) / self.scale,
            loadings=parameters.loadings / self.scale[:, None],
            dispersion=parameters.dispersion / self.scale**2,
        )

    def base(self, dispersion: Array) -> float:
        """Return the part of the log-likelihood that does not depend on the latents."""
        total = float(self.constant.sum())
        for j, name in enumerate(self.families):
            family = family_named(name)
            if family.is_location_scale:
                total -= 0.5 * float(
                    self.sum_squares[self.columns.starts[j]] / dispersion[j]
                    + self.n_observed[j] * np.log(2.0 * np.pi * dispersion[j])
                )
            elif len(self.summaries[j]):
                total += float(family.base_sums([self.summaries[j]], dispersion[j : j + 1])[0])
        return total
