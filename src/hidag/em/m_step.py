"""M-step: regressions of the items on the latent states.

Items whose free terms are saturated (G-DINA, DINA, latent classes, one latent) have a closed form:
the mean of the item in each cell. All others take proximal Newton steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData, weighted_mean_and_sd
from hidag.em.e_step import Statistics
from hidag.kernels.coordinate_descent import FREE, NONNEGATIVE, PENALISED, TIED, ZERO, descend
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import Family, MeanFamily, family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import Penalty
from hidag.measurement.terms import Terms

Array = NDArray[np.float64]
#: Maximises quadratic models: (items, coefficients, gradients, curvatures) to coefficients.
Propose = Callable[[NDArray[np.intp], Array, Array, Array], Array]
_upper_triangle = cache(np.triu_indices)


def allowed_coefficients(q_entries: NDArray[np.int8], terms: Terms) -> NDArray[np.uint8]:
    """Return ZERO, PENALISED or FREE of coefficients (J, 1 + T); interactions are zero at first."""
    out = np.full((len(q_entries), 1 + terms.n_terms), ZERO, dtype=np.uint8)
    out[:, 0] = FREE
    of_latent = np.choose(q_entries + 1, [PENALISED, ZERO, FREE])
    out[:, 1 : 1 + terms.n_main] = of_latent[:, terms.main_latents]
    return out


def is_penalised(allowed: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which coefficients are penalised unless they are zero, same shape."""
    return np.asarray((allowed == PENALISED) | (allowed == NONNEGATIVE))


def penalty_scales(data: WorkingData) -> Array:
    """Return the unit of the penalty's threshold for each item, shape (J,).

    `coefficient_scales`, reduced for items with little noise: a threshold many standard errors wide
    would leave false loadings.
    """
    factor = np.sqrt(data.noise_shares / CONFIG.m_step.low_noise_share)
    return coefficient_scales(data) * np.minimum(factor, 1.0)


def coefficient_scales(data: WorkingData) -> Array:
    """Return the size of a typical coefficient of each item, shape (J,)."""
    out, names = np.empty(data.n_items), np.array(data.families)
    for name in set(data.families):
        family, items = family_named(name), np.flatnonzero(names == name)
        columns = data.columns.of(family, items)
        out[items] = family.coefficient_scale(data.mean[columns], data.variance[columns])
    return out


def total_penalty(
    parameters: MeasurementParameters, penalty: Penalty, scale: Array, allowed: NDArray[np.uint8]
) -> float:
    """Return the sum of the penalties of all penalised loadings."""
    cost = penalty.value(parameters.loadings, scale[:, None])
    return float((cost * is_penalised(allowed[:, 1:])).sum())


def dispersion_floor(family: Family, variance: Array) -> Array:
    """Return the smallest dispersion of a family's items with working variances, both (n,)."""
    low = np.full(len(variance), family.dispersion_bounds[0])
    if not family.is_location_scale:
        return low
    return np.asarray(np.maximum(low, CONFIG.m_step.min_dispersion_share * variance))


def at_dispersion_floor(
    parameters: MeasurementParameters,
    values: Array,
    weights: Array | None = None,
    *,
    sampled: bool = False,
) -> NDArray[np.bool_]:
    """Return which items' dispersions are estimated on the boundary, shape (J,).

    Parameters are in the user's units, values (N, J). With ``sampled`` a dispersion counts that the
    prior mass of network EM alone explains.
    """
    out = np.zeros(parameters.n_items, dtype=bool)
    for family, items in parameters.groups():
        if not family.has_dispersion:
            continue
        mean, variance, n_rows = np.zeros(len(items)), np.zeros(len(items)), np.ones(len(items))
        if family.is_location_scale:
            for place, j in enumerate(items):
                seen = ~np.isnan(values[:, j])
                counts = None if weights is None else weights[seen]
                mean[place], sd = weighted_mean_and_sd(family.to_working(values[seen, j]), counts)
                variance[place] = sd**2
                n_rows[place] = seen.sum() if counts is None else counts.sum()
        largest = (1.0 + CONFIG.m_step.boundary_share) * dispersion_floor(family, variance)
        if sampled and family.is_location_scale:
            by_mass = [
                _square_of_prior_mass(parameters, j, m) for j, m in zip(items, mean, strict=True)
            ]
            factor = CONFIG.m_step.mass_dispersion_factor
            largest = np.maximum(largest, factor * (np.array(by_mass) / n_rows))
        out[items] = parameters.dispersion[items] <= largest
    return out


def _square_of_prior_mass(parameters: MeasurementParameters, j: int, mean: float) -> float:
    """Return the sum of squares that the prior mass adds to an item with a given mean."""
    states = parameters.terms.states_of(np.flatnonzero(parameters.support[j]))
    eta = parameters.intercept[j] + parameters.terms.features(states) @ parameters.loadings[j]
    return CONFIG.m_step.item_mass * float(((eta - mean) ** 2).mean())


def maximise_above_floor(
    floor: float,
    design: Array,
    beta: Array,
    gradient: Array,
    curvature: Array,
    propose: Propose,
    may_vanish: NDArray[np.bool_],
) -> Array:
    """Return coefficients that maximise quadratic models with no linear predictor below a floor.

    An active-set method: states below the floor are held at it, and released when their multiplier
    has the wrong sign. ``propose`` maximises without the constraint. Coefficients that may vanish
    (J, P) are set to 0 where only the finite stiffness leaves a value.
    """
    out = propose(np.arange(len(beta)), beta, gradient, curvature)
    eta = out @ design.T
    items = np.flatnonzero(eta.min(axis=1) < floor)
    active, anchor = eta[items] < floor, eta[items].argmin(axis=1)
    target = floor + CONFIG.m_step.floor_margin * abs(floor)
    for _ in range(CONFIG.m_step.max_floor_rounds):
        if len(items) == 0:
            return out
        model = beta[items], gradient[items], curvature[items]
        solve = partial(propose, items)
        held = active, anchor, target
        found, multiplier = _maximise_held(design, model, held, solve, may_vanish[items])
        out[items] = found
        eta = found @ design.T
        below = eta < floor
        released = active & (multiplier < 0)
        active = (active & ~released) | below
        changed = (below | released).any(axis=1) & active.any(axis=1)
        items, active, anchor = items[changed], active[changed], anchor[changed]
        still_active = active[np.arange(len(items)), anchor]
        lowest = np.where(active, eta[changed], np.inf).argmin(axis=1)
        anchor = np.where(still_active, anchor, lowest)
    smallest = (out @ design.T).min(axis=1)
    out[:, 0] += np.where(smallest < floor, target - smallest, 0.0)
    return out


def _maximise_held(
    design: Array,
    model: tuple[Array, Array, Array],
    held: tuple[NDArray[np.bool_], NDArray[np.intp], float],
    propose: Callable[[Array, Array, Array], Array],
    may_vanish: NDArray[np.bool_],
) -> tuple[Array, Array]:
    """Return maximisers (n, P) with active states held at the target, and multipliers (n, S).

    The anchor state's equation eliminates the intercept exactly, so that coordinate descent still
    applies; further active states, (n, S), are held by a quadratic penalty.
    """
    (beta, gradient, curvature), (active, anchor, target) = model, held
    places = np.arange(len(beta))
    normal = design[anchor]
    shift = target - (beta * normal).sum(axis=1)
    start = beta.copy()
    start[:, 0] += shift
    others = active.copy()
    others[places, anchor] = False
    largest = np.einsum("jaa->ja", curvature).max(axis=1, keepdims=True)
    stiffness = CONFIG.m_step.floor_stiffness * largest
    pull = np.where(others, stiffness * (target - start @ design.T), 0.0)
    slope = gradient - curvature[:, :, 0] * shift[:, None] + pull @ design
    stiff = np.einsum("js,sa,sb->jab", others * stiffness, design, design, optimize=True)
    bent = curvature + stiff
    # Eliminate the intercept.
    slope = slope - normal * slope[:, :1]
    cross = normal[:, :, None] * bent[:, :1, :]
    outer = normal[:, :, None] * normal[:, None, :] * bent[:, :1, :1]
    bent = bent - cross - np.swapaxes(cross, 1, 2) + outer
    slope[:, 0], bent[:, 0, :], bent[:, :, 0] = 0.0, 0.0, 0.0
    found = propose(start, slope, bent)
    found[may_vanish & (np.abs(found) < target)] = 0.0
    found[:, 0] = target - (normal[:, 1:] * found[:, 1:]).sum(axis=1)
    eta = found @ design.T
    multiplier = np.where(others, stiffness * (target - eta), 0.0)
    rest = gradient[:, 0] - np.einsum("ja,ja->j", curvature[:, 0, :], found - beta)
    # States with the same predictor as the anchor share its multiplier.
    at_anchor = active & (np.abs(eta - target) <= 1e-12)
    at_anchor[places, anchor] = True
    of_anchor = (-rest - multiplier.sum(axis=1))[:, None]
    return found, np.where(at_anchor, of_anchor, multiplier)


@dataclass(frozen=True)
class ItemCells:
    """The cells of an item: sets of states with the same values of its terms."""

    terms: NDArray[np.intp]  # (P,): free columns of the design
    values: Array  # (C, P): the terms in the cells
    place: NDArray[np.intp]  # (S,): cell of each state

    @cached_property
    def inverse(self) -> Array:
        """Least-squares coefficients of the terms from the cells' predictors, shape (P, C)."""
        return np.asarray(np.linalg.pinv(self.values))

    @cached_property
    def saturated(self) -> bool:
        """Whether any predictors of the cells are possible, and determine the coefficients."""
        rank = int(np.linalg.matrix_rank(self.values))
        return len(self.values) == len(self.terms) == rank


@dataclass(frozen=True)
class SaturatedCells:
    """Items whose free terms take as many distinct values over the states as there are terms.

    Any predictors of these cells are possible. Arrays are padded to C cells, the largest number of
    an item; padded cells have no states and no coefficient.
    """

    items: NDArray[np.intp]  # (n,): the saturated items
    others: NDArray[np.intp]  # (J - n,)
    cells: NDArray[np.intp]  # (n, S): cell of each state, plus C times the position of the item
    terms: NDArray[np.intp]  # (n, C): free columns of the design, P for padding
    values: Array  # (n, C, C): the terms in the cells
    inverse: Array  # (n, C, C): coefficients of the terms from the cells' predictors

    @classmethod
    def of(cls, basis: Basis, allowed: NDArray[np.uint8]) -> SaturatedCells:
        """Return the saturated ones of items with constraints (J, P)."""
        free = np.flatnonzero(((allowed == ZERO) | (allowed == FREE)).all(axis=1))
        items = np.array([j for j in free if basis.cells_of(allowed[j]).saturated], dtype=np.intp)
        cells = [basis.cells_of(allowed[j]) for j in items]
        n_states, n_columns = basis.design.shape
        n_cells = max((len(own.terms) for own in cells), default=1)
        columns = np.full((len(items), n_cells), n_columns)
        values = np.zeros((len(items), n_cells, n_cells))
        inverse = np.zeros_like(values)
        for place, own in enumerate(cells):
            used = slice(len(own.terms))
            columns[place, used] = own.terms
            values[place, used, used], inverse[place, used, used] = own.values, own.inverse
        shift = n_cells * np.arange(len(items))[:, None]
        places = np.array([own.place for own in cells], np.intp).reshape(len(items), n_states)
        others = np.setdiff1d(np.arange(len(allowed)), items)
        return cls(items, others, places + shift, columns, values, inverse)

    def maximise(self, family: MeanFamily, beta: Array, sums: Array, counts: Array) -> Array:
        """Return the items' maximum likelihood coefficients, shape (n, P).

        Means on the boundary of their range get large finite predictors. Cells without rows keep
        those of ``beta``, (n, P); ``sums`` and ``counts`` are by state, (n, S).
        """
        places, shape = self.cells.ravel(), self.terms.shape
        size = int(np.prod(shape))
        n_rows = np.bincount(places, counts.ravel(), size).reshape(shape)
        total = np.bincount(places, sums.ravel(), size).reshape(shape)
        padded = np.hstack([beta, np.zeros((len(beta), 1))])
        rows = np.arange(len(beta))[:, None]
        now = np.einsum("jct,jt->jc", self.values, padded[rows, self.terms])
        mean = total / np.where(n_rows > 0, n_rows, 1.0)
        found = family.predictor(family.clip_mean(mean, CONFIG.m_step.boundary_mean))
        if np.isfinite(floor := family.lowest_predictor):
            found = np.maximum(found, floor + CONFIG.m_step.floor_margin * abs(floor))
        found = np.where(n_rows > 0, found, now)
        padded[:] = 0.0
        padded[rows, self.terms] = np.einsum("jtc,jc->jt", self.inverse, found)
        return padded[:, :-1]


@dataclass(frozen=True)
class Basis:
    """Latent states as regressors."""

    design: Array  # (S, 1 + T): 1 and the terms' values
    # whether terms are products of others, which makes systems ill-conditioned
    collinear: bool = False
    _cells: dict[bytes, ItemCells] = field(default_factory=dict, repr=False, compare=False)
    _saturated: dict[bytes, SaturatedCells] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, features: Array, *, collinear: bool = False) -> Basis:
        """Return the basis of states given by their terms' values, shape (S, T)."""
        return cls(np.hstack([np.ones((len(features), 1)), features]), collinear)

    @classmethod
    def over(cls, space: StateSpace, terms: Terms) -> Basis:
        """Return the basis of all joint states."""
        return cls.of(terms.features(space.states()), collinear=bool(terms.interactions))

    @property
    def features(self) -> Array:
        """The terms' values, shape (S, T)."""
        return self.design[:, 1:]

    @cached_property
    def products(self) -> Array:
        """Products of pairs of columns, upper triangle by rows, shape (S, P (P + 1) / 2)."""
        left, right = _upper_triangle(self.design.shape[1])
        return np.ascontiguousarray(self.design[:, left] * self.design[:, right])

    def cells_of(self, allowed: NDArray[np.uint8]) -> ItemCells:
        """Return the cells of an item with constraints (P,)."""
        terms = np.flatnonzero(allowed != ZERO)
        key = terms.tobytes()
        if key not in self._cells:
            self._cells[key] = ItemCells(terms, *self.distinct_rows(terms))
        return self._cells[key]

    def distinct_rows(self, columns: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]]:
        """Return the distinct rows of some columns, in order, and the one of each state (S,)."""
        place = np.zeros(len(self.design), dtype=np.intp)
        for column in columns:
            rank = self._ranks[:, column]
            # Ranks among the distinct rows so far stay small, whatever the number of columns.
            _, place = np.unique(place * (1 + rank.max()) + rank, return_inverse=True)
        _, first = np.unique(place, return_index=True)
        return self.design[np.ix_(first, columns)], place

    @cached_property
    def _ranks(self) -> NDArray[np.intp]:
        """Rank of each entry of the design among the distinct ones of its column, (S, P)."""
        return np.column_stack([np.unique(c, return_inverse=True)[1] for c in self.design.T])

    def saturated_cells(self, allowed: NDArray[np.uint8]) -> SaturatedCells:
        """Return the items among those with constraints (J, P) that have a closed-form M-step."""
        key = allowed.tobytes()
        if key not in self._saturated:
            self._saturated[key] = SaturatedCells.of(self, allowed)
        return self._saturated[key]

    def quadratic(self, weights: Array) -> Array:
        """Return ``design' diag(w) design`` for each row of weights, shape (J, P, P)."""
        size = self.design.shape[1]
        packed = weights @ self.products
        out = np.empty((len(weights), size, size))
        left, right = _upper_triangle(size)
        out[:, left, right] = packed
        out[:, right, left] = packed
        return out


@dataclass(frozen=True)
class _Regressions:
    """Penalised regressions of the items of one family.

    ``sums`` are those of the items' columns by state, (J, S), or (D, J, S) for a family with
    several columns; ``auxiliary`` are dispersions or cutpoints.
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
        """Return the penalised expected log-likelihood of each item, shape (J,)."""
        eta = beta @ self.basis.design.T
        value = self.family.expected_without_base(self.auxiliary, eta, self.sums, self.counts)
        if self.penalty.name is not None:
            cost = self.penalty.value(beta[:, 1:], self.scale[:, None])
            value -= (cost * is_penalised(self.allowed[:, 1:])).sum(axis=1)
        if np.isfinite(self.family.lowest_predictor):
            value[eta.min(axis=1) < self.family.lowest_predictor] = -np.inf
        return value

    def update(self, beta: Array) -> Array:
        """Return coefficients with at least the same objectives; the maximum of saturated items."""
        if not isinstance(self.family, MeanFamily):
            return self.newton_step(beta)
        cells = self.basis.saturated_cells(self.allowed)
        if len(cells.items) == 0:
            return self.newton_step(beta)
        out = np.empty_like(beta)
        items = cells.items
        out[items] = cells.maximise(self.family, beta[items], self.sums[items], self.counts[items])
        if len(cells.others):
            out[cells.others] = self._subset(cells.others).newton_step(beta[cells.others])
        return out

    @property
    def in_closed_form(self) -> bool:
        """Whether one update maximises: no item needs Newton steps or has other parameters."""
        if not isinstance(self.family, MeanFamily) or self.family.has_dispersion:
            return False
        return len(self.basis.saturated_cells(self.allowed).others) == 0

    def newton_step(self, beta: Array) -> Array:
        """Return coefficients after a damped proximal Newton step; no item's objective falls."""
        eta = beta @ self.basis.design.T
        dtheta, dpartition, information = self.family.slopes(eta, self.auxiliary[:, None])
        rising = self.sums * dtheta
        if self.family.n_columns > 1:
            rising = rising.sum(axis=0)
        gradient = (rising - self.counts * dpartition) @ self.basis.design
        curvature = self.basis.quadratic(self.counts * information)
        diagonal = np.arange(curvature.shape[1])
        curvature[:, diagonal, diagonal] *= 1.0 + CONFIG.m_step.ridge
        before = self.objective(beta)
        out = beta.copy()
        items = np.arange(len(beta))
        damping = 1.0
        for _ in range(CONFIG.m_step.max_dampings):
            part = self._subset(items)
            proposal = part._propose_feasible(
                beta[items], gradient[items], damping * curvature[items]
            )
            smallest = before[items] - 1e-12 * np.abs(before[items])
            accepted = part.objective(proposal) >= smallest
            out[items[accepted]] = proposal[accepted]
            items = items[~accepted]
            if len(items) == 0:
                break
            damping *= CONFIG.m_step.damping_factor
        return out

    def _propose_feasible(self, beta: Array, gradient: Array, curvature: Array) -> Array:
        """Return the proposal whose predictors respect the family's lower bound, if it has one."""
        floor = self.family.lowest_predictor
        if not np.isfinite(floor):
            return self._propose(beta, gradient, curvature)

        def propose(items: NDArray[np.intp], *model: Array) -> Array:
            return self._subset(items)._propose(*model)

        may_vanish, design = is_penalised(self.allowed), self.basis.design
        return maximise_above_floor(floor, design, beta, gradient, curvature, propose, may_vanish)

    def _propose(self, beta: Array, gradient: Array, curvature: Array) -> Array:
        """Return coefficients that maximise the items' penalised quadratic models."""
        if self.penalty.name is None and self.basis.collinear:
            # Coordinate descent converges slowly on ill-conditioned systems.
            free = (self.allowed != ZERO) & (self.allowed != TIED)
            return beta + _newton_steps(gradient, curvature, free)
        penalty = self.penalty.pieces(self.scale), self.penalty.strength
        limits = CONFIG.m_step.descent_sweeps, CONFIG.m_step.descent_tolerance
        return np.asarray(descend(beta, gradient, curvature, self.allowed, *penalty, *limits))

    def along(self, beta: Array, direction: Array) -> tuple[float, float]:
        """Return slope and curvature of the log-likelihood along coefficients (J, P)."""
        design = self.basis.design.T
        dtheta, dpartition, information = self.family.slopes(beta @ design, self.auxiliary[:, None])
        rising = self.sums * dtheta
        if self.family.n_columns > 1:
            rising = rising.sum(axis=0)
        moved = direction @ design
        slope = ((rising - self.counts * dpartition) * moved).sum()
        return float(slope), float((self.counts * information * moved**2).sum())

    def _subset(self, items: NDArray[np.intp]) -> _Regressions:
        if len(items) == len(self.counts):
            return self
        return replace(
            self,
            sums=self.sums[..., items, :],
            counts=self.counts[items],
            auxiliary=self.auxiliary[items],
            allowed=self.allowed[items],
            scale=self.scale[items],
        )


def _newton_steps(gradient: Array, curvature: Array, free: NDArray[np.bool_]) -> Array:
    """Return the Newton steps of the free coefficients, zero for the others, shape (J, P)."""
    both = free[:, :, None] & free[:, None, :]
    system = np.where(both, curvature, 0.0)
    places = np.arange(free.shape[1])
    scale = np.sqrt(np.maximum(system[:, places, places], 1e-12))
    # After scaling to unit diagonals one ridge suits all items.
    system /= scale[:, :, None] * scale[:, None, :]
    system[:, places, places] = 1.0 + CONFIG.m_step.ridge
    steps = np.linalg.solve(system, (np.where(free, gradient, 0.0) / scale)[..., None])[..., 0]
    return np.asarray(np.where(free, steps / scale, 0.0))


def _move_tied(
    beta: Array, every: list[tuple[_Regressions, NDArray[np.intp]]], loadings: Array, term: int
) -> None:
    """Scale a term's tied coefficients (J,) by a common factor that raises the log-likelihood.

    ``beta`` (J, P) changes in place; intercepts keep the mean of the term's centred score.
    """
    direction = np.zeros_like(beta)
    direction[:, term], direction[:, 0] = loadings, -0.5 * loadings
    parts = [one.along(beta[items], direction[items]) for one, items in every]
    slope, curvature = (sum(part) for part in zip(*parts, strict=True))
    if curvature <= 0.0:
        return
    size = float(np.clip(slope / curvature, *CONFIG.m_step.tied_steps))

    def value(at: Array) -> float:
        return sum(float(one.objective(at[items]).sum()) for one, items in every)

    before = value(beta)
    for _ in range(CONFIG.m_step.max_dampings):
        if value(beta + size * direction) >= before:
            beta += size * direction
            return
        size /= CONFIG.m_step.damping_factor


def run_m_step(
    parameters: MeasurementParameters,
    statistics: Statistics,
    data: WorkingData,
    basis: Basis,
    allowed: NDArray[np.uint8],
    penalty: Penalty,
    *,
    n_newton: int = 1,
) -> MeasurementParameters:
    """Return parameters whose penalised expected log-likelihood is at least as high.

    Only the data's sums per item are used. ``allowed`` (J, 1 + T) is ZERO, PENALISED, FREE or
    NONNEGATIVE; the intercept, column 0, is free. One Newton step suffices for quadratic
    likelihoods without a dispersion.
    """
    beta = parameters.coefficients
    beta[:, 1:] *= allowed[:, 1:] != ZERO
    negative = (allowed[:, 1:] == NONNEGATIVE) & (beta[:, 1:] < 0)
    beta[:, 1:][negative] = 0.0
    every: list[tuple[_Regressions, NDArray[np.intp]]] = []
    dispersion, cutpoints = parameters.dispersion.copy(), parameters.cutpoints.copy()
    scale = np.ones(data.n_items) if penalty.name is None else penalty_scales(data)
    for family, items in parameters.groups():
        counts = statistics.item_counts(items, data.incomplete)
        columns = data.columns.of(family, items)
        sums = statistics.sum_x[columns]
        own = np.ascontiguousarray(allowed[items])
        auxiliary = parameters.auxiliary(family, items)
        limits = own, penalty, scale[items]
        regressions = _Regressions(family, sums, counts, auxiliary, basis, *limits)
        for _ in range(1 if regressions.in_closed_form else n_newton):
            updated = regressions.update(beta[items])
            change = np.abs(updated - beta[items]).max() if len(items) else 0.0
            beta[items] = updated
            if family.is_location_scale:
                eta = updated @ basis.design.T
                squares = data.sum_squares[columns] - 2.0 * np.einsum("js,js->j", sums, eta)
                squares = squares + np.einsum("js,js,js->j", counts, eta, eta)
                floor = dispersion_floor(family, data.variance[columns])
                auxiliary = np.maximum(squares / data.n_observed[items], floor)
            elif family.has_dispersion or family.n_cutpoints:
                eta, bases = updated @ basis.design.T, [data.summaries[j] for j in items]
                share = counts.sum(axis=1) / np.maximum(data.n_observed[items], 1e-12)
                auxiliary, shift = family.update_auxiliary(
                    auxiliary, eta, sums, counts, bases, share
                )
                beta[items, 0] += shift
                moved = np.abs(auxiliary - regressions.auxiliary).max()
                change = max(change, np.abs(shift).max(), moved)
            regressions = replace(regressions, auxiliary=auxiliary)
            if change < CONFIG.m_step.newton_tolerance:
                break
        if family.n_cutpoints:
            cutpoints[items, : family.n_cutpoints] = regressions.auxiliary
        else:
            dispersion[items] = regressions.auxiliary
        every.append((regressions, items))
    for term in np.flatnonzero((allowed == TIED).any(axis=0)):
        _move_tied(beta, every, np.where(allowed[:, term] == TIED, beta[:, term], 0.0), int(term))
    more: dict[str, Any] = {"dispersion": dispersion, "cutpoints": cutpoints}
    return replace(parameters, intercept=beta[:, 0], loadings=beta[:, 1:], **more)
