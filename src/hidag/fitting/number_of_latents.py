"""Selection of the number of latents from correlations and from fits.

Parallel analysis and factor BIC count common factors. If they disagree, models are fitted:

- Normally fits may only lower the larger count, and only if BIC improves beyond a near tie. They
  may not raise it: with a continuous trait or local dependence, BIC improves with every latent.
- With a low information ratio r, fits may raise or lower the count, and the number with the
  smallest BIC is selected; of numbers within 2 of it, the largest. Parallel analysis has no power
  there, and pairwise dependence does not distinguish a continuous trait from a binary one.

With a low information ratio the criterion differs in three respects: BIC uses the effective sample
size r N, with the same r for all numbers; a fit counts for its latents with at least two items,
because a latent with one item explains no correlation; and a latent without two items of its own,
as identifiability requires, costs one more parameter.

BIC is used instead of EBIC: the EBIC term grows with each latent for all loadings, counts
permutations of the latents as different supports, and rejects fits that start at the truth
(``benchmarks/number_of_latents.py --yardstick``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, isnan
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hidag.config import CONFIG
from hidag.data.item_types import resolve_families
from hidag.data.q_matrix import read_q_matrix
from hidag.data.table import Observations
from hidag.data.value_checks import check_values
from hidag.fitting.information_criteria import information_criteria
from hidag.fitting.penalty_strength import (
    Fit,
    FitCriteria,
    best_bic,
    bic_at,
    refit_at_common_strength,
)
from hidag.formatting import plural
from hidag.initialization.factor_count import FactorCount, count_factors
from hidag.initialization.start_points import spread_law
from hidag.measurement.parameters import MeasurementParameters, Responses
from hidag.results import FitResult
from hidag.strategy.moves.split_moves import (
    FEWEST_ITEMS,
    SPLIT_AGREEMENT,
    residual_correlation,
    split_sides,
)

Array = NDArray[np.float64]
#: Initial item parameters and latent distribution.
InitialValues = tuple[MeasurementParameters, Array]


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
class Comparison:
    """Comparison of fits with several numbers of latents.

    Attributes
    ----------
    counted : int
        Number of common factors in the correlations.
    fits : mapping from int to sequence of FitCriteria
        By number of latents; the first of each has its own strength of the penalty.
    """

    counted: int
    fits: Mapping[int, Sequence[FitCriteria]]

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
        values = self.active_bic
        if self.low_information:
            limit = min(values.values()) + CONFIG.selection.no_evidence
            return max(k for k, value in values.items() if value <= limit)
        return select_up_to(self.counted, values)


def nearest(wanted: int, numbers: Sequence[int]) -> int:
    """Return the nearest of several numbers; the smaller of two."""
    return min(numbers, key=lambda k: (abs(k - wanted), k))


def select_up_to(counted: int, bic: Mapping[int, float]) -> int | None:
    """Return the largest number, up to the counted one, within a near tie of the best BIC.

    Returns None if no BIC is finite, and the smallest number if all exceed ``counted``.
    """
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
    below the best has been fitted.

    Parameters
    ----------
    counted, fewest : int
        Count of the correlations, and the smallest number to fit.
    bic : mapping from int to float
        BIC of the numbers fitted so far, including ``counted``.
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
    no likelihood.

    Parameters
    ----------
    bic : mapping from int to float
        BIC of the consecutive numbers fitted so far; infinite if a fit has none.
    fewest, most : int
        Range of the numbers.
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


def can_initialize(result: FitResult) -> bool:
    """Return whether a fit can initialize neighbours: binary latents with main effects only."""
    return (
        set(result.law.space.levels) == {2}
        and result.law.space.n_states <= CONFIG.network_em.max_listed_states
        and result.parameters.terms.n_terms == result.law.space.n_latents
    )


def split_latents(
    result: FitResult, values: Array, weights: Array | None = None
) -> Iterator[InitialValues]:
    """Yield initial values with one latent split in two, largest residual correlations first.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
        NaN in missing cells.
    weights : ndarray, shape (N,), optional
    """
    x = result.responses.expand(values)
    means = result.item_means(result.law.space.states()).T
    law = np.asarray(result.law.probabilities)
    excess = residual_correlation(x, (~np.isnan(x)).astype(np.float64), weights, means, law)
    found = []
    for latent in range(result.law.space.n_latents):
        own = np.flatnonzero(result.parameters.loadings[:, latent])
        if len(own) >= FEWEST_ITEMS:
            leaving, size = split_sides(excess, own)
            found.append((-size, latent, leaving))
    for _, latent, leaving in sorted(found, key=lambda one: one[:2])[
        : CONFIG.selection.max_neighbour_starts
    ]:
        yield _split_latent(result, latent, leaving)


def remove_latents(result: FitResult) -> Iterator[InitialValues]:
    """Yield initial values with one latent removed, smallest sum of loadings first."""
    items, law = result.parameters, np.asarray(result.law.probabilities)
    levels = result.law.space.levels
    order = np.argsort(np.abs(items.loadings).sum(axis=0), kind="stable")
    for latent in order[: CONFIG.selection.max_neighbour_starts]:
        rest = law.reshape(levels).sum(axis=int(latent)).ravel()
        yield _with_loadings(result, np.delete(items.loadings, latent, axis=1), rest)


def _split_latent(result: FitResult, latent: int, leaving: NDArray[np.intp]) -> InitialValues:
    """Return initial values in which some items of a latent load on a new last latent instead."""
    loadings = result.parameters.loadings
    new = np.zeros(len(loadings))
    new[leaving] = loadings[leaving, latent]
    wider = np.column_stack([loadings, new])
    wider[leaving, latent] = 0.0
    is_high = result.law.space.states()[:, latent] == 1
    high = np.where(is_high, SPLIT_AGREEMENT, 1.0 - SPLIT_AGREEMENT)
    law = np.asarray(result.law.probabilities)[:, None] * np.column_stack([1.0 - high, high])
    return _with_loadings(result, wider, law.ravel())


def _with_loadings(result: FitResult, loadings: Array, law: Array) -> InitialValues:
    """Return initial values with other loadings and unchanged means of the predictors."""
    items = result.parameters
    before = np.asarray(result.law.probabilities) @ result.law.space.states()
    states = np.indices((2,) * loadings.shape[1]).reshape(loadings.shape[1], -1)
    intercept = items.intercept + items.loadings @ before - loadings @ (states @ law)
    moved = MeasurementParameters(
        items.families, intercept, loadings, items.dispersion, cutpoints=items.cutpoints
    )
    return moved, spread_law(law)


@dataclass
class NeighbourFits(Generic[Fit]):
    """Refits of each number of latents from the fits of neighbouring numbers.

    Attributes
    ----------
    fits : dict of int to list of fits
        By number of latents; of the refits the best is added for each number of active latents.
    fit_from : callable
        Fits with a number of latents from initial values.
    values : ndarray, shape (N, J)
    weights : ndarray, shape (N,), or None
    """

    fits: dict[int, list[Fit]]
    fit_from: Callable[[int, InitialValues], Fit]
    values: Array
    weights: Array | None = None
    _used: dict[tuple[int, int], Fit] = field(default_factory=dict)
    _added: dict[int, tuple[int, Fit]] = field(default_factory=dict)
    _rounds: int = 0

    def improve(self, compared: Comparison) -> bool:
        """Refit the numbers near the best, upwards and downwards; return whether one improved."""
        config = CONFIG.selection
        if self._rounds >= config.max_neighbour_rounds or not compared.low_information:
            return False
        self._rounds += 1
        better = False
        for step in (1, -1):
            bic = compared.bic
            best = min(bic, key=lambda k: (bic[k], k))
            near = range(best - config.n_neighbours, best + config.n_neighbours + 1)
            for k in near[::step]:
                if k in bic and k + step in bic and k + step in near:
                    better |= self._refit(k, k + step, compared)
        return better

    def _refit(self, k: int, other: int, compared: Comparison) -> bool:
        """Fit ``other`` latents from the best fit with k; return whether BIC improved."""
        known = [one for one in self.fits[k] if not isnan(one.bic)]
        if not known:
            return False
        source = min(known, key=lambda one: bic_at(one, compared.ratio))
        result = source.result
        if self._used.get((k, other)) is source or result is None or not can_initialize(result):
            return False
        self._used[k, other] = source
        more = split_latents(result, self.values, self.weights)
        better = False
        for start in more if other > k else remove_latents(result):
            one = self.fit_from(other, start)
            if isnan(one.bic):
                continue
            # A fit with an inactive latent counts for a smaller number.
            gain = compared.active_bic.get(one.n_active, inf) - bic_at(one, compared.ratio)
            if gain > 0:
                self._add(other, one)
            better |= gain > CONFIG.selection.min_gain
        return better

    def _add(self, k: int, one: Fit) -> None:
        """Add a refit, and remove the previous one with as many active latents."""
        if one.n_active in self._added:
            before, worse = self._added[one.n_active]
            self.fits[before][:] = [fit for fit in self.fits[before] if fit is not worse]
        self.fits[k].append(one)
        self._added[one.n_active] = k, one


@dataclass(frozen=True)
class NumberChoice:
    """A number of latents and the reason for it.

    Attributes
    ----------
    n_latents : int
    reason : str
    """

    n_latents: int
    reason: str


def number_from_settings(
    q_matrix: Any, levels: Any, latent_names: Any, item_names: tuple[str, ...]
) -> NumberChoice | None:
    """Return the number of latents that another setting implies, or None."""
    if q_matrix is not None:
        n = read_q_matrix(q_matrix, item_names, None).entries.shape[1]
        return NumberChoice(n, f"the Q-matrix has {plural(n, 'column')}")
    if not isinstance(levels, str) and hasattr(levels, "__len__"):
        n = len(levels)
        return NumberChoice(n, f"the levels of {plural(n, 'latent')} are given")
    if latent_names is not None and not isinstance(latent_names, str):
        n = len(latent_names)
        return NumberChoice(n, f"the names of {plural(n, 'latent')} are given")
    return None


def count_table_factors(
    table: Observations,
    family: Any,
    weights: NDArray[np.float64] | None = None,
    *,
    largest: int | None = None,
) -> FactorCount:
    """Return the number of common factors of a table; ``family`` as in `DCRL`."""
    families = resolve_families(table, family, weights).families
    check_values(table, families)
    responses = Responses.of(families)
    with threadpool_limits(limits=1, user_api="blas"):
        return count_factors(
            responses.expand(table.values), responses.families, weights=weights, largest=largest
        )


@dataclass(frozen=True)
class ComparedFit:
    """Properties of a fit that the comparison uses; see `FitCriteria`."""

    bic: float
    strength: float
    n_parameters: int = 0
    information_ratio: float = 1.0
    n_active: int = 1
    aic: float = float("-inf")
    n_shared: int = 0
    result: FitResult | None = field(default=None, repr=False)

    @classmethod
    def of(cls, result: FitResult, n_rows: float | None = None) -> ComparedFit:
        """Return the properties of a fit; ``n_rows`` is the sum of its weights."""
        criteria = information_criteria(result, n_rows)
        return cls(
            criteria.bic,
            float(result.penalty_strength_used),
            criteria.n_parameters,
            result.information_ratio,
            count_active(result.q_matrix),
            criteria.aic,
            count_shared(result.q_matrix),
            result,
        )


def choose_number(
    count: FactorCount,
    fit_of: Callable[..., ComparedFit],
    values: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
) -> NumberChoice:
    """Return the number of latents of ``DCRL("auto")``; see the module's docstring for the rule.

    Parameters
    ----------
    count : FactorCount
    fit_of : callable
        Fits with a number of latents, a strength of the penalty (None: estimated) and, as an
        optional third argument, initial values.
    values : ndarray, shape (N, J), optional
        Needed to refit numbers from neighbouring fits; see `NeighbourFits`.
    weights : ndarray, shape (N,), optional
    """
    counted = count.describe()
    if count.agreed:
        return NumberChoice(count.by_factor_bic, counted)
    low, high = count.span
    fits = {high: [fit_of(high, None)]}
    if isnan(fits[high][0].bic):
        reason = f"{counted}; fits with {plural(high, 'latent')} have no likelihood to compare"
        return NumberChoice(count.by_parallel_analysis, reason)
    compared = Comparison(high, fits)
    neighbours = None
    if values is not None:
        neighbours = NeighbourFits(fits, lambda k, start: fit_of(k, None, start), values, weights)
    while True:
        k = None
        if compared.low_information:
            k = next_either_side(compared.bic, 1, count.largest)
        elif len(fits) < CONFIG.selection.max_auto_fits:
            k = next_below(high, low, compared.bic)
        if k is not None:
            fits[k] = [fit_of(k, None)]
            refit_at_common_strength(fits, fit_of, compared.ratio)
        elif neighbours is None or not neighbours.improve(compared):
            break
    chosen = compared.selected or high
    return NumberChoice(chosen, f"{counted}; {_describe_fits(compared, chosen)}")


def _describe_fits(compared: Comparison, chosen: int) -> str:
    """Return the BIC differences of the fits and the rule that selected a number."""
    config, values = CONFIG.selection, compared.active_bic
    best = min(values, key=lambda k: (values[k], k))
    differences = ", ".join(
        f"{k}: +{values[k] - values[best]:.1f}" for k in sorted(values, reverse=True) if k != best
    )
    ranking = f"best: {best}" + (f"; differences: {differences}" if differences else "")
    if not compared.low_information:
        return (
            f"{chosen} is the largest number of latents with a BIC within {config.near_tie:g} of "
            f"the best ({ranking})"
        )
    rule = "has the smallest BIC"
    if chosen != best:
        rule = f"is the largest number with a BIC within {config.no_evidence:g} of the best"
    return (
        f"the information ratio is {compared.ratio:.0%}, so that fits decide: at this share of the "
        f"rows, and counting latents with at least {config.min_items} items, {chosen} {rule} "
        f"({ranking})"
    )
