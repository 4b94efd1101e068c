"""What the latents do given what is known: exact wherever tables stay small, else by draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import DataError
from hidag.latent.junction_tree import (
    CliqueTree,
    Factor,
    elimination_order,
    indicator,
    widest_table,
)
from hidag.latent.laws import NEVER, LatentLaw, NetworkLaw, Parents
from hidag.results import FitResult, as_result
from hidag.structure.graphs import DAG

if TYPE_CHECKING:
    from hidag.estimator import DCRL


Array = NDArray[np.float64]

#: Up to so many joint states they are listed: that is quicker than anything clever.
FEW_STATES = 1 << 11
#: Larger tables are not made; the law is drawn from instead.
LARGEST_TABLE = 1 << 21
N_DRAWS = 200_000


class Beliefs(Protocol):
    """The latents' joint law, given what is known."""

    def marginal(self, variables: Sequence[int]) -> Array:
        """Return the joint law of some latents, one axis for each in the given order."""
        ...


@dataclass(frozen=True)
class ListedLaw:
    """All joint states with their probabilities.

    Attributes
    ----------
    table : ndarray, one axis per latent
        It sums to 1.
    """

    table: Array

    @classmethod
    def of(cls, factors: Sequence[Factor], levels: tuple[int, ...]) -> ListedLaw:
        """Return the law that is proportional to the product of factors."""
        table = np.ones(levels)
        for factor in factors:
            order = sorted(range(len(factor.variables)), key=factor.variables.__getitem__)
            shape = [1] * len(levels)
            for v in factor.variables:
                shape[v] = levels[v]
            table *= factor.table.transpose(order).reshape(shape)
        total = float(table.sum())
        if not total > 0:
            raise DataError("what is given has probability zero under the fitted law")
        return cls(table / total)

    def marginal(self, variables: Sequence[int]) -> Array:
        """Return the joint law of some latents, one axis for each in the given order."""
        wanted = tuple(variables)
        summed = self.table.sum(axis=tuple(v for v in range(self.table.ndim) if v not in wanted))
        if len(wanted) < 2:
            return np.asarray(summed)
        return np.asarray(np.transpose(summed, np.argsort(np.argsort(wanted))))


@dataclass(frozen=True)
class DrawnLaw:
    """Weighted draws of all latents.

    Attributes
    ----------
    states : ndarray of uint8, shape (n, K)
    weights : ndarray, shape (n,)
        They sum to 1.
    levels : tuple of int
    """

    states: NDArray[np.uint8]
    weights: Array
    levels: tuple[int, ...]

    @classmethod
    def of(cls, law: NetworkLaw, likelihoods: Sequence[Factor], seed: int = 0) -> DrawnLaw:
        """Return draws of the law, weighted by the likelihoods; the same for the same seed."""
        states = law.sample(N_DRAWS, np.random.default_rng(seed))
        weights = np.ones(len(states))
        for factor in likelihoods:
            weights *= factor.table[tuple(states[:, v] for v in factor.variables)]
        total = float(weights.sum())
        if not total > 0:
            raise DataError("what is given did not occur in any of the draws of the fitted law")
        return cls(states, weights / total, law.space.levels)

    def marginal(self, variables: Sequence[int]) -> Array:
        """Return the joint law of some latents, one axis for each in the given order."""
        shape = tuple(self.levels[v] for v in variables)
        if not shape:
            return np.array(1.0)
        index = np.ravel_multi_index(tuple(self.states[:, v] for v in variables), shape)
        size = int(np.prod(shape))
        shares = np.bincount(index, self.weights, minlength=size)
        return np.asarray(shares, dtype=np.float64).reshape(shape)


def factors_of(law: LatentLaw) -> list[Factor]:
    """Return the factors whose product is the law: its tables, or all its probabilities."""
    if isinstance(law, NetworkLaw):
        pairs = zip(law.parents, law.tables, strict=True)
        return [Factor((*causes, k), table) for k, (causes, table) in enumerate(pairs)]
    everyone = tuple(range(law.space.n_latents))
    return [Factor(everyone, np.asarray(law.probabilities).reshape(law.space.levels))]


def beliefs(law: LatentLaw, likelihoods: Sequence[Factor] = ()) -> Beliefs:
    """Return the law given what is known, ready for any marginal.

    Exact unless the graph is so dense that a table would have more than 2^21 cells; then 200,000
    draws with a fixed seed stand for the law (a :class:`DrawnLaw`).

    Parameters
    ----------
    law : LatentLaw
    likelihoods : sequence of Factor
        How probable what is known is in the states of some latents.
    """
    factors = [*factors_of(law), *likelihoods]
    if law.space.n_states <= FEW_STATES:
        return ListedLaw.of(factors, law.space.levels)
    steps = elimination_order(law.space.n_latents, [f.variables for f in factors])
    if widest_table(steps, law.space.levels) > LARGEST_TABLE and isinstance(law, NetworkLaw):
        return DrawnLaw.of(law, likelihoods)
    return CliqueTree.of(factors, steps)


def law_over(law: LatentLaw, dag: DAG, known: Beliefs | None = None) -> NetworkLaw:
    """Return the law as a network over a DAG: each latent's table given its parents there.

    The same law when it factorises over the DAG, as over every member of its Markov equivalence
    class; otherwise the law over the DAG that is nearest to it.

    Parameters
    ----------
    law : LatentLaw
    dag : DAG
    known : Beliefs, optional
        What :func:`beliefs` gave for the law.
    """
    parents: Parents = dag.parents
    if isinstance(law, NetworkLaw) and parents == law.parents:
        return law
    seen = beliefs(law) if known is None else known
    tables = []
    for k, causes in enumerate(parents):
        if isinstance(law, NetworkLaw) and set(causes) == set(law.parents[k]):
            order = [law.parents[k].index(a) for a in causes]
            tables.append(np.transpose(law.tables[k], (*order, len(causes))))
            continue
        joint = seen.marginal((*causes, k))
        total = joint.sum(axis=-1, keepdims=True)
        # A configuration that never occurs leaves its child undecided: every level alike.
        occurs = total > NEVER
        even = 1.0 / joint.shape[-1]
        tables.append(np.where(occurs, joint / np.where(occurs, total, 1.0), even))
    return NetworkLaw(law.space, parents, tuple(tables))


def intervened(law: NetworkLaw, do: Mapping[int, int]) -> NetworkLaw:
    """Return the law after some latents were set: they lose their causes, all else stays.

    This is the truncated factorisation (Pearl 2009, section 1.3).

    Parameters
    ----------
    law : NetworkLaw
    do : mapping from latent to level
    """
    parents = tuple(() if k in do else causes for k, causes in enumerate(law.parents))
    tables = tuple(
        np.eye(law.space.levels[k])[do[k]] if k in do else table
        for k, table in enumerate(law.tables)
    )
    return NetworkLaw(law.space, parents, tables)


def beliefs_after(
    law: NetworkLaw, do: Mapping[int, int], likelihoods: Sequence[Factor] = ()
) -> Beliefs:
    """Return the law after some latents were set, given what is known then."""
    levels = law.space.levels
    if law.space.n_states > FEW_STATES:
        return beliefs(intervened(law, do), likelihoods)
    # The same, without a law that would be checked again.
    kept = [factor for k, factor in enumerate(factors_of(law)) if k not in do]
    fixed = [indicator(k, level, levels[k]) for k, level in do.items()]
    return ListedLaw.of([*kept, *fixed, *likelihoods], levels)


# --- How strongly neighbours in the graph go together under the fitted law


def edge_strengths(result: FitResult | DCRL) -> dict[tuple[str, str], float]:
    """Return the absolute correlation of the levels of each two latents that are joined."""
    fitted = as_result(result)
    law = beliefs(fitted.law)
    names = fitted.latent_names
    out = {}
    for i, j in np.argwhere(np.triu(fitted.graph.skeleton)).tolist():
        table = law.marginal((i, j))
        rows, columns = np.arange(table.shape[0]), np.arange(table.shape[1])
        p, q = table.sum(axis=1), table.sum(axis=0)
        both = rows @ table @ columns - (rows @ p) * (columns @ q)
        spread = (rows**2 @ p - (rows @ p) ** 2) * (columns**2 @ q - (columns @ q) ** 2)
        out[(names[i], names[j])] = float(abs(both) / np.sqrt(spread)) if spread > 1e-12 else 0.0
    return out
