"""Selection: the criteria side by side, one recommendation and its margin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np

from hidag.data.column_checks import warn_of_duplicate_columns
from hidag.data.item_types import resolve_families
from hidag.data.sample_weights import select_weighted_rows, warn_of_empty_rows
from hidag.data.table import Observations, read_table
from hidag.exceptions import Choices, SettingError, invalid_setting
from hidag.fitting.number_of_latents import (
    NEAR_TIE,
    Comparison,
    Neighbours,
    Place,
    count_in_table,
    nearest,
    next_both_ways,
    next_to_fit,
)
from hidag.fitting.penalty_strength import refit_at_common_strength
from hidag.fitting.settings import checked_count, root_seed
from hidag.initialization.factor_count import FactorCount, largest_count
from hidag.model_selection.candidates import (
    Candidate,
    Table,
    fit_candidate,
    folds_of,
    held_out_likelihood,
)
from hidag.results import FitResult

#: Criteria go by many rows; fewer than these leave all of them in the dark.
FEW_ROWS = 50
#: Columns of the table, in order.
COLUMNS = (
    "latents",
    "eigenvalue",
    "noise",
    "gap",
    "factor_bic",
    "penalty_strength",
    "log_likelihood",
    "parameters",
    "idle_latents",
    "aic",
    "bic",
    "ebic",
    "held_out",
    "held_out_behind",
    "held_out_error",
)


@dataclass(frozen=True)
class Selection:
    """How many latents, by several criteria.

    Attributes
    ----------
    latents : tuple of int
        The numbers that could be chosen.
    count : FactorCount
        What the correlations say.
    candidates : tuple of Candidate
        What was fitted, by number of latents.
    n_folds : int
        Of the cross-validation; 0 without.
    """

    latents: tuple[int, ...]
    count: FactorCount
    candidates: tuple[Candidate, ...]
    n_folds: int

    @property
    def fitted(self) -> dict[int, Candidate]:
        """The best candidate by EBIC for each number of latents that has one."""
        out: dict[int, Candidate] = {}
        for one in self.candidates:
            if not isnan(one.ebic) and (
                one.n_latents not in out or one.ebic < out[one.n_latents].ebic
            ):
                out[one.n_latents] = one
        return dict(sorted(out.items()))

    @property
    def recommended(self) -> int:
        """The number of latents: what correlations count, less what fits do without.

        Of the numbers up to what parallel analysis or factor BIC says, the largest whose fits have
        a BIC within 10 of the best; where items hardly show their latents, the number of the best
        fit: see :mod:`hidag.fitting.number_of_latents`. Without fits that can be compared
        it is what parallel analysis says.
        """
        settled = self.compared.settled
        return nearest(
            self.count.by_parallel_analysis if settled is None else settled, self.latents
        )

    @property
    def compared(self) -> Comparison:
        """The fits, held against each other and against what the correlations count."""
        fits: dict[int, list[Candidate]] = {}
        for one in self.candidates:
            fits.setdefault(one.n_latents, []).append(one)
        return Comparison(self.count.span[1], fits)

    @property
    def runner_up(self) -> int | None:
        """The next best number of latents, None if nothing was compared."""
        values = self._values
        others = [k for k in values if k != self.recommended]
        return min(others, key=lambda k: values[k]) if others else None

    @property
    def margin(self) -> float:
        """By how much the recommended number is better than the next: BIC, or factor BIC.

        BIC is that of the rule, charged for fewer rows where items hardly show their latents.
        Negative where that alone would have chosen another number; NaN if nothing was compared.
        """
        values, other = self._values, self.runner_up
        if other is None or self.recommended not in values:
            return float("nan")
        return values[other] - values[self.recommended]

    @property
    def _values(self) -> dict[int, float]:
        """What decides, by number of latents: the BIC of fits, or factor BIC without any."""
        standing = self.compared.standing
        if standing:
            allowed: dict[int, float] = {}
            for k, value in standing.items():
                near = nearest(k, self.latents)
                allowed[near] = min(value, allowed.get(near, value))
            return allowed
        known = {
            k: float(self.count.factor_bic[k]) for k in self.latents if k <= self.count.largest
        }
        return {k: value for k, value in known.items() if not isnan(value)}

    @property
    def votes(self) -> dict[str, int]:
        """What each criterion on its own would choose."""
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
        """The fit with the recommended number of latents; None if nothing was fitted."""
        return self.result_with(self.recommended)

    def result_with(self, n_latents: int) -> FitResult | None:
        """Return the fit with a number of latents as the estimator would return it, or None.

        Its strength is the one that was asked for or learned, the best by EBIC of several: what
        was fitted with another number's, or from its fit, was for the comparison alone.
        """
        own = [
            one
            for one in self.candidates
            if one.n_latents == n_latents and not (one.again or one.begun)
        ]
        known = [one for one in own if not isnan(one.ebic)]
        return min(known, key=lambda one: one.ebic).result if known else None

    @property
    def _best_held_out(self) -> Candidate | None:
        known = [one for one in self.candidates if one.held_out is not None]
        return max(known, key=lambda one: one.mean_held_out) if known else None

    def rows(self) -> list[dict[str, float | int | None]]:
        """Return the table: a mapping from `COLUMNS` to numbers for each row, NaN where none."""
        out = []
        for k in self.latents:
            own = [one for one in self.candidates if one.n_latents == k]
            for one in own or [Candidate(k, None)]:
                out.append(self._row(one))
        return out

    def _row(self, one: Candidate) -> dict[str, float | int | None]:
        nan, count, k = float("nan"), self.count, one.n_latents
        numbers: dict[str, float | int | None] = dict.fromkeys(COLUMNS, nan)
        numbers["latents"] = k
        numbers["penalty_strength"] = one.penalty_strength
        if k <= count.largest:
            numbers["eigenvalue"] = float(count.eigenvalues[k - 1])
            numbers["noise"] = float(count.noise[k - 1])
            numbers["factor_bic"] = float(count.factor_bic[k])
        if k < count.largest:
            numbers["gap"] = float(count.gaps[k - 1])
        if one.criteria is not None and one.result is not None:
            numbers["penalty_strength"] = one.strength
            numbers["log_likelihood"] = one.criteria.log_likelihood
            numbers["parameters"] = one.criteria.n_parameters
            numbers["idle_latents"] = one.n_idle
            for name in ("aic", "bic", "ebic"):
                numbers[name] = getattr(one.criteria, name)
        best = self._best_held_out
        if one.held_out is not None and best is not None:
            numbers["held_out"] = one.mean_held_out
            behind, error = one.held_out_behind(best)
            numbers["held_out_behind"], numbers["held_out_error"] = behind, error
        return numbers

    def verdict(self) -> str:
        """Return the recommendation in one or two sentences."""
        chosen, other = self.recommended, self.runner_up
        words = f"{chosen} {'latent' if chosen == 1 else 'latents'}"
        if not self.fitted:
            out = f"{words}, by the correlations alone: {self.count.in_words()}."
        elif other is None:
            lone = "no fit has items for another number"
            if len(self.fitted) == 1:
                lone = "no other number was fitted"
            out = f"{words}; {lone}, and {self.count.in_words()}."
        elif self.margin >= 0:
            tie = ", a near tie" if self.margin < NEAR_TIE else ""
            out = f"{words}, by {self.margin:.1f} of BIC before {other}{tie}."
        elif other < chosen:
            out = (
                f"{words}: {self._counting}, and {other} "
                f"{'is' if other == 1 else 'are'} better by {-self.margin:.1f} of BIC only, a near "
                "tie."
            )
        else:
            out = (
                f"{words}: {self._counting} and no more, though fits with {other} are better "
                f"by {-self.margin:.1f} of BIC."
            )
        compared = self.compared
        if compared.hardly_seen and other is not None:
            out += (
                f" Items carry {compared.ratio:.0%} of the latents' information, so fits decide, "
                "and BIC charges for that share of the rows."
            )
        if len(self.latents) > 1 and chosen in (self.latents[0], self.latents[-1]) and chosen > 1:
            end = "fewest" if chosen == self.latents[0] else "most"
            out += f" That is the {end} that could be chosen."
        if 0 < self.n_rows < FEW_ROWS:
            out += (
                f" {self.n_rows:,.0f} rows are few: they leave open how many latents there are, "
                "whatever a criterion says."
            )
        others = [f"{name} says {k}" for name, k in self.votes.items() if k != chosen]
        if others and self.fitted:
            out += f" Not all agree: {', '.join(others)}."
        return out

    @property
    def n_rows(self) -> float:
        """Rows that fits counted on; 0 where nothing was fitted."""
        known = [one.criteria.n_rows for one in self.candidates if one.criteria is not None]
        return known[0] if known else 0.0

    @property
    def _counting(self) -> str:
        """Which criterion counts most latents in the correlations, and how many."""
        most = self.count.span[1]
        if self.count.agreed:
            return f"parallel analysis and factor BIC count {most} in the correlations"
        parallel = self.count.by_parallel_analysis == most
        name = "parallel analysis" if parallel else "factor BIC"
        return f"{name} counts {most} in the correlations"

    def to_dict(self) -> dict[str, Any]:
        """Return the selection as JSON can hold it; numbers that are not there are None."""
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
                f"{one.n_latents}": one.reason for one in self.candidates if one.reason is not None
            },
        }


def _plain(value: float | int | None) -> float | int | None:
    if value is None or isinstance(value, int):
        return value
    return None if not np.isfinite(value) else float(value)


# --- `hidag.select`: correlations first, then fits near what they say, then cross-validation

#: Numbers of latents that are fitted at most when fits go where they are needed and items show
#: their latents.
MOST_NUMBERS = 7
FITS = ("near", "all", "none")
#: Settings of the estimator that a comparison over numbers of latents cannot have.
_TOLD = ("n_latents", "q_matrix", "latent_names", "penalty_strength", "random_state", "family")


def select(
    X: Any,
    latents: Iterable[int] | None = None,
    *,
    family: str | Sequence[str] | Mapping[Any, str] = "auto",
    penalty_strengths: Sequence[float | None] = (None,),
    fits: str = "near",
    folds: int = 3,
    sample_weight: Any = None,
    random_state: Any = None,
    tell: Callable[[str], None] | None = None,
    **settings: Any,
) -> Selection:
    """Return how many latents a table speaks for, by several criteria side by side.

    Parameters
    ----------
    X : array or frame, shape (N, J)
    latents : iterable of int, optional
        Numbers that may be chosen, such as ``range(2, 9)``; by default from 1 to as many as J
        items can identify, at most 40.
    family : as in `DCRL`
    penalty_strengths : sequence of float or None
        Strengths that are tried with each number of latents; None lets the fit learn its own. No
        number loses for a stronger penalty than the best one's: it is fitted with that one too.
    fits : {"near", "all", "none"}
        Which numbers are fitted: what the correlations say and its neighbours, and fewer while
        these are better (or more, where items hardly show their latents); all; or none.
    folds : int
        Of the cross-validation, which the best number of latents and its two neighbours go
        through; 0 or 1 leaves it out.
    sample_weight : array, shape (N,), optional
        As in ``DCRL.fit``.
    random_state : int, RandomState or None
    tell : callable, optional
        Called with a sentence before each fit.
    **settings
        Of the estimator, the same for all fits; not those that say how many latents there are.

    Returns
    -------
    Selection
        ``.recommended``, ``.margin``, ``.votes``, ``.rows()``, ``.verdict()``, ``.result``.
    """
    refused = [name for name in _TOLD if name in settings]
    if refused:
        raise SettingError(
            f"select compares numbers of latents, so {refused[0]} cannot be set for all fits; "
            "leave it out"
        )
    if fits not in FITS:
        raise invalid_setting("fits", Choices(FITS), fits)
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 0:
        raise invalid_setting("folds", "a whole number of at least 0", folds)
    table = read_table(X, min_rows=2)
    numbers = _checked_latents(latents, table)
    counted, weights = select_weighted_rows(table, sample_weight)
    # The line that called: the warning function, this one, the caller.
    warn_of_empty_rows(table, stacklevel=3)
    warn_of_duplicate_columns(counted, stacklevel=3)
    # Correlations are asked without regard to what may be chosen: they may say more than that.
    largest = max(numbers[-1], largest_count(table.n_items))
    count = count_in_table(counted, family, weights, largest=largest)
    families = resolve_families(counted, family, weights).families
    rows = Table(counted, families, weights)
    shared = {**settings, "random_state": root_seed(random_state)}
    say = tell or (lambda sentence: None)
    strengths = tuple(penalty_strengths)
    if not strengths:
        raise SettingError("penalty_strengths must have at least one entry; None learns it")

    def fit_number(k: int) -> list[Candidate]:
        say(f"fitting {k} {'latent' if k == 1 else 'latents'}")
        return [fit_candidate(rows, k, strength, shared) for strength in strengths]

    def fit_again(k: int, strength: float) -> Candidate:
        say(f"fitting {k} {'latent' if k == 1 else 'latents'} with the best fit's penalty")
        return replace(fit_candidate(rows, k, strength, shared), again=True)

    def begun(k: int, place: Place) -> Candidate:
        return fit_candidate(rows, k, strengths[0], shared, place)

    done: dict[int, list[Candidate]] = {}
    neighbours = Neighbours(done, begun, counted.values, weights)
    candidates = _fitted(fits, numbers, count, fit_number, fit_again, neighbours)
    if folds > 1 and candidates:
        candidates = _cross_validated(
            Selection(numbers, count, candidates, 0), rows, shared, folds, say
        )
    return Selection(numbers, count, candidates, folds if folds > 1 else 0)


def _checked_latents(latents: Iterable[int] | None, table: Observations) -> tuple[int, ...]:
    if latents is None:
        return tuple(range(1, largest_count(table.n_items) + 1))
    if isinstance(latents, (str, bytes)) or not hasattr(latents, "__iter__"):
        raise SettingError(
            f"latents must be whole numbers to choose from, such as range(2, 9), got {latents!r}"
        )
    numbers = tuple(sorted({checked_count("each entry of latents", k) for k in latents}))
    if not numbers:
        raise SettingError("latents must have at least one number to choose from")
    if numbers[-1] > table.n_items:
        raise SettingError(
            f"latents go up to {numbers[-1]}, more than the {table.n_items} items of the table; "
            f"each latent needs items of its own: ask for at most {largest_count(table.n_items)}"
        )
    return numbers


def _fitted(
    fits: str,
    numbers: tuple[int, ...],
    count: FactorCount,
    fit_number: Callable[[int], list[Candidate]],
    fit_again: Callable[[int, float], Candidate],
    neighbours: Neighbours[Candidate],
) -> tuple[Candidate, ...]:
    """Return the candidates that are to be fitted, by number of latents.

    Where strengths were learned, numbers are compared at a common one.
    """
    if fits == "none":
        return ()
    done = neighbours.fits
    compared = Comparison(count.span[1], done)
    if fits == "all":
        done.update({k: fit_number(k) for k in numbers})
        refit_at_common_strength(done, fit_again, compared.ratio)
        while neighbours.tell(compared):
            pass
    else:
        # The number that stands unless fewer do, what one more would bring, and the way from there.
        high = numbers.index(nearest(count.span[1], numbers))
        for place in range(max(high - 1, 0), min(high + 1, len(numbers) - 1) + 1):
            done[numbers[place]] = fit_number(numbers[place])
        refit_at_common_strength(done, fit_again, compared.ratio)
        while True:
            k = _next_number(numbers, count, compared)
            if k is not None:
                done[k] = fit_number(k)
                refit_at_common_strength(done, fit_again, compared.ratio)
            elif not neighbours.tell(compared):
                break
    return tuple(one for k in sorted(done) for one in done[k])


def _next_number(numbers: tuple[int, ...], count: FactorCount, compared: Comparison) -> int | None:
    """Return the number of latents to fit next, None when there were enough."""
    bic = {numbers.index(k): value for k, value in compared.bic.items()}
    further = None
    if compared.hardly_seen:
        settled = nearest(compared.settled or compared.counted, numbers)
        further = next_both_ways(bic, 0, len(numbers) - 1)
        if further is None and settled not in compared.fits:
            # Some latents of the best fit have no items: the fit without them is the answer.
            return settled
    elif len(bic) < MOST_NUMBERS:
        low, high = (numbers.index(nearest(k, numbers)) for k in count.span)
        further = next_to_fit(high, low, bic)
    return None if further is None else numbers[further]


def _cross_validated(
    found: Selection,
    table: Table,
    settings: Mapping[str, Any],
    n_folds: int,
    say: Callable[[str], None],
) -> tuple[Candidate, ...]:
    """Return the candidates, the best number and its neighbours with held-out likelihoods."""
    fitted = list(found.fitted)
    if found.recommended not in fitted:
        return found.candidates
    place = fitted.index(found.recommended)
    near = fitted[max(place - 1, 0) : place + 2]
    folds = folds_of(table, n_folds)
    out = []
    for one in found.candidates:
        if one.n_latents in near and one.criteria is not None and not one.begun:
            say(f"cross-validating {one.n_latents} in {n_folds} folds")
            held_out = held_out_likelihood(
                table, one.n_latents, one.penalty_strength, settings, folds
            )
            one = replace(one, held_out=held_out)
        out.append(one)
    return tuple(out)
