from __future__ import annotations

import numpy as np
import pytest

from hidag.errors import DataError, HidagError, SettingError
from hidag.evaluate import Parts, evaluate
from hidag.latent import NetworkLaw, StateSpace
from hidag.simulate import Simulation, make_truth, simulate
from hidag.studies.baselines import BASELINES

EVERY = pytest.mark.parametrize("name", list(BASELINES))


def even_odds(size: int) -> np.ndarray:
    return np.full(size, 0.5)


@pytest.fixture(scope="module")
def easy() -> Simulation:
    """Z1 -> Z2, Z3 apart; every item far from its noise, every state with a mean of its own."""
    tables = (even_odds(2), np.array([[0.75, 0.25], [0.2, 0.8]]), even_odds(2))
    law = NetworkLaw(StateSpace.binary(3), ((), (0,), ()), tables)
    q = np.vstack([np.eye(3), np.eye(3), [[1, 1, 0], [0, 1, 1], [1, 0, 1]]]).astype(int)
    truth = make_truth(law, q, slope_ratio=2.0, dispersion=0.04, rng=1)
    return simulate(truth, 1500, rng=2)


def run(name: str, data: Simulation, columns: np.ndarray | None = None, seed: int = 3):
    order = np.arange(data.truth.n_items) if columns is None else columns
    families = [data.truth.families[j] for j in order]
    return BASELINES[name].run(data.X[:, order], families, data.truth.n_latents, seed)


@EVERY
def test_an_easy_truth_is_found(name, easy) -> None:
    found = run(name, easy)
    assert found.q_matrix.shape == (9, 3)
    assert found.q_matrix.dtype == np.int8
    assert found.graph.is_valid()
    assert evaluate(Parts(found.q_matrix, graph=found.graph), easy.truth).shd == 0


@EVERY
def test_a_seed_gives_the_same_answer(name, easy) -> None:
    first, second = run(name, easy), run(name, easy)
    np.testing.assert_array_equal(first.q_matrix, second.q_matrix)
    np.testing.assert_array_equal(first.graph.adjacency, second.graph.adjacency)
    assert first.notes == second.notes


@EVERY
def test_permuting_columns_only_permutes_the_answer(name, easy) -> None:
    order = np.array([4, 8, 0, 6, 2, 7, 5, 1, 3])
    plain, moved = run(name, easy), run(name, easy, order)
    again = evaluate(
        Parts(moved.q_matrix[np.argsort(order)], graph=moved.graph),
        Parts(plain.q_matrix, graph=plain.graph),
    )
    assert again.shd == 0


@EVERY
def test_a_table_with_gaps_is_refused(name, easy) -> None:
    values = np.array(easy.X)
    values[[3, 7], 2] = np.nan
    with pytest.raises(DataError) as caught:
        BASELINES[name].run(values, easy.truth.families, 3, 0)
    assert str(caught.value) == (
        f"{name} needs a table without missing cells, but 2 of 13500 are missing or infinite; "
        "leave out rows or items with gaps"
    )


@EVERY
def test_an_item_that_never_varies_is_refused(name, easy) -> None:
    values = np.array(easy.X)
    values[:, 4] = 1.0
    with pytest.raises(DataError) as caught:
        BASELINES[name].run(values, easy.truth.families, 3, 0)
    assert str(caught.value) == (
        f"{name} needs items that vary, but column 4 (counting from 0) has the same value in "
        "every row (1 of 9 items)"
    )


@EVERY
@pytest.mark.parametrize(
    ("families", "n_latents", "sentence"),
    [
        (["gaussian"], 3, "9 items need as many families, got 1"),
        (["gaussian"] * 9, 0, "n_latents must be a whole number of at least 1, got 0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(name, families, n_latents, sentence, easy) -> None:
    with pytest.raises(SettingError) as caught:
        BASELINES[name].run(easy.X, families, n_latents, 0)
    assert str(caught.value) == sentence


def test_more_factors_than_items_are_refused(easy) -> None:
    with pytest.raises(SettingError) as caught:
        BASELINES["factor-ges"].run(easy.X, easy.truth.families, 9, 0)
    assert str(caught.value) == "factor analysis needs fewer factors than items, got 9 for 9"


@EVERY
def test_logarithms_of_lognormal_items_are_gaussian_ones(name, easy) -> None:
    families = ["lognormal"] * 9
    logged = BASELINES[name].run(np.exp(easy.X), families, 3, 3)
    plain = run(name, easy)
    np.testing.assert_array_equal(logged.q_matrix, plain.q_matrix)
    np.testing.assert_array_equal(logged.graph.adjacency, plain.graph.adjacency)


@EVERY
def test_lognormal_items_below_zero_are_refused_in_a_sentence(name, easy) -> None:
    with pytest.raises(HidagError):
        BASELINES[name].run(easy.X, ["lognormal"] * 9, 3, 0)
