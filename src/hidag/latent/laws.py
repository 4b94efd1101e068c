"""Latent laws: the joint distribution of the latents, listed in full or given by a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import DataError, GraphError
from hidag.latent.junction_tree import CliqueTree, Factor, elimination_order, widest_table
from hidag.latent.state_space import StateSpace

#: The parents of every latent of a graph.
Parents = tuple[tuple[int, ...], ...]

#: Up to so many joint states of a network marginals are read from their list; beyond, from a tree
#: of cliques, as long as none needs a larger table than this.
FEW_STATES, LARGEST_CLIQUE = 1 << 13, 1 << 18
#: Forward draws behind the marginals of a law whose states are too many to list, and its cliques
#: too large.
N_MARGINAL_DRAWS = 100_000


@runtime_checkable
class LatentLaw(Protocol):
    """What every latent law offers."""

    @property
    def space(self) -> StateSpace:
        """The latents' state space."""
        ...

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Probability of every joint state, shape (n_states,); only when states can be listed."""
        ...

    def marginals(self) -> NDArray[np.float64]:
        """Return the latents' level probabilities, shape (K, max levels); zero past a latent's."""
        ...

    def sample(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Return ``n_samples`` draws of the latents, shape (n_samples, K)."""
        ...


def _frozen(values: NDArray[np.float64]) -> NDArray[np.float64]:
    out = np.array(values, dtype=np.float64)
    out.setflags(write=False)
    return out


@dataclass(frozen=True)
class SaturatedLaw:
    """One free probability per joint state (the paper's p).

    Attributes
    ----------
    space : StateSpace
    probabilities : ndarray, shape (n_states,)
    """

    space: StateSpace
    probabilities: NDArray[np.float64]

    def __post_init__(self) -> None:
        p = _frozen(self.probabilities)
        if p.shape != (self.space.n_states,):
            raise DataError(
                f"{self.space.n_latents} latents have {self.space.n_states} joint states, "
                f"got an array of shape {p.shape}"
            )
        if not np.all(p >= 0) or abs(float(p.sum()) - 1.0) > 1e-8:
            raise DataError(f"probabilities must be >= 0 and sum to 1, they sum to {p.sum():.6g}")
        object.__setattr__(self, "probabilities", p)

    def marginals(self) -> NDArray[np.float64]:
        """Return the latents' level probabilities, shape (K, max levels); zero past a latent's."""
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


@dataclass(frozen=True)
class NetworkLaw:
    """A directed acyclic graph with one conditional table per latent.

    Attributes
    ----------
    space : StateSpace
    parents : tuple of tuples of int
        ``parents[k]`` in the order in which they index ``tables[k]``.
    tables : tuple of ndarray
        ``tables[k]`` has shape (levels of the parents..., levels[k]); the last axis sums to 1.
    """

    space: StateSpace
    parents: Parents
    tables: tuple[NDArray[np.float64], ...]

    def __post_init__(self) -> None:
        levels = self.space.levels
        if len(self.parents) != len(levels) or len(self.tables) != len(levels):
            raise GraphError(f"{len(levels)} latents need as many parent sets and tables")
        object.__setattr__(self, "tables", tuple(_frozen(t) for t in self.tables))
        for k, table in enumerate(self.tables):
            shape = (*(levels[a] for a in self.parents[k]), levels[k])
            if table.shape != shape:
                raise GraphError(f"table of latent {k} must have shape {shape}, got {table.shape}")
            # Written out, because np.allclose took a tenth of a sampled fit; NaN must fail.
            if not (table.min() >= 0 and np.abs(table.sum(axis=-1) - 1.0).max() <= 2e-8):
                raise GraphError(f"table of latent {k} has a row that is not a distribution")
        self.order()

    def order(self) -> tuple[int, ...]:
        """Return the latents, parents before children."""
        done: list[int] = []
        placed: set[int] = set()
        while len(done) < len(self.parents):
            ready = [
                k
                for k, pa in enumerate(self.parents)
                if k not in placed and all(a in placed for a in pa)
            ]
            if not ready:
                raise GraphError("the parents of the latent network form a cycle")
            done.extend(ready)
            placed.update(ready)
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
            draw = rng.random(n_samples)
            out[:, k] = np.minimum(
                (draw[:, None] >= cumulative[:, :-1]).sum(axis=1), self.space.levels[k] - 1
            )
        return out

    def relabelled(
        self, order: NDArray[np.integer], levels: Sequence[NDArray[np.integer]]
    ) -> NetworkLaw:
        """Return the law with latent ``order[k]`` in place k, its levels taken in another order.

        Never lists the states, so that networks of a hundred latents can be relabelled too.

        Parameters
        ----------
        order : ndarray of int, shape (K,)
        levels : sequence of ndarray of int, length K
            Which old level becomes level v of the latent that lands in place k.
        """
        place = {int(old): k for k, old in enumerate(order)}
        parents = tuple(tuple(place[a] for a in self.parents[old]) for old in order)
        tables = tuple(
            self.tables[old][np.ix_(*(levels[a] for a in (*parents[k], k)))]
            for k, old in enumerate(order)
        )
        space = StateSpace(tuple(self.space.levels[old] for old in order))
        return NetworkLaw(space, parents, tables)

    def marginals(self) -> NDArray[np.float64]:
        """Return the latents' level probabilities, shape (K, max levels); zero past a latent's.

        Exact when the joint states can be listed or the graph is sparse. Otherwise each is the
        average of its conditional table over 100,000 forward draws with a fixed seed: right to
        about .001, and the same on every call.
        """
        if self.space.n_states <= FEW_STATES:
            return SaturatedLaw(self.space, self.probabilities).marginals()
        out = np.zeros((self.space.n_latents, max(self.space.levels)))
        scopes = [(*causes, k) for k, causes in enumerate(self.parents)]
        steps = elimination_order(self.space.n_latents, scopes)
        if widest_table(steps, self.space.levels) <= LARGEST_CLIQUE:
            tree = CliqueTree.of(list(map(Factor, scopes, self.tables)), steps)
            for k, m in enumerate(self.space.levels):
                out[k, :m] = tree.marginal((k,))
            return out
        if self.space.listable:
            return SaturatedLaw(self.space, self.probabilities).marginals()
        drawn = self.sample(N_MARGINAL_DRAWS, np.random.default_rng(0))
        for k, m in enumerate(self.space.levels):
            rows = self.tables[k][tuple(drawn[:, a] for a in self.parents[k])]
            out[k, :m] = rows.reshape(-1, m).mean(axis=0)
        return out


# --- Laws over a graph from counts of joint states: the families' shares, when states are

Array = NDArray[np.float64]
#: Neighbours and colliders: see :func:`class_of`.
Class = tuple[frozenset[frozenset[int]], frozenset[tuple[frozenset[int], int]]]

#: Counts below this are zero: dividing by them would overflow.
NEVER = 1e-200


def _shares(cube: Array, k: int, parents: tuple[int, ...]) -> Array:
    """Return P(k | parents) over the cube's axes; axes of other latents have length 1."""
    others = tuple(a for a in range(cube.ndim) if a != k and a not in parents)
    joint = cube.sum(axis=others, keepdims=True)
    given = joint.sum(axis=k, keepdims=True)
    # A configuration that never occurs leaves its child undecided: every level alike.
    occurs = given > NEVER
    return np.asarray(np.where(occurs, joint / np.where(occurs, given, 1.0), 1.0 / cube.shape[k]))


def factorised(counts: Array, parents: Parents, space: StateSpace) -> Array:
    """Return the most likely law over a graph given ``counts`` of states, both shape (S,)."""
    cube = np.asarray(counts, dtype=np.float64).reshape(space.levels)
    out = np.ones(space.levels)
    for k, causes in enumerate(parents):
        out = out * _shares(cube, k, causes)
    flat = out.ravel()
    return np.asarray(flat / flat.sum())


def network_of_counts(counts: Array, parents: Parents, space: StateSpace) -> NetworkLaw:
    """Return the same law as :func:`factorised` with its conditional tables."""
    cube = np.asarray(counts, dtype=np.float64).reshape(space.levels)
    tables = []
    for k, causes in enumerate(parents):
        shares = _shares(cube, k, causes)
        front = np.moveaxis(shares, (*causes, k), range(len(causes) + 1))
        tables.append(front.reshape([space.levels[a] for a in (*causes, k)]))
    return NetworkLaw(space, parents, tuple(tables))


def class_of(parents: Parents) -> Class:
    """Return what all graphs have in common over which laws are the same.

    These are the pairs of neighbours, and the pairs of causes that are none, with their effect.
    """
    joined = frozenset(frozenset((a, k)) for k, causes in enumerate(parents) for a in causes)
    pairs = (
        (frozenset(pair), k) for k, causes in enumerate(parents) for pair in combinations(causes, 2)
    )
    return joined, frozenset((pair, k) for pair, k in pairs if pair not in joined)


def equivalent(one: Parents, other: Parents) -> bool:
    """Return whether laws over two graphs are the same: same neighbours, same colliders."""
    return class_of(one) == class_of(other)


def n_free_probabilities(
    parents: Parents, space: StateSpace, possible: NDArray[np.bool_] | None = None
) -> int:
    """Return how many free probabilities a law over the graph has.

    Parameters
    ----------
    parents : tuple of tuples of int
    space : StateSpace
    possible : ndarray of bool, shape (S,), optional
        Joint states that may occur, all unless given; no other has a probability to be free. The
        steps of the hierarchy that rules them out are edges of the graph, or laws over it could not
        keep to it.
    """
    total = 0
    for k, causes in enumerate(parents):
        if possible is None:
            total += int(np.prod([space.levels[a] for a in causes])) * (space.levels[k] - 1)
        else:
            total += n_free_in_table(possible_cells(possible, space, k, causes))
    return total


def is_any_law(
    parents: Parents, space: StateSpace, possible: NDArray[np.bool_] | None = None
) -> bool:
    """Return whether a law over the graph may be anything on the joint states that may occur."""
    n_states = space.n_states if possible is None else int(possible.sum())
    return n_free_probabilities(parents, space, possible) == n_states - 1


def possible_cells(
    possible: NDArray[np.bool_], space: StateSpace, k: int, causes: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Return which cells of a latent's table some possible joint state (S,) is in, shape (q, M).

    Rows are combinations of the causes' levels, the last cause changing fastest.
    """
    return possible_among(possible, space, (*causes, k)).reshape(-1, space.levels[k])


def possible_among(
    possible: NDArray[np.bool_], space: StateSpace, latents: Sequence[int]
) -> NDArray[np.bool_]:
    """Return which joint states of some latents a possible state (S,) has, one axis per latent."""
    out = np.zeros(tuple(space.levels[k] for k in latents), dtype=np.bool_)
    states = np.argwhere(possible.reshape(space.levels))
    out[tuple(states[:, list(latents)].T)] = True
    return out


def n_free_in_table(cells: NDArray[np.bool_]) -> int:
    """Return how many free probabilities a conditional table has, of its possible cells (q, M)."""
    # A combination of the causes' levels that cannot occur has no distribution at all.
    return int(np.maximum(cells.sum(axis=1) - 1, 0).sum())
