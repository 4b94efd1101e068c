"""What fitted parameters can explain of numbers that are about one or two items.

Such numbers go with the parameters of their own items and of the law; the parameters of all other
items reach them only through what those say about the latents. With few parameters all of them are
asked. With many that would take long, and as many parameters as rows explain anything: then the law
and the own items are asked alone. What is left is a little larger for it, so that tests are on the
cautious side, by less than a hundredth of a standard error in tables of forty items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd

from hidag.explain.free_parameters import FreeParameters
from hidag.explain.moment_tests import ScoreSpace, speaking
from hidag.row_weights import effective_number

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Directions that all numbers are held against: at most so many, and one for so many rows.
MOST_SHARED = 64
ROWS_FOR_ONE = 10
#: At a maximum scores add up to nothing. Parameters that ran to the edge of what they can be (an
#: answer that nobody in a state gave) leave a direction, however faint, that is alike in all rows:
#: it would seem to explain any mean away. Such a direction has nearly the largest sum that there
#: could be, what a penalty leaves of the maximum a small part of it: half lies between the two.
HELD = 0.5
#: Of an item's scores, what the shared directions leave less of than this share is nothing.
NOTHING_LEFT = 1e-5


@dataclass(frozen=True)
class LocalScores:
    """Orthonormal directions of the scores: shared ones, and an item's own.

    Attributes
    ----------
    shared : ndarray, shape (N, l)
        Of all parameters if they are few, else of the law.
    own : tuple of J arrays, shape (N, p_j)
        Of an item's parameters, at right angles to the shared ones.
    n_known : float
        How many equal rows' squares tell as much as these rows' squares: N without weights.
    along : ndarray, shape (N,), optional
        As in :class:`hidag.explain.moment_tests.ScoreSpace`.
    """

    shared: Array
    own: tuple[Array, ...]
    n_known: float
    along: Array | None = None

    @classmethod
    def of(cls, free: FreeParameters, scores: Array) -> LocalScores:
        """Return the directions of scores, shape (N, P), of a fit's free parameters.

        With weights they are directions of the scores times the weights: what rows add to sums.
        """
        weights = free.data.row_weights
        n_means, n_known = effective_number(weights), effective_number(weights**2)
        return cls._of(free, free.data.weighted(scores), n_means, n_known, None)

    @classmethod
    def of_repeated(cls, free: FreeParameters, scores: Array) -> LocalScores:
        """Return the directions of scores (N, P) of rows that stand for as many as they weigh.

        They are directions of the scores times the roots of the weights, so that sums of squares
        are those of a table in which every row stands as often as its weight says.
        """
        if free.data.weights is None:
            return cls.of(free, scores)
        roots, total = np.sqrt(free.data.row_weights), free.data.n_counted
        return cls._of(free, roots[:, None] * scores, total, total, roots)

    @classmethod
    def _of(
        cls,
        free: FreeParameters,
        scores: Array,
        n_means: float,
        n_known: float,
        along: Array | None,
    ) -> LocalScores:
        owner = items_of(free)
        most = min(MOST_SHARED, int(n_known / ROWS_FOR_ONE))
        few = scores.shape[1] <= most
        # The strongest directions come first.
        shared = ScoreSpace.of(scores if few else scores[:, owner < 0]).basis[:, :most]
        shared = movable(shared, n_means, along)
        own = (
            _beyond(shared, scores[:, owner == j], n_means, along)
            for j in range(len(free.result.item_names))
        )
        return cls(shared, tuple(own), n_known, along)

    @classmethod
    def none(cls, n_rows: int, n_items: int) -> LocalScores:
        """Return no directions at all: as if nothing had been fitted."""
        nothing = np.zeros((n_rows, 0))
        return cls(nothing, (nothing,) * n_items, float(n_rows))

    def of_item(self, item: int) -> ScoreSpace:
        """Return the space that numbers about one item are held against."""
        return ScoreSpace(np.hstack([self.shared, self.own[item]]), self.n_known, self.along)


def items_of(free: FreeParameters) -> Indices:
    """Return the item that each free parameter is of, shape (P,); -1 for those of the law."""
    item = [int(free.result.responses.item[channel.response]) for channel in free.channels]
    return np.array([*item, -1], dtype=np.intp)[free.channel]


def movable(basis: Array, n_effective: float | None = None, along: Array | None = None) -> Array:
    """Return an orthonormal basis, shape (N, p), without what is alike in all rows, if it is in.

    ``n_effective`` is how many equal rows the rows are worth, N if not said: what is alike in all
    rows has the square of its sum, once it comes times the weights. ``along`` (N,) is what rows
    are multiplied by in sums, ones if not said.
    """
    sums = basis.sum(axis=0) if along is None else along @ basis
    towards = sums / np.sqrt(len(basis) if n_effective is None else n_effective)
    if towards @ towards <= HELD**2:
        return np.ascontiguousarray(basis)
    # The first column of a full QR is the direction itself, the others are at right angles to it.
    turned, _ = np.linalg.qr(towards[:, None], mode="complete")
    return np.ascontiguousarray(basis @ turned[:, 1:])


def _beyond(shared: Array, scores: Array, n_effective: float, along: Array | None) -> Array:
    """Return an orthonormal basis of what shared directions leave of scores, shape (N, p)."""
    size = np.sqrt((scores**2).sum(axis=0))
    used = speaking(size)
    if not used.any():
        return np.zeros((len(scores), 0))
    scaled = scores[:, used] / size[used]
    left, values, _ = svd(scaled - shared @ (shared.T @ scaled), full_matrices=False)
    return movable(left[:, values > NOTHING_LEFT], n_effective, along)
