"""Fits of numbers of latents that are compared, and the table that they share."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.data.rows import canonical_order
from hidag.data.table import Observations
from hidag.em.design_data import WorkingData
from hidag.em.em import Problem, Schedule, run_em
from hidag.em.m_step import Basis
from hidag.exceptions import HidagError, Message
from hidag.fitting.information_criteria import (
    InformationCriteria,
    criteria_of,
    information_criteria,
    item_parameters,
)
from hidag.fitting.stages import InitialValues
from hidag.initialization.start_points import null_parameters
from hidag.kernels.coordinate_descent import FREE, ZERO
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import Responses
from hidag.measurement.penalties import NO_SPARSITY
from hidag.measurement.terms import Terms
from hidag.parallel import one_blas_thread
from hidag.results import FitResult, reorder_items

Array = NDArray[np.float64]


def count_shared(q_matrix: NDArray[Any]) -> int:
    """Return the number of latents with two or more items, but fewer than two of their own."""
    least = CONFIG.selection.min_items
    q = np.asarray(q_matrix) != 0
    own = q & (q.sum(axis=1, keepdims=True) == 1)
    return int(((q.sum(axis=0) >= least) & (own.sum(axis=0) < least)).sum())


def count_active(q_matrix: NDArray[Any]) -> int:
    """Return the number of latents with two or more items, at least 1."""
    return max(1, int((q_matrix.sum(axis=0) >= CONFIG.selection.min_items).sum()))


@dataclass(frozen=True)
class Candidate:
    """A fit in the comparison of numbers of latents.

    Attributes
    ----------
    n_latents : int
    penalty_strength : float, or None if the fit estimates it
    criteria : InformationCriteria, or None if the fit failed
    result : FitResult, or None if the fit failed or there are no latents
    held_out : array, shape (N,), or None
        Log-likelihood of each row under the fit to the other folds.
    weights : array, shape (N,), or None
    reason : Message, why the fit failed, or None
    at_common_strength, from_neighbour : bool
        Whether the fit only serves the comparison, with the penalty strength or with initial values
        of another number's fit.
    """

    n_latents: int
    penalty_strength: float | None
    criteria: InformationCriteria | None = None
    result: FitResult | None = field(default=None, repr=False)
    held_out: Array | None = field(default=None, repr=False)
    weights: Array | None = field(default=None, repr=False)
    reason: Message | None = None
    at_common_strength: bool = False
    from_neighbour: bool = False

    @classmethod
    def of(cls, result: FitResult, n_rows: float | None = None, **more: Any) -> Candidate:
        """Return a ``result``, criteria at ``n_rows`` (default: its own), ``more`` fields."""
        criteria = information_criteria(result, n_rows)
        return cls(len(result.latent_names), None, criteria, result, **more)

    @property
    def aic(self) -> float:
        """AIC; NaN without a fit."""
        return float("nan") if self.criteria is None else self.criteria.aic

    @property
    def bic(self) -> float:
        """BIC; NaN without a fit."""
        return float("nan") if self.criteria is None else self.criteria.bic

    @property
    def ebic(self) -> float:
        """Extended BIC; NaN without a fit."""
        return float("nan") if self.criteria is None else self.criteria.ebic

    @property
    def strength(self) -> float:
        """Final strength of the penalty; the given one without a fit."""
        if self.result is not None:
            return self.result.penalty_strength_used
        return float("nan") if self.penalty_strength is None else self.penalty_strength

    @property
    def n_parameters(self) -> int:
        """Number of free parameters; 0 without a fit."""
        return 0 if self.criteria is None else self.criteria.n_parameters

    @property
    def information_ratio(self) -> float:
        """Share of the information about the latents that the items carry; 1 without a fit."""
        return 1.0 if self.result is None else self.result.information_ratio

    @property
    def n_idle(self) -> int:
        """Number of latents without items; 0 without a fit."""
        return 0 if self.result is None else int((~self.result.q_matrix.any(axis=0)).sum())

    @property
    def n_active(self) -> int:
        """Number of latents with two or more items; all without a fit."""
        return self.n_latents if self.result is None else count_active(self.result.q_matrix)

    @property
    def n_shared(self) -> int:
        """Number of these with fewer than two items of their own; 0 without a fit."""
        return 0 if self.result is None else count_shared(self.result.q_matrix)

    @property
    def mean_held_out(self) -> float:
        """Mean held-out log-likelihood per row; NaN without cross-validation."""
        return float("nan") if self.held_out is None else _mean(self.held_out, self.weights)

    def held_out_behind(self, best: Candidate) -> tuple[float, float]:
        """Return the mean paired difference to the best held-out log-likelihood, and its SE."""
        if self.held_out is None or best.held_out is None:
            return float("nan"), float("nan")
        difference = best.held_out - self.held_out
        weights = np.ones(len(difference)) if self.weights is None else self.weights
        mean = _mean(difference, weights)
        squares = fsum(weights**2 * (difference - mean) ** 2)
        return mean, float(np.sqrt(squares) / fsum(weights))


def _mean(x: Array, weights: Array | None) -> float:
    """Return the exactly rounded mean, which does not depend on the order of the rows."""
    if weights is None:
        return fsum(x) / len(x)
    return fsum(weights * x) / fsum(weights)


@dataclass(frozen=True)
class Table:
    """The data of all candidates: N rows of J items with their families and weights (N,)."""

    observations: Observations
    families: tuple[str, ...]
    weights: Array | None = None

    @property
    def values(self) -> Array:
        """The responses, shape (N, J); NaN in missing cells."""
        return self.observations.values

    @property
    def n_counted(self) -> float:
        """Number of rows, or sum of weights."""
        return float(len(self.values) if self.weights is None else fsum(self.weights))

    def fit(
        self,
        model: Any,
        n_latents: int,
        strength: float | None = None,
        *,
        rows: NDArray[np.bool_] | None = None,
        start: InitialValues | None = None,
    ) -> FitResult:
        """Return a fit to some or all rows, without its warnings.

        ``model`` is an estimator with all other settings.
        """
        own = {"n_latents": n_latents, "family": list(self.families), "penalty_strength": strength}
        own["checks"] = "none"
        if rows is not None:
            own["uncertainty"] = "none"
        used: Any = slice(None) if rows is None else rows
        table = replace(self.observations, values=self.values[used])
        weights = None if self.weights is None else self.weights[used]
        fresh = type(model)(**model.get_params() | own)._start_from(start)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result: FitResult = fresh.fit(table, sample_weight=weights).result_
        return result

    def candidate(
        self,
        model: Any,
        n_latents: int,
        strength: float | None,
        start: InitialValues | None = None,
    ) -> Candidate:
        """Return a fit with its criteria (independent items for 0), or why the fit fails."""
        if n_latents == 0:
            found = independent_criteria(self.values, self.families, self.weights)
            return Candidate(0, strength, found, weights=self.weights)
        try:
            result = self.fit(model, n_latents, strength, start=start)
        except HidagError as error:
            return Candidate(n_latents, strength, reason=error.message)
        shared = {"weights": self.weights, "from_neighbour": start is not None}
        return replace(Candidate.of(result, self.n_counted, **shared), penalty_strength=strength)


def independent_criteria(
    values: Array, families: tuple[str, ...], weights: Array | None = None
) -> InformationCriteria:
    """Return the criteria of the model without latents, from a table (N, J): independent items."""
    responses = Responses.of(families)
    data = WorkingData.from_values(responses.expand(values), responses.families, weights=weights)
    space = StateSpace.binary(1)
    terms = Terms.main(space.levels)
    allowed = np.full((data.n_items, 2), ZERO, dtype=np.uint8)
    allowed[:, 0] = FREE
    basis = Basis.over(space, terms)
    problem = Problem(data, space, basis, allowed, NO_SPARSITY, Schedule())
    with one_blas_thread():
        found = run_em(problem, null_parameters(data, terms), np.full(2, 0.5))
    return criteria_of(
        found.log_likelihood, item_parameters(responses.families), 0.0, data.n_counted
    )


def folds_of(table: Table, n_folds: int) -> NDArray[np.intp]:
    """Return each row's fold (N,) by canonical order: that of the table does not matter."""
    rows, _ = canonical_order(table.values, table.families, table.weights)
    out = np.empty(len(rows), dtype=np.intp)
    out[rows] = np.arange(len(rows)) % n_folds
    return out


def held_out_likelihood(
    table: Table, model: Any, n_latents: int, strength: float | None, folds: NDArray[np.intp]
) -> Array | None:
    """Return rows' log-likelihoods under fits to other folds, (N,); None if one fails."""
    out = np.empty(len(folds))
    # Canonical order of rows and items, so that rounding does not depend on that of the table.
    rows, items = canonical_order(table.values, table.families, table.weights)
    for fold in np.unique(folds):
        held = rows[folds[rows] == fold]
        try:
            fitted = table.fit(model, n_latents, strength, rows=folds != fold)
            values = table.values[np.ix_(held, items)]
            out[held] = reorder_items(fitted, items).row_log_likelihood(values)
        except HidagError:
            return None
    return out
