"""Posterior probabilities of edges, from the observed-data likelihood of many graphs.

The marginal likelihood of a graph is approximated by the largest log-likelihood of the observed
data over its laws and the items' coefficients, minus the complexity of a law. Beforehand all
directed acyclic graphs with as many edges are equally likely; the density of edges is estimated.

The likelihood of the most probable classes is computed. For the other graphs it is predicted by a
sum of terms for adjacent pairs and for triples in which one latent has the other two as parents
(the characteristic imset, which members of a class share), fitted to the computed ones. The sum
over all graphs is then exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.blas import ssyrk

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.e_step import StateScores, run_law_e_step
from hidag.em.information import state_derivatives
from hidag.kernels.dag_sums import (
    families_of_imset,
    imsets,
    members_of_class,
    project_laws,
    sample_dags,
    sum_over_dags,
    sums_over_margins,
)
from hidag.latent.laws import Parents
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.strategy.observed_likelihood.likelihood_search import ObservedFit
from hidag.structure.knowledge import ADJACENT, FORBIDDEN

Array = NDArray[np.float64]
#: Parent sets as bit masks, one for each latent.
Masks = tuple[int, ...]
#: Spawn key of the random numbers in the tree of seeds, far from those of the starts.
_SEED_KEY = 1 << 21


@dataclass(frozen=True)
class GraphLikelihoods:
    """Log-likelihood of the observed data over graphs, profiled over the items' coefficients.

    Sums over rows are made once, at the law ``center``: from there the log-likelihood is quadratic
    in the probabilities of the states, because laws of graphs that are not much less likely change
    a row's likelihood by a few percent. The relative change of a law enters the second derivative
    by its projection on functions of the state: all of them if states are few, else products of at
    most three latents.
    """

    observed: ObservedFit
    center: Array  # (S,)
    slope: Array  # (S,): derivative of the log-likelihood about the probabilities
    basis: NDArray[np.float32]  # (S, F): functions of the state, orthonormal under the center
    information: NDArray[np.float32]  # (F, F): sum over rows of products of their posterior means

    @classmethod
    def of(cls, observed: ObservedFit, law: Array) -> tuple[GraphLikelihoods, float]:
        """Return the likelihoods around a law, and the share of information that items leave."""
        data, items, space = observed.data, observed.parameters, observed.space
        config = CONFIG.edge_probabilities
        # No state that is possible has probability zero.
        center = law + config.smallest_probability * observed.law
        center /= center.sum()
        wide = observed.wide
        features = np.ascontiguousarray(items.terms.features(wide.states()))
        law = wide.with_nuisances(center)
        counts, _ = run_law_e_step(items, law, data, features, n_threads=observed.n_threads)
        counts = wide.without_nuisances(counts)
        basis = _functions(space, center).astype(np.float32)
        some = data.first_rows(max(config.density_cells // len(law), 1))
        scores = StateScores.of(items.tables(features), law, some.incomplete).weights
        joint = some.extended.astype(np.float32) @ scores.astype(np.float32)
        joint -= joint.max(axis=1, keepdims=True)
        np.exp(joint, out=joint)
        joint = wide.without_nuisances(joint)
        means = joint @ basis
        means /= joint.sum(axis=1)[:, None]
        # Derivatives about the items are averaged over the law of nuisances, part of ``law``.
        weighted = np.repeat(basis, len(law) // len(center), axis=0)
        weighted *= law[:, None].astype(np.float32)
        of_items = _item_scores(items, features, some, means, weighted)
        both = np.hstack([means, of_items])
        both *= np.sqrt(some.row_weights, dtype=np.float32)[:, None]
        upper = ssyrk(np.float32(data.n_counted / some.n_counted), both.T)
        held, size = upper + np.triu(upper, 1).T, basis.shape[1]
        cross, own = held[size:, :size], held[size:, size:]
        # The rows say nothing about coefficients whose scores vanish, as where answers are certain.
        # Coefficients of items on other scales differ by orders of magnitude.
        spread = np.sqrt(own.diagonal(), dtype=np.float64)
        scale = np.divide(1.0, spread, out=np.zeros(len(own)), where=spread > 0)
        own = scale[:, None] * own * scale
        # As many coefficients as rows would explain everything by chance.
        own[np.diag_indices_from(own)] = 1.0 + len(own) / some.n_counted
        cross = scale[:, None] * cross
        profiled = (cross.T @ np.linalg.solve(own, cross)).astype(np.float32)
        information = held[:size, :size] - profiled
        slope = np.divide(counts, center, out=np.zeros(len(center)), where=center > 0)
        likelihoods = cls(observed, center, slope, basis, information)
        return likelihoods, likelihoods.share_of(held[:size, :size])

    def share_of(self, held: NDArray[np.float32]) -> float:
        """Return the share of the information about pairs if the items were known, (F, F)."""
        z = self.observed.space.states().T - (self.center @ self.observed.space.states())[:, None]
        pairs = [z[a] * z[b] * self.center for a, b in combinations(range(len(z)), 2)]
        moved = np.array(pairs, dtype=np.float32) @ self.basis
        known = (moved @ held * moved).sum(axis=1)
        return float(np.mean((moved @ self.information * moved).sum(axis=1) / known))

    def cells(self, graphs: Sequence[Masks]) -> NDArray[np.int64]:
        """Return the number of each state's cell in the table of each latent, (G, K, S)."""
        levels = self.observed.space.levels
        strides = np.zeros((len(graphs), len(levels), len(levels)), dtype=np.float32)
        for row, graph in zip(strides, graphs, strict=True):
            for k, mask in enumerate(graph):
                size = 1
                for a in (k, *(a for a in range(len(levels)) if mask >> a & 1)):
                    row[k, a] = size
                    size *= levels[a]
        return (strides @ self.observed.space.states().T.astype(np.float32)).astype(np.int64)

    def of_graphs(self, graphs: Sequence[Masks]) -> Array:
        """Return the log-likelihood of each graph with its best law, relative to the center's.

        Laws are fitted by over-relaxed EM.
        """
        cells = self.cells(graphs)
        config, em = CONFIG.edge_probabilities, CONFIG.em
        n_graphs, levels = len(cells), np.array(self.observed.space.levels)

        def project(counts: Array, chosen: NDArray[np.intp]) -> Array:
            laws = np.empty(counts.shape)
            project_laws(counts, cells[chosen], levels, laws)
            return laws

        active = np.arange(n_graphs)
        current = project(np.tile(self.observed.law, (n_graphs, 1)), active)
        plain, value = current.copy(), np.full(n_graphs, -np.inf)
        factor, relaxed = np.ones(n_graphs), np.zeros(n_graphs, dtype=bool)
        for _ in range(config.max_law_steps):
            away = current[active] - self.center
            moved = away.astype(np.float32) @ self.basis
            turned = moved @ self.information
            found = away @ self.slope - 0.5 * (moved * turned).sum(axis=1, dtype=np.float64)
            # An over-relaxed step that overshot is replaced by the plain one.
            over = relaxed[active] & (found < value[active])
            back = active[over]
            current[back], relaxed[back], factor[back] = plain[back], False, 1.0
            going = ~over & ~(found - value[active] < config.law_tolerance)
            on = active[going]
            value[active[~over]] = found[~over]
            if not len(on) and not len(back):
                break
            old = current[on]
            slope = self.slope - turned[going] @ self.basis.T
            plain[on] = step = project(old * np.maximum(slope, 0.0), on)
            both = (step > em.negligible_probability) & (old > em.negligible_probability)
            ratio = np.where(both, step / np.where(both, old, 1.0), 1.0)
            current[on] = project(step * ratio ** (factor[on, None] - 1.0), on)
            relaxed[on] = factor[on] > 1.0
            factor[on] = np.minimum(factor[on] * em.relaxation_growth, em.max_relaxation)
            active = np.sort(np.concatenate([back, on]))
        return value


@dataclass(frozen=True)
class _Families:
    """Local scores of families (a latent with its parents), as tables (K, 2^K)."""

    # log-likelihood if the latents were observed, and the log of the marginal likelihood minus it
    counted: Array
    complexity: Array
    n_parents: Array
    allowed: NDArray[np.bool_]

    @classmethod
    def of(cls, observed: ObservedFit, n_rows: float, rules: NDArray[np.uint8] | None) -> _Families:
        """Return the tables for a number of rows; families that knowledge forbids are not allowed.

        The prior of a law is Dirichlet about equal probabilities of all possible states.
        """
        space, n = observed.space, observed.space.n_latents
        masks = np.arange(1 << n)
        n_parents = np.tile((masks[:, None] >> np.arange(n) & 1).sum(axis=1), (n, 1))
        prior = np.ones(space.n_states) if observed.possible is None else 1.0 * observed.possible
        prior *= space.n_states ** (CONFIG.edge_probabilities.prior_latents / n) / prior.sum()
        sums = np.empty((2, len(masks)))
        sums_over_margins(observed.law * n_rows, prior, np.array(space.levels), sums)
        allowed = n_parents <= CONFIG.edge_probabilities.max_parents
        counted, complexity = np.empty((n, len(masks))), np.empty((n, len(masks)))
        constraints = np.zeros((n, n), dtype=np.uint8) if rules is None else rules
        for k in range(n):
            never = sum(1 << a for a in range(n) if a == k or constraints[a, k] & FORBIDDEN)
            must = sum(
                1 << a for a in range(n) if constraints[a, k] & ADJACENT and not never >> a & 1
            )
            allowed[k] &= (masks & never == 0) & (masks & must == must)
            counted[k], marginal = sums[:, masks | 1 << k] - sums[:, masks]
            complexity[k] = marginal - counted[k]
        return cls(counted, complexity, n_parents, allowed)

    def of_graphs(self, table: Array, graphs: NDArray[np.int64]) -> Array:
        """Return the sums of a table over the families of graphs (n, K)."""
        return np.asarray(table[np.arange(graphs.shape[1]), graphs].sum(axis=1))


class _Imset:
    """Adjacent pairs and triples with two parents: the coordinates of a class of graphs."""

    def __init__(self, n: int) -> None:
        self.n, self.size = n, math.comb(n, 2) + math.comb(n, 3)
        self._words = np.random.default_rng(0).integers(1 << 63, size=self.size, dtype=np.uint64)

    def of_graphs(self, graphs: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """Return the coordinates of graphs (n, K), and a number for the class of each graph."""
        out = np.zeros((len(graphs), self.size), dtype=np.uint8)
        return out, imsets(graphs, self._words, out)

    def local(self, coefficients: Array) -> Array:
        """Return the tables (K, 2^K) of families whose sums over a graph are these effects."""
        out = np.empty((self.n, 1 << self.n))
        families_of_imset(coefficients, out)
        return out


def members_of(graph: NDArray[np.int64], allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the allowed graphs (n, K) of an equivalence class; none if there are too many."""
    most = CONFIG.edge_probabilities.max_members
    found = members_of_class(graph, most)
    kept = allowed[np.arange(len(graph)), found].all(axis=1)
    return np.asarray(found[kept & (len(found) < most)])


def _item_scores(
    items: MeasurementParameters,
    features: Array,
    data: WorkingData,
    means: NDArray[np.float32],
    weighted: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return rows' derivatives about the items' coefficients, (N, number of these).

    Derivatives are functions of the state; their posterior means follow from those of an
    orthonormal basis, ``means`` (N, F). ``weighted`` (S, F) is the basis times the law.
    """
    design = np.hstack([np.ones((len(features), 1)), features])
    slopes, columns = state_derivatives(items, design).astype(np.float32), data.columns
    design = design.astype(np.float32)
    out = []
    for term in range(design.shape[1]):
        own = np.flatnonzero(items.coefficients[:, term]) if term else np.arange(items.n_items)
        place, _, within = columns.listed(own)
        functions = slopes[np.append(place, columns.n_columns + own)] * design[:, term]
        found = means @ (functions @ weighted).T
        value = data.x[:, place].astype(np.float32) * found[:, : len(place)]
        value = np.add.reduceat(value, np.flatnonzero(within == 0), axis=1) if len(own) else value
        value -= found[:, len(place) :]
        out.append(value if data.observed is None else value * data.observed[:, own])
    return np.hstack(out)


def _functions(space: StateSpace, law: Array) -> Array:
    """Return functions of the state, (S, F), orthonormal under a law."""
    if len(law) <= CONFIG.edge_probabilities.most_functions:
        return np.diag(1.0 / np.sqrt(np.maximum(law, np.finfo(np.float32).tiny)))
    states = space.states()
    steps = [(k, v) for k, m in enumerate(space.levels) for v in range(1, m)]
    reached = np.array([states[:, k] >= v for k, v in steps], dtype=np.float64)
    reached -= (reached @ law)[:, None]
    chosen = [
        one
        for size in range(4)
        for one in combinations(range(len(steps)), size)
        if len({steps[i][0] for i in one}) == size
    ]
    out = np.array([reached[list(one)].prod(axis=0) for one in chosen])
    moments = (out * law) @ out.T
    moments[np.diag_indices_from(moments)] += np.finfo(np.float32).eps
    return np.asarray(solve_triangular(np.linalg.cholesky(moments), out, lower=True).T)


def edge_probabilities(
    observed: ObservedFit,
    parents: Parents,
    law: Array,
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
    parents : tuple of tuple of int
        An allowed graph, the best one known.
    law : ndarray, shape (S,)
        The best law over it.
    ratio : float
        Information ratio.
    n_graphs : int
        Largest number of classes whose likelihood is computed.
    rules : ndarray of uint8, shape (K, K), optional
        Constraints of prior knowledge.
    """
    config = CONFIG.edge_probabilities
    likelihoods, share = GraphLikelihoods.of(observed, law)
    n, items = observed.space.n_latents, observed.parameters
    n_rows = share * ratio * observed.data.n_counted
    # Coefficients of two latents' items take as many rows.
    evidence = n_rows / (n_rows + 2.0 * (items.n_items + np.count_nonzero(items.loadings)) / n)
    families = _Families.of(observed, evidence * n_rows, rules)
    imset, sequence = _Imset(n), np.random.SeedSequence(seed, spawn_key=(_SEED_KEY,))
    rng, density = np.random.default_rng(sequence), 0.0
    start = [sum(1 << a for a in causes) for causes in parents]
    graphs, values = np.array([start], dtype=np.int64), np.zeros(0)
    members: list[NDArray[np.int64]] = []
    others, edges = np.empty((n, n)), np.full((n, n), np.inf)
    for _ in range(1 + -(-n_graphs // config.graphs_per_round)):
        new = graphs[len(values) :]
        if len(new):
            found = likelihoods.of_graphs([tuple(g) for g in new.tolist()])
            values = np.append(values, evidence * found)
            members += [members_of(graph, families.allowed) for graph in new]
        fixed = np.where(
            families.allowed, families.complexity + density * families.n_parents, -np.inf
        )
        coordinates, known = imset.of_graphs(graphs)
        totals = values + families.of_graphs(fixed, graphs)
        noise = config.noise * (1.0 + totals.max() - totals)
        missing = values - families.of_graphs(families.counted, graphs)
        constant, coefficients = _ridge(coordinates.astype(np.float64), missing, noise)
        scores = fixed + families.counted + imset.local(coefficients)
        log_sum = sum_over_dags(scores, others)
        predicted = np.exp(families.of_graphs(scores, graphs) - log_sum)
        before = edges
        edges = _sum_up(members, np.exp(totals - constant - log_sum), predicted, others)
        change = abs(edges - before).max()
        if change < config.least_change * min(1.0, config.quick_graphs / n_graphs):
            break
        density = _edge_density(n, float(edges.sum()))
        pool = _draw_classes(scores, graphs[totals.argmax()], imset, rng)
        pool = pool[~np.isin(imset.of_graphs(pool)[1], known)]
        take = min(config.graphs_per_round, n_graphs - len(graphs))
        chosen = np.argsort(-families.of_graphs(scores, pool), kind="stable")[:take]
        graphs = np.vstack([graphs, pool[chosen]])
    return edges


def _edge_density(n: int, n_edges: float) -> float:
    """Return the log of the prior weight of an edge, given the expected number of edges.

    It has a normal prior with mean zero.
    """
    weights, log_sums = _log_sums_of_prior(n)
    prior = -0.5 * (weights / CONFIG.edge_probabilities.density_sd) ** 2
    return float(weights[np.argmax(n_edges * weights - log_sums + prior)])


@lru_cache(maxsize=16)
def _log_sums_of_prior(n: int) -> tuple[Array, Array]:
    """Return log weights of an edge, and the log of the sum over graphs of their edges' weights.

    Graphs are counted by their sources (Robinson 1973).
    """
    logs = np.linspace(-6.0, 3.0, 181)
    sums, odds = [np.ones(len(logs))], 1.0 + np.exp(logs)
    for m in range(1, n + 1):
        total = np.zeros(len(logs))
        for k in range(1, m + 1):
            total -= (-1.0) ** k * math.comb(m, k) * odds ** (k * (m - k)) * sums[m - k]
        sums.append(total)
    return logs, np.log(sums[n])


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
    _, first = np.unique(imset.of_graphs(drawn)[1], return_index=True)
    return drawn[first]


def _ridge(x: Array, y: Array, noise: Array) -> tuple[float, Array]:
    """Return the constant and the coefficients of a regression with normal priors."""
    design = np.hstack([np.ones((len(x), 1)), x]) / noise[:, None]
    precision = np.full(design.shape[1], CONFIG.edge_probabilities.prior_precision)
    precision[0] = 1e-8
    found = np.linalg.solve(design.T @ design + np.diag(precision), design.T @ (y / noise))
    return float(found[0]), np.asarray(found[1:], dtype=np.float64)


def _sum_up(
    members: list[NDArray[np.int64]], exact: Array, predicted: Array, others: Array
) -> Array:
    """Return the probabilities from the weights of all graphs, exact for the members of classes.

    ``others`` (K, K) are the shares of all graphs' predicted weights with each edge. A direction
    that differs between members of a class has one half, whatever their numbers: in nine of ten
    members of a chain of ten latents the edge at its end points outwards.
    """
    n, mass = len(others), 1.0
    edges, rest, bits = np.zeros((n, n)), others.copy(), np.arange(n)
    for graphs, computed, replaced in zip(members, exact, predicted, strict=True):
        if len(graphs):
            counts = (graphs[:, None, :] >> bits[None, :, None] & 1).sum(axis=0)
            mass += (computed - replaced) * len(graphs)
            edges += computed * _undirected(counts.astype(np.float64))
            rest -= replaced * counts
    edges += _undirected(np.maximum(rest, 0.0))
    return np.asarray(np.clip(edges / mass, 0.0, 1.0))


def _undirected(weights: Array) -> Array:
    """Return the weights of edges with the same for both directions if both occur."""
    both = (weights > 0.0) & (weights.T > 0.0)
    return np.where(both, 0.5 * (weights + weights.T), weights)
