"""Posteriors of the junction tree are those over all joint states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.config import CONFIG
from hidag.em.posterior import most_probable_states, posterior_marginals
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import MeasurementParameters, Terms
from hidag.measurement.terms import interactions_within
from hidag.network_em import posterior
from hidag.network_em.junction_tree import TreePosterior

FAMILIES = ("bernoulli", "poisson", "gaussian", "ordinal(4)", "negative-binomial", "binomial(3)")


def random_law(levels: tuple[int, ...], rng: np.random.Generator, sharpness: float) -> NetworkLaw:
    """Return a law over a random graph in which each latent has up to two parents before it."""
    parents = [tuple(rng.permutation(k)[: rng.integers(0, 3)].tolist()) for k in range(len(levels))]
    tables = []
    for k, own in enumerate(parents):
        table = np.exp(sharpness * rng.normal(size=(*(levels[a] for a in own), levels[k])))
        tables.append(table / table.sum(axis=-1, keepdims=True))
    return NetworkLaw(StateSpace(levels), tuple(parents), tuple(tables))


def random_items(
    levels: tuple[int, ...], rng: np.random.Generator, *, joint: bool
) -> MeasurementParameters:
    """Return two items of each family, each with one or two latents of its own."""
    families = FAMILIES * 2
    n_items = len(families)
    q = np.zeros((n_items, len(levels)), dtype=int)
    for j in range(n_items - 1):
        q[j, rng.permutation(len(levels))[: rng.integers(1, 3)]] = 1
    terms = Terms(levels, interactions_within(q, levels, 2 if joint else 1))
    support = terms.support(q)
    loadings = np.where(support, rng.uniform(0.3, 1.0, support.shape), 0.0)
    cutpoints = np.full((n_items, 2), np.nan)
    cutpoints[[name == "ordinal(4)" for name in families]] = (0.8, 2.0)
    dispersion = np.full(n_items, 0.7)
    items = MeasurementParameters(
        families,
        rng.normal(0, 0.3, n_items),
        loadings,
        dispersion,
        terms=terms,
        cutpoints=cutpoints,
    )
    return items


def rows_of(items: MeasurementParameters, law: NetworkLaw, rng: np.random.Generator) -> np.ndarray:
    states = law.sample(200, rng)
    values = items.sample(states, rng)
    values[rng.random(values.shape) < 0.4] = np.nan
    values[0] = np.nan
    return values


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("levels", [(2,) * 6, (3, 2, 2, 4, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_junction_tree_equals_the_sum_over_states(
    levels, joint: bool, seed: int, configure
) -> None:
    rng = np.random.default_rng(seed)
    law = random_law(levels, rng, 1.5)
    items = random_items(levels, rng, joint=joint)
    values = rows_of(items, law, rng)
    tree = TreePosterior.of(items, law)
    assert tree is not None
    expected = posterior_marginals(items, law, values)
    found = tree.marginals(values)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    np.testing.assert_array_equal(tree.modes(values), most_probable_states(items, law, values))
    configure("network_em", block_cells=1)
    np.testing.assert_allclose(tree.marginals(values), found, atol=1e-13)


def test_states_without_mass_have_no_posterior_mass() -> None:
    rng = np.random.default_rng(3)
    law = random_law((2,) * 5, rng, 1.0)
    tables = list(law.tables)
    tables[2] = np.zeros_like(tables[2])
    tables[2][..., 1] = 1.0
    law = replace(law, tables=tuple(tables))
    items = random_items((2,) * 5, rng, joint=False)
    values = rows_of(items, law, rng)
    tree = TreePosterior.of(items, law)
    assert tree is not None
    np.testing.assert_allclose(tree.marginals(values)[:, 2], 1.0)
    assert (tree.modes(values)[:, 2] == 1).all()


def test_strongly_dependent_latents_have_exact_posteriors() -> None:
    # Each latent nearly repeats the one before: draws of one latent at a time hardly move.
    n_latents = CONFIG.network_em.max_listed_states.bit_length()
    rng = np.random.default_rng(0)
    close = np.array([[0.99, 0.01], [0.01, 0.99]])
    law = NetworkLaw(
        StateSpace((2,) * n_latents),
        ((), *((k - 1,) for k in range(1, n_latents))),
        (np.array([0.5, 0.5]), *[close] * (n_latents - 1)),
    )
    loadings = np.repeat(np.eye(n_latents), 2, axis=0) * 2.0
    items = MeasurementParameters(
        ("bernoulli",) * len(loadings),
        np.full(len(loadings), -1.0),
        loadings,
        np.ones(len(loadings)),
    )
    values = items.sample(law.sample(20, rng), rng)
    values[rng.random(values.shape) < 0.8] = np.nan
    values[0] = np.nan
    assert posterior.has_exact_posterior(items, law)
    found = posterior.upper_level_probabilities(items, law, values, seed=0)
    np.testing.assert_allclose(found, posterior_marginals(items, law, values), atol=1e-10)
    np.testing.assert_allclose(found[0], 0.5)
    modes = posterior.posterior_modes(items, law, values, seed=0)
    np.testing.assert_array_equal(modes[1:], most_probable_states(items, law, values)[1:])


def test_a_large_treewidth_is_left_to_sampling() -> None:
    n_latents = 17
    law = random_law((2,) * n_latents, np.random.default_rng(1), 1.0)
    items = MeasurementParameters(("gaussian",), np.zeros(1), np.ones((1, n_latents)), np.ones(1))
    assert TreePosterior.of(items, law) is None
    assert not posterior.has_exact_posterior(items, law)
