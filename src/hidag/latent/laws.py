"""Latent laws: the joint distribution of the latents, listed in full or given by a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError, GraphError
from hidag.latent.clique_tree import CliqueTree
from hidag.latent.elimination import elimination_order, widest_table
from hidag.latent.factors import Factor
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
