"""Which of an item's coefficients ran to an edge: directions that next to no answer tells of.

Where everybody in a pattern of its latents gives an item the same answer, the predictor there goes
up or down without end, and stops wherever the search for the maximum did. Complete data would say
no more of it than the rows do, so that comparing the two shows nothing. What shows it is what
complete data would say at all: of a yes or a no the information about the predictor is about the
expected number of the rarer answers. With fewer than half of one there is nothing to estimate, as
with shares of states that less than half a row is in.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.law_rounds import OCCUPIED
from hidag.measurement import Family

Array = NDArray[np.float64]

#: Rows of a design whose singular values are below this share of the largest add no direction.
NO_DIRECTION = 1e-9


def at_edge(design: Array, told: Array) -> Array:
    """Return directions of an item's coefficients that next to nothing tells of, shape (E, P).

    Orthonormal. A pattern at the edge does no harm if its predictor follows from others: effects
    that add up. So only directions count that leave every pattern with an answer to tell where it
    is, and of these only those of which the other patterns together do not tell either.

    Parameters
    ----------
    design : ndarray, shape (S, P)
        What the coefficients add to the predictor in each state.
    told : ndarray, shape (S,)
        What complete data would tell of the predictor in each state: see :func:`told_in_rows`.
    """
    patterns, place = np.unique(design, axis=0, return_inverse=True)
    amount = np.bincount(place.ravel(), np.maximum(told, 0.0), minlength=len(patterns))
    known = amount >= OCCUPIED
    _, sizes, turned = np.linalg.svd(patterns[known], full_matrices=True)
    rank = int((sizes > NO_DIRECTION * sizes.max(initial=0.0)).sum())
    suspect = turned[rank:]
    moved = patterns[~known] @ suspect.T
    values, vectors = np.linalg.eigh(moved.T @ (amount[~known, None] * moved))
    directions = vectors.T @ suspect
    # Of a direction that moves neither a coefficient nor a predictor by more than one.
    both = np.hstack([directions, directions @ patterns.T])
    largest = np.abs(both).max(axis=1, initial=0.0)
    return np.asarray(directions[values < OCCUPIED * largest**2])


def told_in_rows(family: Family, auxiliary: Array, information: Array, counts: Array) -> Array:
    """Return what complete data tell of a predictor in each state, in rows, shape (S,).

    Parameters
    ----------
    family : Family
    auxiliary : ndarray
        Of the item: a dispersion, shape (), or cutpoints.
    information : ndarray, shape (S,)
        About the predictor.
    counts : ndarray, shape (S,)
        Rows that answered the item. More than they are is not told: of a yes or a no it is about
        the number of the rarer answers, of a measurement the number of rows, whatever its unit.
    """
    unit = auxiliary if family.dispersion_is_variance else 1.0
    return np.asarray(np.minimum(information * unit, counts), dtype=np.float64)


def complement(directions: Array) -> Array:
    """Return an orthonormal basis of what is at right angles to directions (E, P), (P, P - E)."""
    _, _, turned = np.linalg.svd(directions, full_matrices=True)
    return np.asarray(turned[len(directions) :].T)
