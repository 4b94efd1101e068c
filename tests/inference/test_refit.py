"""Alignment of refits with the first fit: order, polarity, terms and prior knowledge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag import BootstrapResult, Knowledge
from hidag.causal import average_effects
from hidag.exceptions import DataError
from hidag.inference.refit import (
    BootstrapTask,
    Refit,
    align_refit,
    match_refit,
    network_arrays,
    network_from_arrays,
)
from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters, Terms
from hidag.metrics import Parts, relabel_law
from hidag.simulation import dag_from_parents, make_truth, random_law

from ..fitted_models import result_at, two_latents


def relabelled(fit, order, flips):
    """Return the same fit with other names and directions of its latents."""
    order, flips = np.array(order), np.array(flips)
    return replace(
        fit,
        parameters=fit.parameters.reordered(latents=order).flipped(flips),
        law=relabel_law(fit.law, order, flips),
        q_given=None if fit.q_given is None else fit.q_given[:, order],
    )


def task_of(fit, **settings):
    return BootstrapTask(
        np.zeros((fit.n_samples, 1)), None, fit, settings, "nonparametric", "full", 0
    )


def test_one_nominal_item_does_not_reverse_latents():
    fit = two_latents(("gaussian",) * 6 + ("categorical(3)",), law="saturated")
    # By its law alone this refit looks reversed; by its items it is not.
    other = relabel_law(fit.law, np.arange(2), np.array([True, True]))
    refit = align_refit(replace(fit, law=other), fit)
    assert not refit.moved
    np.testing.assert_allclose(refit.agreement, 1.0)
    turned = align_refit(relabelled(replace(fit, law=other), [1, 0], [True, False]), fit)
    assert turned.moved
    np.testing.assert_allclose(turned.loadings, fit.loadings)
    np.testing.assert_allclose(turned.joint, other.probabilities)


def test_interactions_of_single_refits_are_stored(tmp_path):
    rich = replace(two_latents(("gaussian",) * 6, law="saturated", effects="all"), q_given=None)
    fit = replace(rich, parameters=rich.parameters.with_terms(Terms.main((2, 2))))
    refits = [align_refit(rich, fit), align_refit(fit, fit)]
    assert [one.loadings.shape for one in refits] == [(6, 3), (6, 2)]
    found = BootstrapResult.of(task_of(fit), refits)
    assert found.term_names == ("Z1", "Z2", "Z1*Z2")
    np.testing.assert_array_equal(found.loadings[0], rich.loadings)
    assert (found.loadings[1, :, 2] == 0).all()
    assert (found.fitted.loadings[:, 2] == 0).all()
    rows = [r for r in found.coefficient_table() if r["term"] == "Z1*Z2"]
    assert [(r["item"], r["fit"]) for r in rows] == [("X3", 0.0), ("X6", 0.0)]
    assert all(r["low"] < r["high"] for r in rows)
    back = BootstrapResult.load(found.save(tmp_path / "boot.npz"))
    for result in (found, back):
        replicates = list(result.replicates(fit))
        for one, own in zip(replicates, (rich, fit), strict=True):
            effects = [average_effects(m, graph=fit.graph).rows() for m in (one, own)]
            assert effects[0] == effects[1]


def test_a_refit_is_restored_from_its_arrays():
    refit = align_refit(*[two_latents(("gaussian",) * 6, effects="all")] * 2)
    back = Refit.of(refit.arrays())
    main = Terms.main((2, 2))
    both = Terms((2, 2), (((0, 1), (1, 1)),))
    assert main.with_thresholds(back.asked) == main.with_thresholds(refit.asked) == both
    assert back.on(main.joined([both])) is back


def three_exchangeable(**knowledge):
    """Return a fit of three latents with the same items and prior knowledge about them."""
    rng = np.random.default_rng(0)
    items = MeasurementParameters(
        ("gaussian",) * 7, np.zeros(7), rng.uniform(-1, 2, (7, 3)), np.ones(7)
    )
    law = SaturatedLaw(StateSpace.binary(3), rng.dirichlet(np.ones(8)))
    settings = {"knowledge": Knowledge(**knowledge).to_dict(), "seed": 0}
    q = np.ones((7, 3), dtype=np.int8)
    return result_at(items, law, n_samples=9, q_given=q, settings=settings)


def test_latents_with_different_roles_in_knowledge_are_not_exchanged():
    order, none = [2, 1, 0], [False, False, False]
    fit = three_exchangeable(required=[("Z1", "Z2")])
    refit = relabelled(fit, order, none)
    # The law obeyed Z1 -> Z2 by these names: no other name may be given to Z1 or Z2 now.
    assert match_refit(Parts.of(refit), fit).permutation == (0, 1, 2)
    assert (align_refit(refit, fit).agreement < 0.9).any()
    # Both are before Z2, and nothing else is known: Z1 and Z3 may change places.
    even = three_exchangeable(tiers=[["Z1", "Z3"], ["Z2"]])
    assert match_refit(Parts.of(relabelled(even, order, none)), even).permutation == (2, 1, 0)
    # Nor is there anything against it where Q and all names were found by the fit.
    free = replace(fit, q_given=None)
    assert match_refit(Parts.of(relabelled(free, order, none)), free).permutation == (2, 1, 0)


def test_skills_of_a_hierarchy_are_not_reversed():
    fit = three_exchangeable(hierarchy=[("Z1", "Z2")])
    refit = relabelled(fit, [0, 1, 2], [True, True, True])
    assert match_refit(Parts.of(refit), fit).flips == (False, False, True)
    assert (align_refit(refit, fit).agreement < 0).tolist() == [True, True, False]


def test_unmatched_latents_under_knowledge_are_reported():
    fit = three_exchangeable(forbidden=[("Z1", "Z2")])
    refits = [align_refit(fit, fit)] * 3
    refits[1] = replace(refits[1], agreement=np.array([0.5, 1.0, 1.0]))
    words = (
        "in 1 of 3 refits some latents do not match those of the fit, and the prior knowledge was "
        "applied to them all the same"
    )
    knowing = BootstrapResult.of(task_of(fit, knowledge=Knowledge()), refits)
    assert words in knowing.summary().splitlines()
    assert words not in BootstrapResult.of(task_of(fit), refits).summary()
    assert (
        words not in BootstrapResult.of(task_of(fit, knowledge=Knowledge()), refits[:1]).summary()
    )


def test_latents_with_other_levels_do_not_match():
    fit = two_latents(("gaussian",) * 6)
    other = Parts(fit.q_matrix, terms=Terms.main((2, 3)))
    with pytest.raises(DataError, match="latents with different numbers of levels"):
        match_refit(other, fit)


def many_latents(as_result, seed, k=15):
    """Return a fit of more latents than a joint table is kept for, two parents for most."""
    dag = dag_from_parents([(), (0,), *((a - 2, a - 1) for a in range(2, k))])
    law = random_law(dag, rng=seed)
    return as_result(make_truth(law, np.vstack([np.eye(k, dtype=int)] * 3), "bernoulli"))


def test_laws_of_many_latents_are_stored_as_networks(as_result, tmp_path):
    fit, other = many_latents(as_result, 0), many_latents(as_result, 1)
    order = np.random.default_rng(0).permutation(15)
    mixed = align_refit(relabelled(fit, order, np.arange(15) % 2 == 0), fit)
    assert mixed.moved
    bare = replace(other, law=random_law(dag_from_parents([()] * 15), rng=2))
    found = BootstrapResult.of(
        task_of(fit), [mixed, align_refit(other, fit), align_refit(bare, fit)]
    )
    back = BootstrapResult.load(found.save(tmp_path / "boot.npz"))
    states = fit.law.sample(50, np.random.default_rng(3))
    for result in (found, back):
        laws = [one.law for one in result.replicates(fit)]
        for law, own in zip(laws, (fit, other, bare), strict=True):
            for k, parents in enumerate(own.law.parents):
                where = tuple(states[:, a] for a in (*parents, k))
                again = tuple(states[:, a] for a in (*law.parents[k], k))
                np.testing.assert_allclose(law.tables[k][again], own.law.tables[k][where])
    effects = average_effects(fit, causes=["Z1"], items=False, replicates=back, fix_graph=True)
    assert (effects.lower[0, 1:] <= effects.upper[0, 1:]).all()


def test_a_large_network_is_restored_from_its_arrays(as_result):
    law = many_latents(as_result, 4).law
    again = network_from_arrays(law.space.levels, *network_arrays(law))
    np.testing.assert_allclose(again.probabilities, law.probabilities)
