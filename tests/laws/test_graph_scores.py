"""Laws of the scores: score equivalence, and invariance to the order of rows, columns, levels."""

from __future__ import annotations

import numpy as np
import pytest

from hidag.kernels import local_scores
from hidag.latent import LatentCounts
from hidag.structure import DAG, CountScore, graph_score
from hidag.structure.scores import SCORES, make_score

from ..reference_scores import ReferenceScore

#: Every score by name, with whether Markov equivalent DAGs have equal scores.
SCORE_EQUIVALENT = {"bdeu": True, "bic": True, "lean": False}


def counts_of(rng, levels, n=200, fractional=False) -> LatentCounts:
    common = rng.random(n)
    rows = np.stack(
        [np.floor((0.6 * common + 0.4 * rng.random(n)) * m).astype(int) for m in levels], axis=1
    )
    weights = rng.gamma(0.5, 2.0, n) if fractional else np.ones(n)
    return LatentCounts(
        rows.astype(np.uint8), weights, tuple(levels), tuple(f"V{k}" for k in range(len(levels)))
    )


LEVELS = [(2, 2, 2, 2), (2, 3, 4, 2)]


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("fractional", [False, True])
def test_every_named_score(name, fractional) -> None:
    rng = np.random.default_rng(6)
    counts = counts_of(rng, (2, 3, 4, 2), fractional=fractional)
    score = make_score(name, counts, 2.0)
    rows, columns = rng.permutation(len(counts.weights)), rng.permutation(4)
    moved = make_score(
        name,
        LatentCounts(
            counts.states[rows][:, columns],
            counts.weights[rows],
            tuple(counts.levels[k] for k in columns),
            tuple(counts.names[k] for k in columns),
        ),
        2.0,
    )
    place = {int(k): i for i, k in enumerate(columns)}
    for node, parents in [(0, ()), (1, (0, 2)), (3, (0, 1, 2)), (2, (3,))]:
        there = tuple(sorted(place[k] for k in parents))
        value = score.local(node, parents)
        assert np.isfinite(value)
        assert moved.local(place[node], there) == pytest.approx(value, abs=2e-6)
    members = DAG(np.triu(np.ones((4, 4), dtype=int), 1)).to_cpdag().members()
    values = [graph_score(score, member.parents) for member in members]
    assert (np.ptp(values) <= 1e-9 * abs(values[0])) == SCORE_EQUIVALENT[name]


@pytest.mark.parametrize("kind", ["bdeu", "bic"])
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("make", [ReferenceScore, CountScore])
def test_equivalent_dags_score_the_same(kind, levels, fractional, make) -> None:
    rng = np.random.default_rng(0)
    score = make(counts_of(rng, levels, fractional=fractional), kind, 3.5)
    for _ in range(6):
        upper = np.triu(rng.random((4, 4)) < 0.7, 1)
        members = DAG(upper.astype(int)).to_cpdag().members()
        values = [graph_score(score, member.parents) for member in members]
        assert np.ptp(values) <= 1e-9 * abs(values[0])


@pytest.mark.parametrize("kind", ["bdeu", "bic"])
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("fractional", [False, True])
def test_fast_equals_plain(kind, levels, fractional) -> None:
    rng = np.random.default_rng(1)
    counts = counts_of(rng, levels, fractional=fractional)
    fast, plain = CountScore(counts, kind, 0.7), ReferenceScore(counts, kind, 0.7)
    for node in range(4):
        others = [k for k in range(4) if k != node]
        for subset in range(8):
            parents = tuple(k for i, k in enumerate(others) if subset >> i & 1)
            assert fast.local(node, parents) == pytest.approx(plain.local(node, parents), rel=1e-11)


@pytest.mark.parametrize("kind", ["bdeu", "bic"])
def test_many_parents_fall_back_on_numbered_configurations(kind) -> None:
    rng = np.random.default_rng(2)
    counts = counts_of(rng, (3,) * 70, n=60)
    fast, plain = CountScore(counts, kind), ReferenceScore(counts, kind)
    for n_parents in (4, 5, 12, 30, 65):
        parents = tuple(range(1, n_parents + 1))
        assert fast.local(0, parents) == pytest.approx(plain.local(0, parents), rel=1e-11)
        assert fast.local(66, parents) == pytest.approx(plain.local(66, parents), rel=1e-11)


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("kind", ["bdeu", "bic"])
def test_orders_do_not_show_in_the_last_bit(kind, fractional) -> None:
    rng = np.random.default_rng(3)
    counts = counts_of(rng, (2, 3, 2, 4, 2), fractional=fractional)
    score = CountScore(counts, kind)
    for _ in range(5):
        rows = rng.permutation(len(counts.weights))
        columns = rng.permutation(5)
        states = counts.states[rows][:, columns].copy()
        for k in range(5):  # levels may be renamed too
            states[:, k] = rng.permutation(counts.levels[columns[k]])[states[:, k]]
        moved = CountScore(
            LatentCounts(
                states,
                counts.weights[rows],
                tuple(counts.levels[k] for k in columns),
                tuple(counts.names[k] for k in columns),
            ),
            kind,
        )
        place = {int(k): i for i, k in enumerate(columns)}
        for node, parents in [(0, ()), (1, (0, 2)), (3, (0, 1, 2, 4)), (2, (3,))]:
            there = tuple(sorted(place[k] for k in parents))
            assert moved.local(place[node], there) == score.local(node, parents)


@pytest.mark.parametrize("kind", ["bdeu", "bic"])
def test_rows_and_their_table_score_the_same(kind) -> None:
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 2, (5000, 4))
    table = LatentCounts.from_rows(rows)  # 16 configurations: counted from the table
    one_each = LatentCounts(
        rows.astype(np.uint8), np.ones(5000), (2,) * 4, table.names
    )  # counted from bit planes
    for node, parents in [(0, ()), (1, (0, 2)), (3, (0, 1, 2))]:
        assert CountScore(table, kind).local(node, parents) == pytest.approx(
            CountScore(one_each, kind).local(node, parents), rel=1e-12
        )


def test_compiled_body_equals_plain_body() -> None:
    rng = np.random.default_rng(5)
    score = CountScore(counts_of(rng, (2, 3, 2), n=40, fractional=True))
    arguments = (
        local_scores.BDEU,
        np.array([0, 1, 2]),
        np.array([[6], [1], [0]], dtype=np.uint64),
        (score._levels, score._states, score._weights, score._offset),
        (score._planes, score._max_plane_cells),
        (1.0, score._total, score._unit, score._resolution),
    )
    compiled = local_scores.score_many(*arguments)
    with np.errstate(over="ignore"):
        plain = local_scores.score_many.py_func(*arguments)
    # The two use different log-gamma functions.
    np.testing.assert_allclose(compiled, plain, rtol=1e-13)


def test_bdeu_by_hand() -> None:
    # One binary variable, 3 zeros and 1 one, equivalent sample size 2: a Beta(1, 1) prior,
    # so the marginal likelihood is B(4, 2) / B(1, 1) = 1 / 20.
    counts = LatentCounts.from_rows(np.array([[0], [0], [0], [1]]))
    assert CountScore(counts, "bdeu", 2.0).local(0, ()) == pytest.approx(np.log(1 / 20))
    expected = 3 * np.log(3 / 4) + np.log(1 / 4) - 0.5 * np.log(4)
    assert CountScore(counts, "bic").local(0, ()) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["bdeu", "bic"])
def test_rows_of_one_weight_are_counted_as_rows(kind) -> None:
    rng = np.random.default_rng(8)
    rows = rng.integers(0, 2, (500, 9))
    rows[:, 3] |= rows[:, 1]
    counts = LatentCounts.from_rows(rows)
    light = LatentCounts(counts.states, 0.37 * counts.weights, counts.levels, counts.names)
    fast, plain = CountScore(light, kind), ReferenceScore(light, kind)
    assert fast._planes.shape[1] > 0
    for node, parents in ((3, (1,)), (3, ()), (0, (1, 4, 5))):
        assert fast.local(node, parents) == pytest.approx(plain.local(node, parents), abs=1e-8)
