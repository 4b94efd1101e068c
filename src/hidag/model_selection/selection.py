"""Result of the selection of the number of latents: criteria and a recommendation."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from hidag.config import CONFIG
from hidag.formatting import plural
from hidag.model_selection.candidates import Candidate
from hidag.model_selection.comparison import Comparison, nearest
from hidag.model_selection.factor_count import FactorCount
from hidag.results import FitResult
from hidag.views import View

#: Columns of the table, in order.
COLUMNS = (
    "latents", "eigenvalue", "noise", "gap", "factor_bic", "penalty_strength", "log_likelihood",
    "parameters", "idle_latents", "aic", "bic", "ebic", "held_out", "held_out_behind",
    "held_out_error",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Selection(
    View,
    title="{0.recommended} latents of {0.latents}",
    frames={"numbers": "rows", "votes": "votes"},
):
    """The number of latents by several criteria.

    Attributes
    ----------
    latents : tuple of int, the numbers to choose from
    count : FactorCount, criteria from the correlations of the items
    candidates : tuple of Candidate, the fits, by number of latents
    n_folds : int, folds of the cross-validation; 0 without
    """

    latents: tuple[int, ...]
    count: FactorCount
    candidates: tuple[Candidate, ...]
    n_folds: int

    @property
    def fitted(self) -> dict[int, Candidate]:
        """The candidate with the smallest EBIC by number of latents."""
        known = [one for one in self.candidates if not isnan(one.ebic)]
        # The first of equal ones is the last to be entered.
        known.sort(key=lambda one: one.ebic)
        best = {one.n_latents: one for one in reversed(known)}
        return dict(sorted(best.items()))

    @property
    def recommended(self) -> int:
        """The recommended number of latents.

        Of the numbers up to the count of parallel analysis or factor BIC, the largest with a BIC
        within 10 of the best; with a low information ratio, the number with the smallest BIC. See
        :mod:`hidag.model_selection.comparison`. Without fits, the number of parallel analysis. 0 if
        the correlations are consistent with independent items.
        """
        selected = 0 if self.count.no_common_factor else self.compared.selected
        return nearest(
            self.count.by_parallel_analysis if selected is None else selected, self.latents
        )

    @property
    def compared(self) -> Comparison:
        """The comparison of the fits with the count of the correlations."""
        fits: dict[int, list[Candidate]] = {}
        for one in self.candidates:
            fits.setdefault(one.n_latents, []).append(one)
        return Comparison(self.count.span[1], fits, min(self.count.span[0], 1))

    @property
    def runner_up(self) -> int | None:
        """The next best number of latents; None if there is no other."""
        values = self._values
        others = [k for k in values if k != self.recommended]
        return min(others, key=lambda k: values[k]) if others else None

    @property
    def margin(self) -> float:
        """BIC of the next best number minus that of the recommended one; factor BIC without fits.

        BIC uses the effective sample size if the information ratio is low. The margin is negative
        if BIC alone selects another number, and NaN if there is no other.
        """
        values, other = self._values, self.runner_up
        if other is None or self.recommended not in values:
            return float("nan")
        return values[other] - values[self.recommended]

    @property
    def _values(self) -> dict[int, float]:
        """The BIC of fits by number of latents, or factor BIC without fits."""
        fitted = self.compared.active_bic
        if fitted:
            allowed: dict[int, float] = {}
            for k, value in fitted.items():
                near = nearest(k, self.latents)
                allowed[near] = min(value, allowed.get(near, value))
            return allowed
        known = self.count.factor_bic
        inside = [k for k in self.latents if k < len(known) and not isnan(known[k])]
        return {k: float(known[k]) for k in inside}

    @property
    def votes(self) -> dict[str, int]:
        """The number that each criterion selects."""
        count = self.count
        out = {
            "spectral gap": count.by_gap,
            "parallel analysis": count.by_parallel_analysis,
            "factor BIC": count.by_factor_bic,
        }
        done = [one for one in self.candidates if one.criteria is not None]
        for name in ("aic", "bic", "ebic"):
            values = {
                one.n_latents: getattr(one.criteria, name)
                for one in sorted(done, key=lambda one: -getattr(one.criteria, name))
                if not isnan(one.ebic)
            }
            if values:
                out[name.upper()] = min(values, key=lambda k: values[k])
        best = self._best_held_out
        if best is not None:
            out["cross-validation"] = best.n_latents
        return out

    @property
    def result(self) -> FitResult | None:
        """The fit with the recommended number of latents; None without fits."""
        return self.result_with(self.recommended)

    def result_with(self, n_latents: int) -> FitResult | None:
        """Return the fit that `DCRL` returns for ``n_latents``, or None.

        Of several strengths of the penalty, the one with the smallest EBIC; or a refit from a
        neighbouring number if its BIC is smaller by more than 10, because the search failed.
        """
        own = [one for one in self.candidates if one.n_latents == n_latents]
        own = [one for one in own if not one.at_common_strength and not isnan(one.ebic)]
        searched = [one for one in own if not one.from_neighbour]
        if not searched:
            return None
        best, other = min(searched, key=lambda one: one.ebic), min(own, key=lambda one: one.bic)
        failed = best.bic - other.bic > CONFIG.selection.failed_fit and other.from_neighbour
        return other.result if failed else best.result

    @property
    def _best_held_out(self) -> Candidate | None:
        known = [one for one in self.candidates if one.held_out is not None]
        return max(known, key=lambda one: one.mean_held_out) if known else None

    def rows(self) -> list[dict[str, float | int | None]]:
        """Return the table: for each row a mapping from `COLUMNS` to numbers, NaN if absent."""
        own = {k: [one for one in self.candidates if one.n_latents == k] for k in self.latents}
        return [self._row(one) for k in own for one in own[k] or [Candidate(k, None)]]

    def _row(self, one: Candidate) -> dict[str, float | int | None]:
        nan, count, k = float("nan"), self.count, one.n_latents
        numbers: dict[str, float | int | None] = dict.fromkeys(COLUMNS, nan)
        numbers.update(latents=k, penalty_strength=one.penalty_strength)
        if k <= len(count.eigenvalues):
            numbers["factor_bic"] = float(count.factor_bic[k])
        if 1 <= k <= len(count.eigenvalues):
            numbers["eigenvalue"] = float(count.eigenvalues[k - 1])
            numbers["noise"] = float(count.noise[k - 1])
        if 1 <= k <= len(count.gaps):
            numbers["gap"] = float(count.gaps[k - 1])
        if one.criteria is not None:
            numbers["penalty_strength"] = one.strength if k else nan
            numbers["log_likelihood"] = one.criteria.log_likelihood
            numbers["parameters"] = one.criteria.n_parameters
            numbers["idle_latents"] = one.n_idle
            for name in ("aic", "bic", "ebic"):
                numbers[name] = getattr(one.criteria, name)
        best = self._best_held_out
        if one.held_out is not None and best is not None:
            behind = zip(COLUMNS[-2:], one.held_out_behind(best), strict=True)
            numbers.update(behind, held_out=one.mean_held_out)
        return numbers

    def verdict(self) -> str:
        """Return the recommendation in a few sentences."""
        chosen, config = self.recommended, CONFIG.selection
        out = self._comparison()
        if self.count.no_common_factor and chosen > 0:
            out += " The correlations are consistent with independent items."
        if self.count.limited:
            out += f" The items cannot identify more latents: {self.count.describe()}."
        if self.compared.low_information and self.runner_up is not None:
            out += (
                f" The information ratio is {self.compared.ratio:.0%}, so that fits decide, and "
                "BIC uses this share of the rows."
            )
        if len(self.latents) > 1 and chosen in (self.latents[0], self.latents[-1]) and chosen > 1:
            end = "smallest" if chosen == self.latents[0] else "largest"
            out += f" This is the {end} number that could be selected."
        if 0 < self.n_rows < config.few_rows:
            out += f" {self.n_rows:,.0f} rows are too few for a reliable selection."
        others = [f"{name} selects {k}" for name, k in self.votes.items() if k != chosen]
        if others and self.fitted:
            out += f" Other criteria differ: {', '.join(others)}."
        return out

    def _comparison(self) -> str:
        """Return the recommended number and its margin to the next best, as a sentence."""
        chosen, other, margin = self.recommended, self.runner_up, self.margin
        number = plural(chosen, "latent")
        if chosen == 0:
            return f"{number}: the items are independent, no latent is supported."
        if not self.fitted:
            return f"{number}, from the correlations: {self.count.describe()}."
        if other is None:
            alone = "all fits have items for this number only"
            if len(self.fitted) == 1:
                alone = "no other number was fitted"
            return f"{number}: {alone}; {self.count.describe()}."
        if margin >= 0:
            tie = ", a near tie" if margin < CONFIG.selection.near_tie else ""
            return f"{number}: BIC is smaller than for {other} by {margin:.1f}{tie}."
        if other < chosen:
            return (
                f"{number}: {self._counting}, and BIC is smaller for {other} by only "
                f"{-margin:.1f}, a near tie."
            )
        return (
            f"{number}: {self._counting}, and fits may not raise this number, although BIC is "
            f"smaller for {other} by {-margin:.1f}."
        )

    @property
    def n_rows(self) -> float:
        """Number of rows of the fits, or sum of weights; 0 without fits."""
        known = [one.criteria.n_rows for one in self.candidates if one.criteria is not None]
        return known[0] if known else 0.0

    @property
    def _counting(self) -> str:
        """The larger count of the correlations and its criterion."""
        most = self.count.span[1]
        if self.count.agreed:
            return f"parallel analysis and factor BIC select {most}"
        parallel = self.count.by_parallel_analysis == most
        return f"{'parallel analysis' if parallel else 'factor BIC'} selects {most}"

    def to_dict(self) -> dict[str, Any]:
        """Return the selection as plain values for JSON; None for absent numbers."""
        return {
            "recommended": self.recommended,
            "runner_up": self.runner_up,
            "margin": _plain(self.margin),
            "decided_by": "bic" if self.fitted else "correlations",
            "verdict": self.verdict(),
            "votes": self.votes,
            "n_folds": self.n_folds,
            "rows": [{name: _plain(v) for name, v in row.items()} for row in self.rows()],
            "failed": {
                f"{one.n_latents}": str(one.reason) for one in self.candidates if one.reason
            },
        }


def _plain(value: float | int | None) -> float | int | None:
    if value is None or isinstance(value, int):
        return value
    return None if not np.isfinite(value) else float(value)
