"""The M-step: penalised item regressions on the statistics, all items of a family at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.dispersion_floor import smallest_dispersion
from hidag.estimate.loading_costs import at_a_cost, penalty_scales
from hidag.estimate.predictor_floor import kept_above
from hidag.estimate.statistics import Statistics
from hidag.estimate.working import WorkingData
from hidag.kernels.item_regression import RISING, ZERO, descend
from hidag.latent import StateSpace
from hidag.measurement import Family, MeasurementParameters, Penalty, Terms

Array = NDArray[np.float64]

#: A step that lowers the objective is taken again with this much more curvature.
DAMPING_FACTOR = 4.0
MAX_DAMPINGS = 12
DESCENT_SWEEPS = 50
#: Coordinate moves below this many standard errors end a descent.
DESCENT_TOLERANCE = 1e-7
#: Added to the unit diagonals of systems that empty states make singular.
UNSOLVABLE = 1e-9


@dataclass(frozen=True)
class Basis:
    """Latent states as regressors.

    Attributes
    ----------
    design : ndarray, shape (S, 1 + T)
        A one and the terms' values.
    products : ndarray, shape (S, P (P + 1) / 2)
        Products of pairs of columns of ``design``, upper triangle by rows.
    collinear : bool
        Whether terms are products of others, and so hardly to be told apart in some directions.
    """

    design: Array
    products: Array
    collinear: bool = False

    @classmethod
    def of(cls, features: Array, *, collinear: bool = False) -> Basis:
        """Return the basis of states given by their terms' values, shape (S, T)."""
        design = np.hstack([np.ones((len(features), 1)), features])
        left, right = np.triu_indices(design.shape[1])
        return cls(design, np.ascontiguousarray(design[:, left] * design[:, right]), collinear)

    @classmethod
    def over(cls, space: StateSpace, terms: Terms) -> Basis:
        """Return the basis of all joint states."""
        return cls.of(terms.features(space.states()), collinear=bool(terms.interactions))

    @property
    def features(self) -> Array:
        """The terms' values, shape (S, T)."""
        return self.design[:, 1:]

    def quadratic(self, weights: Array) -> Array:
        """Return ``design' diag(w) design`` for each row of weights, shape (J, P, P)."""
        size = self.design.shape[1]
        packed = weights @ self.products
        out = np.empty((len(weights), size, size))
        left, right = np.triu_indices(size)
        out[:, left, right] = packed
        out[:, right, left] = packed
        return out


@dataclass(frozen=True)
class _Problem:
    """Penalised regressions of the items of one family.

    ``sums`` are those of the items' columns by state, (J, S), or (D, J, S) for a family with
    several columns; ``auxiliary`` is what the family has besides a predictor.
    """

    family: Family
    sums: Array
    counts: Array
    auxiliary: Array
    basis: Basis
    allowed: NDArray[np.uint8]
    penalty: Penalty
    scale: Array

    def objective(self, beta: Array) -> Array:
        eta = beta @ self.basis.design.T
        value = self.family.expected_without_base(self.auxiliary, eta, self.sums, self.counts)
        if self.penalty.name is not None:
            cost = self.penalty.value(beta[:, 1:], self.scale[:, None])
            value -= (cost * at_a_cost(self.allowed[:, 1:])).sum(axis=1)
        if np.isfinite(self.family.lowest_predictor):
            value[eta.min(axis=1) < self.family.lowest_predictor] = -np.inf
        return value

    def newton(self, beta: Array) -> Array:
        """Return coefficients after one proximal Newton step; no item's objective gets worse."""
        eta = beta @ self.basis.design.T
        dtheta, dpartition, information = self.family.slopes(eta, self.auxiliary[:, None])
        rising = self.sums * dtheta
        if self.family.n_columns > 1:
            rising = rising.sum(axis=0)
        gradient = (rising - self.counts * dpartition) @ self.basis.design
        curvature = self.basis.quadratic(self.counts * information)
        # A whisper of ridge keeps items regular whose states are all but empty.
        diagonal = np.arange(curvature.shape[1])
        curvature[:, diagonal, diagonal] *= 1.0 + 1e-9
        before = self.objective(beta)
        out = beta.copy()
        open_items = np.arange(len(beta))
        damping = 1.0
        for _ in range(MAX_DAMPINGS):
            part = self.restricted(open_items)
            proposal = part.feasible_proposal(
                beta[open_items], gradient[open_items], damping * curvature[open_items]
            )
            good = part.objective(proposal) >= before[open_items] - 1e-12 * np.abs(
                before[open_items]
            )
            out[open_items[good]] = proposal[good]
            open_items = open_items[~good]
            if len(open_items) == 0:
                break
            damping *= DAMPING_FACTOR
        return out

    def feasible_proposal(self, beta: Array, gradient: Array, curvature: Array) -> Array:
        """Return the proposal whose predictors respect the family's floor, if it has one."""
        floor = self.family.lowest_predictor
        if not np.isfinite(floor):
            return self.proposal(beta, gradient, curvature)
        return kept_above(
            floor,
            self.basis.design,
            beta,
            gradient,
            curvature,
            lambda items, *model: self.restricted(items).proposal(*model),
            at_a_cost(self.allowed),
        )

    def proposal(self, beta: Array, gradient: Array, curvature: Array) -> Array:
        """Return coefficients that maximise the items' penalised quadratic models."""
        if self.penalty.name is None and self.basis.collinear:
            # Coordinate descent would crawl.
            return beta + _solved(gradient, curvature, self.allowed != ZERO)
        return np.asarray(
            descend(
                beta,
                gradient,
                curvature,
                self.allowed,
                self.penalty.code,
                self.penalty.strength,
                self.penalty.threshold * self.scale,
                DESCENT_SWEEPS,
                DESCENT_TOLERANCE,
            )
        )

    def restricted(self, items: NDArray[np.intp]) -> _Problem:
        if len(items) == len(self.counts):
            return self
        return _Problem(
            self.family,
            self.sums[..., items, :],
            self.counts[items],
            self.auxiliary[items],
            self.basis,
            self.allowed[items],
            self.penalty,
            self.scale[items],
        )


def _solved(gradient: Array, curvature: Array, free: NDArray[np.bool_]) -> Array:
    """Return the Newton steps of the free coefficients, zero for the others, shape (J, P)."""
    both = free[:, :, None] & free[:, None, :]
    system = np.where(both, curvature, 0.0)
    places = np.arange(free.shape[1])
    scale = np.sqrt(np.maximum(system[:, places, places], 1e-12))
    # Scaled to unit diagonals one small number regularises all items alike.
    system /= scale[:, :, None] * scale[:, None, :]
    system[:, places, places] = 1.0 + UNSOLVABLE
    steps = np.linalg.solve(system, (np.where(free, gradient, 0.0) / scale)[..., None])[..., 0]
    return np.asarray(np.where(free, steps / scale, 0.0))


def maximise(
    parameters: MeasurementParameters,
    statistics: Statistics,
    data: WorkingData,
    basis: Basis,
    allowed: NDArray[np.uint8],
    penalty: Penalty,
    *,
    n_newton: int = 1,
) -> MeasurementParameters:
    """Return parameters with a penalised expected log-likelihood at least as high (the M-step).

    Parameters
    ----------
    parameters : MeasurementParameters
        Where the Newton steps start.
    statistics : Statistics
    data : WorkingData
        Only its per-item sums are used, never its rows.
    basis : Basis
    allowed : ndarray of uint8, shape (J, 1 + T)
        ZERO, PENALISED, FREE or RISING for each coefficient; the intercept, column 0, is free.
    penalty : Penalty
    n_newton : int
        Newton steps; items without a dispersion and with a quadratic likelihood need one.
    """
    beta = parameters.coefficients
    beta[:, 1:] *= allowed[:, 1:] != ZERO
    fallen = (allowed[:, 1:] == RISING) & (beta[:, 1:] < 0)
    beta[:, 1:][fallen] = 0.0
    dispersion, cutpoints = parameters.dispersion.copy(), parameters.cutpoints.copy()
    scale = np.ones(data.n_items) if penalty.name is None else penalty_scales(data)
    for family, items in parameters.groups():
        counts = statistics.item_counts(items, data.gappy)
        columns = data.columns.of(family, items)
        sums = statistics.sum_x[columns]
        auxiliary = parameters.auxiliary(family, items)
        for _ in range(n_newton):
            problem = _Problem(
                family,
                sums,
                counts,
                auxiliary,
                basis,
                np.ascontiguousarray(allowed[items]),
                penalty,
                scale[items],
            )
            fresh = problem.newton(beta[items])
            change = np.abs(fresh - beta[items]).max() if len(items) else 0.0
            beta[items] = fresh
            if family.is_location_scale:
                eta = fresh @ basis.design.T
                squares = (
                    data.sum_squares[columns]
                    - 2.0 * np.einsum("js,js->j", sums, eta)
                    + np.einsum("js,js,js->j", counts, eta, eta)
                )
                floor = smallest_dispersion(family, data.variance[columns])
                auxiliary = np.maximum(squares / data.n_observed[items], floor)
            elif family.has_dispersion or family.n_cutpoints:
                before = auxiliary
                auxiliary, shift = family.update_auxiliary(
                    before,
                    fresh @ basis.design.T,
                    sums,
                    counts,
                    [data.summaries[j] for j in items],
                    counts.sum(axis=1) / np.maximum(data.n_observed[items], 1e-12),
                )
                beta[items, 0] += shift
                change = max(change, np.abs(shift).max(), np.abs(auxiliary - before).max())
            if change < 1e-8:
                break
        if family.n_cutpoints:
            cutpoints[items, : family.n_cutpoints] = auxiliary
        else:
            dispersion[items] = auxiliary
    return replace(
        parameters,
        intercept=beta[:, 0],
        loadings=beta[:, 1:],
        dispersion=dispersion,
        cutpoints=cutpoints,
    )
