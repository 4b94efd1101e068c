from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hidag.errors import DataError
from hidag.estimate.posterior import state_posteriors
from hidag.explain import classify
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import MeasurementParameters, Terms

from .helpers import drawn, result_at, two_latents


def test_accuracy_and_consistency_are_what_two_tables_show():
    result = two_latents(("bernoulli", "gaussian", "poisson") * 3)
    rng = np.random.default_rng(0)
    states = result.law.sample(20_000, rng)
    first, second = (classify(result, result.sample_items(states, rng)) for _ in range(2))
    for k, name in enumerate(("Z1", "Z2")):
        told = first.quality.where(of=name).to_dicts()[0]
        assert told["accuracy"] == pytest.approx(
            np.mean(first.levels[:, k] == states[:, k]), abs=0.012
        )
        agreed = first.levels[:, k] == second.levels[:, k]
        assert told["consistency"] == pytest.approx(agreed.mean(), abs=0.012)
    whole = first.quality.where(of="(profile)").to_dicts()[0]
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


def test_a_latent_that_others_help_to_place_is_placed_alike_by_two_tables():
    result = chain_of_three(3)
    rng = np.random.default_rng(1)
    states = result.law.sample(20_000, rng)
    first, second = (classify(result, result.sample_items(states, rng)) for _ in range(2))
    agreed = (first.levels == second.levels).mean(axis=0)
    for k, name in enumerate(result.latent_names):
        told = first.quality.where(of=name).to_dicts()[0]
        assert told["consistency"] == pytest.approx(agreed[k], abs=0.008)
        share = first.levels[:, k].mean()
        by_chance = share**2 + (1 - share) ** 2
        right = (agreed[k] - by_chance) / (1 - by_chance)
        assert told["kappa"] == pytest.approx(right, abs=0.016)


def test_few_rows_do_not_agree_with_themselves():
    result = chain_of_three(3)
    rng = np.random.default_rng(2)
    states = result.law.sample(20_000, rng)
    first, second = (result.classify(result.sample_items(states, rng)) for _ in range(2))
    right = (first == second).all(axis=1).mean()
    told = [
        classify(result, drawn(result, 30, seed)[0]).quality.where(of="(profile)")
        for seed in range(200)
    ]
    average = np.mean([one.column("consistency")[0] for one in told])
    # Where a profile has one row or two, pairs tell little, but nothing systematic.
    assert average == pytest.approx(right, abs=0.03)
    alone = classify(result, drawn(result, 1, seed=0)[0])
    assert all(np.isnan(alone.quality.column("consistency")))


def test_people_have_their_ids_and_all_levels():
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
    people = found.people()
    assert people.columns == (
        "id", "profile", "profile_probability", "n_answers", "Z1: level", "Z1: expected",
        "P(Z1=1)", "P(Z1=2)", "Z2: level", "Z2: expected", "P(Z2=1)",
    )  # fmt: skip
    assert people.column("id") == ids
    np.testing.assert_allclose(found.expected, result.posterior(X), atol=1e-12)
    np.testing.assert_array_equal(found.profiles, result.classify(X))
    assert sum(found.shares().column("n_rows")) == 50
    assert found.summary().startswith("50 rows placed on 2 latents\n")


def test_profiles_of_a_single_row_each_are_not_called_common():
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
    assert caption == "all 40 rows have profiles of their own: none is common"
    assert len(common) == 0
    assert f"\n{caption}" in apart.summary()
    assert "profile " not in apart.summary()
    # All of a few are shown, and of many those that two rows or more have.
    assert len(apart.common_profiles(40)[1]) == 40
    profiles[1] = profiles[0]
    once = replace(found, profiles=profiles)
    assert once.common_profiles(10)[1].rows == (("000000", 2, 0.05),)
    nobody = replace(found, n_answers=np.zeros_like(found.n_answers))
    assert nobody.common_profiles(10)[0] == "no row has an answer to be placed by"


def test_ids_must_be_as_many_as_rows():
    result = two_latents(("bernoulli",) * 6)
    X, _ = drawn(result, 10, seed=0)
    with pytest.raises(DataError) as error:
        classify(result, X, ids=["a"])
    assert str(error.value) == "ids must have one entry for each row, but there are 1 for 10 rows"


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
def test_many_latents_are_placed_and_sampling_is_said(sampled, monkeypatch):
    if sampled:
        monkeypatch.setattr("hidag.estimate.tree_posterior.WIDEST", 1)
    result = many_latents(18)
    X, states = drawn(result, 30, seed=0)
    found = classify(result, X)
    assert np.mean(found.levels == states) > 0.95
    whole = found.quality.where(of="(profile)")
    assert np.isnan(whole.column("accuracy")[0]) == sampled
    assert np.isnan(whole.column("consistency")[0])
    lacking = "the consistency of whole profiles is not computed, and that of a latent"
    if sampled:
        lacking = (
            "posteriors are sampled, the quality of whole profiles is not computed, and consistency"
        )
    assert found.notes == (
        f"2^18 joint states are too many to list: {lacking} is given each latent alone, which is "
        "not what it would be given the whole profile",
    )


def test_sampling_is_not_said_where_posteriors_are_sums():
    result = many_latents(14)
    X, _ = drawn(result, 10, seed=0)
    found = classify(result, X)
    listed = state_posteriors(result.parameters, result.law, X)
    (posterior,) = [part for _, part in listed]
    above = posterior @ result.law.space.states()
    np.testing.assert_allclose(found.expected, above, atol=1e-9)
    np.testing.assert_allclose(found.profile_probability, posterior.max(axis=1), atol=1e-9)
    doubt = -(posterior * np.log(np.maximum(posterior, 1e-300))).sum(axis=1).mean()
    whole = found.quality.where(of="(profile)")
    assert whole.column("accuracy")[0] == pytest.approx(posterior.max(axis=1).mean())
    assert whole.column("entropy")[0] == pytest.approx(1 - doubt / (14 * np.log(2)))
    assert found.notes[0].startswith(
        "2^14 joint states are too many to list: the consistency of whole profiles is not computed"
    )
