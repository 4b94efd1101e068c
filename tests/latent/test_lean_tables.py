"""Lean tables cost what their numbers cost, and are taken only where they describe the counts."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from hidag.latent.laws import (
    are_equivalent,
    free_log_likelihood,
    n_free_probabilities,
    network_complexity,
    table_complexity,
)
from hidag.simulation import random_dag, random_law
from hidag.structure import DAG

PRICE = 4.0


def logits(levels, n_levels, rng, kind):
    """Log-odds (q, M) of a table of the kind for parents with these levels."""
    places = np.indices(levels).reshape(len(levels), -1).T
    own = rng.normal(size=n_levels)
    if kind == "linear":
        slopes = rng.uniform(1.0, 2.0, len(levels))
        return own + (places / (np.array(levels) - 1)) @ slopes[:, None] * np.arange(n_levels)
    if kind == "additive":
        shifts = [rng.normal(size=(m, n_levels)) * 1.5 for m in levels]
        return own + sum(shift[places[:, a]] for a, shift in enumerate(shifts))
    return rng.normal(size=(len(places), n_levels)) * 1.5


def counts_of(logs, per_row=500.0):
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return per_row * shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("levels", "n_levels"), [((3, 4), 4), ((2, 3, 2), 3), ((4,), 3)])
def test_a_table_costs_the_numbers_of_the_leanest_form_that_fits(levels, n_levels) -> None:
    rng = np.random.default_rng(7)
    numbers = {
        "linear": n_levels - 1 + len(levels),
        "additive": (n_levels - 1) * (1 + sum(m - 1 for m in levels)),
        "free": (n_levels - 1) * int(np.prod(levels)),
    }
    for kind, wanted in numbers.items():
        table = counts_of(logits(levels, n_levels, rng, kind))
        assert table_complexity(table, levels, PRICE) == pytest.approx(PRICE * wanted, abs=1e-3)


def test_the_loss_of_a_lean_table_is_that_of_its_maximum_likelihood() -> None:
    rng = np.random.default_rng(3)
    levels, n_levels = (3, 2), 3
    table = rng.poisson(40.0, (6, n_levels)).astype(float)
    table[0] = 0.0
    places = np.indices(levels).reshape(2, -1).T / np.array([2.0, 1.0])

    def lost(at):
        own, slopes = np.concatenate([[0.0], at[:2]]), at[2:]
        logs = own + (places @ slopes)[:, None] * np.arange(n_levels)
        return -(table * (logs - np.logaddexp.reduce(logs, axis=1)[:, None])).sum()

    best = -minimize(lost, np.zeros(4), method="BFGS").fun
    expected = free_log_likelihood(table) - best + PRICE * 4
    assert table_complexity(table, levels, PRICE) == pytest.approx(expected, abs=1e-3)


def test_a_table_without_parents_or_with_too_many_cells_is_free() -> None:
    assert table_complexity(np.array([[5.0, 3.0, 0.0]]), (), PRICE) == 2 * PRICE
    large = np.ones((2048, 4))
    assert table_complexity(large, (2,) * 11, PRICE) == 2048 * 3 * PRICE


def test_rows_with_one_possible_level_have_no_parameters_and_do_not_affect_lean_tables() -> None:
    rng = np.random.default_rng(11)
    levels, n_levels = (3, 4), 4
    # At the first parent's lowest level the lowest of the child is all there is.
    possible = np.ones((12, n_levels), dtype=bool)
    possible[:4, 1:] = False
    numbers = {"linear": n_levels - 1 + 2, "free": (n_levels - 1) * 8}
    for kind, wanted in numbers.items():
        table = counts_of(np.where(possible, logits(levels, n_levels, rng, kind), -np.inf))
        assert table_complexity(table, levels, PRICE, possible) == pytest.approx(
            PRICE * wanted, abs=1e-3
        )
        # Without being reported it takes a free table, and pays for cells that cannot be.
        assert table_complexity(table, levels, PRICE) > PRICE * wanted + 1
        table[:4] = 0.0
        empty = np.where(np.arange(12)[:, None] < 4, False, possible)
        assert table_complexity(table, levels, PRICE, empty) == pytest.approx(
            PRICE * wanted, abs=1e-3
        )


def test_parameters_without_effect_on_possible_cells_are_not_counted() -> None:
    levels, n_levels = (2, 3), 3
    possible = np.zeros((6, n_levels), dtype=bool)
    # The first parent is always high where there is a choice: what it adds is in the intercept.
    possible[:, 0] = True
    possible[3:] = True
    table = counts_of(
        np.where(possible, logits(levels, n_levels, np.random.default_rng(2), "linear"), -np.inf)
    )
    assert table_complexity(table, levels, PRICE, possible) == pytest.approx(
        PRICE * (n_levels - 1 + 1), abs=1e-3
    )


def test_a_law_of_binary_latents_costs_its_free_probabilities() -> None:
    law = random_law(random_dag(4, 1.2, rng=1), rng=2)
    orders = [np.arange(2)] * 4
    price = network_complexity(law.probabilities * 1000, law.parents, law.space, orders, PRICE)
    assert price == PRICE * n_free_probabilities(law.parents, law.space)


def test_a_law_costs_the_same_however_its_levels_are_called() -> None:
    levels = (3, 4, 2)
    law = random_law(DAG(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])), rng=5, levels=levels)
    counts = np.asarray(law.probabilities) * 5000
    straight = network_complexity(
        counts, law.parents, law.space, [np.arange(m) for m in levels], PRICE
    )
    # One number for each edge, one for each level but the first of each latent.
    assert straight == pytest.approx(PRICE * (2 + 3 + 1 + 3), abs=1e-2)
    names = [np.array([2, 0, 1]), np.array([1, 3, 0, 2]), np.array([1, 0])]
    mixed = counts.reshape(levels)[np.ix_(*names)].ravel()
    back = [np.argsort(name) for name in names]
    again = network_complexity(mixed, law.parents, law.space, back, PRICE)
    assert again == pytest.approx(straight, abs=1e-6)


def test_laws_over_equivalent_graphs_are_the_same() -> None:
    graphs = []
    for cells in product((0, 1, 2), repeat=3):
        adjacency = np.zeros((3, 3), dtype=np.int8)
        for (a, b), cell in zip(((0, 1), (0, 2), (1, 2)), cells, strict=True):
            if cell:
                adjacency[(a, b) if cell == 1 else (b, a)] = 1
        if not (adjacency[0, 1] == adjacency[1, 2] == adjacency[2, 0] == 1) and not (
            adjacency[1, 0] == adjacency[2, 1] == adjacency[0, 2] == 1
        ):
            graphs.append(DAG(adjacency))
    assert len(graphs) == 25
    for one, other in product(graphs, repeat=2):
        same = np.array_equal(one.to_cpdag().adjacency, other.to_cpdag().adjacency)
        assert are_equivalent(one.parents, other.parents) == same
