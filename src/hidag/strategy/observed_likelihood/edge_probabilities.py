"""Posterior probabilities of edges, from the observed-data likelihood of many graphs.

The marginal likelihood of a graph is approximated by the largest log-likelihood of the observed
data over its laws *and* the items' coefficients, minus a complexity per parameter of the law. The
law is fitted by EM with the items held; the gain from adjusting the items is that of one Newton
step from there: dependence that only reflects errors of the items' coefficients is no evidence.
All directed acyclic graphs are equally likely beforehand.

The likelihood of the most probable classes is computed. For the other graphs it is predicted by a
sum of terms for adjacent pairs and for triples in which one latent has the other two as parents
(the characteristic imset, which members of a class share), fitted to the computed ones. The sum
over all graphs is then exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.e_step import StateScores
from hidag.kernels.dag_sums import project_laws, sample_dags, sum_over_dags
from hidag.latent.laws import n_free_in_table, possible_cells
from hidag.measurement.families.base import family_named
from hidag.strategy.observed_likelihood.likelihood_search import ObservedFit
from hidag.structure.knowledge import ADJACENT, FORBIDDEN

Array = NDArray[np.float64]
#: Parent sets as bit masks, one for each latent.
Masks = tuple[int, ...]


@dataclass(frozen=True)
class GraphLikelihoods:
    """Log-likelihood of the observed data over graphs, with laws fitted and items adjusted."""

    observed: ObservedFit
    rows: Array  # (P, D + M + 1): distinct rows of the table
    weights: Array  # (P,): their weights

    @classmethod
    def of(cls, observed: ObservedFit) -> GraphLikelihoods:
        """Return the likelihoods for a fit; equal rows of categorical items are counted."""
        rows, weights = observed.data.extended, observed.data.row_weights
        if (rows == np.round(rows)).all():
            rows, place = np.unique(rows, axis=0, return_inverse=True)
            weights = np.bincount(place.ravel(), weights)
        return cls(observed, rows, weights)

    @cached_property
    def _densities(self) -> Array:
        """Densities of rows given states, each row divided by its largest, (P, S)."""
        observed = self.observed
        tables = observed.parameters.tables(observed.parameters.terms.features(self._states))
        scores = StateScores.of(tables, observed.space.uniform(), observed.data.incomplete)
        joint = self.rows @ scores.weights
        joint -= joint.max(axis=1, keepdims=True)
        return np.exp(joint, out=joint)

    @cached_property
    def _states(self) -> NDArray[np.int64]:
        return self.observed.space.states()

    def cells(self, graph: Masks) -> NDArray[np.int64]:
        """Return the number of each state's cell in the table of each latent, (K, S)."""
        levels = self.observed.space.levels
        out = np.zeros(self._states.T.shape, dtype=np.int64)
        for k, mask in enumerate(graph):
            for a in (*(a for a in range(len(levels)) if mask >> a & 1), k):
                out[k] = out[k] * levels[a] + self._states[:, a]
        return out

    def of_graphs(self, graphs: Sequence[Masks], *, adjust: bool = True) -> Array:
        """Return the log-likelihood of each graph, up to a constant."""
        size = max(int(CONFIG.edge_probabilities.batch_cells // len(self.rows)), 1)
        out = []
        for first in range(0, len(graphs), size):
            cells = np.array([self.cells(graph) for graph in graphs[first : first + size]])
            laws, values = self._fit_laws(cells)
            if adjust:
                gains = [self._item_gain(*one) for one in zip(laws, cells, strict=True)]
                values = values + np.array(gains)
            out.append(values)
        return np.concatenate(out)

    def _fit_laws(self, cells: NDArray[np.int64]) -> tuple[Array, Array]:
        """Return the best laws (G, S) by over-relaxed EM with the items held, and their values."""
        config, em, levels = CONFIG.edge_probabilities, CONFIG.em, np.array(self.observed.space.levels)
        n_graphs, _, n_states = cells.shape

        def project(counts: Array, chosen: NDArray[np.intp]) -> Array:
            laws = np.empty(counts.shape)
            project_laws(counts, cells[chosen], levels, laws)
            return laws

        active = np.arange(n_graphs)
        current = project(np.tile(self.observed.law, (n_graphs, 1)), active)
        best, plain, value = current.copy(), current.copy(), np.full(n_graphs, -np.inf)
        factor, relaxed = np.ones(n_graphs), np.zeros(n_graphs, dtype=bool)
        for _ in range(config.max_law_steps):
            mass = np.maximum(self._densities @ current[active].T, np.finfo(float).tiny)
            found = self.weights @ np.log(mass)
            # An over-relaxed step that overshot is replaced by the plain one, which cannot.
            over = relaxed[active] & (found < value[active])
            back = active[over]
            current[back], relaxed[back], factor[back] = plain[back], False, 1.0
            going = ~over & ~(found - value[active] < config.law_tolerance)
            kept, on = active[~over], active[going]
            best[kept], value[kept] = current[kept], found[~over]
            if not len(on) and not len(back):
                break
            old = current[on]
            counts = old * ((self.weights[:, None] / mass[:, going]).T @ self._densities)
            plain[on] = step = project(counts, on)
            both = (step > em.negligible_probability) & (old > em.negligible_probability)
            ratio = np.where(both, step / np.where(both, old, 1.0), 1.0)
            current[on] = project(step * ratio ** (factor[on, None] - 1.0), on)
            relaxed[on] = factor[on] > 1.0
            factor[on] = np.minimum(factor[on] * em.relaxation_growth, em.max_relaxation)
            active = np.sort(np.concatenate([back, on]))
        return best, value

    @cached_property
    def _derivatives(self) -> tuple[Array, Array, NDArray[np.intp], NDArray[np.intp], Array]:
        """Derivatives of log densities by coefficient: by column and of the partition, (S, P).

        Also the columns of the data and of the observed cells that multiply them, and these (P, J).
        """
        data, items = self.observed.data, self.observed.parameters
        features = items.terms.features(self._states)
        eta = items.intercept[:, None] + items.loadings @ features.T
        design = np.hstack([np.ones((len(features), 1)), features])
        by_column, partition, column, item = [], [], [], []
        for j, name in enumerate(items.families):
            family = family_named(name)
            found = family.slopes(eta[j], items.auxiliary(family, np.full(len(features), j)))
            slopes = np.reshape(found[0], (family.n_columns, -1))
            own = np.flatnonzero(np.append(True, items.loadings[j] != 0))
            for d, slope in enumerate(slopes):
                # The partition counts once for an item with several columns.
                by_column.append(slope[:, None] * design[:, own])
                partition.append(found[1][:, None] * design[:, own] * (d == 0))
                column += [data.columns.starts[j] + d] * len(own)
                item += [j] * len(own)
        seen = np.ones((len(self.rows), data.n_items))
        seen[:, data.incomplete] = self.rows[:, data.columns.n_columns : -1]
        places = np.array(column, dtype=np.intp), np.array(item, dtype=np.intp)
        return np.hstack(by_column), np.hstack(partition), *places, seen

    @cached_property
    def _weighted(self) -> tuple[Array, Array]:
        """Columns of the data and indicators of observed cells times the weights, (D, P), (J, P)."""
        n_columns = self.observed.data.columns.n_columns
        return (self.rows[:, :n_columns] * self.weights[:, None]).T.copy(), (
            self._derivatives[-1] * self.weights[:, None]
        ).T.copy()

    @cached_property
    def _information(self) -> tuple[Array, Array, Array]:
        """Information about coefficients and the log probabilities of states, in blocks.

        Sums over some thousand rows of products of scores, under the starting law.
        """
        by_column, partition, column, item, seen = self._derivatives
        step = -(-len(self.rows) // CONFIG.edge_probabilities.information_rows)
        weights = self.weights[::step] * (self.weights.sum() / self.weights[::step].sum())
        posterior = self._densities[::step] * self.observed.law
        posterior /= posterior.sum(axis=1, keepdims=True)
        scores = self.rows[::step][:, column] * (posterior @ by_column)
        scores -= seen[::step][:, item] * (posterior @ partition)
        weighted = scores.T * weights
        return weighted @ scores, weighted @ posterior, (posterior.T * weights) @ posterior

    def _item_gain(self, law: Array, cells: NDArray[np.int64]) -> float:
        """Return the gain in log-likelihood of a Newton step of items and law together."""
        ridge = CONFIG.edge_probabilities.ridge
        by_column, partition, column, item, _ = self._derivatives
        columns, observed = self._weighted
        posterior = self._densities * law
        posterior /= posterior.sum(axis=1, keepdims=True)
        total = ((columns @ posterior)[column] * by_column.T).sum(axis=1)
        total -= ((observed @ posterior)[item] * partition.T).sum(axis=1)
        of_items, cross, of_states = self._information
        changes = self._law_scores(law, cells)
        between = cross @ changes
        information = np.block([[of_items, between], [between.T, changes.T @ of_states @ changes]])
        diagonal = np.arange(len(information))
        information[diagonal, diagonal] *= 1.0 + ridge
        information[diagonal, diagonal] += ridge
        right = np.zeros(len(information))
        right[: len(total)] = total
        return float(0.5 * right @ np.linalg.solve(information, right))

    def _law_scores(self, law: Array, cells: NDArray[np.int64]) -> Array:
        """Return derivatives of the log law about the log odds in its tables, (S, F)."""
        out = []
        for own, m in zip(cells, self.observed.space.levels, strict=True):
            table = np.bincount(own, law)
            table = np.append(table, np.zeros(-len(table) % m)).reshape(-1, m)
            given = table.sum(axis=1, keepdims=True)
            shares = table / np.where(given > 0, given, 1.0)
            number = np.arange(table.size)
            change = (own[:, None] == number) - (own[:, None] // m == number // m) * shares.ravel()
            out.append(change[:, number % m > 0])
        return np.hstack(out)


@dataclass(frozen=True)
class _Families:
    """Local scores of families (a latent with its parents), as tables (K, 2^K)."""

    counted: Array  # expected log-likelihood if latents were observed
    n_parameters: Array
    allowed: NDArray[np.bool_]

    @classmethod
    def of(cls, observed: ObservedFit, rules: NDArray[np.uint8] | None) -> _Families:
        """Return the tables; families that knowledge forbids are not allowed."""
        space, n = observed.space, observed.space.n_latents
        cube = (observed.law * observed.data.n_counted).reshape(space.levels)
        shape = (n, 1 << n)
        counted, parameters = np.zeros(shape), np.zeros(shape)
        allowed = np.zeros(shape, dtype=bool)
        margins: dict[int, float] = {}

        def entropy(mask: int) -> float:
            if mask not in margins:
                away = tuple(a for a in range(n) if not mask >> a & 1)
                part = cube.sum(axis=away)
                margins[mask] = float((part * np.log(np.maximum(part, 1e-300))).sum())
            return margins[mask]

        constraints = np.zeros((n, n), dtype=np.uint8) if rules is None else rules
        for k in range(n):
            never = sum(1 << a for a in range(n) if a == k or constraints[a, k] & FORBIDDEN)
            must = sum(1 << a for a in range(n) if constraints[a, k] & ADJACENT and not never >> a & 1)
            for mask in range(1 << n):
                many = mask.bit_count() > CONFIG.edge_probabilities.max_parents
                if many or mask & never or must & ~mask:
                    continue
                allowed[k, mask] = True
                counted[k, mask] = entropy(mask | 1 << k) - entropy(mask)
                causes = tuple(a for a in range(n) if mask >> a & 1)
                sizes = math.prod(space.levels[a] for a in causes) * (space.levels[k] - 1)
                if observed.possible is not None:
                    sizes = n_free_in_table(possible_cells(observed.possible, space, k, causes))
                parameters[k, mask] = sizes
        return cls(counted, parameters, allowed)

    def of_graphs(self, table: Array, graphs: NDArray[np.int64]) -> Array:
        """Return the sums of a table over the families of graphs (n, K)."""
        return np.asarray(table[np.arange(graphs.shape[1]), graphs].sum(axis=1))


class _Imset:
    """Adjacent pairs and triples with two parents: the coordinates of a class of graphs."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.sets = [*combinations(range(n), 2), *combinations(range(n), 3)]

    def of_graphs(self, graphs: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the coordinates of graphs (n, K) as zeros and ones."""
        out = np.zeros((len(graphs), len(self.sets)), dtype=np.uint8)
        for place, members in enumerate(self.sets):
            every = sum(1 << a for a in members)
            for k in members:
                rest = every ^ 1 << k
                out[:, place] |= (graphs[:, k] & rest) == rest
        return out

    def keys(self, graphs: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return a number for the class of each graph."""
        rng = np.random.default_rng(0)
        words = rng.integers(1 << 63, size=len(self.sets), dtype=np.uint64)
        return np.asarray((self.of_graphs(graphs) * words).sum(axis=1, dtype=np.uint64))

    def local(self, coefficients: Array) -> Array:
        """Return the tables (K, 2^K) of families whose sums over a graph are these effects."""
        masks = np.arange(1 << self.n)
        out = np.zeros((self.n, len(masks)))
        for members, value in zip(self.sets, coefficients, strict=True):
            every = sum(1 << a for a in members)
            for k in members:
                rest = every ^ 1 << k
                out[k, (masks & rest) == rest] += value
        return out


def members_of(graph: Masks, allowed: NDArray[np.bool_], limit: int) -> list[Masks] | None:
    """Return the allowed graphs of a Markov equivalence class; None if there are too many.

    Members are connected by reversals of covered edges (Chickering 1995).
    """
    found, seen = [graph], {graph}
    for one in found:
        if len(found) > limit:
            return None
        for k, mask in enumerate(one):
            for a in range(len(one)):
                if mask >> a & 1 and mask ^ 1 << a == one[a]:
                    turned = list(one)
                    turned[k], turned[a] = one[a], one[a] | 1 << k
                    other = tuple(turned)
                    if other not in seen:
                        seen.add(other)
                        found.append(other)
    return [one for one in found if all(allowed[k, mask] for k, mask in enumerate(one))]


def edge_probabilities(
    observed: ObservedFit,
    start: Masks,
    *,
    ratio: float,
    n_graphs: int,
    rules: NDArray[np.uint8] | None = None,
    seed: int = 0,
) -> Array:
    """Return the probability that each latent causes each other one directly, shape (K, K).

    Parameters
    ----------
    observed : ObservedFit
        Its law is not restricted by a graph.
    start : tuple of int, length K
        An allowed graph, the best one known.
    ratio : float
        Information ratio.
    n_graphs : int
        Largest number of classes whose likelihood is computed.
    rules : ndarray of uint8, shape (K, K), optional
        Constraints of prior knowledge.
    """
    config = CONFIG.edge_probabilities
    likelihoods, families = GraphLikelihoods.of(observed), _Families.of(observed, rules)
    n = observed.space.n_latents
    imset, rng = _Imset(n), np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1 << 21,)))
    price = 0.5 * math.log1p(config.price_rows * ratio * observed.data.n_counted)
    fixed = np.where(families.allowed, -price * families.n_parameters, -np.inf)
    graphs, values = np.array([start], dtype=np.int64), np.zeros(0)
    coefficients, constant = np.zeros(len(imset.sets)), 0.0
    while True:
        new = graphs[len(values) :]
        values = np.append(values, likelihoods.of_graphs([tuple(g) for g in new.tolist()]))
        x = imset.of_graphs(graphs).astype(np.float64)
        offset = ratio * families.of_graphs(families.counted, graphs)
        totals = values + families.of_graphs(fixed, graphs)
        noise = config.noise * (1.0 + totals.max() - totals)
        constant, coefficients = _ridge(x, values - offset, noise)
        scores = fixed + ratio * families.counted + imset.local(coefficients)
        if len(graphs) >= n_graphs:
            break
        pool = _draw_classes(scores, graphs[totals.argmax()], imset, rng)
        known = imset.keys(graphs)
        pool = pool[~np.isin(imset.keys(pool), known)]
        if not len(pool):
            break
        predicted = families.of_graphs(scores, pool)
        take = min(config.graphs_per_round, n_graphs - len(graphs))
        chosen = np.argsort(-predicted, kind="stable")[:take]
        graphs = np.vstack([graphs, pool[chosen]])
    return _sum_up(graphs, totals - constant, scores, families)


def _draw_classes(
    scores: Array, begin: NDArray[np.int64], imset: _Imset, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a graph of each class that a Markov chain visits, (n, K)."""
    config, n = CONFIG.edge_probabilities, len(begin)
    moves = rng.integers(2, size=(config.chain_steps, 3))
    moves[:, 0] = rng.integers(n, size=len(moves))
    moves[:, 1] = (moves[:, 0] + 1 + rng.integers(n - 1, size=len(moves))) % n
    drawn = np.empty((len(moves) // config.thinning, n), dtype=np.int64)
    limits = np.log(rng.random(len(moves))) * config.heat
    sample_dags(scores, begin.copy(), moves, limits, drawn)
    _, first = np.unique(imset.keys(drawn), return_index=True)
    return drawn[first]


def _ridge(x: Array, y: Array, noise: Array) -> tuple[float, Array]:
    """Return the constant and the coefficients of a regression with normal priors."""
    design = np.hstack([np.ones((len(x), 1)), x]) / noise[:, None]
    precision = np.full(design.shape[1], CONFIG.edge_probabilities.prior_precision)
    precision[0] = 1e-8
    found = np.linalg.solve(design.T @ design + np.diag(precision), design.T @ (y / noise))
    return float(found[0]), found[1:]


def _sum_up(
    graphs: NDArray[np.int64], totals: Array, scores: Array, families: _Families
) -> Array:
    """Return the probabilities from predicted scores of all graphs and exact ones of some."""
    n = graphs.shape[1]
    edges = np.empty((n, n))
    log_sum = sum_over_dags(scores, edges)
    predicted = families.of_graphs(scores, graphs)
    top = max(log_sum, float(totals.max()))
    mass = math.exp(log_sum - top)
    edges *= mass
    bits = np.arange(n)
    for graph, exact, guess in zip(graphs.tolist(), totals, predicted, strict=True):
        members = members_of(tuple(graph), families.allowed, CONFIG.edge_probabilities.max_members)
        if members is None:
            continue
        more = math.exp(exact - top) - math.exp(guess - top)
        parents = np.array(members, dtype=np.int64)
        edges += more * (parents[:, None, :] >> bits[None, :, None] & 1).sum(axis=0)
        mass += more * len(members)
    return np.clip(edges / mass, 0.0, 1.0)
