"""How often two tables of the same kind would place a row alike.

A second table of the same kind has other answers of the same people: a row's whole profile is
shared, and given it two placements are independent and alike in law. How rows of a profile are
placed is read off their posteriors, which are added up by place so that nothing of the size of rows
by profiles is kept. It takes several rows to a profile.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Consistency and its kappa.
Agreement = tuple[float, float]

#: A profile of which a single row has all but this share tells of no second placement.
LEAST_SHARE = 1e-6


def add_placements(
    sums: MutableMapping[int, Array], places: NDArray[np.integer], posterior: Array
) -> None:
    """Add rows to the sums of posteriors by place, places that occur only.

    Parameters
    ----------
    sums : mapping from int to ndarray, shape (S,)
    places : ndarray of int, shape (n,)
        Where each row is placed.
    posterior : ndarray, shape (n, S)
        Of all profiles.
    """
    for place in np.unique(places).tolist():
        more = posterior[places == place].sum(axis=0)
        sums[place] = sums[place] + more if place in sums else more


def lone_share(sums: Mapping[int, Array]) -> float:
    """Return the share of rows that may be alone in their profile; posteriors in sum by place.

    One row for each profile, or less where a profile has less. Pairs of rows miss about so much of
    what rows of a profile have in common: the posteriors of a lone row's profile come from rows
    that hardly belong there.
    """
    if not sums:
        return 0.0
    mass = np.sum(list(sums.values()), axis=0)
    return float(np.minimum(mass, 1.0).sum() / mass.sum())


def consistency(sums: Mapping[int, Array], squares: Array) -> Agreement:
    """Return the chance that two tables lead to the same placement, and Cohen's kappa of it.

    In each profile it is the share of pairs of rows that are placed alike. Pairs are of two
    different rows: with few rows to a profile, rows that agree with themselves would pass for
    consistency. NaN where no profile has two rows.

    Parameters
    ----------
    sums : mapping from int to ndarray, shape (S,)
        Posteriors in sum over the rows placed there.
    squares : ndarray, shape (S,)
        Squared posteriors in sum over all rows.
    """
    mass, alike = np.zeros_like(squares), -squares
    for there in sums.values():
        mass += there
        alike += there**2
    pairs = mass**2 - squares
    known = pairs > LEAST_SHARE * mass**2
    if not known.any():
        return float("nan"), float("nan")
    same = float(alike[known] / pairs[known] @ mass[known] / mass[known].sum())
    return beyond_chance(same, np.array([float(there.sum()) for there in sums.values()]))


def beyond_chance(same: float, placed: Array) -> Agreement:
    """Return a share of like placements with Cohen's kappa, given how many are at each place."""
    by_chance = float(((placed / placed.sum()) ** 2).sum())
    return same, (same - by_chance) / (1.0 - by_chance) if by_chance < 1.0 else float("nan")
