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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.posterior import HARDLY_SEEN
from hidag.how_many.common_strength import Contender, best_bic, bic_at

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
        return ratio if 0.0 < ratio < HARDLY_SEEN else 1.0

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
