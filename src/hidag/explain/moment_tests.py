"""Are averages what the model says they are? Tests that know that parameters were estimated.

A number per row whose mean is zero under the model has, once parameters are fitted, less spread
than it seems: what the parameters' scores explain of it has been fitted away. So its variance is
that of what is left after regression on the scores (Newey 1985, Tauchen 1985).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import svd

Array = NDArray[np.float64]

#: Scores below this share of the largest are rounding errors.
ROUNDING = 1e-12
#: Directions of the scores below this share of the largest are none.
NO_DIRECTION = 1e-8
#: Directions of a quadratic form below this share of its largest count for nothing.
NO_SPREAD = 1e-6


def speaking(size: Array) -> NDArray[np.bool_]:
    """Return which parameters' scores, of these sizes (P,), say anything.

    A parameter at the end of floating point's range explains nothing, nor does one whose scores are
    rounding errors, as those of a latent without items.
    """
    finite = np.isfinite(size)
    return np.asarray(finite & (size > ROUNDING * size[finite].max(initial=0.0)))


@dataclass(frozen=True)
class ScoreSpace:
    """What fitted parameters can explain.

    Attributes
    ----------
    basis : ndarray, shape (N, P')
        Orthonormal basis of the scores' columns.
    n_known : float, optional
        How many equal rows' squares tell as much as these rows' squares; all N if not said.
    along : ndarray, shape (N,), optional
        What rows' numbers are multiplied by in sums; ones if not said. The root of its weight for a
        row that stands for so many like it, and brings its numbers times that root.
    """

    basis: Array
    n_known: float | None = None
    along: Array | None = None

    @classmethod
    def of(cls, scores: Array) -> ScoreSpace:
        """Return the space of scores, shape (N, P)."""
        size = np.sqrt((scores**2).sum(axis=0))
        used = speaking(size)
        if not used.any():
            return cls(np.zeros((len(scores), 0)))
        left, values, _ = svd(scores[:, used] / size[used], full_matrices=False)
        return cls(np.ascontiguousarray(left[:, values > NO_DIRECTION * values[0]]))

    def left_over(self, moments: Array) -> Array:
        """Return what the scores leave of numbers per row, shape (N, m)."""
        return np.asarray(moments - self.basis @ (self.basis.T @ moments))

    def summed(self, moments: Array) -> Array:
        """Return the sums of numbers per row, shape (m,)."""
        return moments.sum(axis=0) if self.along is None else np.asarray(self.along @ moments)

    @property
    def stretch(self) -> float:
        """How much larger variances are than those of what is left.

        Regression on P' columns takes P' rows' worth of spread away whatever the numbers are.
        """
        n_rows, n_used = self.n_rows, self.basis.shape[1]
        return float(n_rows / max(n_rows - n_used, 1))

    @property
    def n_rows(self) -> float:
        """How many rows' worth of spread there is."""
        return float(len(self.basis)) if self.n_known is None else self.n_known


def chi_square(
    space: ScoreSpace, moments: Array, least_spread: float = NO_SPREAD, least_left: float = 0.0
) -> tuple[float, int]:
    """Return the chi-square statistic that all columns' means are zero, and its degrees.

    Directions with less than a share ``least_spread`` of the largest variance are left out, and so
    are those of which the scores leave less than ``least_left`` times what they take by chance
    alone, their number over the number of rows; NaN and 0 if none remains. Rows with weights bring
    their numbers and scores times these: their sum then has the variance that weights give it. Rows
    that stand for several alike bring them times the root, and the space says so.
    """
    size = np.sqrt((moments**2).sum(axis=0))
    moments = moments[:, size > 0] / size[size > 0]
    if moments.shape[1] == 0:
        return float("nan"), 0
    rest = space.left_over(moments)
    values, vectors = np.linalg.eigh(space.stretch * (rest.T @ rest))
    n_rows, n_used = space.n_rows, space.basis.shape[1]
    good = (values > least_spread * values[-1]) & (values >= least_left * n_used / n_rows)
    if not good.any():
        return float("nan"), 0
    sums = vectors[:, good].T @ space.summed(rest)
    return float((sums**2 / values[good]).sum()), int(good.sum())
