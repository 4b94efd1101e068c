"""The M-step: penalised item regressions on the statistics, all items of a family at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.em.design_data import WorkingData
from hidag.em.statistics import Statistics, mean_and_spread
from hidag.kernels.coordinate_descent import FREE, NONNEGATIVE, PENALISED, ZERO, descend
from hidag.latent.state_space import StateSpace
from hidag.measurement.families.base import Family
from hidag.measurement.families.registry import family_named
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.penalties import Penalty
from hidag.measurement.terms import Terms

# --- What loadings cost: which coefficients are penalised, in which units, and how much in all

Array = NDArray[np.float64]

#: Below this share of noise the default threshold is wider than a loading's standard error.
QUIET_SHARE = 0.25


def permissions(q_entries: NDArray[np.int8], terms: Terms) -> NDArray[np.uint8]:
    """Return ZERO, PENALISED or FREE for each coefficient, shape (J, 1 + T).

    Entries of Q that are known to be 1 are free: no data can argue them away. Interactions stay
    zero: they are let in once the items' latents are known.
    """
    out = np.full((len(q_entries), 1 + terms.n_terms), ZERO, dtype=np.uint8)
    out[:, 0] = FREE
    of_latent = np.choose(q_entries + 1, [PENALISED, ZERO, FREE])
    out[:, 1 : 1 + terms.n_main] = of_latent[:, terms.main_latents]
    return out


def at_a_cost(allowed: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which coefficients are paid for when they are not zero, same shape."""
    return np.asarray((allowed == PENALISED) | (allowed == NONNEGATIVE))


def penalty_scales(data: WorkingData) -> Array:
    """Return the units of the penalty's threshold for each item, shape (J,).

    They are `coefficient_scales`, smaller for items with little noise. There standard errors are
    small as well, and a threshold many of them wide would have a slope below the noise of a
    gradient: every false loading would stay.
    """
    quiet = np.sqrt(data.noise_shares / QUIET_SHARE)
    return coefficient_scales(data) * np.minimum(quiet, 1.0)


def coefficient_scales(data: WorkingData) -> Array:
    """Return the size of a typical coefficient of each item, shape (J,)."""
    out = np.empty(data.n_items)
    for name in set(data.families):
        family = family_named(name)
        items = np.flatnonzero(np.array(data.families) == name)
        columns = data.columns.of(family, items)
        out[items] = family.coefficient_scale(data.mean[columns], data.variance[columns])
    return out


def penalty_of(
    parameters: MeasurementParameters,
    penalty: Penalty,
    scale: Array,
    allowed: NDArray[np.uint8],
) -> float:
    """Return the total penalty of the loadings that are not known to be there."""
    cost = penalty.value(parameters.loadings, scale[:, None])
    return float((cost * at_a_cost(allowed[:, 1:])).sum())


# --- How small estimation lets dispersions be, and which items ended there

#: Smallest share of an item's variance that its dispersion may shrink to.
SMALLEST_SHARE = 1e-4
#: A dispersion this close to its bound, as a share of it, is at the bound.
BOUND_SHARE = 1e-3
#: Rows' worth of the item's mean, spread over its sub-states, where latents are sampled: no effect
#: runs off to infinity when a latent tells an item's answers apart without fail.
ITEM_MASS = 1.0
#: Where latents are sampled, a dispersion up to so many times what that mass alone makes it, is
#: that mass's doing: draws blur it.
_BLURRED = 1.2


def smallest_dispersion(family: Family, variance: Array) -> Array:
    """Return the least that estimation lets dispersions of a family's items be, shape (n,).

    Parameters
    ----------
    family : Family
    variance : ndarray, shape (n,)
        Of the items on the working scale; matters to families that are standardised.
    """
    low = np.full(len(variance), family.dispersion_bounds[0])
    return np.maximum(low, SMALLEST_SHARE * variance) if family.is_location_scale else low


def ended_smallest(
    parameters: MeasurementParameters,
    values: Array,
    weights: Array | None = None,
    *,
    sampled: bool = False,
) -> NDArray[np.bool_]:
    """Return which items' dispersions ended as small as estimation lets them be, shape (J,).

    Parameters
    ----------
    parameters : MeasurementParameters
        In the user's units.
    values : ndarray, shape (N, J)
        What they were estimated from; NaN cells are missing.
    weights : ndarray, shape (N,), optional
        How many rows each row counts for.
    sampled : bool
        Whether latents were sampled: then the mass that every sub-state is given keeps Gaussian and
        lognormal items above the floor, and such items count if nothing else does.
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
                mean[place], spread = mean_and_spread(family.to_working(values[seen, j]), counts)
                variance[place] = spread**2
                n_rows[place] = seen.sum() if counts is None else counts.sum()
        least = (1.0 + BOUND_SHARE) * smallest_dispersion(family, variance)
        if sampled and family.is_location_scale:
            by_mass = _left_by_mass(parameters, items, mean) / n_rows
            least = np.maximum(least, _BLURRED * by_mass)
        out[items] = parameters.dispersion[items] <= least
    return out


def _left_by_mass(parameters: MeasurementParameters, items: NDArray[np.intp], mean: Array) -> Array:
    """Return the squares that the mass of sub-states adds to items of given means, shape (n,)."""
    out = np.empty(len(items))
    for place, j in enumerate(items):
        states = parameters.terms.states_of(np.flatnonzero(parameters.support[j]))
        eta = parameters.intercept[j] + parameters.terms.features(states) @ parameters.loadings[j]
        out[place] = ITEM_MASS * float(((eta - mean[place]) ** 2).mean())
    return out


# --- Newton steps of items whose predictors have a floor, along it where it is in the way

#: Maximises quadratic models: (items, coefficients, gradients, curvatures) to coefficients.
Propose = Callable[[NDArray[np.intp], Array, Array, Array], Array]

#: Times that states may be held or let go in one step.
MAX_ROUNDS = 6
#: Held states end above the floor by this share of it: rounding does not take them below.
ROOM = 1e-6
#: Stiffness of held states, in units of an item's largest curvature.
STIFFNESS = 1e6


def kept_above(
    floor: float,
    design: Array,
    beta: Array,
    gradient: Array,
    curvature: Array,
    propose: Propose,
    may_vanish: NDArray[np.bool_],
) -> Array:
    """Return coefficients that maximise quadratic models with no predictor below the floor.

    Parameters
    ----------
    floor : float
    design : ndarray, shape (S, P)
        A one and the terms' values in each state.
    beta, gradient, curvature : ndarray, shapes (J, P), (J, P), (J, P, P)
        Where the models are expanded, and what they are.
    propose : callable
        Maximises them without regard to the floor.
    may_vanish : ndarray of bool, shape (J, P)
        Coefficients that are zero unless they pay for themselves. What stiffness leaves of one that
        the floor holds at zero is no effect.
    """
    everyone = np.arange(len(beta))
    out = propose(everyone, beta, gradient, curvature)
    eta = out @ design.T
    low = np.flatnonzero(eta.min(axis=1) < floor)
    held, anchor = eta[low] < floor, eta[low].argmin(axis=1)
    target = floor + ROOM * abs(floor)
    for _ in range(MAX_ROUNDS):
        if len(low) == 0:
            return out
        model = (beta[low], gradient[low], curvature[low])
        found, push = _held_step(low, model, design, held, anchor, target, propose, may_vanish[low])
        out[low] = found
        eta = found @ design.T
        below = eta < floor
        # A state that is held although it would rise is let go.
        loose = held & (push < 0)
        held = (held & ~loose) | below
        unsettled = (below | loose).any(axis=1) & held.any(axis=1)
        low, held, anchor = low[unsettled], held[unsettled], anchor[unsettled]
        still = held[np.arange(len(low)), anchor]
        lowest = np.where(held, eta[unsettled], np.inf).argmin(axis=1)
        anchor = np.where(still, anchor, lowest)
    reached = (out @ design.T).min(axis=1)
    out[:, 0] += np.where(reached < floor, target - reached, 0.0)
    return out


def _held_step(
    items: NDArray[np.intp],
    model: tuple[Array, Array, Array],
    design: Array,
    held: NDArray[np.bool_],
    anchor: NDArray[np.intp],
    target: float,
    propose: Propose,
    may_vanish: NDArray[np.bool_],
) -> tuple[Array, Array]:
    """Return coefficients with states held at the target, and how hard each pushes down, (n, S).

    The intercept is what the anchor's predictor leaves to it, so that coefficients are sought one
    by one as ever. Further states are held by stiffness.
    """
    beta, gradient, curvature = model
    places = np.arange(len(beta))
    normal = design[anchor]
    shift = target - (beta * normal).sum(axis=1)
    begun = beta.copy()
    begun[:, 0] += shift
    others = held.copy()
    others[places, anchor] = False
    stiffness = STIFFNESS * np.einsum("jaa->ja", curvature).max(axis=1, keepdims=True)
    pull = np.where(others, stiffness * (target - begun @ design.T), 0.0)
    slope = gradient - curvature[:, :, 0] * shift[:, None] + pull @ design
    stiff = np.einsum("js,sa,sb->jab", others * stiffness, design, design, optimize=True)
    bent = curvature + stiff
    slope = slope - normal * slope[:, :1]
    cross = normal[:, :, None] * bent[:, :1, :]
    bent = (
        bent
        - cross
        - np.swapaxes(cross, 1, 2)
        + normal[:, :, None] * normal[:, None, :] * bent[:, :1, :1]
    )
    slope[:, 0], bent[:, 0, :], bent[:, :, 0] = 0.0, 0.0, 0.0
    found = propose(items, begun, slope, bent)
    found[may_vanish & (np.abs(found) < target)] = 0.0
    found[:, 0] = target - (normal[:, 1:] * found[:, 1:]).sum(axis=1)
    eta = found @ design.T
    push = np.where(others, stiffness * (target - eta), 0.0)
    left = gradient[:, 0] - np.einsum("ja,ja->j", curvature[:, 0, :], found - beta)
    # States with the anchor's own predictor share its fate.
    at_anchor = held & (np.abs(eta - target) <= 1e-12)
    at_anchor[places, anchor] = True
    return found, np.where(at_anchor, (-left - push.sum(axis=1))[:, None], push)


# ---

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
                self.penalty.pieces(self.scale),
                self.penalty.strength,
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
        ZERO, PENALISED, FREE or NONNEGATIVE for each coefficient; the intercept, column 0, is free.
    penalty : Penalty
    n_newton : int
        Newton steps; items without a dispersion and with a quadratic likelihood need one.
    """
    beta = parameters.coefficients
    beta[:, 1:] *= allowed[:, 1:] != ZERO
    fallen = (allowed[:, 1:] == NONNEGATIVE) & (beta[:, 1:] < 0)
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
