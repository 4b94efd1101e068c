"""Latents are found again whatever they are called and whichever level is called 1."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import norm

from hidag.exceptions import DataError
from hidag.latent import NetworkLaw, SaturatedLaw, StateSpace
from hidag.measurement import Responses
from hidag.metrics import Parts, match_latents, relabel_law, total_variation
from hidag.simulation import (
    chain_dag,
    design,
    make_truth,
    random_dag,
    random_law,
    random_q,
    simulate,
)

MODELS = ["Chain-5", "Tree-5", "Model-5", "Chain-10", "Model-7", "Model-8", "Model-13"]


def shuffled(truth, seed: int):
    """Return a truth's parts under other labels, and the matching that undoes it."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(truth.n_latents)
    flips = rng.random(truth.n_latents) < 0.5
    back = np.argsort(order)
    return Parts.of(truth).relabelled(order, flips), tuple(back), tuple(flips[back])


@pytest.mark.parametrize("model", MODELS)
def test_permutations_and_flips_are_recovered(model: str) -> None:
    for seed in range(5):
        truth = design(model, "Q2" if seed % 2 else "Q1", rng=seed)
        ours, permutation, flips = shuffled(truth, seed)
        found = match_latents(ours, truth)
        assert found.permutation == permutation
        assert found.flips == flips
        assert found.extra == ()


def test_recovery_survives_noise_in_q_and_loadings() -> None:
    for seed in range(10):
        truth = design("Chain-10", rng=seed)
        ours, permutation, flips = shuffled(truth, seed)
        rng = np.random.default_rng(100 + seed)
        wrong = rng.random(ours.q_matrix.shape) < 0.08
        noisy = Parts(
            np.where(wrong, 1 - ours.q_matrix, ours.q_matrix),
            ours.intercept,
            ours.loadings + 0.3 * rng.standard_normal(ours.loadings.shape),
            ours.law,
        )
        found = match_latents(noisy, truth)
        assert (found.permutation, found.flips) == (permutation, flips)


def test_no_matching_has_fewer_wrong_entries_of_q() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        ours, true = rng.integers(0, 2, (8, 4)), rng.integers(0, 2, (8, 4))
        # The loadings favour the given order, which Q has to overrule.
        loadings = rng.standard_normal((8, 4))
        found = match_latents(Parts(ours, loadings=loadings), Parts(true, loadings=loadings))
        best = min((ours[:, list(p)] != true).sum() for p in permutations(range(4)))
        assert (ours[:, list(found.permutation)] != true).sum() == best


def test_equal_columns_of_q_are_distinguished_by_loadings() -> None:
    q = np.ones((6, 3), dtype=int)
    loadings = np.random.default_rng(0).standard_normal((6, 3))
    found = match_latents(
        Parts(q, loadings=loadings[:, [2, 0, 1]] * [1, -1, 1]), Parts(q, loadings=loadings)
    )
    assert found.permutation == (1, 2, 0)
    assert found.flips == (True, False, False)


def test_equal_columns_and_no_loadings_are_distinguished_by_the_law() -> None:
    q = np.ones((4, 3), dtype=int)
    law = NetworkLaw(
        StateSpace.binary(3),
        ((), (0,), (1,)),
        (
            np.array([0.3, 0.7]),
            np.array([[0.8, 0.2], [0.1, 0.9]]),
            np.array([[0.6, 0.4], [0.25, 0.75]]),
        ),
    )
    true = Parts(q, law=law)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        ours = true.relabelled(rng.permutation(3), rng.random(3) < 0.5)
        found = match_latents(ours, true)
        moved = ours.relabelled(found.permutation, found.flips)
        assert total_variation(moved.law, law) == pytest.approx(0, abs=1e-12)


def test_loadings_come_before_the_law() -> None:
    truth = design("Model-5", rng=0)
    ours, permutation, flips = shuffled(truth, 3)
    other = Parts(ours.q_matrix, ours.intercept, ours.loadings, random_law(truth.dag, rng=9))
    found = match_latents(other, truth)
    assert (found.permutation, found.flips) == (permutation, flips)


def with_nominal(nominal: str) -> Parts:
    """Return a model of two latents with two gaussian items each and a nominal one."""
    responses = Responses.of(("gaussian",) * 4 + (nominal,))
    q = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]])
    rows = q[responses.item] * np.array([1.5, 1.0, 1.2, 0.8, 0.5, -0.5])[:, None]
    law = SaturatedLaw(StateSpace.binary(2), np.array([0.3, 0.2, 0.19, 0.31]))
    return Parts(q, np.arange(6.0), rows, law, questions=responses.questions)


@pytest.mark.parametrize("nominal", ["categorical(3)", "categorical(2,0,1)"])
def test_one_nominal_item_leaves_the_direction_to_the_loadings(nominal: str) -> None:
    true = with_nominal("categorical(3)")
    ours = with_nominal(nominal)
    # A law that is nearer to the true one when both latents are reversed.
    turned = Parts(
        ours.q_matrix,
        ours.intercept,
        ours.loadings,
        relabel_law(true.law, np.arange(2), np.array([True, True])),
        questions=ours.questions,
    )
    found = match_latents(turned, true)
    assert (found.permutation, found.flips) == ((0, 1), (False, False))
    shuffled_parts = turned.relabelled([1, 0], [False, True])
    found = match_latents(shuffled_parts, true)
    assert (found.permutation, found.flips) == ((1, 0), (True, False))


def test_nominal_items_determine_flips_by_their_common_responses() -> None:
    law = SaturatedLaw(StateSpace.binary(1), np.array([0.4, 0.6]))

    def parts(nominal: str, rows: list[float]) -> Parts:
        asked = Responses.of((nominal,)).questions
        loadings = np.array(rows)[:, None]
        return Parts(np.ones((1, 1)), np.zeros(2), loadings, law, questions=asked)

    true = parts("categorical(0,1,2)", [1.0, 0.7])
    # The second response contrasts 1 and 2 in the opposite order: only the first is comparable.
    assert match_latents(parts("categorical(0,2,1)", [-0.9, 5.0]), true).flips == (True,)
    # No response is comparable: the law decides, as without loadings.
    assert match_latents(parts("categorical(2,0,1)", [-0.9, -5.0]), true).flips == (False,)


def test_a_latent_too_few_and_a_latent_too_many() -> None:
    truth = Parts.of(design("Chain-5", rng=0))
    keep = [3, 1, 0, 4]
    few = Parts(truth.q_matrix[:, keep], truth.intercept, truth.loadings[:, keep])
    found = match_latents(few, truth)
    assert found.permutation == (2, 1, -1, 0, 3)
    assert found.extra == ()
    swapped = match_latents(truth, few)
    assert swapped.permutation == (3, 1, 0, 4)
    assert swapped.extra == (2,)


def test_latents_match_only_their_number_of_levels_when_q_is_tied() -> None:
    q = np.ones((4, 2), dtype=int)
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(6)).reshape(2, 3)
    true = Parts(q, law=SaturatedLaw(StateSpace((2, 3)), table.ravel()))
    ours = Parts(q, law=SaturatedLaw(StateSpace((3, 2)), table.T.ravel()))
    assert match_latents(ours, true).permutation == (1, 0)


@pytest.mark.parametrize("levels", [None, (2, 3, 4, 2)])
def test_relabelling_leaves_the_distribution_of_the_items_unchanged(levels) -> None:
    for seed in range(5):
        law = random_law(
            random_dag(4, 1, rng=seed), rng=seed, levels=levels, root_probability=(0.2, 0.8)
        )
        truth = make_truth(law, random_q(9, 4, rng=seed), slope_ratio=2, rng=seed)
        ours, _, _ = shuffled(truth, seed)
        X = simulate(truth, 20, rng=seed).X
        np.testing.assert_allclose(
            log_density(ours, X), log_density(Parts.of(truth), X), rtol=1e-10
        )


def log_density(parts: Parts, X):
    """Return the log density of gaussian items with variance 1, summed over all joint states."""
    eta = parts.intercept + parts.terms.features(parts.law.space.states()) @ parts.loadings.T
    given = norm.logpdf(X[:, None, :], eta[None]).sum(axis=2)
    return np.log(np.exp(given) @ parts.law.probabilities)


def test_both_kinds_of_law_are_relabelled_identically() -> None:
    rng = np.random.default_rng(0)
    for seed in range(10):
        law = random_law(random_dag(4, 1.5, rng=seed), rng=seed, levels=(2, 3, 2, 4))
        order, flips = rng.permutation(4), rng.random(4) < 0.5
        network = relabel_law(law, order, flips)
        listed = relabel_law(SaturatedLaw(law.space, law.probabilities), order, flips)
        assert isinstance(network, NetworkLaw)
        assert network.space == listed.space
        np.testing.assert_allclose(network.probabilities, listed.probabilities, atol=1e-14)


def test_relabelling_by_hand() -> None:
    law = SaturatedLaw(StateSpace.binary(2), np.array([0.1, 0.2, 0.3, 0.4]))
    parts = Parts(np.array([[1, 0]]), [5.0], [[2.0, 0.0]], law, np.array([[0, 1], [0, 0]]))
    moved = parts.relabelled([1, 0], [False, True])
    assert moved.q_matrix.tolist() == [[0, 1]]
    assert moved.loadings.tolist() == [[0, -2]]
    assert moved.intercept.tolist() == [7]
    # New (z1, z2) is old (1 - z2, z1).
    assert moved.law.probabilities.tolist() == [0.3, 0.1, 0.4, 0.2]
    assert moved.graph.tolist() == [[0, 0], [1, 0]]


def test_pairs_that_are_not_allowed_are_not_matched() -> None:
    truth = Parts.of(design("Chain-5", rng=0))
    ours = truth.relabelled([1, 0, 2, 4, 3], np.zeros(5, dtype=bool))
    assert match_latents(ours, truth).permutation == (1, 0, 2, 4, 3)
    allowed = np.ones((5, 5), dtype=bool)
    allowed[0], allowed[:, 0] = np.arange(5) == 0, np.arange(5) == 0
    assert match_latents(ours, truth, allowed=allowed).permutation == (0, 1, 2, 4, 3)


def test_a_hundred_latents_are_matched_without_listing_states() -> None:
    law = random_law(random_dag(100, 1, rng=0), rng=0)
    truth = make_truth(law, random_q(300, 100, rng=0), rng=0)
    ours, permutation, flips = shuffled(truth, 1)
    found = match_latents(ours, truth)
    assert (found.permutation, found.flips) == (permutation, flips)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: match_latents(Parts(np.ones((3, 2))), Parts(np.ones((4, 2)))),
            "estimate and truth must have the same items, got 3 and 4",
        ),
        (
            lambda: Parts.of(object()),
            "'object' has neither q_matrix_ nor q_matrix; pass a fitted estimator, its result, or "
            "Parts(q_matrix, ...)",
        ),
        (lambda: Parts(np.ones(3)), "q_matrix must be a two-dimensional array of 0 and 1"),
        (
            lambda: Parts(np.ones((3, 2)), loadings=np.ones((2, 3))),
            "loadings must have shape (3, 2), got (2, 3)",
        ),
        (
            lambda: Parts(np.ones((3, 2)), graph=np.zeros((3, 3))),
            "q_matrix has 2 columns, but the graph has 3 latents",
        ),
        (
            lambda: Parts(np.ones((3, 2)), law=SaturatedLaw(StateSpace((2,)), np.ones(2) / 2)),
            "q_matrix has 2 columns, but the law has 1 latents",
        ),
        (
            lambda: Parts(np.ones((3, 2))).relabelled([0, 0], [False, False]),
            "order must contain each of 0..1 once, and flips must have the same length",
        ),
    ],
)
def test_invalid_models_are_reported(call, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        call()
    assert str(caught.value) == sentence


def test_ties_of_twenty_latents_are_broken_without_listing_states(monkeypatch) -> None:
    law = random_law(chain_dag(20), rng=1)
    parts = Parts(np.repeat(np.eye(20, dtype=np.int8), 2, axis=0), law=law)

    def listed(self):
        raise AssertionError("joint states were listed")

    monkeypatch.setattr(type(law.space), "states", listed)
    assert match_latents(parts, parts).permutation == tuple(range(20))
