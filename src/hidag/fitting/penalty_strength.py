"""Numbers of latents compared at a common strength of the penalty.

Each fit learns the strength of its penalty from its own loadings. A stronger one leaves fewer of
them, and where EM settles with fewer the likelihood can be far lower. So a number of latents could
lose to another for its penalty alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, isnan, log
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from hidag.results import FitResult


class Contender(Protocol):
    """A fit that takes part in the comparison."""

    @property
    def bic(self) -> float:
        """BIC; NaN if the fit has none."""

    @property
    def strength(self) -> float:
        """Strength of the penalty that the fit ended with."""

    @property
    def aic(self) -> float:
        """AIC; NaN if the fit has none."""

    @property
    def n_parameters(self) -> int:
        """How many free numbers the fit has."""

    @property
    def information_ratio(self) -> float:
        """Which share of the latents' information the items carry, by this fit."""

    @property
    def result(self) -> FitResult | None:
        """The whole fit, where it is at hand."""

    @property
    def n_active(self) -> int:
        """Latents that have items enough to be told from noise in one item."""

    @property
    def n_shared(self) -> int:
        """Those of them that share all of their items but one, or all, with other latents."""


Fit = TypeVar("Fit", bound=Contender)


def best_bic(fits: Sequence[Contender], ratio: float = 1.0) -> float:
    """Return the best BIC of several fits with one number of latents; infinite if none has one.

    Parameters
    ----------
    fits : sequence of Contender
    ratio : float
        Share of the rows that parameters are charged for.
    """
    return min((bic_at(one, ratio) for one in fits if not isnan(one.bic)), default=inf)


def bic_at(one: Contender, ratio: float) -> float:
    """Return a fit's BIC with parameters charged for a share of the rows, but no less than AIC's 2.

    So much even a parameter without any meaning gains. A latent without two items of its own is
    charged as one parameter more: what it explains others could, and no theorem vouches for it.
    """
    if ratio >= 1.0:
        return one.bic
    charged = max(one.bic + log(ratio) * one.n_parameters, one.aic)
    if not one.n_shared:
        return charged
    return charged + one.n_shared * (2.0 + (charged - one.aic) / one.n_parameters)


def best_number(fits: Mapping[int, Sequence[Contender]], ratio: float = 1.0) -> int:
    """Return the number of latents whose best fit has the best BIC, the smaller of two equal."""
    return min(fits, key=lambda k: (best_bic(fits[k], ratio), k))


def refit_at_common_strength(
    fits: dict[int, list[Fit]], fit_again: Callable[[int, float], Fit], ratio: float = 1.0
) -> None:
    """Add fits, so that no number of latents has lost for a stronger penalty than the best one's.

    Those whose penalties were all stronger are fitted again with the strength of the best fit.
    Whichever is the best then, all have had that strength or a weaker one. Weaker ones need no
    second fit: they left more loadings to win with.

    Parameters
    ----------
    fits : dict of int to list of fits
        By number of latents; fits are added to it.
    fit_again : callable
        Fits with a number of latents and a strength.
    ratio : float
        Share of the rows that parameters are charged for.
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
