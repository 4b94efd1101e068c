"""Candidates: fits with one number of latents and one strength of the penalty."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.missingness_patterns import canonical_order
from hidag.data.table import Observations
from hidag.estimator import DCRL
from hidag.exceptions import HidagError
from hidag.fitting.information_criteria import InformationCriteria, information_criteria
from hidag.fitting.number_of_latents import Place, count_active, count_shared
from hidag.results import FitResult, reorder_items

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A fit that took part in the comparison.

    Attributes
    ----------
    n_latents : int
    penalty_strength : float or None
        As asked for; None lets each fit learn it.
    criteria : InformationCriteria or None
        None if the fit failed.
    result : FitResult or None
    held_out : ndarray, shape (N,), or None
        Log-likelihood of each row under a fit to the rows of the other folds.
    weights : ndarray, shape (N,), or None
        How many rows each row counts for.
    n_idle : int
        Latents that drive no item.
    reason : str or None
        Why there are no numbers.
    again : bool
        Whether it was fitted for the comparison alone, with the strength of another number's fit.
    begun : bool
        Whether it began where another number's fit ended, for the comparison alone too.
    """

    n_latents: int
    penalty_strength: float | None
    criteria: InformationCriteria | None = None
    result: FitResult | None = field(default=None, repr=False)
    held_out: Array | None = field(default=None, repr=False)
    weights: Array | None = field(default=None, repr=False)
    n_idle: int = 0
    reason: str | None = None
    again: bool = False
    begun: bool = False

    @property
    def aic(self) -> float:
        """AIC; NaN if there is none."""
        return float("nan") if self.criteria is None else self.criteria.aic

    @property
    def bic(self) -> float:
        """BIC; NaN if there is none."""
        return float("nan") if self.criteria is None else self.criteria.bic

    @property
    def ebic(self) -> float:
        """Extended BIC; NaN if there is none."""
        return float("nan") if self.criteria is None else self.criteria.ebic

    @property
    def strength(self) -> float:
        """Strength of the penalty that the fit ended with, or that it was asked for; else NaN."""
        if self.result is not None:
            return self.result.penalty_strength_used
        return float("nan") if self.penalty_strength is None else self.penalty_strength

    @property
    def n_parameters(self) -> int:
        """How many free numbers the fit has; 0 if there is none."""
        return 0 if self.criteria is None else self.criteria.n_parameters

    @property
    def information_ratio(self) -> float:
        """Share of the latents' information that the items carry; 1 without a fit."""
        return 1.0 if self.result is None else self.result.information_ratio

    @property
    def n_active(self) -> int:
        """Latents with two items or more; without a fit, as many as were asked for."""
        return self.n_latents if self.result is None else count_active(self.result.q_matrix)

    @property
    def n_shared(self) -> int:
        """Latents with two items or more, but less than two of their own; 0 without a fit."""
        return 0 if self.result is None else count_shared(self.result.q_matrix)

    @property
    def mean_held_out(self) -> float:
        """Mean held-out log-likelihood of a row; NaN if there was no cross-validation."""
        if self.held_out is None:
            return float("nan")
        return _mean(self.held_out, self.weights)

    def held_out_behind(self, best: Candidate) -> tuple[float, float]:
        """Return how much less a row has than under the best, on average, and its standard error.

        Rows are compared one by one: what makes a row improbable under both does not count.
        """
        if self.held_out is None or best.held_out is None:
            return float("nan"), float("nan")
        difference = best.held_out - self.held_out
        weights = np.ones(len(difference)) if self.weights is None else self.weights
        mean = _mean(difference, weights)
        squares = fsum(weights**2 * (difference - mean) ** 2)
        return mean, float(np.sqrt(squares) / fsum(weights))


def _mean(x: Array, weights: Array | None) -> float:
    """Return the mean, right to the last digit: the order of rows has no say in it."""
    if weights is None:
        return fsum(x) / len(x)
    return fsum(weights * x) / fsum(weights)


@dataclass(frozen=True)
class Table:
    """What all candidates are fitted to.

    Attributes
    ----------
    observations : Observations
        N rows of J items.
    families : tuple of str, length J
    weights : ndarray, shape (N,), or None
    """

    observations: Observations
    families: tuple[str, ...]
    weights: Array | None = None

    @property
    def values(self) -> Array:
        """The responses, shape (N, J); NaN in missing cells."""
        return self.observations.values

    @property
    def n_counted(self) -> float:
        """How many rows the table counts for."""
        return float(len(self.values) if self.weights is None else fsum(self.weights))

    def fit(
        self,
        n_latents: int,
        strength: float | None,
        settings: Mapping[str, Any],
        rows: NDArray[np.bool_] | None = None,
        place: Place | None = None,
    ) -> DCRL:
        """Return a fit to some of the rows, or to all; what it warns of is not passed on."""
        kept = np.ones(len(self.values), dtype=bool) if rows is None else rows
        model = DCRL(
            n_latents, **{"family": list(self.families), "penalty_strength": strength, **settings}
        )
        weights = None if self.weights is None else self.weights[kept]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model._begun_at(place).fit(
                replace(self.observations, values=self.values[kept]), sample_weight=weights
            )


def fit_candidate(
    table: Table,
    n_latents: int,
    strength: float | None,
    settings: Mapping[str, Any],
    place: Place | None = None,
) -> Candidate:
    """Return the candidate with its criteria; a fit that fails becomes one with a reason."""
    try:
        result = table.fit(n_latents, strength, settings, place=place).result_
    except HidagError as error:
        return Candidate(n_latents, strength, reason=str(error))
    return Candidate(
        n_latents,
        strength,
        criteria=information_criteria(result, table.n_counted),
        result=result,
        weights=table.weights,
        n_idle=int((~result.q_matrix.any(axis=0)).sum()),
        begun=place is not None,
    )


def folds_of(table: Table, n_folds: int) -> NDArray[np.intp]:
    """Return the fold of each row, shape (N,): by contents, so that the order of rows is nothing.

    In canonical order rows are as good as shuffled, copies of a row like all others.
    """
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
    """Return the log-likelihood of each row under a fit to the other folds, (N,), or None.

    None if a fit fails, for instance because some of the rows lack a category that others have, or
    if its joint states are too many to sum over.
    """
    out = np.empty(len(folds))
    # Sums over items round as these come, so they come in an order of contents alone, as rows do.
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
