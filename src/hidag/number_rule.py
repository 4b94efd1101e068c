"""Which number of latents is taken: what correlations count, less what fits do without.

Two witnesses are heard. Parallel analysis says how many latents stand out from chance. Fits say by
their BIC whether fewer would do, and no more than that:

- They may not add. Where what is hidden varies along a scale, or items depend on each other in ways
  the model does not know, one more latent pays for itself again and again.
- They take away only beyond a near tie. Were the best fit always found, one latent too many would
  cost no more than a probability, for it may stay idle. A larger difference says that the items
  do not hold so many latents apart.

BIC, not EBIC: with every latent that is added EBIC asks more for each loading of all the others,
and counts every order of the latents as another choice. Where items say little, fits that start at
the truth lose by it (``benchmarks/number_of_latents.py --yardstick``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

#: Differences of BIC up to this are a near tie: odds of 150 to 1, as BIC approximates them.
NEAR_TIE = 10.0


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
