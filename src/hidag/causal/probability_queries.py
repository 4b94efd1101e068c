"""Marginal distributions of the latents under conditioning and intervention.

Marginals are exact while the tables of the computation stay small. For denser graphs they are
estimated from a weighted sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import DataError
from hidag.latent.junction_tree import (
    Factor,
    JunctionTree,
    elimination_order,
    indicator,
    max_clique_size,
)
from hidag.latent.laws import NEGLIGIBLE_COUNT, LatentLaw, NetworkLaw
from hidag.results import FitResult, as_result
from hidag.structure.graphs import DAG

if TYPE_CHECKING:
    from hidag.estimator import DCRL

Array = NDArray[np.float64]

#: Up to this many joint states, one joint table is faster than a junction tree.
MAX_ENUMERATED_STATES = 1 << 11
#: Junction trees with a larger table are replaced by a weighted sample.
MAX_TABLE_CELLS = 1 << 21
N_DRAWS = 200_000


class ConditionedLaw(Protocol):
    """Joint distribution of the latents given the evidence."""

    def marginal(self, variables: Sequence[int]) -> Array:
        """Return the joint distribution of some latents, one axis each in the given order."""
        ...


@dataclass(frozen=True)
class JointTable:
    """Probabilities of all joint states.

    Attributes
    ----------
    table : ndarray, one axis per latent
        Sums to 1.
    """

    table: Array

    @classmethod
    def of(cls, factors: Sequence[Factor], levels: tuple[int, ...]) -> JointTable:
        """Return the normalised product of factors."""
        table = np.ones(levels)
        for factor in factors:
            order = sorted(range(len(factor.variables)), key=factor.variables.__getitem__)
            shape = [1] * len(levels)
            for v in factor.variables:
                shape[v] = levels[v]
            table *= factor.table.transpose(order).reshape(shape)
        total = float(table.sum())
        if not total > 0:
            raise DataError(
                "impossible-evidence",
                "the given values have probability zero under the fitted latent distribution",
            )
        return cls(table / total)

    def marginal(self, variables: Sequence[int]) -> Array:
        """Return the joint distribution of some latents, one axis each in the given order."""
        wanted = tuple(variables)
        summed = self.table.sum(axis=tuple(v for v in range(self.table.ndim) if v not in wanted))
        if len(wanted) < 2:
            return np.asarray(summed)
        return np.asarray(np.transpose(summed, np.argsort(np.argsort(wanted))))


@dataclass(frozen=True)
class WeightedSample:
    """Weighted draws of all latents.

    Attributes
    ----------
    states : ndarray of uint8, shape (n, K)
    weights : ndarray, shape (n,)
        Sum to 1.
    levels : tuple of int
    """

    states: NDArray[np.uint8]
    weights: Array
    levels: tuple[int, ...]

    @classmethod
    def of(cls, law: NetworkLaw, likelihoods: Sequence[Factor], seed: int = 0) -> WeightedSample:
        """Return draws from a law, weighted by the likelihood of the evidence."""
        states = law.sample(N_DRAWS, np.random.default_rng(seed))
        weights = np.ones(len(states))
        for factor in likelihoods:
            weights *= factor.table[tuple(states[:, v] for v in factor.variables)]
        total = float(weights.sum())
        if not total > 0:
            raise DataError(
                "impossible-evidence",
                "the given values have probability zero in all {n:,} draws from the fitted latent "
                "distribution",
                n=len(states),
            )
        return cls(states, weights / total, law.space.levels)

    def marginal(self, variables: Sequence[int]) -> Array:
        """Return the joint distribution of some latents, one axis each in the given order."""
        shape = tuple(self.levels[v] for v in variables)
        if not shape:
            return np.array(1.0)
        index = np.ravel_multi_index(tuple(self.states[:, v] for v in variables), shape)
        shares = np.bincount(index, self.weights, minlength=int(np.prod(shape)))
        return np.asarray(shares, dtype=np.float64).reshape(shape)


def law_factors(law: LatentLaw) -> list[Factor]:
    """Return factors whose product is the law: its conditional tables, or its joint table."""
    if isinstance(law, NetworkLaw):
        pairs = zip(law.parents, law.tables, strict=True)
        return [Factor((*causes, k), table) for k, (causes, table) in enumerate(pairs)]
    everyone = tuple(range(law.space.n_latents))
    return [Factor(everyone, np.asarray(law.probabilities).reshape(law.space.levels))]


def condition_law(law: LatentLaw, likelihoods: Sequence[Factor] = ()) -> ConditionedLaw:
    """Return the law of the latents given evidence, ready for any marginal.

    Exact unless the junction tree of the graph needs a table of more than 2^21 cells; then a
    weighted sample of 200,000 draws with a fixed seed (:class:`WeightedSample`).

    Parameters
    ----------
    law : LatentLaw
    likelihoods : sequence of Factor
        Likelihoods of the evidence in the states of some latents.
    """
    factors = [*law_factors(law), *likelihoods]
    if law.space.n_states <= MAX_ENUMERATED_STATES:
        return JointTable.of(factors, law.space.levels)
    steps = elimination_order(law.space.n_latents, [f.variables for f in factors])
    if max_clique_size(steps, law.space.levels) > MAX_TABLE_CELLS and isinstance(law, NetworkLaw):
        return WeightedSample.of(law, likelihoods)
    return JunctionTree.of(factors, steps)


def factorise_over_dag(
    law: LatentLaw, dag: DAG, conditioned: ConditionedLaw | None = None
) -> NetworkLaw:
    """Return the law as conditional tables over a DAG.

    The same distribution if it factorises over the DAG, as over every member of its Markov
    equivalence class; otherwise the closest one in Kullback-Leibler divergence.

    Parameters
    ----------
    law : LatentLaw
    dag : DAG
    conditioned : ConditionedLaw, optional
        ``condition_law(law)``, if it was already computed.
    """
    parents = dag.parents
    if isinstance(law, NetworkLaw) and parents == law.parents:
        return law
    joint_law = condition_law(law) if conditioned is None else conditioned
    tables = []
    for k, causes in enumerate(parents):
        if isinstance(law, NetworkLaw) and set(causes) == set(law.parents[k]):
            order = [law.parents[k].index(a) for a in causes]
            tables.append(np.transpose(law.tables[k], (*order, len(causes))))
            continue
        joint = joint_law.marginal((*causes, k))
        total = joint.sum(axis=-1, keepdims=True)
        # A configuration of the parents with probability zero leaves its child uniform.
        occurs = total > NEGLIGIBLE_COUNT
        uniform = 1.0 / joint.shape[-1]
        tables.append(np.where(occurs, joint / np.where(occurs, total, 1.0), uniform))
    return NetworkLaw(law.space, parents, tuple(tables))


def intervene(law: NetworkLaw, do: Mapping[int, int]) -> NetworkLaw:
    """Return the law after an intervention (truncated factorisation, Pearl 2009, section 1.3).

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


def condition_after_intervention(
    law: NetworkLaw, do: Mapping[int, int], likelihoods: Sequence[Factor] = ()
) -> ConditionedLaw:
    """Return the law after an intervention, given evidence observed afterwards."""
    levels = law.space.levels
    if law.space.n_states > MAX_ENUMERATED_STATES:
        return condition_law(intervene(law, do), likelihoods)
    # The same distribution without building and validating another NetworkLaw.
    unchanged = [factor for k, factor in enumerate(law_factors(law)) if k not in do]
    fixed = [indicator(k, level, levels[k]) for k, level in do.items()]
    return JointTable.of([*unchanged, *fixed, *likelihoods], levels)


def edge_strengths(result: FitResult | DCRL) -> dict[tuple[str, str], float]:
    """Return the absolute correlation of the levels of each pair of adjacent latents."""
    fitted = as_result(result)
    law = condition_law(fitted.law)
    names = fitted.latent_names
    out = {}
    for i, j in np.argwhere(np.triu(fitted.graph.skeleton)).tolist():
        table = law.marginal((i, j))
        rows, columns = np.arange(table.shape[0]), np.arange(table.shape[1])
        p, q = table.sum(axis=1), table.sum(axis=0)
        covariance = rows @ table @ columns - (rows @ p) * (columns @ q)
        variances = (rows**2 @ p - (rows @ p) ** 2) * (columns**2 @ q - (columns @ q) ** 2)
        constant = variances <= 1e-12
        out[names[i], names[j]] = 0.0 if constant else float(abs(covariance) / np.sqrt(variances))
    return out
