"""Refits in the first fit's names: latents the right way round, with all their terms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hidag import BootstrapResult
from hidag.archive import read_archive, write_archive
from hidag.evaluate import relabel_law
from hidag.explain import average_effects
from hidag.explain.refit import Refit, aligned
from hidag.explain.resample import Task
from hidag.measurement import Terms

from .helpers import two_latents


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
    return Task(np.zeros((fit.n_samples, 1)), None, fit, settings, "nonparametric", "full", 0)


def test_one_nominal_item_does_not_turn_latents_round():
    fit = two_latents(("gaussian",) * 6 + ("categorical(3)",), law="saturated")
    # By its law alone this refit looks reversed; by its items it is not.
    other = relabel_law(fit.law, np.arange(2), np.array([True, True]))
    refit = aligned(replace(fit, law=other), fit)
    assert not refit.moved
    np.testing.assert_allclose(refit.agreement, 1.0)
    turned = aligned(relabelled(replace(fit, law=other), [1, 0], [True, False]), fit)
    assert turned.moved
    np.testing.assert_allclose(turned.loadings, fit.loadings)
    np.testing.assert_allclose(turned.joint, other.probabilities)


def test_interactions_that_only_a_refit_has_are_kept(tmp_path):
    rich = replace(two_latents(("gaussian",) * 6, law="saturated", effects="all"), q_given=None)
    fit = replace(rich, parameters=rich.parameters.with_terms(Terms.main((2, 2))))
    refits = [aligned(rich, fit), aligned(fit, fit)]
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


def test_files_without_the_terms_of_refits_still_load(tmp_path):
    fit = two_latents(("gaussian",) * 6, effects="all")
    found = BootstrapResult.of(task_of(fit), [aligned(fit, fit)] * 2)
    header, arrays = read_archive(found.save(tmp_path / "new.npz"), holds="bootstrap")
    del arrays["fitted_asked"]
    write_archive(tmp_path / "old.npz", header, arrays, holds="bootstrap")
    old = BootstrapResult.load(tmp_path / "old.npz")
    assert old.coefficient_table() == found.coefficient_table()
    assert next(old.replicates(fit)).terms == fit.terms
    assert BootstrapResult.load(old.save(tmp_path / "again.npz")).summary() == found.summary()


def test_a_refit_comes_back_from_its_arrays():
    refit = aligned(*[two_latents(("gaussian",) * 6, effects="all")] * 2)
    back = Refit.of(refit.arrays())
    assert back.terms((2, 2)) == refit.terms((2, 2)) == Terms((2, 2), (((0, 1), (1, 1)),))
    assert back.on(Terms.main((2, 2)).joined([back.terms((2, 2))])) is back
