"""Which number of latents is taken: what correlations count, less what fits do without.

Two witnesses are heard. Parallel analysis says how many latents stand out from chance. Fits say by
their BIC whether fewer would do, and, where items show their latents, no more than that:

- They may not add. Where what is hidden varies along a scale, or items depend on each other in ways
  the model does not know, one more latent pays for itself again and again.
- They take away only beyond a near tie. Were the best fit always found, one latent too many would
  cost no more than a probability, for it may stay idle. A larger difference says that the items
  do not hold so many latents apart.

Where items hardly show their latents (they carry less than a tenth of the latents' information),
fits are heard both ways, and the best BIC decides (of numbers within 2 of it, which is no evidence,
the largest):

- Parallel analysis has no power there: the last latents do not stand out from chance.
- Fits have no reason to add. Only what items have in common two at a time tells anything, and in
  that a scale and two levels are alike.
- BIC charges for the rows that the items are worth, r N, as tests of edges do: log N would charge
  for information that the items do not carry. r is the share of the information by the fit with
  the counted number, one for all numbers: each at its own would have another price, and the worse
  a fit tells its latents apart the lower it would be.
- A fit counts for the latents that have two items or more. One with a single item explains no
  correlation; it is a mixture that this item is free to have.
- A latent without two items of its own costs one parameter more. Items of several weak causes have
  in common what one further latent explains with fewer loadings; such a latent shares its items
  with others. Two items of its own are what identifiability asks of each.
- With that paid for, a tie goes to the larger number: weak latents are missed sooner than noise
  is taken for one.

BIC, not EBIC: with every latent that is added EBIC asks more for each loading of all the others,
and counts every order of the latents as another choice. Where items say little, fits that start at
the truth lose by it (``benchmarks/number_of_latents.py --yardstick``).
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
    Contender,
    Fit,
    best_bic,
    bic_at,
    refit_at_common_strength,
)
from hidag.formatting import plural
from hidag.initialization.factor_count import FactorCount, count_factors
from hidag.initialization.start_points import spread_law
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.responses import Responses
from hidag.results import FitResult
from hidag.strategy.moves.split_moves import (
    FEWEST_ITEMS,
    SPLIT_AGREEMENT,
    residual_correlation,
    split_sides,
)

#: Differences of BIC up to this are a near tie: odds of 150 to 1, as BIC approximates them.
NEAR_TIE = 10.0
#: Differences of BIC up to this say nothing: "not worth more than a bare mention" (Kass, Raftery).
NO_EVIDENCE = 2.0
#: A latent with fewer items than this does not count where fits decide alone.
LEAST_ITEMS = 2
#: Where fits are heard both ways, so many numbers on either side of the best have to be worse: the
#: search for one number may have failed.
LOOK_BEYOND = 2
#: Numbers that are fitted at most where fits are heard both ways.
MOST_BOTH_WAYS = 8


def count_shared(q_matrix: NDArray[Any]) -> int:
    """Return how many latents with two items or more have less than two of their own."""
    q = np.asarray(q_matrix) != 0
    own = q & (q.sum(axis=1, keepdims=True) == 1)
    return int(((q.sum(axis=0) >= LEAST_ITEMS) & (own.sum(axis=0) < LEAST_ITEMS)).sum())


def count_active(q_matrix: NDArray[Any]) -> int:
    """Return how many latents have two items or more; at least 1."""
    return max(1, int((q_matrix.sum(axis=0) >= LEAST_ITEMS).sum()))


@dataclass(frozen=True)
class Comparison:
    """Fits with several numbers of latents, held against each other and against the count.

    Attributes
    ----------
    counted : int
        What the correlations count.
    fits : mapping from int to sequence of Contender
        By number of latents, the first of each with the strength that was asked for or learned.
    """

    counted: int
    fits: Mapping[int, Sequence[Contender]]

    @property
    def hardly_seen(self) -> bool:
        """Whether items show so little of their latents that fits are heard both ways."""
        return self.ratio < 1.0

    @property
    def ratio(self) -> float:
        """Share of the rows that parameters are charged for; 1 where items show their latents."""
        known = [k for k, ones in self.fits.items() if best_bic(ones) < inf]
        if not known:
            return 1.0
        ones = self.fits[nearest(self.counted, known)]
        ratio = next(one.information_ratio for one in ones if not isnan(one.bic))
        return ratio if 0.0 < ratio < CONFIG.information.low_ratio else 1.0

    @property
    def bic(self) -> dict[int, float]:
        """The best BIC by number of latents, infinite where no fit has one."""
        ratio = self.ratio
        return {k: best_bic(ones, ratio) for k, ones in sorted(self.fits.items())}

    @property
    def standing(self) -> dict[int, float]:
        """The best BIC for each number of latents that some fit counts for."""
        ratio, hardly = self.ratio, self.hardly_seen
        out: dict[int, float] = {}
        for k, ones in self.fits.items():
            for one in ones:
                if not isnan(one.bic):
                    stands = one.n_active if hardly else k
                    out[stands] = min(bic_at(one, ratio), out.get(stands, inf))
        return dict(sorted(out.items()))

    @property
    def settled(self) -> int | None:
        """The number of latents that is taken, None if there is nothing to compare."""
        standing = self.standing
        if self.hardly_seen:
            best = min(standing.values())
            return max(k for k, value in standing.items() if value <= best + NO_EVIDENCE)
        return settled_number(self.counted, standing)


def nearest(wanted: int, numbers: Sequence[int]) -> int:
    """Return the number that is nearest to the one that is wanted, the smaller of two."""
    return min(numbers, key=lambda k: (abs(k - wanted), k))


def settled_number(counted: int, bic: Mapping[int, float]) -> int | None:
    """Return the most latents, up to the counted ones, whose BIC is the best or nearly so.

    Parameters
    ----------
    counted : int
        What the correlations count.
    bic : mapping from int to float
        The best BIC of the fits with a number of latents; not finite where there is none.

    Returns
    -------
    int or None
        None if there is nothing to compare.
    """
    known = {k: value for k, value in bic.items() if isfinite(value)}
    if not known:
        return None
    allowed = {k: value for k, value in known.items() if k <= counted}
    if not allowed:
        return min(known)
    best = min(allowed.values())
    return max(k for k, value in allowed.items() if value <= best + NEAR_TIE)


def next_to_fit(counted: int, fewest: int, bic: Mapping[int, float]) -> int | None:
    """Return the number of latents to fit next, or None if the answer would not change.

    While the fewest that were fitted are the best, steps down double: the correlations may have
    counted far too many. Between numbers that were fitted, none next to the best is left out.

    Parameters
    ----------
    counted, fewest : int
        What the correlations count, and where the way down ends.
    bic : mapping from int to float
        Of what was fitted so far, the counted number among it.
    """
    best = settled_number(counted, bic)
    if best is None or best <= fewest:
        return None
    below = [k for k in bic if k < best]
    if not below:
        return max(fewest, best - (counted - best + 1))
    return None if best - 1 in below else best - 1


def next_both_ways(bic: Mapping[int, float], fewest: int, most: int) -> int | None:
    """Return the number of latents to fit next where fits decide alone, or None.

    One step up or down at a time, until two numbers on either side of the best were worse. Where
    fits no longer have a likelihood is an end too.

    Parameters
    ----------
    bic : mapping from int to float
        Of what was fitted so far, numbers in a row; not finite where there is none.
    fewest, most : int
        Where the ways end.
    """
    known = {k: value for k, value in bic.items() if isfinite(value)}
    if not known or len(bic) >= MOST_BOTH_WAYS:
        return None
    best = min(known, key=lambda k: (known[k], k))
    top, bottom = max(bic), min(bic)
    if top in known and top < min(best + LOOK_BEYOND, most):
        return top + 1
    if bottom in known and bottom > max(best - LOOK_BEYOND, fewest):
        return bottom - 1
    return None


# --- Fits that begin where fits with one latent more or fewer ended

Array = NDArray[np.float64]
#: Items and a law to begin from.
Place = tuple[MeasurementParameters, Array]

#: Latents of a fit that are taken apart, and that are left out.
MOST_TRIED = 4
#: Rounds up and down through the numbers.
MOST_ROUNDS = 3
#: Numbers are told of a fit that is better by this much of BIC: less is a step of EM.
LEAST_GAIN = 1.0


def can_tell(result: FitResult) -> bool:
    """Return whether a fit tells others where to begin: binary latents, whose effects add up."""
    return (
        set(result.law.space.levels) == {2}
        and result.law.space.n_states <= CONFIG.network_em.max_listed_states
        and result.parameters.terms.n_terms == result.law.space.n_latents
    )


def taken_apart(result: FitResult, values: Array, weights: Array | None = None) -> Iterator[Place]:
    """Yield places for one latent more: those latents first whose items look most like two.

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
    for _, latent, leaving in sorted(found, key=lambda one: one[:2])[:MOST_TRIED]:
        yield _halved(result, latent, leaving)


def with_one_less(result: FitResult) -> Iterator[Place]:
    """Yield places for one latent fewer: those first without a latent that has little to say."""
    items, law = result.parameters, np.asarray(result.law.probabilities)
    levels = result.law.space.levels
    for latent in np.argsort(np.abs(items.loadings).sum(axis=0), kind="stable")[:MOST_TRIED]:
        rest = law.reshape(levels).sum(axis=int(latent)).ravel()
        yield _moved(result, np.delete(items.loadings, latent, axis=1), rest)


def _halved(result: FitResult, latent: int, leaving: NDArray[np.intp]) -> Place:
    """Return items and law with a last latent that some items of another one have gone over to."""
    loadings = result.parameters.loadings
    new = np.zeros(len(loadings))
    new[leaving] = loadings[leaving, latent]
    wider = np.column_stack([loadings, new])
    wider[leaving, latent] = 0.0
    is_high = result.law.space.states()[:, latent] == 1
    high = np.where(is_high, SPLIT_AGREEMENT, 1.0 - SPLIT_AGREEMENT)
    law = np.asarray(result.law.probabilities)[:, None] * np.column_stack([1.0 - high, high])
    return _moved(result, wider, law.ravel())


def _moved(result: FitResult, loadings: Array, law: Array) -> Place:
    """Return items with other loadings, their predictors' means as they were, and the law."""
    items = result.parameters
    before = np.asarray(result.law.probabilities) @ result.law.space.states()
    states = np.indices((2,) * loadings.shape[1]).reshape(loadings.shape[1], -1)
    intercept = items.intercept + items.loadings @ before - loadings @ (states @ law)
    moved = MeasurementParameters(
        items.families, intercept, loadings, items.dispersion, cutpoints=items.cutpoints
    )
    return moved, spread_law(law)


@dataclass
class Neighbours(Generic[Fit]):
    """Tells numbers of latents of each other's fits.

    Attributes
    ----------
    fits : dict of int to list of fits
        By number of latents; of those that began at a neighbour the best is added, one for each
        number of latents that count.
    begun : callable
        Fits with a number of latents from a place.
    values : ndarray, shape (N, J)
    weights : ndarray, shape (N,), or None
    """

    fits: dict[int, list[Fit]]
    begun: Callable[[int, Place], Fit]
    values: Array
    weights: Array | None = None
    _asked: dict[tuple[int, int], Fit] = field(default_factory=dict)
    _added: dict[int, tuple[int, Fit]] = field(default_factory=dict)
    _rounds: int = 0

    def tell(self, compared: Comparison) -> bool:
        """Go up and down through the numbers near the best once; return whether one got better."""
        if self._rounds >= MOST_ROUNDS or not compared.hardly_seen:
            return False
        self._rounds += 1
        better = False
        for step in (1, -1):
            bic = compared.bic
            best = min(bic, key=lambda k: (bic[k], k))
            near = range(best - LOOK_BEYOND, best + LOOK_BEYOND + 1)
            for k in near[::step]:
                if k in bic and k + step in bic and k + step in near:
                    better |= self._told(k, k + step, compared)
        return better

    def _told(self, k: int, other: int, compared: Comparison) -> bool:
        """Fit a number from the best fit of another one; return whether it got better."""
        known = [one for one in self.fits[k] if not isnan(one.bic)]
        if not known:
            return False
        teller = min(known, key=lambda one: bic_at(one, compared.ratio))
        result = teller.result
        if self._asked.get((k, other)) is teller or result is None or not can_tell(result):
            return False
        self._asked[k, other] = teller
        more = taken_apart(result, self.values, self.weights)
        better = False
        for place in more if other > k else with_one_less(result):
            one = self.begun(other, place)
            if isnan(one.bic):
                continue
            # A latent that ends without items leaves a fit of the number below.
            gain = compared.standing.get(one.n_active, inf) - bic_at(one, compared.ratio)
            if gain > 0:
                self._keep(other, one)
            better |= gain > LEAST_GAIN
        return better

    def _keep(self, k: int, one: Fit) -> None:
        """Add a fit with k latents instead of the one that was added for as many that count."""
        if one.n_active in self._added:
            before, worse = self._added[one.n_active]
            self.fits[before][:] = [kept for kept in self.fits[before] if kept is not worse]
        self.fits[k].append(one)
        self._added[one.n_active] = k, one


__all__ = ["Neighbours", "Place", "can_tell", "taken_apart", "with_one_less"]


# --- The number of latents when nobody says it: read off the correlations, settled by few fits

#: Numbers that are fitted at most, where parallel analysis and factor BIC disagree and items show
#: their latents.
MOST_NUMBERS = 4


@dataclass(frozen=True)
class NumberChoice:
    """A number of latents, and why it was chosen.

    Attributes
    ----------
    n_latents : int
    reason : str
    """

    n_latents: int
    reason: str


def number_told(
    q_matrix: Any, levels: Any, latent_names: Any, item_names: tuple[str, ...]
) -> NumberChoice | None:
    """Return the number of latents that another setting tells, or None if none does."""
    if q_matrix is not None:
        n_latents = read_q_matrix(q_matrix, item_names, None).entries.shape[1]
        return NumberChoice(n_latents, "as many as the Q-matrix has columns")
    if not isinstance(levels, str) and hasattr(levels, "__len__"):
        return NumberChoice(len(levels), "as many as there are numbers of levels")
    if latent_names is not None and not isinstance(latent_names, str):
        return NumberChoice(len(latent_names), "as many as there are names")
    return None


def count_in_table(
    table: Observations,
    family: Any,
    weights: NDArray[np.float64] | None = None,
    *,
    largest: int | None = None,
) -> FactorCount:
    """Return what the correlations of a table say; settings as the estimator takes them."""
    families = resolve_families(table, family, weights).families
    check_values(table, families)
    responses = Responses.of(families)
    with threadpool_limits(limits=1, user_api="blas"):
        return count_factors(
            responses.expand(table.values), responses.families, weights=weights, largest=largest
        )


@dataclass(frozen=True)
class JudgedFit:
    """What counts when numbers of latents are compared.

    Attributes
    ----------
    bic : float
        NaN if the fit has none.
    strength : float
        Of the penalty that it ended with.
    n_parameters : int
        Its free numbers.
    information_ratio : float
        Share of the latents' information that the items carry.
    n_active : int
        Latents with two items or more.
    aic : float
        NaN if the fit has none; the least that it is charged where rows count for little.
    n_shared : int
        Latents with two items or more, but less than two of their own.
    result : FitResult or None
        The whole fit, where it is at hand.
    """

    bic: float
    strength: float
    n_parameters: int = 0
    information_ratio: float = 1.0
    n_active: int = 1
    aic: float = float("-inf")
    n_shared: int = 0
    result: FitResult | None = field(default=None, repr=False)

    @classmethod
    def of(cls, result: FitResult, n_rows: float | None = None) -> JudgedFit:
        """Return what counts of a fit; ``n_rows`` is the sum of the weights, if it had any."""
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
    fit_of: Callable[..., JudgedFit],
    values: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
) -> NumberChoice:
    """Return the number of latents that a fit takes of its own accord.

    Where parallel analysis and factor BIC agree nothing needs to be fitted. Where they do not, the
    larger number stands unless fits do with fewer, or, where items hardly show their latents, with
    another: see :mod:`hidag.fitting.number_of_latents`. Penalties do not decide: see
    :mod:`hidag.fitting.penalty_strength`.

    Parameters
    ----------
    count : FactorCount
    fit_of : callable
        Fits with so many latents and a strength of the penalty, or its own for None; called with
        a third argument it begins at that place.
    values : ndarray, shape (N, J), optional
        With them, fits may begin where others ended: see
        :mod:`hidag.fitting.number_of_latents`.
    weights : ndarray, shape (N,), optional
    """
    said = count.in_words()
    if count.agreed:
        return NumberChoice(count.by_factor_bic, said)
    high = count.span[1]
    fits = {high: [fit_of(high, None)]}
    if isnan(fits[high][0].bic):
        chosen = count.by_parallel_analysis
        return NumberChoice(
            chosen, f"{said}; fits of {plural(high, 'latent')} have no likelihood to compare"
        )
    compared = Comparison(high, fits)
    neighbours = None
    if values is not None:
        neighbours = Neighbours(fits, lambda k, place: fit_of(k, None, place), values, weights)
    while True:
        k = _next_number(count, compared)
        if k is not None:
            fits[k] = [fit_of(k, None)]
            refit_at_common_strength(fits, fit_of, compared.ratio)
        elif neighbours is None or not neighbours.tell(compared):
            break
    chosen = compared.settled or high
    standing = compared.standing
    # The smaller of two that are level.
    best = min(standing, key=lambda k: (standing[k], k))
    behind = ", ".join(
        f"{k} by {standing[k] - standing[best]:.1f}"
        for k in sorted(standing, reverse=True)
        if k != best
    )
    ranking = f"{best}; behind it: {behind}" if behind else f"{best} alone"
    if compared.hardly_seen:
        place = "are the best"
        if chosen != best:
            place = f"are, of those within {NO_EVIDENCE:g} of the best, the largest"
        found = (
            f"items carry {compared.ratio:.0%} of the latents' information, where fits count for "
            f"more than correlations; by BIC at that share of the rows {plural(chosen, 'latent')} "
            f"with at least {LEAST_ITEMS} items {place} (the best: {ranking})"
        )
    else:
        found = (
            f"of fits, {chosen} is the largest number with a BIC within {NEAR_TIE:g} of the best "
            f"(the best: {ranking})"
        )
    return NumberChoice(chosen, f"{said}; {found}")


def _next_number(count: FactorCount, compared: Comparison) -> int | None:
    """Return the number of latents to fit next, None when there were enough."""
    if compared.hardly_seen:
        return next_both_ways(compared.bic, 1, count.largest)
    if len(compared.fits) >= MOST_NUMBERS:
        return None
    low, high = count.span
    return next_to_fit(high, low, compared.bic)
