"""Latent graphs of any shape, and conditional tables for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hidag.discover.graphs import DAG
from hidag.errors import SettingError
from hidag.latent import NetworkLaw, StateSpace
from hidag.simulate.sample import Seed


def dag_from_parents(parents: Sequence[Sequence[int]]) -> DAG:
    """Return the graph in which latent k has the parents ``parents[k]`` (0-based)."""
    return DAG.from_parents(parents)


def chain_dag(n_latents: int) -> DAG:
    """Return the chain Z1 -> Z2 -> ... -> ZK."""
    return tree_dag(n_latents, branching=1)


def tree_dag(n_latents: int, branching: int = 2) -> DAG:
    """Return the tree filled row by row, in which each latent has up to ``branching`` children."""
    if n_latents < 1 or branching < 1:
        raise SettingError(
            f"a tree needs at least 1 latent and 1 branch, got n_latents={n_latents} and "
            f"branching={branching}"
        )
    return dag_from_parents([() if k == 0 else ((k - 1) // branching,) for k in range(n_latents)])


def random_dag(n_latents: int, average_parents: float, *, rng: Seed = None) -> DAG:
    """Return a random graph: each pair joined with the same probability, along a random order.

    Parameters
    ----------
    n_latents : int
    average_parents : float
        Expected number of edges divided by ``n_latents``; at most (n_latents - 1) / 2.
    rng : int, SeedSequence, Generator or None
    """
    most = (n_latents - 1) / 2
    if not 0 <= average_parents <= most:
        raise SettingError(
            f"average_parents must be from 0 to {most:g} for {n_latents} latents, "
            f"got {average_parents:g}"
        )
    generator = np.random.default_rng(rng)
    probability = average_parents / most if most > 0 else 0.0
    joined = np.triu(generator.random((n_latents, n_latents)) < probability, k=1)
    order = generator.permutation(n_latents)
    adjacency = np.zeros((n_latents, n_latents), dtype=np.int8)
    adjacency[np.ix_(order, order)] = joined
    return DAG(adjacency)


def random_law(
    dag: DAG,
    *,
    rng: Seed = None,
    levels: Sequence[int] | None = None,
    effects: tuple[float, float] = (1.2, 2.0),
    root_probability: tuple[float, float] = (0.5, 0.5),
) -> NetworkLaw:
    """Return random conditional tables for a graph.

    A latent's adjacent-category log-odds are a sum of its parents' effects times their levels,
    centred so that no level is rare. Each effect has a magnitude drawn uniformly from ``effects``
    and a random sign, so every edge matters. With one binary
    parent an effect of 1.7 means probabilities of .30 and .70.

    Parameters
    ----------
    dag : DAG
    rng : int, SeedSequence, Generator or None
    levels : sequence of int, length K, optional
        Number of levels of each latent; binary unless given.
    effects : (float, float)
        Range of the effects' magnitudes; the levels of a parent span one such effect.
    root_probability : (float, float)
        Range of P(Z = 1) for binary latents without parents; other roots are uniform.
    """
    if not 0 <= effects[0] <= effects[1]:
        raise SettingError(f"effects must be a range (low, high) with 0 <= low, got {effects}")
    if not 0 < root_probability[0] <= root_probability[1] < 1:
        raise SettingError(
            f"root_probability must be a range inside (0, 1), got {root_probability}"
        )
    space = StateSpace.binary(dag.n_variables) if levels is None else StateSpace(tuple(levels))
    if space.n_latents != dag.n_variables:
        raise SettingError(f"{dag.n_variables} latents need as many levels, got {space.n_latents}")
    generator = np.random.default_rng(rng)
    tables = []
    for k, parents in enumerate(dag.parents):
        n_levels = space.levels[k]
        if not parents:
            one = generator.uniform(*root_probability)
            root = [1 - one, one] if n_levels == 2 else [1 / n_levels] * n_levels
            tables.append(np.array(root))
            continue
        magnitude = generator.uniform(*effects, size=len(parents))
        effect = magnitude * generator.choice((-1.0, 1.0), size=len(parents))
        shape = tuple(space.levels[a] for a in parents)
        position = np.indices(shape).reshape(len(parents), -1) / (np.array(shape)[:, None] - 1)
        score = (effect @ (position - 0.5)).reshape(shape)
        weight = np.exp(score[..., None] * np.arange(n_levels))
        tables.append(weight / weight.sum(axis=-1, keepdims=True))
    return NetworkLaw(space, dag.parents, tuple(tables))
