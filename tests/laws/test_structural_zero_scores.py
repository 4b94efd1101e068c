"""Laws of scores with structural zeros: excluded states are free, equivalent graphs tie."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.latent import LatentCounts, StateSpace
from hidag.latent.laws import n_free_probabilities
from hidag.structure import DAG, CountScore, Knowledge, graph_score
from hidag.structure.scores import UNITS, StructuralZeroScore, make_score

NAMES = ("a", "b", "c", "d")
LINE = Knowledge(hierarchy=[("a", "b"), ("b", "c")])
LEVELS = [(2, 2, 2, 2), (2, 3, 2, 4)]
KINDS = ["bdeu", "bic"]


def counts_of(rng, levels, n=300, fractional=False) -> LatentCounts:
    """Return rows in which nobody has b without a, nor c without b."""
    rows = np.stack([rng.integers(0, m, n) for m in levels], axis=1)
    rows[rows[:, 0] == 0, 1] = 0
    rows[rows[:, 1] == 0, 2] = 0
    weights = rng.gamma(0.5, 2.0, n) if fractional else np.ones(n)
    return LatentCounts(rows.astype(np.uint8), weights, levels, NAMES)


def random_parents(rng):
    """Return a graph of four variables in a random order."""
    order = rng.permutation(4)
    upper = np.triu(rng.random((4, 4)) < 0.6, 1)
    return DAG(upper[np.ix_(order, order)].astype(int))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("fractional", [False, True])
def test_equivalent_dags_score_the_same_to_the_last_bit(kind, levels, fractional) -> None:
    rng = np.random.default_rng(0)
    score = make_score(kind, counts_of(rng, levels, fractional=fractional), 3.5, LINE)
    assert isinstance(score, StructuralZeroScore)
    sizes = []
    for _ in range(8):
        members = random_parents(rng).to_cpdag().members()
        values = {graph_score(score, member.parents) for member in members}
        assert len(values) == 1
        sizes.append(len(members))
    assert max(sizes) > 2


@pytest.mark.parametrize("kind", KINDS)
def test_orders_of_rows_and_columns_do_not_show_in_the_last_bit(kind) -> None:
    rng = np.random.default_rng(1)
    counts = counts_of(rng, (2, 3, 2, 4), fractional=True)
    score = make_score(kind, counts, 1.0, LINE)
    for _ in range(5):
        rows, columns = rng.permutation(len(counts.weights)), rng.permutation(4)
        moved = make_score(
            kind,
            LatentCounts(
                counts.states[rows][:, columns],
                counts.weights[rows],
                tuple(counts.levels[k] for k in columns),
                tuple(counts.names[k] for k in columns),
            ),
            1.0,
            LINE,
        )
        place = {int(k): i for i, k in enumerate(columns)}
        for node, parents in [(0, ()), (1, (0, 2)), (3, (0, 1, 2)), (2, (3,))]:
            there = tuple(sorted(place[k] for k in parents))
            assert moved.local(place[node], there) == score.local(node, parents)


@pytest.mark.parametrize("kind", KINDS)
def test_where_all_states_are_possible_it_is_the_score_of_counts(kind) -> None:
    rng = np.random.default_rng(2)
    counts = counts_of(rng, (2, 3, 2, 4), fractional=True)
    every = StructuralZeroScore(counts, kind, 2.5, np.ones(counts.levels, dtype=bool))
    plain = CountScore(counts, kind, 2.5)
    for node, parents in [(0, ()), (1, (0, 2)), (3, (0, 1, 2)), (2, (3,))]:
        price = len(parents) / UNITS
        assert every.local(node, parents) + price == pytest.approx(
            plain.local(node, parents), abs=48 / UNITS
        )


def test_bic_pays_for_the_free_probabilities_of_possible_states() -> None:
    rng = np.random.default_rng(3)
    levels = (2, 3, 2, 4)
    counts = counts_of(rng, levels)
    space, possible = StateSpace(levels), LINE.possible_states(NAMES, levels).ravel()
    held, free = make_score("bic", counts, 1.0, LINE), CountScore(counts, "bic")
    for _ in range(8):
        parents = random_parents(rng).parents
        fewer = n_free_probabilities(parents, space)
        fewer -= n_free_probabilities(parents, space, possible)
        saved = graph_score(held, parents) - graph_score(free, parents)
        assert saved == pytest.approx(0.5 * np.log(counts.total) * fewer, abs=1e-3)


def test_rows_whose_level_is_determined_do_not_affect_the_score() -> None:
    rng = np.random.default_rng(4)
    counts = counts_of(rng, (2, 2, 2, 2))
    able = counts.states[:, 0] == 1
    skilled = LatentCounts(counts.states[able], counts.weights[able], counts.levels, NAMES)
    possible = LINE.possible_states(NAMES, counts.levels)
    every, some = (StructuralZeroScore(rows, "bdeu", 1.0, possible) for rows in (counts, skilled))
    assert every.local(1, (0, 3)) == pytest.approx(some.local(1, (0, 3)), abs=16 / UNITS)


@pytest.mark.parametrize("kind", KINDS)
def test_an_edge_without_effect_lowers_the_score(kind) -> None:
    rng = np.random.default_rng(5)
    score = make_score(kind, counts_of(rng, (2, 2, 2, 2), fractional=True), 1.0, LINE)
    # Who has b has a: of c it says no more.
    assert score.local(2, (0, 1)) == score.local(2, (1,)) - 1 / UNITS


def test_rows_that_contradict_a_hierarchy_leave_all_states_possible() -> None:
    rows = np.array([[0, 1, 0, 0], [1, 1, 0, 1]], dtype=np.uint8)
    counts = LatentCounts(rows, np.ones(2), (2, 2, 2, 2), NAMES)
    assert isinstance(make_score("bic", counts, 1.0, LINE), CountScore)
    weightless = LatentCounts(rows, np.array([0.0, 1.0]), (2, 2, 2, 2), NAMES)
    assert isinstance(make_score("bic", weightless, 1.0, LINE), StructuralZeroScore)
    assert isinstance(make_score("bic", weightless, 1.0, Knowledge()), CountScore)


def test_states_that_cannot_be_listed_are_not_ruled_out() -> None:
    names = tuple(f"V{k}" for k in range(40))
    counts = LatentCounts(np.zeros((3, 40), dtype=np.uint8), np.ones(3), (2,) * 40, names)
    assert isinstance(make_score("bdeu", counts, 1.0, Knowledge(hierarchy=[(0, 1)])), CountScore)
