"""Candidate models: fits with one number of latents and one strength of the penalty."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.rows import canonical_order
from hidag.data.table import Observations
from hidag.estimator import DCRL
from hidag.exceptions import HidagError, Message
from hidag.fitting.information_criteria import InformationCriteria, information_criteria
from hidag.fitting.neighbour_fits import InitialValues
from hidag.fitting.number_comparison import count_active, count_shared
from hidag.fitting.number_of_latents import independent_criteria
from hidag.results import FitResult, reorder_items

Array = NDArray[np.float64]


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
    n_idle : int, latents without items
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
    n_idle: int = 0
    reason: Message | None = None
    at_common_strength: bool = False
    from_neighbour: bool = False

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
        n_latents: int,
        strength: float | None,
        settings: Mapping[str, Any],
        rows: NDArray[np.bool_] | None = None,
        start: InitialValues | None = None,
    ) -> DCRL:
        """Return a fit to some or all rows, without its warnings."""
        used: Any = slice(None) if rows is None else rows
        own: dict[str, Any] = {
            "family": list(self.families),
            "penalty_strength": strength,
            **settings,
        }
        if rows is not None:
            own["uncertainty"] = "none"
        table = replace(self.observations, values=self.values[used])
        weights = None if self.weights is None else self.weights[used]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return DCRL(n_latents, **own)._start_from(start).fit(table, sample_weight=weights)


def fit_candidate(
    table: Table,
    n_latents: int,
    strength: float | None,
    settings: Mapping[str, Any],
    start: InitialValues | None = None,
) -> Candidate:
    """Return the candidate with its criteria (independent items for 0), or why the fit fails."""
    if n_latents == 0:
        criteria = independent_criteria(table.values, table.families, table.weights)
        return Candidate(0, strength, criteria=criteria, weights=table.weights)
    try:
        result = table.fit(n_latents, strength, settings, start=start).result_
    except HidagError as error:
        return Candidate(n_latents, strength, reason=error.message)
    return Candidate(
        n_latents,
        strength,
        criteria=information_criteria(result, table.n_counted),
        result=result,
        weights=table.weights,
        n_idle=int((~result.q_matrix.any(axis=0)).sum()),
        from_neighbour=start is not None,
    )


def folds_of(table: Table, n_folds: int) -> NDArray[np.intp]:
    """Return each row's fold (N,) by canonical order: that of the table does not matter."""
    rows, _ = canonical_order(table.values, table.families, table.weights)
    out = np.empty(len(rows), dtype=np.intp)
    out[rows] = np.arange(len(rows)) % n_folds
    return out


def held_out_likelihood(
    table: Table,
    n_latents: int,
    strength: float | None,
    settings: Mapping[str, Any],
    folds: NDArray[np.intp],
) -> Array | None:
    """Return rows' log-likelihoods under fits to other folds, (N,); None if one fails."""
    out = np.empty(len(folds))
    # Canonical order of rows and items, so that rounding does not depend on that of the table.
    rows, items = canonical_order(table.values, table.families, table.weights)
    for fold in np.unique(folds):
        held = rows[folds[rows] == fold]
        try:
            model = table.fit(n_latents, strength, settings, folds != fold)
            fitted = reorder_items(model.result_, items)
            out[held] = fitted.row_log_likelihood(table.values[np.ix_(held, items)])
        except HidagError:
            return None
    return out
