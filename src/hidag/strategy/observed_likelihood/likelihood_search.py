"""Search of the graph among latents by observed-data likelihood, with the items fixed.

Counts expected under a fitted law have one effective sample size for all pairs of latents. If items
are weakly informative, the information differs from pair to pair, and a search on counts finds
false edges and misses true ones. A greedy search therefore continues from that graph, adding,
dropping or reversing one edge at a time while the Bayesian information criterion of the *observed*
data improves. The law over each compared graph is fitted by EM; score and Wald statistics of single
changes select the graphs to fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.em.e_step import run_law_e_step
from hidag.em.em import LawEStep, fit_law
from hidag.em.posterior import PosteriorBlocks
from hidag.latent.laws import (
    Class,
    Parents,
    factorise_counts,
    markov_class,
    n_free_probabilities,
    possible_cells,
)
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.structure.graphs import CPDAG
from hidag.structure.knowledge import ADJACENT, FORBIDDEN
from hidag.structure.mixed_graphs import find_cycle, parents_to_adjacency

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ObservedFit:
    """Data and fixed items, for comparing laws by observed-data likelihood."""

    data: WorkingData
    parameters: MeasurementParameters  # On the working scale.
    space: StateSpace
    law: Array  # Starting point of laws over a graph, shape (S,).
    n_threads: int = 1
    # Joint states that a hierarchy allows, the only ones with mass in ``law``; None for all, shape
    # (S,).
    possible: NDArray[np.bool_] | None = None

    def law_under(self, graph: CPDAG) -> tuple[Array, float]:
        """Return the best law over the graph and its log-likelihood."""
        return self.law_over(graph.to_dag().parents, self.law)

    def law_over(self, parents: Parents, begin: Array) -> tuple[Array, float]:
        """Return the best law over a graph by EM from another law, and its log-likelihood."""
        law_step = partial(factorise_counts, parents=parents, space=self.space)
        return fit_law(
            self._run,
            law_step(begin),
            law_step,
            tolerance=CONFIG.likelihood_search.law_tolerance,
            max_steps=CONFIG.likelihood_search.max_law_steps,
        )

    @property
    def wide(self) -> StateSpace:
        """The state space with nuisances, over which the items are defined."""
        return self.space.widened(self.parameters.terms.levels)

    def _run(self, law: Array) -> tuple[Array, float]:
        """Return expected counts and log-likelihood, nuisances summed out."""
        counts, value = self._items.run(self.wide.with_nuisances(law))
        return self.wide.without_nuisances(counts), value

    @cached_property
    def _items(self) -> LawEStep:
        features = self.parameters.terms.features(self.wide.states())
        return LawEStep(self.parameters, self.data, features, self.n_threads)

    def work(self) -> float:
        """Return the approximate number of multiplications of an E-step."""
        copies = prod(self.parameters.terms.levels[self.space.n_latents :])
        return float(self.data.n_samples) * self.data.n_items * self.space.n_states * copies


Pair = tuple[int, int]


@dataclass(frozen=True)
class SingleChanges:
    """Single-edge changes of a graph that prior knowledge allows."""

    rules: NDArray[np.uint8] | None = None  # Constraints of the prior knowledge, shape (K, K).

    def members(self, parents: Parents) -> list[Parents]:
        """Return graphs of the same equivalence class, the given one first."""
        out = [parents]
        for graph in out:
            for a, k in edges_of(graph):
                if (
                    set(graph[k]) - {a} != set(graph[a])
                    or len(out) >= CONFIG.likelihood_search.most_members
                ):
                    continue
                other = self.turned(graph, a, k)
                if other is not None and other not in out:
                    out.append(other)
        return out

    def joined(self, parents: Parents, cause: int, effect: int) -> Parents | None:
        """Return the graph with one more edge; None if that is not allowed."""
        if self.rules is not None and self.rules[cause, effect] & FORBIDDEN:
            return None
        out = _replaced(parents, effect, {*parents[effect], cause})
        return out if find_cycle(parents_to_adjacency(out)) is None else None

    def parted(self, parents: Parents, cause: int, effect: int) -> Parents | None:
        """Return the graph without an edge; None if the edge is required."""
        if self.rules is not None and self.rules[cause, effect] & ADJACENT:
            return None
        return _without(parents, cause, effect)

    def turned(self, parents: Parents, cause: int, effect: int) -> Parents | None:
        """Return the graph with an edge reversed; None if that is not allowed."""
        return self.joined(_without(parents, cause, effect), effect, cause)

    def all_turned(self, parents: Parents) -> Iterator[Parents]:
        """Yield the graphs with one edge of a member of the class reversed."""
        for graph in self.members(parents):
            for a, k in edges_of(graph):
                other = self.turned(graph, a, k)
                if other is not None:
                    yield other


def edges_of(parents: Parents) -> list[Pair]:
    """Return the edges of a graph, each as cause and effect."""
    return [(a, k) for k, causes in enumerate(parents) for a in causes]


def _without(parents: Parents, cause: int, effect: int) -> Parents:
    return _replaced(parents, effect, set(parents[effect]) - {cause})


def _replaced(parents: Parents, k: int, causes: set[int]) -> Parents:
    """Return the graph with other parents of one latent."""
    return (*parents[:k], tuple(sorted(causes)), *parents[k + 1 :])


# Approximate changes of the observed data's likelihood by single edges


@dataclass(frozen=True)
class MoveEstimates:
    """Approximate change in log-likelihood by single-edge changes."""

    # Gain from an edge between two latents that are not adjacent, the smaller number first.
    gains: dict[Pair, float]
    losses: dict[Pair, float]  # Loss from removing an edge.
    parents: Parents  # The graph that is changed.
    expected: Array  # Expected counts of the joint states, shape (2, ..., 2).

    def loss(self, parents: Parents, cause: int, effect: int) -> float:
        """Return the approximate loss from removing an edge of a graph with the same law.

        If the effect has the parents of the graph that was estimated, it is known. Otherwise it is
        the loss if the latents were observed, times the share that observed data show of it.
        """
        if parents[effect] == self.parents[effect]:
            return self.losses[cause, effect]
        return self._loss_if_observed(parents, cause, effect) * self._share

    @cached_property
    def _share(self) -> float:
        """The mean ratio of losses to those if the latents were observed."""
        observed = sum(self._loss_if_observed(self.parents, *edge) for edge in self.losses)
        return sum(self.losses.values()) / observed if observed > 0 else 0.0

    def _loss_if_observed(self, parents: Parents, cause: int, effect: int) -> float:
        """Return the loss from removing an edge if the latents were observed."""
        others = tuple(a for a in parents[effect] if a != cause)
        keep = {cause, effect, *others}
        away = tuple(a for a in range(self.expected.ndim) if a not in keep)
        joint = self.expected.sum(axis=away, keepdims=True)

        def entropy(counts: Array) -> float:
            return float(-xlogy(counts, counts).sum())

        without_cause = joint.sum(axis=cause, keepdims=True)
        without_effect = joint.sum(axis=effect, keepdims=True)
        neither = without_cause.sum(axis=effect, keepdims=True)
        return entropy(without_cause) + entropy(without_effect) - entropy(joint) - entropy(neither)


def move_estimates(observed: ObservedFit, parents: Parents, law: Array) -> MoveEstimates:
    """Return approximate gains and losses of adding and dropping edges, for binary latents.

    Parameters
    ----------
    law : ndarray, shape (S,)
        The best one over the graph.
    """
    tables = _Tables.of(parents, law, observed.space.states(), observed.possible)
    joined = {frozenset((a, k)) for k, causes in enumerate(parents) for a in causes}
    n_latents = len(parents)
    apart = [
        (a, b)
        for a in range(n_latents)
        for b in range(a + 1, n_latents)
        if frozenset((a, b)) not in joined
    ]
    together = [tables.residuals[:, a] * tables.residuals[:, b] for a, b in apart]
    columns = np.column_stack([tables.scores, *together])
    total, information = _observed(observed, law, columns)
    n_own = tables.scores.shape[1]
    own = information[:n_own, :n_own] + CONFIG.likelihood_search.least_information * np.eye(n_own)
    free = np.ix_(tables.free, tables.free)
    # A probability that a hierarchy fixes has no variance.
    inverse = np.zeros((n_own, n_own))
    inverse[free] = np.linalg.inv(own[free])
    cross = information[:n_own, n_own:]
    left = np.diag(information)[n_own:] - (cross * (inverse @ cross)).sum(axis=0)
    score = total[n_own:] - cross.T @ (inverse @ total[:n_own])
    gain = 0.5 * score**2 / np.maximum(left, CONFIG.likelihood_search.least_information)
    return MoveEstimates(
        dict(zip(apart, gain.tolist(), strict=True)),
        tables.losses(parents, inverse),
        parents,
        (law * observed.data.n_counted).reshape(observed.space.levels),
    )


@dataclass(frozen=True)
class _Tables:
    """The conditional tables of a law as free numbers."""

    # P(latent = 1) in each configuration of its parents: latent by latent, the last parent changing
    # fastest, shape (F,).
    probabilities: Array
    first: list[int]  # Offset of each latent's probabilities.
    scores: Array  # Derivative of the law's logarithm in each of them, by state, shape (S, F).
    residuals: Array  # Latent minus its conditional mean, by state, shape (S, K).
    # Whether prerequisites leave the configuration possible, and both of the latent's levels, shape
    # (F,).
    occurs: NDArray[np.bool_]
    free: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        parents: Parents,
        law: Array,
        states: NDArray[np.integer],
        possible: NDArray[np.bool_] | None = None,
    ) -> _Tables:
        z = states.astype(np.float64)
        space = StateSpace.binary(len(parents))
        may_be: list[NDArray[np.bool_]] = []
        first: list[int] = []
        probabilities: list[float] = []
        scores: list[Array] = []
        means = np.empty(z.shape)
        for k, causes in enumerate(parents):
            first.append(len(probabilities))
            place = np.zeros(len(z), dtype=np.intp)
            for a in causes:
                place = 2 * place + states[:, a]
            size = 2 ** len(causes)
            occurs = np.bincount(place, law, size)
            upper = np.bincount(place, law * z[:, k], size)
            share = np.where(occurs > 0, upper / np.where(occurs > 0, occurs, 1.0), 0.5)
            share = np.clip(
                share,
                CONFIG.likelihood_search.near_certain,
                1.0 - CONFIG.likelihood_search.near_certain,
            )
            if possible is not None:
                cells = possible_cells(possible, space, k, causes)
                may_be.append(cells)
                share = np.where(cells.all(axis=1), share, cells[:, 1])
            means[:, k] = share[place]
            spread = means[:, k] * (1.0 - means[:, k])
            slope = (z[:, k] - means[:, k]) / np.where(spread > 0, spread, 1.0)
            scores += [np.where(place == c, slope, 0.0) for c in range(size)]
            probabilities += share.tolist()
        cells = np.vstack(may_be) if may_be else np.ones((len(probabilities), 2), dtype=bool)
        return cls(
            np.array(probabilities),
            first,
            np.column_stack(scores),
            z - means,
            np.asarray(cells.any(axis=1)),
            np.asarray(cells.all(axis=1)),
        )

    def losses(self, parents: Parents, inverse: Array) -> dict[Pair, float]:
        """Return half the Wald statistic of each edge: that its cause makes no difference."""
        out = {}
        for k, causes in enumerate(parents):
            for place, cause in enumerate(causes):
                bit = 1 << (len(causes) - 1 - place)
                low = np.array([c for c in range(2 ** len(causes)) if not c & bit])
                low += self.first[k]
                # No difference if one of two does not occur, or if both are fixed.
                both = self.occurs[low] & self.occurs[low + bit]
                low = low[both & (self.free[low] | self.free[low + bit])]
                contrast = np.zeros((len(low), len(self.probabilities)))
                rows = np.arange(len(low))
                contrast[rows, low] = -1.0
                contrast[rows, low + bit] = 1.0
                difference = contrast @ self.probabilities
                spread = contrast @ inverse @ contrast.T
                out[cause, k] = float(0.5 * difference @ np.linalg.solve(spread, difference))
        return out


def _observed(observed: ObservedFit, law: Array, columns: Array) -> tuple[Array, Array]:
    """Return sums over rows of expected functions of the state, and sums of their products.

    The sums are over all rows; products are taken from some thousands. ``columns`` has the
    functions' values, shape (S, q); their mean under the law is zero.
    """
    data, items = observed.data, observed.parameters
    features = np.ascontiguousarray(items.terms.features(observed.wide.states()))
    law, n_copies = observed.wide.with_nuisances(law), observed.wide.n_states // len(columns)
    columns = np.repeat(columns, n_copies, axis=0)
    counts, _ = run_law_e_step(items, law, data, features, n_threads=observed.n_threads)
    some = data.first_rows(CONFIG.information.n_rows)
    products = np.zeros((columns.shape[1],) * 2)
    for rows, means in PosteriorBlocks.of(items, law, features, some).means(columns):
        weighed = means if some.weights is None else means * some.weights[rows][:, None]
        products += means.T @ weighed
    return counts @ columns, products * (data.n_counted / some.n_counted)


def use_likelihood_search(observed: ObservedFit, ratio: float) -> bool:
    """Return whether the graph is searched by observed-data likelihood.

    Parameters
    ----------
    observed : ObservedFit
        Not with more than two levels, nor with too many rows and states.
    ratio : float
        Information ratio; the search is for low ones.
    """
    few = (
        max(observed.space.levels) == 2
        and fits_allowed(observed) >= CONFIG.likelihood_search.fewest_fits
    )
    return few and ratio < CONFIG.information.low_ratio


def fits_allowed(observed: ObservedFit) -> int:
    """Return the largest number of graphs to fit."""
    return int(
        min(
            CONFIG.likelihood_search.most_fits,
            CONFIG.likelihood_search.work_for_fits // observed.work(),
        )
    )


@dataclass(frozen=True)
class FittedGraph:
    """A graph with the best law over it."""

    parents: Parents
    law: Array  # Shape (S,).
    log_likelihood: float  # Of the observed data.
    criterion: float  # Log-likelihood minus half log N per parameter of the law.


@dataclass
class LikelihoodSearch:
    """A greedy search over graphs of binary latents."""

    observed: ObservedFit  # Its law is the starting point for the first graph.
    changes: SingleChanges = field(default_factory=SingleChanges)  # The allowed changes.
    _known: dict[Class, FittedGraph] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """Complexity per parameter of the law."""
        return 0.5 * float(np.log(max(self.observed.data.n_counted, 2.0)))

    def fitted(self, parents: Parents, begin: Array) -> FittedGraph:
        """Return the graph with the best law over it, by EM from a law of another graph."""
        which = markov_class(parents)
        if which not in self._known:
            law, value = self.observed.law_over(parents, begin)
            criterion = value - self.cost * self._n_parameters(parents)
            self._known[which] = FittedGraph(parents, law, value, criterion)
        return self._known[which]

    def best_from(self, parents: Parents) -> FittedGraph:
        """Return the graph that no single change improves, from a starting graph."""
        best = self.fitted(parents, self.observed.law)
        while len(self._known) < fits_allowed(self.observed):
            better = self._first_better(
                best, self._estimated(best), CONFIG.likelihood_search.most_tried
            )
            if better is None:
                turned = self.changes.all_turned(best.parents)
                better = self._first_better(best, turned, CONFIG.likelihood_search.most_fits)
            if better is None:
                break
            best = better
        return best

    def _first_better(
        self, best: FittedGraph, graphs: Iterator[Parents], most: int
    ) -> FittedGraph | None:
        """Return the first of some graphs that is better, or None."""
        tried = {markov_class(best.parents)}
        for parents in graphs:
            which = markov_class(parents)
            if which in tried:
                continue
            if len(tried) > most or len(self._known) >= fits_allowed(self.observed):
                break
            tried.add(which)
            found = self.fitted(parents, best.law)
            if found.criterion > best.criterion + CONFIG.likelihood_search.least_gain:
                return found
        return None

    def _estimated(self, best: FittedGraph) -> Iterator[Parents]:
        """Yield graphs with an edge more or less, the most promising first."""
        estimates = move_estimates(self.observed, best.parents, best.law)
        now = self._n_parameters(best.parents)
        moves: list[tuple[float, Parents]] = []
        for member in self.changes.members(best.parents):
            changed = [
                (self.changes.parted(member, *edge), -estimates.loss(member, *edge))
                for edge in edges_of(member)
            ]
            for (a, b), gain in estimates.gains.items():
                if gain > self.cost - CONFIG.likelihood_search.within_reach:
                    both = (self.changes.joined(member, *edge) for edge in ((a, b), (b, a)))
                    changed += [(one, gain) for one in both]
            for parents, gain in changed:
                if parents is not None:
                    more = self._n_parameters(parents) - now
                    moves.append((gain - self.cost * more, parents))
        moves.sort(key=lambda move: -move[0])
        return (
            parents for value, parents in moves if value > -CONFIG.likelihood_search.within_reach
        )

    def _n_parameters(self, parents: Parents) -> int:
        return n_free_probabilities(parents, self.observed.space, self.observed.possible)
