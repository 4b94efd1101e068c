"""Joint distributions of the latents: one probability per state, or a Bayesian network.

Free conditional tables have many parameters, which ordered levels seldom need. The complexity of a
table is the smallest description length (loss of log-likelihood plus a cost per parameter) of the
free table and two log-linear ones: *additive*, in which each parent shifts the log odds of each
level, and *linear*, in which it shifts all adjacent-category log odds by one parameter per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.exceptions import DataError, GraphError
from hidag.latent.junction_tree import Factor, JunctionTree, elimination_order, max_clique_size
from hidag.latent.state_space import StateSpace
from hidag.views import Content, View

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
#: The parents of every latent of a graph.
Parents = tuple[tuple[int, ...], ...]
#: Skeleton and v-structures: see :func:`markov_class`.
Class = tuple[frozenset[frozenset[int]], frozenset[tuple[frozenset[int], int]]]

#: Counts below this are treated as zero: dividing by them would overflow.
NEGLIGIBLE_COUNT = 1e-200
#: Log weight of an impossible cell; finite, so that zero times it is zero.
IMPOSSIBLE = -1e300


@runtime_checkable
class LatentLaw(Protocol):
    """Interface of the joint distributions of the latents."""

    @property
    def space(self) -> StateSpace:
        """The state space."""

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Probability of every joint state, shape (n_states,); only when states can be listed."""

    def marginals(self) -> NDArray[np.float64]:
        """Return the level probabilities of each latent, shape (K, max levels), padded by zeros."""

    def sample(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Return ``n_samples`` draws of the latents, shape (n_samples, K)."""

    def table(self, names: Sequence[str] = ()) -> Content:
        """Return the joint states, or the margins of many, with their probabilities."""


def _frozen(values: NDArray[np.float64]) -> NDArray[np.float64]:
    out = np.array(values, dtype=np.float64)
    out.setflags(write=False)
    return out


#: Laws with more joint states are shown by their margins.
_MAX_SHOWN_STATES = 1 << 12


class _ShownLaw(View):
    """How laws are shown: by their states, or if these are many by their margins."""

    def table(self: Any, names: Sequence[str] = ()) -> Content:
        """Return the joint states with their probabilities, the most probable first.

        With more than 4,096 states, the probability of each latent's levels; ``names`` are those
        of the latents, by default Z1, Z2, ...
        """
        latents = tuple(names) or tuple(f"Z{k + 1}" for k in range(self.space.n_latents))
        if self.space.n_states > _MAX_SHOWN_STATES:
            margins, levels = self.marginals(), self.space.levels
            cells = [(k, u) for k, m in enumerate(levels) for u in range(m)]
            columns = ("latent", "level", "probability")
            return columns, [(latents[k], u, float(margins[k, u])) for k, u in cells]
        p = np.asarray(self.probabilities)
        states = self.space.states()
        order = np.argsort(-p, kind="stable").tolist()
        return (*latents, "probability"), [(*states[s].tolist(), float(p[s])) for s in order]


@dataclass(frozen=True, repr=False)
class SaturatedLaw(
    _ShownLaw,
    title="levels {0.space.levels}, {0.space.n_states} joint states",
    frames={"law": "table"},
):
    """One free probability per joint state (the paper's p)."""

    space: StateSpace
    probabilities: NDArray[np.float64]  # (n_states,)

    def __post_init__(self) -> None:
        p = _frozen(self.probabilities)
        if p.shape != (self.space.n_states,):
            size = {"n_latents": self.space.n_latents, "n_states": self.space.n_states}
            sentence = "{n_latents} latents have {n_states} joint states, got shape {shape}"
            raise DataError("wrong-shape", sentence, size, shape=p.shape)
        if not np.all(p >= 0) or abs(float(p.sum()) - 1.0) > 1e-8:
            sentence = "probabilities must be >= 0 and sum to 1, they sum to {total:.6g}"
            raise DataError("not-a-distribution", sentence, total=p.sum())
        object.__setattr__(self, "probabilities", p)

    def marginals(self) -> NDArray[np.float64]:
        """Return the level probabilities of each latent, shape (K, max levels), padded by zeros."""
        table = self.probabilities.reshape(self.space.levels)
        out = np.zeros((self.space.n_latents, max(self.space.levels)))
        for k, m in enumerate(self.space.levels):
            others = tuple(a for a in range(self.space.n_latents) if a != k)
            out[k, :m] = table.sum(axis=others)
        return out

    def sample(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Return ``n_samples`` draws of the latents, shape (n_samples, K)."""
        p = self.probabilities / self.probabilities.sum()
        drawn = rng.choice(self.space.n_states, size=n_samples, p=p)
        return np.stack(np.unravel_index(drawn, self.space.levels), axis=1).astype(np.uint8)


@dataclass(frozen=True, repr=False)
class NetworkLaw(
    _ShownLaw, title="levels {0.space.levels}, parents {0.parents}", frames={"law": "table"}
):
    """A directed acyclic graph with one conditional table per latent."""

    space: StateSpace
    parents: Parents  # ``parents[k]`` in the order in which they index ``tables[k]``
    # ``tables[k]`` has shape (levels of the parents..., levels[k]); the last axis sums to 1
    tables: tuple[NDArray[np.float64], ...]

    def __post_init__(self) -> None:
        levels = self.space.levels
        if len(self.parents) != len(levels) or len(self.tables) != len(levels):
            sentence = (
                "{n} latents need as many parent sets and tables, got {n_sets} and {n_tables}"
            )
            sizes = {"n": len(levels), "n_sets": len(self.parents), "n_tables": len(self.tables)}
            raise GraphError("wrong-shape", sentence, sizes)
        object.__setattr__(self, "tables", tuple(_frozen(t) for t in self.tables))
        for k, table in enumerate(self.tables):
            shape = (*(levels[a] for a in self.parents[k]), levels[k])
            if table.shape != shape:
                raise GraphError(
                    "wrong-shape",
                    "table of latent {k} must have shape {expected}, got {shape}",
                    {"k": k, "expected": shape, "shape": table.shape},
                )
            # np.allclose would take a tenth of the time of a sampled fit. NaN must fail.
            if not (table.min() >= 0 and np.abs(table.sum(axis=-1) - 1.0).max() <= 2e-8):
                sentence = "table of latent {k} has a row that is not a distribution"
                raise GraphError("not-a-distribution", sentence, k=k)
        self.order()

    def order(self) -> tuple[int, ...]:
        """Return the latents, parents before children."""
        done: list[int] = []
        while len(done) < len(self.parents):
            placed = set(done)
            ready = [k for k, pa in enumerate(self.parents) if k not in placed and placed >= {*pa}]
            if not ready:
                raise GraphError("cycle", "the parents of the latent network form a cycle")
            done.extend(ready)
        return tuple(done)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Probability of every joint state, shape (n_states,); only when states can be listed."""
        states = self.space.states()
        out = np.ones(len(states))
        for k, pa in enumerate(self.parents):
            out *= self.tables[k][tuple(states[:, a] for a in (*pa, k))]
        return out

    def sample(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Return ``n_samples`` draws of the latents, shape (n_samples, K)."""
        out = np.zeros((n_samples, self.space.n_latents), dtype=np.uint8)
        for k in self.order():
            rows = self.tables[k][tuple(out[:, a] for a in self.parents[k])]
            cumulative = np.cumsum(np.broadcast_to(rows, (n_samples, rows.shape[-1])), axis=1)
            # The last level takes the rest.
            out[:, k] = (rng.random(n_samples)[:, None] >= cumulative[:, :-1]).sum(axis=1)
        return out

    def relabelled(
        self, order: NDArray[np.integer], levels: Sequence[NDArray[np.integer]]
    ) -> NetworkLaw:
        """Return the network with latent ``order[k]`` at k; ``levels[k][v]`` is its old level."""
        place = {int(old): k for k, old in enumerate(order)}
        parents = tuple(tuple(place[a] for a in self.parents[old]) for old in order)
        tables = tuple(
            self.tables[old][np.ix_(*(levels[a] for a in (*parents[k], k)))]
            for k, old in enumerate(order)
        )
        space = StateSpace(tuple(self.space.levels[old] for old in order))
        return NetworkLaw(space, parents, tables)

    def marginals(self) -> NDArray[np.float64]:
        """Return the latents' level probabilities, shape (K, max levels), padded by zeros.

        Exact, or averaged over draws with a fixed seed (error about .001) with a large treewidth.
        """
        if self.space.n_states <= CONFIG.law.few_states:
            return SaturatedLaw(self.space, self.probabilities).marginals()
        out = np.zeros((self.space.n_latents, max(self.space.levels)))
        scopes = [(*causes, k) for k, causes in enumerate(self.parents)]
        steps = elimination_order(self.space.n_latents, scopes)
        if max_clique_size(steps, self.space.levels) <= CONFIG.law.largest_clique:
            tree = JunctionTree.of(list(map(Factor, scopes, self.tables)), steps)
            for k, m in enumerate(self.space.levels):
                out[k, :m] = tree.marginal((k,))
            return out
        if self.space.listable:
            return SaturatedLaw(self.space, self.probabilities).marginals()
        drawn = self.sample(CONFIG.law.n_marginal_draws, np.random.default_rng(0))
        for k, m in enumerate(self.space.levels):
            rows = self.tables[k][tuple(drawn[:, a] for a in self.parents[k])]
            out[k, :m] = rows.reshape(-1, m).mean(axis=0)
        return out


def _conditional(cube: Array, k: int, parents: tuple[int, ...]) -> Array:
    """Return P(k | parents) from counts; axes of other latents have length 1."""
    others = tuple(a for a in range(cube.ndim) if a != k and a not in parents)
    joint = cube.sum(axis=others, keepdims=True)
    given = joint.sum(axis=k, keepdims=True)
    # A parent configuration without counts gets a uniform distribution.
    occurs = given > NEGLIGIBLE_COUNT
    return np.asarray(np.where(occurs, joint / np.where(occurs, given, 1.0), 1.0 / cube.shape[k]))


def factorise_counts(counts: Array, parents: Parents, space: StateSpace) -> Array:
    """Return the maximum likelihood distribution over a graph given counts, both shape (S,).

    The law of nuisances is given, and they have no entry in ``parents``.
    """
    if space.n_nuisances:
        others = factorise_counts(space.without_nuisances(counts), parents, space.real)
        return space.with_nuisances(others)
    cube = np.asarray(counts, dtype=np.float64).reshape(space.levels)
    out = np.ones(space.levels)
    for k, causes in enumerate(parents):
        out = out * _conditional(cube, k, causes)
    flat = out.ravel()
    return np.asarray(flat / flat.sum())


def fit_network_law(counts: Array, parents: Parents, space: StateSpace) -> NetworkLaw:
    """Return the distribution of :func:`factorise_counts` as a network."""
    cube = np.asarray(counts, dtype=np.float64).reshape(space.levels)
    tables = []
    for k, causes in enumerate(parents):
        shares = _conditional(cube, k, causes)
        front = np.moveaxis(shares, (*causes, k), range(len(causes) + 1))
        tables.append(front.reshape([space.levels[a] for a in (*causes, k)]))
    return NetworkLaw(space, parents, tuple(tables))


def markov_class(parents: Parents) -> Class:
    """Return skeleton and v-structures, which determine the Markov equivalence class."""
    joined = frozenset(frozenset((a, k)) for k, causes in enumerate(parents) for a in causes)
    pairs = (
        (frozenset(pair), k) for k, causes in enumerate(parents) for pair in combinations(causes, 2)
    )
    return joined, frozenset((pair, k) for pair, k in pairs if pair not in joined)


def are_equivalent(one: Parents, other: Parents) -> bool:
    """Return whether two graphs are Markov equivalent."""
    return markov_class(one) == markov_class(other)


def n_free_probabilities(parents: Parents, space: StateSpace, possible: Bools | None = None) -> int:
    """Return the number of free probabilities; the graph contains the edges of a hierarchy."""
    total = 0
    for k, causes in enumerate(parents):
        if possible is None:
            total += int(np.prod([space.levels[a] for a in causes])) * (space.levels[k] - 1)
        else:
            total += n_free_in_table(possible_cells(possible, space, k, causes))
    return total


def is_saturated(parents: Parents, space: StateSpace, possible: Bools | None = None) -> bool:
    """Return whether the graph restricts no distribution on the possible joint states (S,)."""
    n_states = space.n_states if possible is None else int(possible.sum())
    return n_free_probabilities(parents, space, possible) == n_states - 1


def possible_cells(possible: Bools, space: StateSpace, k: int, causes: tuple[int, ...]) -> Bools:
    """Return the possible cells (q, M) of a latent's table, given possible states (S,)."""
    return possible_margin(possible, space, (*causes, k)).reshape(-1, space.levels[k])


def possible_margin(possible: Bools, space: StateSpace, latents: Sequence[int]) -> Bools:
    """Return the joint states of some latents that possible states (S,) allow, one axis each."""
    out = np.zeros(tuple(space.levels[k] for k in latents), dtype=np.bool_)
    states = np.argwhere(possible.reshape(space.levels))
    out[tuple(states[:, list(latents)].T)] = True
    return out


def n_free_in_table(cells: Bools) -> int:
    """Return the number of free probabilities of a conditional table with possible cells (q, M)."""
    # A parent configuration that cannot occur has no distribution.
    return int(np.maximum(cells.sum(axis=1) - 1, 0).sum())


def free_log_likelihood(table: Array) -> float:
    """Return the log-likelihood of counts (q, M) under the relative frequencies of each row."""
    total = table.sum(axis=1, keepdims=True)
    positive = table > 0
    shares = np.where(positive, table, 1.0) / np.where(total > 0, total, 1.0)
    return float((table * np.log(np.where(positive, shares, 1.0))).sum())


def table_complexity(
    table: Array, parent_levels: Sequence[int], cost: float, possible: Bools | None = None
) -> float:
    """Return the description length of a conditional table, in units of log-likelihood.

    ``table`` (q, M) counts levels by parents' levels, the last parent fastest; ``cost`` is that of
    one parameter; those of cells that are not ``possible`` cost nothing.
    """
    cells = np.ones(table.shape, dtype=bool) if possible is None else possible
    length = float(cost * n_free_in_table(cells))
    if len(parent_levels) == 0 or table.size > CONFIG.law.max_log_linear_cells:
        return length
    occurs = table.sum(axis=1) > 0
    counts = table[occurs]
    best = free_log_likelihood(counts)
    # With one parent the additive table is the free one.
    for features in _table_features(parent_levels, table.shape[1])[: len(parent_levels)]:
        n_parameters = features.shape[2] if possible is None else _rank(features, possible)
        if cost * n_parameters < length:
            allowed = None if possible is None else possible[occurs]
            reached = _maximum_log_likelihood(counts, features[occurs], allowed)
            length = min(length, float(best - reached + cost * n_parameters))
    return length


def network_complexity(
    counts: Array,
    parents: Parents,
    space: StateSpace,
    orders: Sequence[NDArray[np.intp]],
    cost: float,
    possible: Bools | None = None,
) -> float:
    """Return the description length of a network, in units of log-likelihood.

    ``counts`` (S,) are of joint states, ``orders`` each latent's levels from low to high.
    """
    if max(space.levels) == 2:
        return float(cost * n_free_probabilities(parents, space, possible))
    if possible is not None:
        possible = possible.reshape(space.levels)[np.ix_(*orders)].ravel()
    cube = np.asarray(counts, dtype=np.float64).reshape(space.levels)[np.ix_(*orders)]
    total = 0.0
    for k, causes in enumerate(parents):
        others = tuple(a for a in range(cube.ndim) if a != k and a not in causes)
        kept = sorted((*causes, k))
        small = np.transpose(cube.sum(axis=others), [kept.index(a) for a in (*causes, k)])
        of_parents = [space.levels[a] for a in causes]
        cells = None if possible is None else possible_cells(possible, space, k, causes)
        table = small.reshape(-1, space.levels[k])
        total += table_complexity(table, of_parents, cost, cells)
    return total


def _table_features(parent_levels: Sequence[int], n_levels: int) -> list[Array]:
    """Return linear and additive effects on the log odds of levels, (q, M, n), own levels first."""
    places = np.indices(tuple(parent_levels)).reshape(len(parent_levels), -1).T
    along = places / (np.array(parent_levels) - 1.0)
    linear = along[:, None, :] * np.linspace(0.0, 1.0, n_levels)[None, :, None]
    reached = [places[:, [a]] == np.arange(1, m) for a, m in enumerate(parent_levels)]
    of_parents = np.hstack(reached).astype(np.float64)
    each = of_parents[:, None, :, None] * np.eye(n_levels)[None, :, None, 1:]
    additive = each.reshape(len(places), n_levels, -1)
    own = np.broadcast_to(np.eye(n_levels)[None, :, 1:], (len(places), n_levels, n_levels - 1))
    return [np.concatenate([own, design], axis=2) for design in (linear, additive)]


def _rank(features: Array, possible: Bools) -> int:
    """Return the number of parameters that the possible cells (q, M) identify."""
    first = possible.argmax(axis=1)
    # A constant within a row does not change its probabilities.
    against = features - features[np.arange(len(features)), first][:, None, :]
    return int(np.linalg.matrix_rank(against[possible]))


def _maximum_log_likelihood(counts: Array, features: Array, possible: Bools | None = None) -> float:
    """Return the maximum log-likelihood of counts (q, M) given features (q, M, n), by Newton."""
    n_rows, n_levels, _ = features.shape
    features = features.reshape(n_rows * n_levels, -1)
    totals = counts.sum(axis=1)
    wanted = counts.ravel() @ features
    coefficients = np.zeros(features.shape[1])
    margin = np.log(np.maximum(counts.sum(axis=0), 0.5))
    coefficients[: n_levels - 1] = margin[1:] - margin[0]

    def shares(at: Array) -> tuple[Array, float]:
        logs = (features @ at).reshape(n_rows, n_levels)
        if possible is not None:
            logs = np.where(possible, logs, IMPOSSIBLE)
        logs -= logs.max(axis=1, keepdims=True)
        weights = np.exp(logs)
        mass = weights.sum(axis=1, keepdims=True)
        value = float((counts * logs).sum() - totals @ np.log(mass[:, 0]))
        return weights / mass, value

    expected, value = shares(coefficients)
    for _ in range(CONFIG.law.newton_steps):
        weights = totals[:, None] * expected
        gradient = wanted - weights.ravel() @ features
        means = (expected[:, :, None] * features.reshape(n_rows, n_levels, -1)).sum(axis=1)
        curvature = features.T @ (weights.ravel()[:, None] * features)
        curvature -= means.T @ (totals[:, None] * means)
        diagonal = np.arange(len(curvature))
        curvature[diagonal, diagonal] += CONFIG.law.ridge * max(float(np.trace(curvature)), 1.0)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        moved, found = shares(coefficients + step)
        while found < value and size > CONFIG.law.smallest_step:
            size *= 0.5
            moved, found = shares(coefficients + size * step)
        gain = found - value
        if gain <= 0:
            break
        coefficients = coefficients + size * step
        expected, value = moved, found
        if gain < CONFIG.law.smallest_gain:
            break
    return value
