"""Comparison of numbers of latents at a common strength of the penalty.

A stronger penalty leaves fewer loadings and a lower likelihood: a number could be rejected because
of the strength that its own fit estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, isnan, log
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from hidag.results import FitResult


class FitCriteria(Protocol):
    """The properties of a fit that the comparison uses."""

    @property
    def bic(self) -> float:
        """BIC; NaN if the fit has none."""

    @property
    def strength(self) -> float:
        """Final strength of the penalty."""

    @property
    def aic(self) -> float:
        """AIC; NaN if the fit has none."""

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""

    @property
    def information_ratio(self) -> float:
        """Share of the information about the latents that the items carry."""

    @property
    def result(self) -> FitResult | None:
        """The fit, if available."""

    @property
    def n_active(self) -> int:
        """Number of latents with two or more items."""

    @property
    def n_shared(self) -> int:
        """Number of these with fewer than two items of their own."""


Fit = TypeVar("Fit", bound=FitCriteria)


def best_bic(fits: Sequence[FitCriteria], ratio: float = 1.0) -> float:
    """Return the smallest BIC of fits with one number of latents; infinite if none has one."""
    return min((bic_at(one, ratio) for one in fits if not isnan(one.bic)), default=inf)


def bic_at(one: FitCriteria, ratio: float) -> float:
    """Return a fit's BIC at the effective sample size ``ratio`` * N, at least its AIC.

    For ``ratio`` < 1 a latent without two items of its own costs one more parameter: other latents
    could explain the same correlations, and the identifiability conditions do not hold for it.
    """
    if ratio >= 1.0:
        return one.bic
    value = max(one.bic + log(ratio) * one.n_parameters, one.aic)
    if not one.n_shared:
        return value
    return value + one.n_shared * (2.0 + (value - one.aic) / one.n_parameters)


def best_number(fits: Mapping[int, Sequence[FitCriteria]], ratio: float = 1.0) -> int:
    """Return the number of latents with the smallest BIC; the smaller number if tied."""
    return min(fits, key=lambda k: (best_bic(fits[k], ratio), k))


def refit_at_common_strength(
    fits: dict[int, list[Fit]], fit_again: Callable[[int, float], Fit], ratio: float = 1.0
) -> None:
    """Refit, at the strength of the best fit, the numbers of latents with stronger penalties.

    Numbers with weaker penalties need no second fit, because they had more loadings available. New
    fits are appended to ``fits``; ``fit_again`` fits with a number of latents and a strength.
    """
    first = best_number(fits, ratio)
    best = best_bic(fits[first], ratio)
    if best == inf:
        return
    strength = min(one.strength for one in fits[first] if bic_at(one, ratio) == best)
    for k, ones in fits.items():
        known = [one.strength for one in ones if not isnan(one.bic)]
        if k != first and known and min(known) > strength:
            ones.append(fit_again(k, strength))
