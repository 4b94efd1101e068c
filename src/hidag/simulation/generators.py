"""Generators of latent graphs, conditional tables, Q-matrices and loadings for simulations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import Choices, SettingError, invalid_setting
from hidag.latent.laws import NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.terms import Effects
from hidag.simulation.truth import Seed, Truth, check_length
from hidag.structure.graphs import DAG


def dag_from_parents(parents: Sequence[Sequence[int]]) -> DAG:
    """Return the DAG in which latent k has the parents ``parents[k]`` (0-based)."""
    return DAG.from_parents(parents)


def chain_dag(n_latents: int) -> DAG:
    """Return the chain Z1 -> Z2 -> ... -> ZK."""
    return tree_dag(n_latents, branching=1)


def tree_dag(n_latents: int, branching: int = 2) -> DAG:
    """Return the tree, filled row by row, with up to ``branching`` children per latent."""
    if n_latents < 1 or branching < 1:
        raise SettingError(
            "invalid-tree",
            "a tree needs at least 1 latent and 1 branch, got n_latents={n_latents} and "
            "branching={branching}",
            {"n_latents": n_latents, "branching": branching},
        )
    return dag_from_parents([() if k == 0 else ((k - 1) // branching,) for k in range(n_latents)])


def random_dag(n_latents: int, average_parents: float, *, rng: Seed = None) -> DAG:
    """Return a random DAG with a random order, each pair adjacent with the same probability.

    ``average_parents``, at most (n_latents - 1) / 2, is the expected number of edges per latent.
    """
    most = (n_latents - 1) / 2
    if not 0 <= average_parents <= most:
        expected = f"from 0 to {most:g} for {n_latents} latents"
        raise invalid_setting("average_parents", expected, average_parents)
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
    """Return a law with random conditional tables on a graph.

    The adjacent-category log-odds of a latent are the sum of its parents' effects times their
    levels, centred so that no level is rare. Each effect has a magnitude drawn uniformly from
    ``effects`` and a random sign. With one binary parent an effect of 1.7 gives probabilities of
    .30 and .70.

    Parameters
    ----------
    dag : DAG
    rng : int, SeedSequence, Generator or None
    levels : sequence of int, length K, optional
        Number of levels of each latent; default binary.
    effects : (float, float)
        Range of the magnitudes; the levels of a parent together span one effect.
    root_probability : (float, float)
        Range of P(Z = 1) for binary latents without parents; other roots are uniform.
    """
    if not 0 <= effects[0] <= effects[1]:
        raise invalid_setting("effects", "a range (low, high) with 0 <= low", effects)
    if not 0 < root_probability[0] <= root_probability[1] < 1:
        raise invalid_setting("root_probability", "a range inside (0, 1)", root_probability)
    space = StateSpace.binary(dag.n_variables) if levels is None else StateSpace(tuple(levels))
    check_length(space.levels, dag.n_variables, "latents", "levels")
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


def banded_q(n_latents: int, bandwidth: int) -> NDArray[np.int8]:
    """Return the paper's Q-matrix, shape (3K, K): a band stacked on two identity matrices.

    Item j of the band measures the latents at distance at most ``bandwidth`` from j: 1 is the
    paper's Q1, 2 its Q2.
    """
    if n_latents < 1 or bandwidth < 0:
        raise SettingError(
            "invalid-band",
            "a banded Q needs at least 1 latent and a bandwidth >= 0, got n_latents={n_latents} "
            "and bandwidth={bandwidth}",
            {"n_latents": n_latents, "bandwidth": bandwidth},
        )
    index = np.arange(n_latents)
    band = np.abs(index[:, None] - index[None, :]) <= bandwidth
    identity = np.eye(n_latents, dtype=bool)
    return np.vstack([band, identity, identity]).astype(np.int8)


def random_q(
    n_items: int,
    n_latents: int,
    *,
    pure_share: float = 2 / 3,
    max_parents: int = 3,
    rng: Seed = None,
) -> NDArray[np.int8]:
    """Return a random Q-matrix, shape (J, K), with a given share of pure items.

    Pure items (one latent each) come last and cycle through the latents, so that their numbers
    differ by at most one. The other items measure 2 to ``max_parents`` latents, the first of which
    cycles likewise.
    """
    if n_items < n_latents:
        raise SettingError(
            "too-few-items",
            "every latent needs an item: {n_latents} latents, but only {n_items} items",
            {"n_latents": n_latents, "n_items": n_items},
        )
    if not 0 <= pure_share <= 1:
        raise invalid_setting("pure_share", "from 0 to 1", pure_share)
    n_pure = round(pure_share * n_items)
    if n_pure < n_items and not 2 <= max_parents <= n_latents:
        expected = f"from 2 to {n_latents}, because items that are not pure measure several latents"
        raise invalid_setting("max_parents", expected, max_parents)
    generator = np.random.default_rng(rng)
    out = np.zeros((n_items, n_latents), dtype=np.int8)
    # The cycle runs through both kinds of items, so that J >= K items cover every latent.
    out[np.arange(n_items), np.arange(n_items) % n_latents] = 1
    for row in out[: n_items - n_pure]:
        others = np.flatnonzero(row == 0)
        n_more = generator.integers(1, max_parents)
        row[generator.choice(others, size=n_more, replace=False)] = 1
    return out


def spread_slopes(
    q_matrix: ArrayLike, total: ArrayLike, *, ratio: float = 1.0, rng: Seed = None
) -> NDArray[np.float64]:
    """Return loadings, shape (J, K), whose sum over the latents of an item is ``total``.

    ``ratio`` is that of successive slopes of an item: 1 makes them equal, as in the paper; with 2
    every subset of an item's latents has a different mean. ``rng`` assigns slopes to latents.
    """
    q = np.asarray(q_matrix)
    if ratio <= 0:
        raise invalid_setting("ratio", "> 0", ratio)
    sums = np.broadcast_to(np.asarray(total, dtype=np.float64), (q.shape[0],))
    generator = np.random.default_rng(rng)
    out = np.zeros(q.shape)
    for j, row in enumerate(q):
        latents = np.flatnonzero(row)
        if ratio != 1.0:
            latents = generator.permutation(latents)
        weight = ratio ** np.arange(len(latents))
        out[j, latents] = sums[j] * weight / weight.sum() if len(latents) else 0.0
    return out


#: Mean step of the linear predictor from one level to the next.
STEPS = {"gaussian": 1.5, "lognormal": 1.5, "bernoulli": 2.0, "poisson": 0.8}
#: Families whose predictors are centred, because the link saturates at both ends.
CENTRED = frozenset({"bernoulli"})
#: Relative half-width of the uniform distribution of the steps.
UNEVENNESS = 0.3


def random_truth(
    law: NetworkLaw,
    q_matrix: ArrayLike,
    family: str | Sequence[str] = "gaussian",
    *,
    effects: str | int = "main",
    dispersion: float = 1.0,
    rng: Seed = None,
) -> Truth:
    """Return a truth with random loadings, different for every level and every interaction.

    Parameters
    ----------
    law : NetworkLaw
        Its latents may have any number of levels.
    q_matrix : array of 0 and 1, shape (J, K)
    family : str or sequence of str, length J
        "gaussian", "lognormal", "bernoulli" or "poisson".
    effects : {"main", "all", "dina"} or int
        Main effects only; all interactions as well, or those up to an order; or only the
        interaction of all latents of an item, twice as large.
    dispersion : float
        Variance of gaussian items and of the logarithm of lognormal items.
    rng : int, SeedSequence, Generator or None
        Loadings are uniform within 30 % of their mean.
    """
    q = np.asarray(q_matrix, dtype=np.int8)
    families = (family,) * len(q) if isinstance(family, str) else tuple(family)
    for name in families:
        if name not in STEPS:
            raise invalid_setting("family", Choices(tuple(STEPS)), name)
    wanted = Effects.of(effects)
    if wanted.reversed:
        raise invalid_setting("effects", Choices(("main", "all", "dina"), "an order"), effects)
    terms = wanted.terms(q, law.space.levels)
    generator = np.random.default_rng(rng)
    size = np.array([STEPS[name] for name in families])[:, None]
    uneven = generator.uniform(1.0 - UNEVENNESS, 1.0 + UNEVENNESS, (len(q), terms.n_terms))
    loadings = np.where(wanted.support(terms, q), size * uneven, 0.0)
    if wanted.conjunctive:
        alone = (q != 0).sum(axis=1, keepdims=True) == 1
        loadings *= np.where(alone, 1.0, 2.0)
    # Centred: the lowest and highest predictor of an item have opposite values.
    middle = 0.5 * loadings.sum(axis=1)
    intercept = np.where([name in CENTRED for name in families], -middle, 0.0)
    return Truth(q, intercept, loadings, np.full(len(q), dispersion), families, law, terms=terms)
