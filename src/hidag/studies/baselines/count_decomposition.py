"""From numbers of latents behind sets of items to Q: a tensor decomposition, then least squares.

What three items share, as a tensor, is the sum of outer cubes of the columns of Q. With right
counts Jennrich's algorithm finds the columns. Counts are not all right, so that its answer is one
of several beginnings from which rows are changed, one by one, until no row's change brings the
numbers that Q implies closer to those that were counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.studies.baselines.component_counts import Floats, LatentNumbers

Ints = NDArray[np.int64]

#: Beginnings drawn at random, beside the decomposition's.
RANDOM_BEGINNINGS = 30
#: Rounds over the rows, at the most.
ROUNDS = 50


def decompose(shared: Floats, n_latents: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Return Q by Jennrich's algorithm, (J, K): right if the tensor is; rounded otherwise.

    Parameters
    ----------
    shared : ndarray, shape (J, J, J)
    n_latents : int
    rng : Generator
        Draws the two directions along which the tensor is cut.
    """
    values, vectors = np.linalg.eigh(shared.sum(axis=2))
    basis = vectors[:, np.argsort(-np.abs(values))[:n_latents]]
    cuts = [basis.T @ (shared @ rng.random(len(shared))) @ basis for _ in range(2)]
    _, turned = np.linalg.eig(cuts[0] @ np.linalg.pinv(cuts[1]))
    columns = basis @ np.real(turned)
    # Each column is one of zeros and ones up to a factor: its largest entry is one.
    largest = columns[np.abs(columns).argmax(axis=0), np.arange(columns.shape[1])]
    safe = np.where(largest == 0, 1.0, largest)
    out: NDArray[np.int8] = np.zeros((len(shared), n_latents), dtype=np.int8)
    out[:, : columns.shape[1]] = columns / safe > 0.5
    return out


def closest_q(
    numbers: LatentNumbers, n_latents: int, rng: np.random.Generator
) -> tuple[NDArray[np.int8], float, float]:
    """Return the Q (J, K) that explains the numbers best, its misfit and the decomposition's.

    Misfits are sums, over single items, pairs and triples, of squared differences between the
    latents that Q puts behind the set and those that were counted.
    """
    n_items = len(numbers.single)
    places = 1 << np.arange(n_latents)
    sets = _Sets(numbers, n_latents)
    first = decompose(numbers.shared(), n_latents, rng) @ places
    begin = [first]
    for turn in range(RANDOM_BEGINNINGS):
        # Half of them with one latent an item, as most items of a test have.
        alone = places[rng.integers(0, n_latents, n_items)]
        begin.append(alone if turn % 2 else rng.integers(1, 2**n_latents, n_items))
    ends = [sets.improved(rows, rng) for rows in begin]
    misfits = [sets.misfit(rows) for rows in ends]
    best = ends[int(np.argmin(misfits))]
    q_matrix = ((best[:, None] & places) > 0).astype(np.int8)
    return q_matrix, min(misfits), sets.misfit(first)


class _Sets:
    """Squared differences of all sets, when rows of Q are written as binary numbers."""

    def __init__(self, numbers: LatentNumbers, n_latents: int) -> None:
        self.numbers = numbers
        self.patterns = np.arange(2**n_latents)
        self.size = np.array([int(p).bit_count() for p in self.patterns])

    def misfits_of_row(self, j: int, rows: Ints) -> Floats:
        """Return the misfit of the sets with item j, for each pattern that its row could have."""
        others = np.delete(np.arange(len(rows)), j)
        a, b = (others[half] for half in np.triu_indices(len(others), 1))
        own = self.patterns[:, None]
        alone = self.size - self.numbers.single[j]
        pairs = self.size[own | rows[others]] - self.numbers.pair[j, others]
        triples = self.size[own | (rows[a] | rows[b])] - self.numbers.triple[j, a, b]
        return np.asarray(alone**2 + (pairs**2).sum(axis=1) + (triples**2).sum(axis=1), float)

    def improved(self, rows: Ints, rng: np.random.Generator) -> Ints:
        """Return rows none of which could be changed for the better."""
        rows = rows.copy()
        for _ in range(ROUNDS):
            before = rows.copy()
            for j in rng.permutation(len(rows)):
                rows[j] = int(self.misfits_of_row(j, rows).argmin())
            if np.array_equal(rows, before):
                break
        return rows

    def misfit(self, rows: Ints) -> float:
        """Return the misfit of all sets."""
        numbers, size = self.numbers, self.size
        i, j = np.triu_indices(len(rows), 1)
        pairs = size[rows[i] | rows[j]] - numbers.pair[i, j]
        union = rows[:, None, None] | rows[:, None] | rows
        difference = (size[union] - numbers.triple) ** 2
        a, b, c = np.indices(difference.shape)
        triples = difference[(a < b) & (b < c)]
        alone = size[rows] - numbers.single
        return float((alone**2).sum() + (pairs**2).sum() + triples.sum())
