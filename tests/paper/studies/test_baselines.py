from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest

from hidag.exceptions import DataError, MissingPackageError, SettingError
from hidag.latent import NetworkLaw, StateSpace
from hidag.metrics import Parts, evaluate
from hidag.simulation import Simulation, make_truth, simulate
from hidag_paper.baselines import BASELINES
from hidag_paper.baselines.baseline import normal_values
from hidag_paper.baselines.latent_class import match_classes
from hidag_paper.baselines.mixture_oracle import LatentNumbers, best_exponent, closest_q, decompose

NEEDS_STEPMIX = pytest.mark.skipif(find_spec("stepmix") is None, reason="StepMix is not installed")
MARKED = [
    pytest.param(name, marks=NEEDS_STEPMIX if name == "latent-class" else ()) for name in BASELINES
]
EVERY = pytest.mark.parametrize("name", MARKED)


def even_odds(size: int) -> np.ndarray:
    return np.full(size, 0.5)


@pytest.fixture(scope="module")
def easy() -> Simulation:
    """Z1 -> Z2, Z3 apart; every item far from its noise, every state with a mean of its own."""
    tables = (even_odds(2), np.array([[0.75, 0.25], [0.2, 0.8]]), even_odds(2))
    law = NetworkLaw(StateSpace.binary(3), ((), (0,), ()), tables)
    q = np.vstack([np.eye(3), np.eye(3), [[1, 1, 0], [0, 1, 1]]]).astype(int)
    truth = make_truth(law, q, slope_ratio=2.0, dispersion=0.04, rng=1)
    return simulate(truth, 600, rng=2)


def run(name: str, data: Simulation, columns: np.ndarray | None = None, seed: int = 3):
    order = np.arange(data.truth.n_items) if columns is None else columns
    families = [data.truth.families[j] for j in order]
    return BASELINES[name].run(data.X[:, order], families, data.truth.n_latents, seed)


@pytest.fixture(scope="module")
def found_in(easy):
    """What each method finds, looked for once."""
    return cache(lambda name: run(name, easy))


@EVERY
def test_an_easy_truth_is_found(name, easy, found_in) -> None:
    found = found_in(name)
    assert found.q_matrix.shape == (8, 3)
    assert found.q_matrix.dtype == np.int8
    assert found.graph.is_valid()
    held = evaluate(Parts(found.q_matrix, graph=found.graph), easy.truth)
    if name == "printed":
        # As printed, Q has every loading that is not exactly zero, and its columns are similar.
        assert (found.q_matrix >= easy.truth.q_matrix[:, list(held.permutation)]).mean() > 0.9
        return
    assert held.shd_q == 0
    assert held.graph.n_missing == 0
    # Rows that are drawn from a fitted law bring noise that looks like edges.
    assert name == "research-code" or held.shd_graph == 0


@EVERY
def test_a_seed_gives_the_same_answer(name, easy, found_in) -> None:
    first, second = found_in(name), run(name, easy)
    np.testing.assert_array_equal(first.q_matrix, second.q_matrix)
    np.testing.assert_array_equal(first.graph.adjacency, second.graph.adjacency)
    assert first.notes == second.notes


@EVERY
def test_permuting_columns_only_permutes_the_answer(name, easy, found_in) -> None:
    order = np.array([4, 0, 6, 2, 7, 5, 1, 3])
    plain, moved = found_in(name), run(name, easy, order)
    np.testing.assert_array_equal(moved.q_matrix, plain.q_matrix[order])
    np.testing.assert_array_equal(moved.graph.adjacency, plain.graph.adjacency)


@EVERY
def test_missing_cells_raise(name, easy) -> None:
    values = np.array(easy.X)
    values[[3, 7], 2] = np.nan
    with pytest.raises(DataError) as caught:
        BASELINES[name].run(values, easy.truth.families, 3, 0)
    assert str(caught.value) == (
        f"{name} needs a complete table, but 2 of 4800 cells are missing or infinite; drop rows or "
        "items with missing cells"
    )


@EVERY
def test_constant_items_raise(name, easy) -> None:
    values = np.array(easy.X)
    values[:, 4] = 1.0
    with pytest.raises(DataError) as caught:
        BASELINES[name].run(values, easy.truth.families, 3, 0)
    assert str(caught.value) == (
        f"{name} needs items that vary, but 1 of 8 columns are constant, the first is column 4 "
        "(from 0)"
    )


@EVERY
@pytest.mark.parametrize(
    ("families", "n_latents", "sentence"),
    [
        (["gaussian"], 3, "families must have 8 entries, one per item, got 1"),
        (["gaussian"] * 8, 0, "n_latents must be a whole number of at least 1, got 0"),
    ],
)
def test_invalid_settings_raise(name, families, n_latents, sentence, easy) -> None:
    with pytest.raises(SettingError) as caught:
        BASELINES[name].run(easy.X, families, n_latents, 0)
    assert str(caught.value) == sentence


def test_more_latents_than_items_raise(easy) -> None:
    with pytest.raises(SettingError) as caught:
        BASELINES["factor-ges"].run(easy.X, easy.truth.families, 8, 0)
    assert str(caught.value) == (
        "factor-ges needs fewer latents than items, got 8 latents and 8 items"
    )


@pytest.mark.parametrize("name", MARKED[1:])
def test_logarithms_of_lognormal_items_are_gaussian_ones(name, easy, found_in) -> None:
    logged = BASELINES[name].run(np.exp(easy.X), ["lognormal"] * 8, 3, 3)
    plain = Parts(found_in(name).q_matrix, graph=found_in(name).graph)
    assert evaluate(Parts(logged.q_matrix, graph=logged.graph), plain).shd == 0


def test_an_oracle_reads_logarithms_of_lognormal_items(easy) -> None:
    read = normal_values(np.exp(easy.X), ["lognormal"] * 8)
    np.testing.assert_allclose(read, easy.X)


@EVERY
def test_invalid_values_raise(name, easy) -> None:
    with pytest.raises(DataError, match="lognormal"):
        BASELINES[name].run(easy.X, ["lognormal"] * 8, 3, 0)
    with pytest.raises(DataError) as caught:
        BASELINES[name].run([["yes", "no"]], ["bernoulli"] * 2, 1, 0)
    assert str(caught.value) == f"{name} needs a numeric table"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "mixture-oracle",
            "mixture-oracle supports the families gaussian and lognormal, got 'poisson'; use "
            "another baseline",
        ),
        (
            "latent-class",
            "latent-class supports the families gaussian and lognormal and bernoulli, got "
            "'poisson'; use another baseline",
        ),
    ],
)
def test_unsupported_families_raise(name, sentence, easy) -> None:
    values = np.array(easy.X)
    values[:, 7] = np.round(np.abs(values[:, 7]))
    with pytest.raises(SettingError) as caught:
        BASELINES[name].run(values, [*["gaussian"] * 7, "poisson"], 3, 0)
    assert str(caught.value) == sentence


@EVERY
def test_one_latent_stands_alone(name, easy) -> None:
    found = BASELINES[name].run(easy.X[:, [0, 3, 6]], ["gaussian"] * 3, 1, 0)
    assert found.q_matrix.shape == (3, 1)
    assert found.q_matrix[:2].all()
    assert found.graph.n_edges == 0


@pytest.mark.parametrize(
    ("n_items", "n_latents", "sentence"),
    [
        (
            21,
            3,
            "mixture-oracle, which considers all triples of items, has at most 20 items and 8 "
            "latents, got 21 and 3",
        ),
        (
            3,
            3,
            "mixture-oracle needs at least 3 items and fewer latents than items, got 3 items and "
            "3 latents",
        ),
    ],
)
def test_size_limits_of_the_mixture_oracle(n_items, n_latents, sentence) -> None:
    values = np.random.default_rng(0).normal(size=(20, n_items))
    with pytest.raises(SettingError) as caught:
        BASELINES["mixture-oracle"].run(values, ["gaussian"] * n_items, n_latents, 0)
    assert str(caught.value) == sentence


Q = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])


def numbers_of(q: np.ndarray) -> LatentNumbers:
    union = q[:, None, None] | q[:, None] | q
    pair = (q[:, None] | q).sum(axis=2)
    return LatentNumbers(q.sum(axis=1), pair, union.sum(axis=3))


def columns(q: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(column) for column in q.T.tolist()}


def test_exact_counts_are_decomposed_into_q() -> None:
    numbers = numbers_of(Q)
    np.testing.assert_allclose(numbers.shared(), np.einsum("ik,jk,lk->ijl", Q, Q, Q))
    found = decompose(numbers.shared(), 3, np.random.default_rng(0))
    assert columns(found) == columns(Q)


def test_few_wrong_counts_do_not_change_q() -> None:
    numbers = numbers_of(Q)
    triple = numbers.triple.copy()
    triple[3, 4, 5] += 1
    triple[0, 1, 6] -= 1
    single = numbers.single.copy()
    single[6] = 2
    wrong = LatentNumbers(single, numbers.pair, triple)
    found, misfit, _ = closest_q(wrong, 3, np.random.default_rng(0))
    assert columns(found) == columns(Q)
    assert misfit == 3.0


@pytest.mark.parametrize("exponent", [0, 1, 2, 3])
def test_components_that_lie_apart_are_counted(exponent) -> None:
    rng = np.random.default_rng(exponent)
    means = 6.0 * rng.permutation(8)[: 2**exponent]
    values = means[rng.integers(0, 2**exponent, 800)] + rng.normal(size=800)
    assert best_exponent(values[:, None], 0, 4, rng) == exponent


def test_latent_class_without_stepmix_raises(easy, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "stepmix.stepmix", None)
    with pytest.raises(MissingPackageError) as caught:
        BASELINES["latent-class"].run(easy.X, easy.truth.families, 3, 0)
    assert str(caught.value) == (
        "latent-class needs stepmix, which is not installed; use pip install 'hidag[baselines]'"
    )


def test_more_classes_than_rows_raise(easy) -> None:
    with pytest.raises(SettingError) as caught:
        BASELINES["latent-class"].run(easy.X[:7], easy.truth.families, 3, 0)
    assert str(caught.value) == (
        "latent-class needs at least as many rows as classes, got 7 rows for 2^3 classes"
    )


@NEEDS_STEPMIX
def test_latent_classes_take_binary_items_beside_continuous_ones(easy) -> None:
    values = np.array(easy.X)
    values[:, 3:6] = values[:, 3:6] > 0.5
    families = ["gaussian"] * 3 + ["bernoulli"] * 3 + ["gaussian"] * 2
    found = BASELINES["latent-class"].run(values, families, 3, 0)
    assert evaluate(Parts(found.q_matrix), easy.truth).shd_q == 0


def test_classes_get_the_states_their_means_add_up_to() -> None:
    rng = np.random.default_rng(5)
    states = StateSpace.binary(3).states()
    effects = 4.0 * Q.T * rng.uniform(0.5, 1.5, Q.T.shape)
    shares = rng.dirichlet(np.full(8, 5.0))
    means = states @ effects + rng.normal(size=(8, 7)) / np.sqrt(2000 * shares)[:, None]
    found = match_classes(means, 2000 * shares, 3, rng)
    assert len(set(found.states.tolist())) == 8
    assert columns(found.q_matrix) == columns(Q)
