"""Latent causal graphs by counting mixture components (Kivva, Rajendran, Ravikumar, Aragam 2021).

The numbers of mixture components of single items, pairs and triples give the number of parents of
each set; Q is the matrix that explains these numbers; the joint distribution of the latents is that
of the mixture of all items with the component means that Q permits; the graph is searched on it.

The method's paper assumes an oracle for the counts. Here they are estimated under the assumptions
of the library's own estimator: a known number of binary latents, and items that are conditionally
normal with constant variance, which factor analysis estimates for additive effects.
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
    check_families,
    normal_values,
)

Array = NDArray[np.float64]

#: Tolerance of EM in log-likelihood, a fraction of the penalty of a component.
TOLERANCE = 0.1
#: Iterations of EM for the initial number of components and for all others.
FIRST_ITERATIONS, ITERATIONS = 30, 60
#: Rows among which the initial means are chosen.
ROWS_FOR_MEANS = 1000
#: Candidates for each further mean.
CANDIDATES = 3
#: Largest number of rows for triples, whose components are well separated.
ROWS_FOR_TRIPLES = 5000
#: Components with a smaller probability are dropped.
MIN_SHARE = 1e-9
#: Excess over the bound that the counts of smaller sets imply, which may be wrong.
SLACK = 1


@dataclass(frozen=True)
class LatentNumbers:
    """Numbers of parents of sets of items, from the numbers of mixture components.

    Attributes
    ----------
    single : ndarray of int, shape (J,)
    pair : ndarray of int, shape (J, J)
        Symmetric; the diagonal is ``single``.
    triple : ndarray of int, shape (J, J, J)
        Symmetric; with a repeated item, the number of the pair.
    """

    single: NDArray[np.int64]
    pair: NDArray[np.int64]
    triple: NDArray[np.int64]

    def shared(self) -> Array:
        """Return the numbers of common parents of three items, shape (J, J, J).

        By inclusion-exclusion; with exact counts, the sum of outer cubes of the columns of Q.
        """
        one = self.single.astype(np.float64)
        two, three = self.pair.astype(np.float64), self.triple.astype(np.float64)
        return np.asarray(
            (one[:, None, None] + one[:, None] + one)
            - (two[:, :, None] + two[:, None, :] + two[None, :, :])
            + three
        )


def count_latents(scaled: Array, n_latents: int, rng: np.random.Generator) -> LatentNumbers:
    """Estimate the numbers of parents of all single items, pairs and triples.

    Parameters
    ----------
    scaled : ndarray, shape (N, J)
        Items in units of their conditional standard deviation.
    n_latents : int
        K, the largest possible number.
    rng : Generator
        For the initial means.
    """
    n_items = scaled.shape[1]
    items = range(n_items)
    single = np.array([best_exponent(scaled[:, [j]], 0, n_latents, rng) for j in items])
    pair = np.diag(single)
    for i, j in combinations(items, 2):
        # A union has at least the parents of each item, and at most their sum.
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
    """Return m in [``least``, ``most``] for which 2^m components of unit variance minimise BIC."""
    if least >= most:
        return most
    n_rows, size = scaled.shape
    # Single precision suffices and halves the time.
    rows = np.hstack([scaled, np.ones((n_rows, 1))]).astype(np.float32)
    means, shares = _initial_means(scaled, 2**most, rng), np.full(2**most, 0.5**most)
    best, lowest = most, np.inf
    for exponent in range(most, least - 1, -1):
        number = 2**exponent
        means, shares = _merge_components(means, shares, number)
        means, shares, value = _em(
            rows, means, shares, FIRST_ITERATIONS if exponent == most else ITERATIONS
        )
        criterion = 0.5 * np.log(n_rows) * (number * (size + 1) - 1) - value
        if criterion < lowest:
            best, lowest = exponent, criterion
    return best


def _em(
    rows: NDArray[np.float32], means: Array, shares: Array, n_steps: int
) -> tuple[Array, Array, float]:
    """Fit components of unit variance; return means, probabilities and log-likelihood.

    The last column of ``rows``, shape (N, d + 1), is constant 1.
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
        if value - last < TOLERANCE:
            break
        last = value
        sums = (joint.T @ (rows / mass[:, None])).astype(np.float64)
        sums = sums[sums[:, -1] > MIN_SHARE * len(rows)]
        means, shares = sums[:, :-1] / sums[:, -1:], sums[:, -1] / sums[:, -1].sum()
    return means, shares, value


def _initial_means(scaled: Array, number: int, rng: np.random.Generator) -> Array:
    """Return k-means++ centres, shape (number, d)."""
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


def _merge_components(means: Array, shares: Array, number: int) -> tuple[Array, Array]:
    """Merge the closest components until at most ``number`` remain (Ward's criterion)."""
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


Ints = NDArray[np.int64]

#: Random starts in addition to the tensor decomposition.
N_RANDOM_STARTS = 30
#: Largest number of passes over the rows.
MAX_PASSES = 50


def decompose(shared: Array, n_latents: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Return Q, shape (J, K), by Jennrich's algorithm, exact for an exact tensor (J, J, J)."""
    values, vectors = np.linalg.eigh(shared.sum(axis=2))
    basis = vectors[:, np.argsort(-np.abs(values))[:n_latents]]
    slices = [basis.T @ (shared @ rng.random(len(shared))) @ basis for _ in range(2)]
    _, turned = np.linalg.eig(slices[0] @ np.linalg.pinv(slices[1]))
    columns = basis @ np.real(turned)
    # Each column is binary up to a factor: its largest entry is 1.
    largest = columns[np.abs(columns).argmax(axis=0), np.arange(columns.shape[1])]
    safe = np.where(largest == 0, 1.0, largest)
    out: NDArray[np.int8] = np.zeros((len(shared), n_latents), dtype=np.int8)
    out[:, : columns.shape[1]] = columns / safe > 0.5
    return out


def closest_q(
    numbers: LatentNumbers, n_latents: int, rng: np.random.Generator
) -> tuple[NDArray[np.int8], float, float]:
    """Return the Q, shape (J, K), with the best fit to the counts, its loss, and the initial loss.

    The loss is the sum of squared differences between the numbers of parents in Q and the counts
    over single items, pairs and triples. The initial Q comes from the tensor decomposition.
    """
    n_items = len(numbers.single)
    places = 1 << np.arange(n_latents)
    sets = _Sets(numbers, n_latents)
    first = decompose(numbers.shared(), n_latents, rng) @ places
    starts = [first]
    for turn in range(N_RANDOM_STARTS):
        # Half of the starts have one parent per item.
        alone = places[rng.integers(0, n_latents, n_items)]
        starts.append(alone if turn % 2 else rng.integers(1, 2**n_latents, n_items))
    ends = [sets.improve(rows, rng) for rows in starts]
    losses = [sets.loss(rows) for rows in ends]
    best = ends[int(np.argmin(losses))]
    q_matrix = ((best[:, None] & places) > 0).astype(np.int8)
    return q_matrix, min(losses), sets.loss(first)


class _Sets:
    """Least-squares loss of all sets, with rows of Q coded as binary numbers."""

    def __init__(self, numbers: LatentNumbers, n_latents: int) -> None:
        self.numbers = numbers
        self.patterns = np.arange(2**n_latents)
        self.size = np.array([int(p).bit_count() for p in self.patterns])

    def row_losses(self, j: int, rows: Ints) -> Array:
        """Return the loss of the sets with item j for each possible row."""
        others = np.delete(np.arange(len(rows)), j)
        a, b = (others[half] for half in np.triu_indices(len(others), 1))
        own = self.patterns[:, None]
        alone = self.size - self.numbers.single[j]
        pairs = self.size[own | rows[others]] - self.numbers.pair[j, others]
        triples = self.size[own | (rows[a] | rows[b])] - self.numbers.triple[j, a, b]
        return np.asarray(alone**2 + (pairs**2).sum(axis=1) + (triples**2).sum(axis=1), float)

    def improve(self, rows: Ints, rng: np.random.Generator) -> Ints:
        """Return a coordinate-wise optimum."""
        rows = rows.copy()
        for _ in range(MAX_PASSES):
            before = rows.copy()
            for j in rng.permutation(len(rows)):
                rows[j] = int(self.row_losses(j, rows).argmin())
            if np.array_equal(rows, before):
                break
        return rows

    def loss(self, rows: Ints) -> float:
        """Return the loss of all sets."""
        numbers, size = self.numbers, self.size
        i, j = np.triu_indices(len(rows), 1)
        pairs = size[rows[i] | rows[j]] - numbers.pair[i, j]
        union = rows[:, None, None] | rows[:, None] | rows
        difference = (size[union] - numbers.triple) ** 2
        a, b, c = np.indices(difference.shape)
        triples = difference[(a < b) & (b < c)]
        alone = size[rows] - numbers.single
        return float((alone**2).sum() + (pairs**2).sum() + triples.sum())


#: Limits of the run time, which grows with the triples of items and the patterns of latents.
MAX_ITEMS, MAX_LATENTS = 20, 8
#: Lower bound of the conditional variances relative to their median; a variance near zero (a
#: Heywood case of factor analysis) would make every row a component.
MIN_RELATIVE_VARIANCE = 0.25


def mixture_oracle(
    values: Floats, families: tuple[str, ...], n_latents: int, seed: int
) -> BaselineResult:
    """Estimate Q from numbers of components, and the graph from the mixture given Q."""
    check_families(families, NORMAL_FAMILIES, "mixture-oracle")
    table = normal_values(values, families)
    n_items = table.shape[1]
    if n_items > MAX_ITEMS or n_latents > MAX_LATENTS:
        raise SettingError(
            "too-large",
            "mixture-oracle, which considers all triples of items, has at most {max_items} items "
            "and {max_k} latents, got {n_items} and {k}",
            max_items=MAX_ITEMS,
            max_k=MAX_LATENTS,
            n_items=n_items,
            k=n_latents,
        )
    if n_latents >= n_items or n_items < 3:
        raise SettingError(
            "too-many-latents",
            "mixture-oracle needs at least 3 items and fewer latents than items, got {n_items} "
            "items and {k} latents",
            n_items=n_items,
            k=n_latents,
        )
    rng = np.random.default_rng(seed)
    numbers = count_latents(_scale_by_noise(table, n_latents), n_latents, rng)
    q_matrix, loss, tensor_loss = closest_q(numbers, n_latents, rng)
    graph = _mixture_graph(table, q_matrix, seed)
    notes = {
        "misfit_of_counts": loss,
        "misfit_of_tensor_decomposition": tensor_loss,
        "latents_behind_items": [int(m) for m in numbers.single],
    }
    return BaselineResult(q_matrix, graph, notes)


def _scale_by_noise(table: Floats, n_latents: int) -> Floats:
    """Return centred items in units of their conditional standard deviation, shape (N, J)."""
    centred = table - table.mean(axis=0)
    spread = table.std(axis=0)
    model = FactorAnalysis(n_latents, svd_method="lapack", max_iter=2000).fit(centred / spread)
    unique = np.maximum(
        model.noise_variance_, MIN_RELATIVE_VARIANCE * np.median(model.noise_variance_)
    )
    return np.asarray(centred / (spread * np.sqrt(unique)))


def _mixture_graph(table: Floats, q_matrix: NDArray[np.int8], seed: int) -> CPDAG:
    """Fit a saturated mixture with a mean for each state of the parents, and return its graph.

    The sample size of the graph search is N. Latents without items have no edges.
    """
    n_latents = q_matrix.shape[1]
    adjacency = np.zeros((n_latents, n_latents), dtype=np.int8)
    active = np.flatnonzero(q_matrix.any(axis=0))
    used = q_matrix.any(axis=1)
    if len(active) > 1:
        mixture = DCRL(
            len(active),
            family="gaussian",
            q_matrix=q_matrix[np.ix_(used, active)],
            effects="all",
            law="saturated",
            effective_size="all",
            random_state=seed,
        )
        with warnings.catch_warnings():
            # Warnings about this Q concern the baseline, not the user.
            warnings.simplefilter("ignore", HidagWarning)
            mixture.fit(table[:, used])
        adjacency[np.ix_(active, active)] = mixture.graph_.adjacency
    return CPDAG(adjacency)


MIXTURE_ORACLE = Baseline(
    "mixture-oracle",
    "numbers of mixture components of items, pairs and triples (Kivva et al. 2021)",
    mixture_oracle,
)
