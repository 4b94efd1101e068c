"""Latent causal graphs by counting mixture components (Kivva, Rajendran, Ravikumar, Aragam 2021).

Components of the mixtures of single items, pairs and triples are counted, which tells how many
latents are behind each set; Q is the matrix that explains the numbers; the joint law of the latents
is that of the mixture of all items whose components have the means that Q allows; and a search
for the graph goes over that law.

What the method's paper leaves to an oracle, the counting, is done here with all that the library's
own estimator may assume too: the number of latents, that they are binary, and that items are normal
with a constant variance given the latents, which factor analysis estimates where effects add up.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import FactorAnalysis

from hidag.estimator import DCRL
from hidag.exceptions import HidagWarning, SettingError
from hidag.structure.graphs import CPDAG
from hidag_paper.baselines.baseline import (
    NORMAL_FAMILIES,
    Baseline,
    BaselineResult,
    Floats,
    normal_values,
    refuse_other_families,
)

# --- How many components the mixtures of single items, pairs and triples of items have

Array = NDArray[np.float64]

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

    def shared(self) -> Array:
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


def count_latents(scaled: Array, n_latents: int, rng: np.random.Generator) -> LatentNumbers:
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


def best_exponent(scaled: Array, least: int, most: int, rng: np.random.Generator) -> int:
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


def _em(rows: NDArray[np.float32], means: Array, shares: Array, n_steps: int) -> tuple[
    Array, Array, float
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


def _first_means(scaled: Array, number: int, rng: np.random.Generator) -> Array:
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


def _merged(means: Array, shares: Array, number: int) -> tuple[Array, Array]:
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


# --- From numbers of latents behind sets of items to Q: a tensor decomposition, then least

Ints = NDArray[np.int64]

#: Beginnings drawn at random, beside the decomposition's.
RANDOM_BEGINNINGS = 30
#: Rounds over the rows, at the most.
ROUNDS = 50


def decompose(shared: Array, n_latents: int, rng: np.random.Generator) -> NDArray[np.int8]:
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

    def misfits_of_row(self, j: int, rows: Ints) -> Array:
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


# ---

#: All triples of more items would take hours; the rows of Q are searched among all patterns.
MOST_ITEMS, MOST_LATENTS = 20, 8
#: Variances given the latents are at least this share of their median: factor analysis may find
#: that an item is all factor, and every row would be a component.
LEAST_SHARE = 0.25


def mixture_oracle(
    values: Floats, families: tuple[str, ...], n_latents: int, seed: int
) -> BaselineResult:
    """Return Q from numbers of components, and the graph of the law of the mixture over it."""
    refuse_other_families(families, NORMAL_FAMILIES, "mixture-oracle")
    table = normal_values(values, families)
    n_items = table.shape[1]
    if n_items > MOST_ITEMS or n_latents > MOST_LATENTS:
        raise SettingError(
            f"mixture-oracle counts the components of every triple of items: at most {MOST_ITEMS} "
            f"items and {MOST_LATENTS} latents, got {n_items} and {n_latents}"
        )
    if n_latents >= n_items or n_items < 3:
        raise SettingError(
            f"mixture-oracle needs at least 3 items and fewer latents than items, got {n_items} "
            f"items and {n_latents} latents"
        )
    rng = np.random.default_rng(seed)
    numbers = count_latents(_in_units_of_noise(table, n_latents), n_latents, rng)
    q_matrix, misfit, of_tensor = closest_q(numbers, n_latents, rng)
    graph = _graph_of_mixture(table, q_matrix, seed)
    notes = {
        "misfit_of_counts": misfit,
        "misfit_of_tensor_decomposition": of_tensor,
        "latents_behind_items": [int(m) for m in numbers.single],
    }
    return BaselineResult(q_matrix, graph, notes)


def _in_units_of_noise(table: Floats, n_latents: int) -> Floats:
    """Return centred items in units of their standard deviation given the latents, (N, J)."""
    centred = table - table.mean(axis=0)
    spread = table.std(axis=0)
    model = FactorAnalysis(n_latents, svd_method="lapack", max_iter=2000).fit(centred / spread)
    unique = np.maximum(model.noise_variance_, LEAST_SHARE * np.median(model.noise_variance_))
    return np.asarray(centred / (spread * np.sqrt(unique)))


def _graph_of_mixture(table: Floats, q_matrix: NDArray[np.int8], seed: int) -> CPDAG:
    """Return the graph of the latents when items have a mean for each state of their latents.

    The mixture's joint law is one free probability for each state, and counts for N rows. Latents
    without items stand alone.
    """
    n_latents = q_matrix.shape[1]
    adjacency = np.zeros((n_latents, n_latents), dtype=np.int8)
    busy = np.flatnonzero(q_matrix.any(axis=0))
    used = q_matrix.any(axis=1)
    if len(busy) > 1:
        mixture = DCRL(
            len(busy),
            family="gaussian",
            q_matrix=q_matrix[np.ix_(used, busy)],
            effects="all",
            law="saturated",
            effective_size="all",
            random_state=seed,
        )
        with warnings.catch_warnings():
            # What the library says of a Q that is not its own is of no interest here.
            warnings.simplefilter("ignore", HidagWarning)
            mixture.fit(table[:, used])
        adjacency[np.ix_(busy, busy)] = mixture.graph_.adjacency
    return CPDAG(adjacency)


MIXTURE_ORACLE = Baseline(
    "mixture-oracle",
    "numbers of mixture components of items, pairs and triples (Kivva et al. 2021)",
    mixture_oracle,
)
