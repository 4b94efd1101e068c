"""The rule that selects a number of latents from the count of the correlations and from fits.

Parallel analysis and factor BIC count common factors; no latent is supported if both count none. If
they disagree, fits may only lower the larger count, if BIC improves beyond a near tie: with a
continuous trait or local dependence, BIC improves with every latent. With a low information ratio
r, where parallel analysis has no power, the number with the smallest BIC is selected (the largest
within 2 of it). BIC then uses the effective sample size r N, a fit counts for its latents with at
least two items, and a latent without two items of its own costs one more parameter.

A stronger penalty leaves fewer loadings and a lower likelihood: a number could be rejected because
of the strength that its own fit estimates. So numbers are also compared at a common strength.

EBIC is not used: its term counts permutations of the latents as different supports and rejects fits
that start at the truth (``benchmarks/number_of_latents.py --yardstick``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan, log

from hidag.config import CONFIG
from hidag.model_selection.candidates import Candidate


def best_bic(fits: Sequence[Candidate], ratio: float = 1.0) -> float:
    """Return the smallest BIC of fits with one number of latents; infinite if none has one."""
    return min((bic_at(one, ratio) for one in fits if not isnan(one.bic)), default=inf)


def bic_at(one: Candidate, ratio: float) -> float:
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


def best_number(fits: Mapping[int, Sequence[Candidate]], ratio: float = 1.0) -> int:
    """Return the number of latents with the smallest BIC; the smaller number if tied."""
    return min(fits, key=lambda k: (best_bic(fits[k], ratio), k))


def refit_at_common_strength(
    fits: dict[int, list[Candidate]],
    fit_again: Callable[[int, float], Candidate],
    ratio: float = 1.0,
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


@dataclass(frozen=True)
class Comparison:
    """Comparison of fits with several numbers of latents."""

    counted: int  # number of common factors in the correlations
    # by number of latents; the first of each has its own strength of the penalty
    fits: dict[int, list[Candidate]]
    fewest: int = 1  # smallest number to select; 0 if a criterion of the correlations counts none

    @property
    def low_information(self) -> bool:
        """Whether the information ratio is low, so that fits may raise or lower the count."""
        return self.ratio < 1.0

    @property
    def ratio(self) -> float:
        """Effective sample size as a share of N; 1 unless the information ratio is low."""
        known = [k for k, ones in self.fits.items() if best_bic(ones) < inf]
        if not known:
            return 1.0
        ones = self.fits[nearest(self.counted, known)]
        ratio = next(one.information_ratio for one in ones if not isnan(one.bic))
        return ratio if 0.0 < ratio < CONFIG.information.low_ratio else 1.0

    @property
    def bic(self) -> dict[int, float]:
        """Smallest BIC by number of latents; infinite if no fit has one."""
        ratio = self.ratio
        return {k: best_bic(ones, ratio) for k, ones in sorted(self.fits.items())}

    @property
    def active_bic(self) -> dict[int, float]:
        """Smallest BIC by number of latents; with low information, of active latents."""
        ratio, low = self.ratio, self.low_information
        out: dict[int, float] = {}
        for k, ones in self.fits.items():
            for one in ones:
                if not isnan(one.bic):
                    number = one.n_active if low else k
                    out[number] = min(bic_at(one, ratio), out.get(number, inf))
        return dict(sorted(out.items()))

    @property
    def selected(self) -> int | None:
        """The selected number of latents; None if no fit has a BIC."""
        values = {k: value for k, value in self.active_bic.items() if k >= 1}
        if self.fewest == 0 and self._independent():
            return 0
        if self.low_information:
            limit = min(values.values()) + CONFIG.selection.no_evidence
            return max(k for k, value in values.items() if value <= limit)
        return select_up_to(self.counted, values)

    def _independent(self) -> bool:
        """Return whether independent items have the smallest BIC, at all rows."""
        alone = best_bic(self.fits.get(0, ()))
        others = [best_bic(ones) for k, ones in self.fits.items() if k >= 1]
        return alone < inf and alone <= min(others, default=inf)


def nearest(wanted: int, numbers: Sequence[int]) -> int:
    """Return the nearest of several numbers; the smaller of two."""
    return min(numbers, key=lambda k: (abs(k - wanted), k))


def select_up_to(counted: int, bic: Mapping[int, float]) -> int | None:
    """Return the largest number up to ``counted`` (or the smallest of all) near the best BIC."""
    known = {k: value for k, value in bic.items() if isfinite(value)}
    if not known:
        return None
    allowed = {k: value for k, value in known.items() if k <= counted}
    if not allowed:
        return min(known)
    best = min(allowed.values())
    return max(k for k, value in allowed.items() if value <= best + CONFIG.selection.near_tie)


def next_below(counted: int, fewest: int, bic: Mapping[int, float]) -> int | None:
    """Return the next number to fit when fits may only lower the count, or None.

    Steps down double while the smallest fitted number is the best. At the end the number just
    below the best has been fitted. ``bic`` has the numbers fitted so far, including ``counted``.
    """
    best = select_up_to(counted, bic)
    if best is None or best <= fewest:
        return None
    below = [k for k in bic if k < best]
    if not below:
        return max(fewest, best - (counted - best + 1))
    return None if best - 1 in below else best - 1


def next_either_side(bic: Mapping[int, float], fewest: int, most: int) -> int | None:
    """Return the next number to fit when fits may raise or lower the count, or None.

    Steps of one, up and then down, until two numbers on either side of the best are worse or have
    no likelihood. ``bic`` has the consecutive numbers fitted so far; infinite without a likelihood.
    """
    config = CONFIG.selection
    known = {k: value for k, value in bic.items() if isfinite(value)}
    if not known or len(bic) >= config.max_low_information_fits:
        return None
    best = min(known, key=lambda k: (known[k], k))
    top, bottom = max(bic), min(bic)
    if top in known and top < min(best + config.n_neighbours, most):
        return top + 1
    if bottom in known and bottom > max(best - config.n_neighbours, fewest):
        return bottom - 1
    return None
