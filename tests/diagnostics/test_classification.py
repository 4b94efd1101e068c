from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hidag.diagnostics import classify, fit_statistics
from hidag.em.posterior import state_posteriors
from hidag.exceptions import DataError
from hidag.latent import NetworkLaw, SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters, Terms

from ..fitted_models import drawn, result_at, two_latents


def test_accuracy_and_consistency_match_two_tables():
    result = two_latents(("bernoulli", "gaussian", "poisson") * 3)
    rng = np.random.default_rng(0)
    states = result.law.sample(20_000, rng)
    first, second = (classify(result, result.sample_items(states, rng)) for _ in range(2))
    for k, name in enumerate(("Z1", "Z2")):
        reported = first.quality.where(latent=name).to_dicts()[0]
        assert reported["accuracy"] == pytest.approx(
            np.mean(first.levels[:, k] == states[:, k]), abs=0.012
        )
        agreed = first.levels[:, k] == second.levels[:, k]
        assert reported["consistency"] == pytest.approx(agreed.mean(), abs=0.012)
    whole = first.quality.where(latent="(profile)").to_dicts()[0]
    right = (first.profiles == states).all(axis=1)
    agreed = (first.profiles == second.profiles).all(axis=1)
    assert whole["accuracy"] == pytest.approx(right.mean(), abs=0.012)
    assert whole["consistency"] == pytest.approx(agreed.mean(), abs=0.012)


def chain_of_three(n_weak: int):
    """Return a fit of three latents in a chain; the last is mostly shown by its neighbour."""
    tables = (np.array([0.5, 0.5]), *[np.array([[0.9, 0.1], [0.1, 0.9]])] * 2)
    law = NetworkLaw(StateSpace.binary(3), ((), (0,), (1,)), tables)
    q = np.repeat(np.eye(3), [4, 3, n_weak], axis=0)
    slopes = np.repeat([2.8, 1.2], [7, n_weak])
    parameters = MeasurementParameters(
        ("bernoulli",) * len(q), -slopes / 2, slopes[:, None] * q, np.ones(len(q))
    )
    return result_at(parameters, law, n_samples=1000)


def test_consistency_of_a_latent_informed_by_others_matches_two_tables():
    result = chain_of_three(3)
    rng = np.random.default_rng(1)
    states = result.law.sample(20_000, rng)
    first, second = (classify(result, result.sample_items(states, rng)) for _ in range(2))
    agreed = (first.levels == second.levels).mean(axis=0)
    for k, name in enumerate(result.latent_names):
        reported = first.quality.where(latent=name).to_dicts()[0]
        assert reported["consistency"] == pytest.approx(agreed[k], abs=0.008)
        share = first.levels[:, k].mean()
        by_chance = share**2 + (1 - share) ** 2
        right = (agreed[k] - by_chance) / (1 - by_chance)
        assert reported["kappa"] == pytest.approx(right, abs=0.016)


def test_consistency_of_few_rows_is_unbiased():
    result = chain_of_three(3)
    rng = np.random.default_rng(2)
    states = result.law.sample(20_000, rng)
    first, second = (
        result.most_probable_states(result.sample_items(states, rng)) for _ in range(2)
    )
    right = (first == second).all(axis=1).mean()
    reported = [
        classify(result, drawn(result, 30, seed)[0]).quality.where(latent="(profile)")
        for seed in range(200)
    ]
    average = np.mean([one.column("consistency")[0] for one in reported])
    # No bias, although some tables have few rows per profile.
    assert average == pytest.approx(right, abs=0.015)


def chain_of(n_latents: int):
    """Return a fit of latents in a chain, each with six items that show it clearly."""
    first, later = np.array([0.5, 0.5]), np.array([[0.7, 0.3], [0.3, 0.7]])
    parents = ((), *((k,) for k in range(n_latents - 1)))
    law = NetworkLaw(StateSpace.binary(n_latents), parents, (first, *[later] * (n_latents - 1)))
    q = np.repeat(np.eye(n_latents), 6, axis=0)
    parameters = MeasurementParameters(
        ("bernoulli",) * len(q), np.full(len(q), -2.0), 4.0 * q, np.ones(len(q))
    )
    return result_at(parameters, law, n_samples=200)


@pytest.mark.parametrize("most_listed", [1 << 13, 1])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_consistency_with_more_profiles_than_rows_matches_two_tables(
    most_listed, missing, configure
):
    configure("derivatives", max_states=most_listed)
    result = chain_of(9)
    rng = np.random.default_rng(3)
    states = result.law.sample(4000, rng)
    gaps = rng.random((4000, 54)) < missing
    first, second = (np.where(gaps, np.nan, result.sample_items(states, rng)) for _ in range(2))
    whole = (
        (result.most_probable_states(first) == result.most_probable_states(second))
        .all(axis=1)
        .mean()
    )
    each = ((result.posterior(first) > 0.5) == (result.posterior(second) > 0.5)).mean(axis=0)
    found = classify(result, first[:200])
    reported = np.array(found.quality.column("consistency"))
    # The consistency of 200 rows has a standard error of about .01.
    np.testing.assert_allclose(reported[-1], whole, atol=0.04)
    np.testing.assert_allclose(reported[:-1], each, atol=0.03)
    assert tuple(map(str, found.notes)) == (
        "there are few rows for so many joint states, so consistency is estimated from 10,000 rows "
        "of replicate tables drawn from the model instead of pairs of rows",
    )
    turned = classify(result, first[:200][::-1])
    np.testing.assert_allclose(turned.quality.column("consistency"), reported, atol=1e-12)


def test_rows_of_different_booklets_use_replicate_tables():
    result = chain_of(3)
    weak = replace(result.parameters, intercept=np.full(18, -1.0), loadings=result.loadings / 2)
    result = replace(result, parameters=weak)
    rng = np.random.default_rng(5)
    states = result.law.sample(6000, rng)
    # Each booklet lacks all items of one latent.
    gaps = np.arange(18) // 6 == np.arange(6000)[:, None] % 3
    first, second = (
        classify(result, np.where(gaps, np.nan, result.sample_items(states, rng))) for _ in range(2)
    )
    reported = first.quality.column("consistency")
    each = (first.levels == second.levels).mean(axis=0)
    whole = (first.profiles == second.profiles).all(axis=1).mean()
    np.testing.assert_allclose(reported, [*each, whole], atol=0.025)
    assert first.notes[0].code == "consistency-from-replicates"
    assert first.notes[0].params == {
        "reason": "rows have different missing cells",
        "n_drawn": 12_000,
    }
    # One booklet alone is compared in pairs.
    assert classify(result, np.where(gaps[0], np.nan, drawn(result, 600, seed=0)[0])).notes == ()


def test_consistency_of_a_single_row_comes_from_replicates():
    result = chain_of(2)
    found = classify(result, np.tile([1.0, 1, 1, 1, 1, 0], 2)[None])
    assert 0.97 < found.quality.column("consistency")[0] < 1.0
    # With a single profile all agreement is by chance.
    assert np.isnan(found.quality.column("kappa")).all()


def test_table_has_ids_and_all_levels():
    space = StateSpace((3, 2))
    law = NetworkLaw(space, ((), ()), (np.array([0.3, 0.4, 0.3]), np.array([0.5, 0.5])))
    loadings = np.array([[2.0, 2.0, 0.0]] * 3 + [[0.0, 0.0, 2.0]] * 3)
    parameters = MeasurementParameters(
        ("gaussian",) * 6, np.zeros(6), loadings, np.ones(6), Terms.main((3, 2))
    )
    result = result_at(parameters, law, n_samples=50)
    X, _ = drawn(result, 50, seed=0)
    ids = [f"p{i}" for i in range(50)]
    frame = pd.DataFrame(X, columns=result.item_names).assign(extra="text").iloc[:, ::-1]
    found = classify(result, frame, ids=ids)
    people = found.to_table()
    assert people.columns == (
        "id", "profile", "profile_probability", "n_answers", "Z1: level", "Z1: expected",
        "P(Z1=1)", "P(Z1=2)", "Z2: level", "Z2: expected", "P(Z2=1)",
    )  # fmt: skip
    assert people.column("id") == ids
    np.testing.assert_allclose(found.expected, result.posterior(X), atol=1e-12)
    np.testing.assert_array_equal(found.profiles, result.most_probable_states(X))
    assert sum(found.shares().column("n_rows")) == 50
    assert found.summary().startswith("50 rows classified on 2 latents\n")


def test_profiles_of_single_rows_are_not_common():
    result = two_latents(("bernoulli",) * 6)
    X, _ = drawn(result, 40, seed=0)
    found = classify(result, X)
    n_profiles = len(found.shares())
    assert found.common_profiles(4) == (
        f"most common profiles of {n_profiles} (levels of Z1, Z2)",
        found.shares(),
    )
    profiles = np.array([[i >> k & 1 for k in range(6)] for i in range(40)])
    apart = replace(found, profiles=profiles)
    caption, common = apart.common_profiles(10)
    assert caption == "all 40 rows have different profiles"
    assert len(common) == 0
    assert f"\n{caption}" in apart.summary()
    # No table of profiles follows.
    assert not any(line.startswith("profile ") for line in apart.summary().splitlines())
    # All of a few are shown, and of many those that two rows or more have.
    assert len(apart.common_profiles(40)[1]) == 40
    profiles[1] = profiles[0]
    once = replace(found, profiles=profiles)
    assert once.common_profiles(10)[1].rows == (("000000", 2, 0.05),)
    nobody = replace(found, n_answers=np.zeros_like(found.n_answers))
    assert nobody.common_profiles(10)[0] == "no row has an answer"


def test_ids_need_one_entry_per_row():
    result = two_latents(("bernoulli",) * 6)
    X, _ = drawn(result, 10, seed=0)
    with pytest.raises(DataError) as error:
        classify(result, X, ids=["a"])
    assert str(error.value) == "ids must have one entry for each of the 10 rows, got 1"


def test_a_table_without_an_item_is_refused():
    result = two_latents(("bernoulli",) * 6)
    X, _ = drawn(result, 10, seed=0)
    frame = pd.DataFrame(X, columns=[*result.item_names[:5], "other"])
    with pytest.raises(DataError) as error:
        classify(result, frame)
    assert str(error.value) == (
        "the table must have the items of the fit, but it lacks 'X6' (1 of 6 items); give the "
        "table that was fitted, or one with the same columns"
    )


def many_latents(n_latents):
    space = StateSpace.binary(n_latents)
    law = NetworkLaw(space, ((),) * n_latents, (np.array([0.5, 0.5]),) * n_latents)
    q = np.repeat(np.eye(n_latents), 2, axis=0)
    n_items = len(q)
    parameters = MeasurementParameters(
        ("gaussian",) * n_items, np.zeros(n_items), 4.0 * q, np.ones(n_items)
    )
    return replace(result_at(parameters, law, n_samples=30), method="saem")


@pytest.mark.parametrize("sampled", [False, True])
def test_sampled_posteriors_of_many_latents_are_noted(sampled, configure):
    if sampled:
        configure("network_em", max_clique_cells=1)
    result = many_latents(18)
    X, states = drawn(result, 30, seed=0)
    found = classify(result, X)
    assert np.mean(found.levels == states) > 0.95
    whole = found.quality.where(latent="(profile)")
    assert np.isnan(whole.column("accuracy")[0]) == sampled
    assert np.isnan(whole.column("consistency")[0]) == sampled
    if sampled:
        assert tuple(map(str, found.notes)) == (
            "2^18 joint states are too many to enumerate: posteriors are sampled, the quality of "
            "whole profiles is not computed, and consistency is conditional on each latent alone "
            "instead of the whole profile",
        )
    else:
        assert [note.code for note in found.notes] == ["consistency-from-replicates"]


def test_exact_posteriors_have_no_sampling_note():
    result = many_latents(14)
    X, _ = drawn(result, 10, seed=0)
    found = classify(result, X)
    listed = state_posteriors(result.parameters, result.law, X)
    (posterior,) = [part for _, part in listed]
    above = posterior @ result.law.space.states()
    np.testing.assert_allclose(found.expected, above, atol=1e-9)
    np.testing.assert_allclose(found.profile_probability, posterior.max(axis=1), atol=1e-9)
    uncertainty = -(posterior * np.log(np.maximum(posterior, 1e-300))).sum(axis=1).mean()
    whole = found.quality.where(latent="(profile)")
    assert whole.column("accuracy")[0] == pytest.approx(posterior.max(axis=1).mean())
    assert whole.column("entropy")[0] == pytest.approx(1 - uncertainty / (14 * np.log(2)))
    assert not any("sampled" in str(note) for note in found.notes)


def test_entropy_is_relative_to_the_states_of_a_hierarchy():
    # Uninformative rows have a uniform posterior over the three states that may occur.
    law = SaturatedLaw(StateSpace((2, 2)), np.array([1, 0, 1, 1]) / 3)
    parameters = MeasurementParameters(
        ("bernoulli",) * 4, np.zeros(4), np.zeros((4, 2)), np.ones(4)
    )
    reported = {"effects": "main", "seed": 0, "knowledge": {"hierarchy": [["Z1", "Z2"]]}}
    result = result_at(parameters, law, n_samples=20, settings=reported)
    X = np.random.default_rng(0).integers(0, 2, (20, 4)).astype(float)
    whole = classify(result, X).quality.where(latent="(profile)")
    assert whole.column("entropy")[0] == pytest.approx(0.0, abs=1e-9)
    q = np.array([[1, 0], [0, 1]] * 2, dtype=np.int8)
    loaded = replace(parameters, loadings=1e-9 * q)
    result = replace(result, parameters=loaded, q_given=q)
    assert fit_statistics(result, X).criteria.entropy == pytest.approx(0.0, abs=1e-6)
