"""How many components the mixtures of single items, pairs and triples of items have.

Given the states of the latents behind a set of items, normal items are normal with variances that
do not depend on those states. So the items of the set are a mixture of normals with one component
for each state that gives them means of their own. Latents are binary: the numbers looked for are
powers of two, and what is kept is the exponent, the number of latents behind the set.

A mixture is fitted from above. It begins with more components than can be wanted; those that are
closest in likelihood are merged until the next power of two is left, and EM goes on from there. Of
these fits the one with the best Bayesian information criterion counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: EM ends when a step gains less log-likelihood, a small part of what one component costs.
LEAST_GAIN = 0.1
#: Steps of EM: with the number of components to begin with, and with every other.
FIRST_STEPS, STEPS = 30, 60
#: Rows among which the first means are looked for.
ROWS_FOR_MEANS = 1000
#: Candidates among which each further mean is chosen.
CANDIDATES = 3
#: Rows that triples are counted in, at the most: their clouds lie further apart than those of one.
ROWS_FOR_TRIPLES = 5000
#: Components with a smaller share are dropped.
NO_SHARE = 1e-9
#: Counts may turn out so many latents higher than those of smaller sets allow: these may be wrong.
SLACK = 1


@dataclass(frozen=True)
class LatentNumbers:
    """Numbers of binary latents behind sets of items, read off the numbers of components.

    Attributes
    ----------
    single : ndarray of int, shape (J,)
    pair : ndarray of int, shape (J, J)
        Symmetric; the diagonal is ``single``.
    triple : ndarray of int, shape (J, J, J)
        Symmetric; with an item twice, that of the pair.
    """

    single: NDArray[np.int64]
    pair: NDArray[np.int64]
    triple: NDArray[np.int64]

    def shared(self) -> Floats:
        """Return how many latents three items share, shape (J, J, J), by inclusion-exclusion.

        The sum of outer cubes of the columns of Q, if every count is right.
        """
        one = self.single.astype(np.float64)
        two, three = self.pair.astype(np.float64), self.triple.astype(np.float64)
        return np.asarray(
            (one[:, None, None] + one[:, None] + one)
            - (two[:, :, None] + two[:, None, :] + two[None, :, :])
            + three
        )


def count_latents(scaled: Floats, n_latents: int, rng: np.random.Generator) -> LatentNumbers:
    """Return the numbers of latents behind all singles, pairs and triples of items.

    Parameters
    ----------
    scaled : ndarray, shape (N, J)
        Items in units of their standard deviation given the latents.
    n_latents : int
        K, the largest number that is looked for.
    rng : Generator
        Draws the first means.
    """
    n_items = scaled.shape[1]
    items = range(n_items)
    single = np.array([best_exponent(scaled[:, [j]], 0, n_latents, rng) for j in items])
    pair = np.diag(single)
    for i, j in combinations(items, 2):
        # More items cannot have fewer latents behind them, nor more than their own together.
        least, most = max(single[i], single[j]), single[i] + single[j] + SLACK
        found = best_exponent(scaled[:, [i, j]], least, min(most, n_latents), rng)
        pair[i, j] = pair[j, i] = found
    rows = scaled
    if len(scaled) > ROWS_FOR_TRIPLES:
        rows = scaled[np.sort(rng.choice(len(scaled), ROWS_FOR_TRIPLES, replace=False))]
    triple = np.zeros((n_items,) * 3, dtype=np.int64)
    for i, j in permutations(items, 2):
        triple[i, i, j] = triple[i, j, i] = triple[j, i, i] = pair[i, j]
    triple[items, items, items] = single
    for i, j, k in combinations(items, 3):
        least = max(pair[i, j], pair[i, k], pair[j, k])
        most = min(pair[i, j] + single[k], pair[i, k] + single[j], pair[j, k] + single[i]) + SLACK
        found = best_exponent(rows[:, [i, j, k]], least, min(most, n_latents), rng)
        for a, b, c in permutations((i, j, k)):
            triple[a, b, c] = found
    return LatentNumbers(single, pair, triple)


def best_exponent(scaled: Floats, least: int, most: int, rng: np.random.Generator) -> int:
    """Return m from ``least`` to ``most`` for which 2^m components have the best criterion.

    Parameters
    ----------
    scaled : ndarray, shape (N, d)
        Of variance one within each component.
    least, most : int
    rng : Generator
    """
    if least >= most:
        return most
    n_rows, size = scaled.shape
    # Single precision is six digits of a log-likelihood's terms, and halves the time.
    rows = np.hstack([scaled, np.ones((n_rows, 1))]).astype(np.float32)
    means, shares = _first_means(scaled, 2**most, rng), np.full(2**most, 0.5**most)
    best, lowest = most, np.inf
    for exponent in range(most, least - 1, -1):
        number = 2**exponent
        means, shares = _merged(means, shares, number)
        means, shares, value = _em(rows, means, shares, FIRST_STEPS if exponent == most else STEPS)
        criterion = 0.5 * np.log(n_rows) * (number * (size + 1) - 1) - value
        if criterion < lowest:
            best, lowest = exponent, criterion
    return best


def _em(rows: NDArray[np.float32], means: Floats, shares: Floats, n_steps: int) -> tuple[
    Floats, Floats, float
]:  # fmt: skip
    """Return means, shares and log-likelihood, up to a constant, after EM; variances are one.

    ``rows`` (N, d + 1) end in ones.
    """
    last = -np.inf
    for _ in range(n_steps):
        offset = np.log(shares) - 0.5 * (means**2).sum(axis=1)
        joint = rows @ np.vstack([means.T, offset]).astype(np.float32)
        top = joint.max(axis=1)
        joint -= top[:, None]
        np.exp(joint, out=joint)
        mass = joint.sum(axis=1)
        value = float(np.log(mass).sum(dtype=np.float64) + top.sum(dtype=np.float64))
        if value - last < LEAST_GAIN:
            break
        last = value
        sums = (joint.T @ (rows / mass[:, None])).astype(np.float64)
        sums = sums[sums[:, -1] > NO_SHARE * len(rows)]
        means, shares = sums[:, :-1] / sums[:, -1:], sums[:, -1] / sums[:, -1].sum()
    return means, shares, value


def _first_means(scaled: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Return rows that lie far apart, shape (number, d), as k-means++ chooses them."""
    rows = scaled[rng.permutation(len(scaled))[:ROWS_FOR_MEANS]]
    chosen = [rows[0]]
    distance = ((rows - rows[0]) ** 2).sum(axis=1)
    while len(chosen) < number and distance.max() > 0:
        drawn = rng.choice(len(rows), CANDIDATES, p=distance / distance.sum())
        left = [np.minimum(distance, ((rows - rows[i]) ** 2).sum(axis=1)) for i in drawn]
        best = int(np.argmin([one.sum() for one in left]))
        chosen.append(rows[drawn[best]])
        distance = left[best]
    return np.resize(np.array(chosen), (number, scaled.shape[1]))


def _merged(means: Floats, shares: Floats, number: int) -> tuple[Floats, Floats]:
    """Return at most ``number`` components: the two whose merger costs least become one."""
    means, shares = means.copy(), shares.copy()
    while len(shares) > number:
        gaps = ((means[:, None] - means) ** 2).sum(axis=2)
        cost = gaps * (shares[:, None] * shares / (shares[:, None] + shares))
        np.fill_diagonal(cost, np.inf)
        a, b = np.unravel_index(int(cost.argmin()), cost.shape)
        total = shares[a] + shares[b]
        means[a] = (shares[a] * means[a] + shares[b] * means[b]) / total
        shares[a] = total
        means, shares = np.delete(means, b, axis=0), np.delete(shares, b)
    return means, shares
