"""Average causal effects and their intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.causal import average_effects, what_if
from hidag.data.rows import MissingnessPatterns
from hidag.exceptions import SettingError
from hidag.inference import draw_asymptotic
from hidag.latent import SaturatedLaw
from hidag.simulation import chain_dag, dag_from_parents, make_truth, random_law
from hidag.structure import CPDAG

COLLIDER = dag_from_parents([(), (), (0, 1), (2,)])


def a_truth(dag=COLLIDER, levels=(2, 2, 3, 2), family="bernoulli", seed=0):
    law = random_law(dag, rng=seed, levels=levels)
    q = np.vstack([np.eye(len(levels), dtype=int)] * 3)
    return make_truth(law, q, family)


def test_effects_are_differences_of_what_if(as_result):
    result = as_result(a_truth())
    found = average_effects(result)
    for c, cause in enumerate(result.latent_names):
        top = result.law.space.levels[c] - 1
        up, down = what_if(result, do={cause: top}), what_if(result, do={cause: 0})
        for k, levels in enumerate(result.law.space.levels):
            if k == c:
                assert np.isnan(found.low[c, k])
                continue
            change = (up.latents_after[k] - down.latents_after[k]) @ np.arange(levels)
            np.testing.assert_allclose(
                [found.low[c, k], found.high[c, k]], [change.min(), change.max()]
            )
        change = up.items_after - down.items_after
        np.testing.assert_allclose(found.low[c, 4:], change.min(axis=0), atol=1e-12)
        np.testing.assert_allclose(found.high[c, 4:], change.max(axis=0), atol=1e-12)


def test_collider_does_not_affect_its_causes_and_chain_is_undetermined(as_result):
    found = average_effects(as_result(a_truth()), items=False)
    assert found.n_parent_sets == (1, 1, 1, 1)
    np.testing.assert_allclose(found.low[2, :2], 0.0, atol=1e-12)
    assert abs(found.low[2, 3]) > 0.1
    chain = average_effects(as_result(a_truth(chain_dag(3), (2, 2, 2))), items=False)
    assert chain.n_parent_sets == (2, 3, 2)
    low, high = sorted([abs(chain.low[1, 0]), abs(chain.high[1, 0])])
    assert low < 1e-12 < 0.1 < high


@pytest.mark.parametrize("saturated", [False, True])
def test_intervals_cover_the_estimate_and_shrink_with_the_root_of_n(saturated, as_result):
    truth = a_truth(levels=(2, 2, 2, 2))
    law = SaturatedLaw(truth.law.space, np.asarray(truth.law.probabilities))
    result = as_result(truth, law=law if saturated else None)
    widths = []
    for n in (1000, 16000):
        one = replace(result, n_samples=n, n_counted=float(n))
        found = average_effects(one, replicates=draw_asymptotic(one, 60), fix_graph=True)
        apart = ~np.isnan(found.low)
        assert (found.lower[apart] <= found.low[apart] + 1e-9).mean() > 0.95
        assert (found.upper[apart] >= found.high[apart] - 1e-9).mean() > 0.95
        widths.append(found.upper[2, 3] - found.lower[2, 3])
    assert 3.0 < widths[0] / widths[1] < 5.3


def test_intervals_use_the_effective_sample_size(as_result):
    result = as_result(a_truth(levels=(2, 2, 2, 2)))
    # Half of the 16,000 rows have negligible weight: the effective sample size is 8,000.
    table, weights = np.zeros((16000, 12)), np.repeat([1e-9, 0.3], 8000)
    few = replace(result, n_samples=16000, seen_rows=MissingnessPatterns.of(table, weights),
                  weighted=True, n_counted=2400.0)  # fmt: skip
    equal = replace(result, n_samples=8000, n_counted=8000.0)
    ours, theirs = (
        average_effects(one, replicates=draw_asymptotic(one, 60), fix_graph=True)
        for one in (few, equal)
    )
    np.testing.assert_allclose(ours.lower, theirs.lower, rtol=1e-6)


def test_graphs_of_replicates_widen_the_interval(as_result):
    truth = a_truth(chain_dag(2), (2, 2))
    result = as_result(truth)
    directed = replace(result, graph=CPDAG(chain_dag(2).adjacency, result.latent_names))
    turned = replace(result, graph=CPDAG(chain_dag(2).adjacency.T, result.latent_names))
    own = average_effects(directed, items=False, replicates=[directed, turned] * 20)
    held = average_effects(
        directed, items=False, replicates=[directed, turned] * 20, fix_graph=True
    )
    effect = held.low[0, 1]
    np.testing.assert_allclose([held.lower[0, 1], held.upper[0, 1]], effect)
    np.testing.assert_allclose(sorted([own.lower[0, 1], own.upper[0, 1]]), sorted([0.0, effect]))


def test_invalid_replicates_are_refused(as_result):
    result = as_result(a_truth())
    with pytest.raises(SettingError) as caught:
        average_effects(result, replicates=[result])
    assert str(caught.value) == "intervals need at least 2 replicates, got 1"
    other = replace(result, latent_names=("a", "b", "c", "d"))
    with pytest.raises(SettingError) as caught:
        average_effects(result, replicates=[other, other])
    assert str(caught.value) == (
        "replicates must have the latents and items of the fit in the same order; align them first"
    )
    large = as_result(a_truth(chain_dag(11), (2,) * 11))
    with pytest.raises(SettingError) as caught:
        next(draw_asymptotic(large))
    assert str(caught.value) == (
        "intervals from the information need listed joint states, at most 1024, but there are "
        "2^11; pass the replicates of a bootstrap instead"
    )


def test_very_many_parameters_have_no_intervals(as_result):
    law = random_law(chain_dag(2), rng=0)
    wide = as_result(make_truth(law, np.tile(np.eye(2, dtype=int), (900, 1)), "gaussian"))
    with pytest.raises(SettingError) as caught:
        draw_asymptotic(wide)
    assert str(caught.value) == (
        "intervals from the information are limited to 5,000 parameters of items and law, but "
        "there are 5,406; pass the replicates of a bootstrap instead"
    )


def test_truncated_parent_sets_are_reported(as_result):
    result = as_result(a_truth(chain_dag(3), (2, 2, 2)))
    whole = average_effects(result, items=False)
    assert (whole.truncated, whole.truncation_note()) == ((), None)
    few = average_effects(result, items=False, limit=2)
    assert few.n_parent_sets == (2, 2, 2)
    assert few.truncated == ("Z2",)
    assert str(few.truncation_note()) == (
        "the graph allows more sets of parents of Z2 than were examined, and the bounds of their "
        "effects may be too narrow; pass a larger limit to average_effects"
    )
    # The graph of a replicate may have more undirected edges than that of the fit.
    held = average_effects(result, items=False, graph=result.graph.to_dag(), limit=2)
    assert held.truncated == ()
    known = replace(result, graph=CPDAG(result.graph.to_dag().adjacency, result.latent_names))
    assert average_effects(known, items=False, limit=2).truncated == ()
    assert average_effects(known, items=False, limit=2, replicates=[result] * 2).truncated == (
        "Z2",
    )
