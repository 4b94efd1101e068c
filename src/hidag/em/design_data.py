"""The table as Stage I works with it: working scale, zeros for missing cells, sums that stay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hidag.em.statistics import mean_and_spread, moments_of, total_of, unexplained_shares
from hidag.measurement.families.base import normal_base
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import Columns, MeasurementParameters, columns_of

# --- How much of each item may be noise: where it is little, small coefficients are known well

Array = NDArray[np.float64]

#: Estimates make items quieter than they are while latents are not quite found: they have to tell
#: so many times less noise than the other items do before anything is made of it. The threshold of
#: a penalty is then no wider than a few standard errors.
TOLD_BY_ESTIMATE = 6.0


def noise_shares_of(data: WorkingData) -> Array:
    """Return the share of noise in squares of coefficients' scales, shape (J,); 1 if nothing tells.

    Known from means for counts. Of items that are normal on the working scale it is what other such
    items do not explain; of others with a size, what all with a size do not.
    """
    kinds = [family_named(name) for name in data.families]
    normal = np.flatnonzero([kind.is_location_scale for kind in kinds])
    out = np.ones(data.n_items)
    out[normal] = unexplained_shares(data.x[:, data.columns.starts[normal]], data.weights)
    sized = np.flatnonzero([kind.has_unbounded_information for kind in kinds])
    rest: dict[int, float] = {}
    for j in sized.tolist():
        told = kinds[j].noise_variance(data.mean[data.columns.of(kinds[j], np.array([j]))])
        if told is not None:
            out[j] = min(float(told.ravel()[0]), 1.0)
        elif not kinds[j].is_location_scale:
            rest = rest or _unexplained_looks(data, sized)
            out[j] = min(rest[j], 1.0)
    return out


def noise_told_by(information: Array, scale: Array, data: WorkingData) -> Array:
    """Return what an estimate says of the share of noise, shape (J,); 1 if it says nothing.

    Parameters
    ----------
    information : ndarray, shape (J,)
        Of the items' intercepts at the estimate, in all rows.
    scale : ndarray, shape (J,)
        Of the items' coefficients.
    data : WorkingData
    """
    kinds = [family_named(name) for name in data.families]
    telling = np.array([kind.has_unbounded_information and kind.has_dispersion for kind in kinds])
    known = telling & (information > 0)
    # One row's noise is what its information is the inverse of.
    share = data.n_observed / np.where(known, information * scale**2, 1.0)
    return np.where(known, np.minimum(TOLD_BY_ESTIMATE * share, 1.0), 1.0)


def _unexplained_looks(data: WorkingData, items: NDArray[np.intp]) -> dict[int, float]:
    """Return the noise in first looks at items that looks at the others do not explain, by item."""
    looks = np.zeros((data.n_samples, len(items)))
    spreads = np.ones(len(items))
    for place, j in enumerate(items.tolist()):
        seen = slice(None) if data.observed is None else data.observed[:, j] == 1
        look = data.look(j)[seen]
        counts = None if data.weights is None else data.weights[seen]
        mean, spreads[place] = mean_and_spread(look, counts)
        looks[seen, place] = (look - mean) / spreads[place]
    variances = unexplained_shares(looks, data.weights) * spreads**2
    out = {}
    for j, variance in zip(items.tolist(), variances.tolist(), strict=True):
        family = family_named(data.families[j])
        columns = data.columns.of(family, np.array([j]))
        scale = float(family.coefficient_scale(data.mean[columns], data.variance[columns])[0])
        out[j] = variance / max(scale, 1e-12) ** 2
    return out


# ---


@dataclass(frozen=True)
class WorkingData:
    """Responses ready for estimation.

    A family may have several columns for an item (D in all, J if every item has one).

    Attributes
    ----------
    extended : ndarray, shape (N, D + M + 1)
        The items' columns, then for each item with missing cells whether it was observed, then
        ones: what the E-step multiplies with.
    x : ndarray, shape (N, D)
        The items' columns; 0 in missing cells (the first columns of ``extended``).
        Gaussian and lognormal items are standardised, ``working = (x - shift) / scale``, so that no
        item's units decide anything.
    families : tuple of str, length J
    observed : ndarray of uint8, shape (N, J), or None
        1 where a cell was observed; None when nothing is missing.
    gappy : ndarray of int, shape (M,)
        Items with missing cells: they need counts of their own.
    gaps : ndarray of float64, shape (N, M)
        ``observed`` of the gappy items (the next columns of ``extended``).
    n_observed : ndarray, shape (J,)
        Observed cells of each item.
    mean, variance, sum_squares : ndarray, shape (D,)
        Per column, over observed cells.
    constant : ndarray, shape (J,)
        Sum of the log densities' parts that no parameter enters.
    shift, scale : ndarray, shape (J,)
        0 and 1 for items that are not standardised.
    weights : ndarray, shape (N,), or None
        How many rows each row counts for; None when each counts for one. All sums over rows, here
        and in the statistics, are weighted.
    summaries : tuple of ndarray, length J
        What a family needs for sums of its ``base``; empty where that is in ``constant``.
    told_noise : ndarray, shape (J,), or None
        What an estimate says of how much of each item may be noise; None before there is one.
    """

    extended: Array
    families: tuple[str, ...]
    observed: NDArray[np.uint8] | None
    gappy: NDArray[np.intp]
    n_observed: Array
    mean: Array
    variance: Array
    sum_squares: Array
    constant: Array
    shift: Array
    scale: Array
    summaries: tuple[Array, ...]
    weights: Array | None = None
    told_noise: Array | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows, N."""
        return int(self.extended.shape[0])

    @property
    def n_counted(self) -> float:
        """How many rows the table counts for: N, or the sum of the weights."""
        return float(self.n_samples if self.weights is None else self.weights.sum())

    def weighted(self, rows: Array) -> Array:
        """Return arrays over rows, (N, ...), times the rows' weights; as they are without any."""
        if self.weights is None:
            return rows
        return rows * self.weights.reshape(-1, *(1,) * (rows.ndim - 1))

    @property
    def row_weights(self) -> Array:
        """Weights of the rows, ones where none were given, shape (N,)."""
        return np.ones(self.n_samples) if self.weights is None else self.weights

    @property
    def n_items(self) -> int:
        """Number of items, J."""
        return len(self.families)

    @property
    def columns(self) -> Columns:
        """Which columns belong to which item."""
        return columns_of(self.families)

    @property
    def column_item(self) -> NDArray[np.intp]:
        """Item of each column, shape (D,)."""
        return self.columns.item

    @property
    def x(self) -> Array:
        """The items' columns, shape (N, D)."""
        return self.extended[:, : self.columns.n_columns]

    @property
    def observed_columns(self) -> NDArray[np.uint8] | None:
        """``observed`` with a column for each of the items' columns, shape (N, D)."""
        if self.observed is None or self.columns.single:
            return self.observed
        return np.ascontiguousarray(self.observed[:, self.column_item])

    def look(self, item: int) -> Array:
        """Return one number per response of an item in which latents act about linearly, (N,)."""
        family = family_named(self.families[item])
        columns = self.columns.of(family, np.array([item]))
        return family.linearize(np.ascontiguousarray(self.x[:, columns[..., 0]].T))

    @cached_property
    def noise_shares(self) -> Array:
        """How much of each item may be noise, shape (J,); 1 where nothing tells."""
        known = noise_shares_of(self)
        return known if self.told_noise is None else np.minimum(known, self.told_noise)

    @property
    def gaps(self) -> Array:
        """Whether gappy items were observed, shape (N, M)."""
        return self.extended[:, self.columns.n_columns : -1]

    @cached_property
    def complete(self) -> NDArray[np.bool_]:
        """Which rows have no missing cell, shape (N,)."""
        return np.asarray(self.gaps.all(axis=1))

    @cached_property
    def largest(self) -> Array:
        """Largest absolute value of each column of ``extended``, shape (D + M + 1,)."""
        return np.asarray(np.abs(self.extended).max(axis=0, initial=0.0))

    @classmethod
    def from_values(
        cls,
        values: Array,
        families: tuple[str, ...],
        *,
        units: tuple[Array, Array] | None = None,
        weights: Array | None = None,
    ) -> WorkingData:
        """Return working data of a table with NaN in missing cells, shape (N, J).

        ``units`` gives the shift and scale of items that are standardised; None takes them from
        the table. ``weights``, shape (N,), says how many rows each row counts for.
        """
        seen = ~np.isnan(values)
        counted = None if weights is None else weights[:, None] * seen
        n_items = values.shape[1]
        columns = columns_of(families)
        gappy = np.flatnonzero(~seen.all(axis=0))
        extended = np.zeros((len(values), columns.n_columns + len(gappy) + 1))
        extended[:, columns.n_columns : -1] = seen[:, gappy]
        extended[:, -1] = 1.0
        x = extended[:, : columns.n_columns]
        constant = np.zeros(n_items)
        summaries = [np.zeros(0)] * n_items
        shift, scale = np.zeros(n_items), np.ones(n_items)
        for j, name in enumerate(families):
            family = family_named(name)
            cells = values[seen[:, j], j]
            counts = None if weights is None else weights[seen[:, j]]
            here = columns.starts[j]
            if family.is_location_scale:
                working = family.to_working(cells)
                if units is not None:
                    shift[j], scale[j] = units[0][j], units[1][j]
                elif len(cells):
                    shift[j], scale[j] = mean_and_spread(working, counts)
                # What the base has beyond a Gaussian's is the change of variables.
                unit = np.ones(1)
                jacobian = total_of(family.base(cells, unit) - normal_base(working, unit), counts)
                constant[j] = jacobian - total_of(np.ones(len(cells)), counts) * np.log(scale[j])
                x[seen[:, j], here] = (working - shift[j]) / scale[j]
                continue
            if family.has_dispersion or family.n_cutpoints:
                summaries[j] = family.base_statistics(cells, counts)
            else:
                constant[j] = total_of(family.base(cells, np.ones(1)), counts)
            if family.n_columns == 1:
                x[seen[:, j], here] = family.to_working(cells)
            else:
                x[seen[:, j], here : here + family.n_columns] = family.to_working(cells).T
        n_observed = (seen if counted is None else counted).sum(axis=0).astype(np.float64)
        sum_squares, mean, variance = moments_of(x, n_observed[columns.item], weights)
        return cls(
            extended=extended,
            families=families,
            observed=seen.astype(np.uint8) if len(gappy) else None,
            gappy=gappy,
            n_observed=n_observed,
            mean=mean,
            variance=variance,
            sum_squares=sum_squares,
            constant=constant,
            shift=shift,
            scale=scale,
            summaries=tuple(summaries),
            weights=weights,
        )

    @classmethod
    def around(
        cls, parameters: MeasurementParameters, values: Array, weights: Array | None = None
    ) -> WorkingData:
        """Return working data of a table, shape (N, J), in units of a fit in the user's units.

        Shifting by the fitted intercepts keeps numbers small whatever the items' units are.
        """
        spread = np.array([family_named(f).is_location_scale for f in parameters.families])
        shift = np.where(spread, parameters.intercept, 0.0)
        scale = np.where(spread, np.sqrt(parameters.dispersion), 1.0)
        return cls.from_values(values, parameters.families, units=(shift, scale), weights=weights)

    def first_rows(self, n_rows: int) -> WorkingData:
        """Return the table of the first rows only, in the same units.

        In canonical order the first rows are as good as any others.
        """
        if n_rows >= self.n_samples:
            return self
        extended = self.extended[:n_rows]
        observed = None if self.observed is None else self.observed[:n_rows]
        weights = None if self.weights is None else self.weights[:n_rows]
        x = extended[:, : self.columns.n_columns]
        total = float(n_rows) if weights is None else float(weights.sum())
        seen = np.full(self.n_items, total)
        if observed is not None:
            seen = observed.sum(axis=0) if weights is None else weights @ observed
        sum_squares, mean, variance = moments_of(x, seen[self.column_item], weights)
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
            summaries=tuple(
                self._summary_of_first(n_rows, j) if len(summary) else summary
                for j, summary in enumerate(self.summaries)
            ),
        )

    def _summary_of_first(self, n_rows: int, item: int) -> Array:
        """Return the summary of an item's responses in the first rows."""
        family = family_named(self.families[item])
        columns = self.columns.of(family, np.array([item]))[..., 0]
        seen = slice(None) if self.observed is None else self.observed[:n_rows, item] == 1
        counts = None if self.weights is None else self.weights[:n_rows][seen]
        return family.base_statistics(
            family.from_working(self.x[:n_rows][seen][:, columns].T), counts
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
        """Return the part of the log-likelihood that no latent enters."""
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
