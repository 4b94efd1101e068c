"""A weight is a number of rows in every statistic, start, score and penalty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag import DCRL, design, load, survey_weights
from hidag.data.rows import collapse_rows
from hidag.em.design_data import WorkingData
from hidag.em.e_step import run_e_step
from hidag.em.information import observed_information
from hidag.em.m_step import Basis, allowed_coefficients, run_m_step
from hidag.em.saem import GibbsSampler
from hidag.exceptions import DataError
from hidag.fitting.information_criteria import information_criteria
from hidag.initialization.initializers import network_start, predictors, spectral_start
from hidag.latent import StateSpace
from hidag.measurement import NO_SPARSITY, Terms
from hidag.simulation import chain_dag, make_truth, random_law, simulate

#: Counts of repeated rows stray together, which is no way of Poisson counts.
pytestmark = pytest.mark.filterwarnings("ignore::hidag.exceptions.MisfitWarning")

K = 3
FAMILIES = ("gaussian", "bernoulli", "poisson", "lognormal") * 3
SPACE = StateSpace.binary(K)
TERMS = Terms.main(SPACE.levels)
UNKNOWN = np.full((12, K), -1, dtype=np.int8)


@pytest.fixture(scope="module")
def tables():
    """Return rows with whole weights, and the same rows repeated."""
    rng = np.random.default_rng(5)
    truth = make_truth(
        random_law(chain_dag(K), rng=rng), np.tile(np.eye(K), (4, 1)), FAMILIES, rng=rng
    )
    values = np.array(simulate(truth, 500, rng=rng, missing=0.1).X)
    weights = rng.integers(1, 4, len(values)).astype(float)
    return values, weights, np.repeat(values, weights.astype(int), axis=0)


@pytest.fixture(scope="module")
def both(tables):
    values, weights, repeated = tables
    return (
        WorkingData.from_values(values, FAMILIES, weights=weights),
        WorkingData.from_values(repeated, FAMILIES),
    )


@pytest.fixture(scope="module")
def start(both):
    return network_start(both[1], UNKNOWN, SPACE.levels)


def test_sums_of_the_table(both):
    for name in ("n_observed", "mean", "variance", "sum_squares", "constant", "shift", "scale"):
        ours, theirs = (getattr(data, name) for data in both)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    assert both[0].n_counted == both[1].n_counted == both[1].n_samples


def test_expected_statistics_likelihood_and_m_step(both, start):
    law = np.random.default_rng(0).dirichlet(np.ones(8))
    basis = Basis.over(SPACE, TERMS)
    found = [run_e_step(start, law, data, basis.features) for data in both]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-10)
    for name in ("count", "sum_x", "incomplete_count"):
        one, other = (getattr(statistics, name) for statistics, _ in found)
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
    moved = [
        run_m_step(start, s, d, basis, allowed_coefficients(UNKNOWN, TERMS), NO_SPARSITY)
        for (s, _), d in zip(found, both, strict=True)
    ]
    np.testing.assert_allclose(moved[0].loadings, moved[1].loadings, atol=1e-6)
    judged = [
        observed_information(start, law, s, d, basis) for (s, _), d in zip(found, both, strict=True)
    ]
    for one, other in zip(*judged, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-2 * np.abs(other).max())


def test_tallies_of_sampled_states(both):
    light, heavy = both
    states = np.random.default_rng(1).integers(0, 8, light.n_samples)
    repeated = np.repeat(states, light.weights.astype(int))
    one = GibbsSampler(light, SPACE, states, 0).statistics()
    other = GibbsSampler(heavy, SPACE, repeated, 0).statistics()
    np.testing.assert_allclose(one.count, other.count)
    np.testing.assert_allclose(one.sum_x, other.sum_x, atol=1e-9)
    np.testing.assert_allclose(one.incomplete_count, other.incomplete_count)


def test_starts(both):
    ours, theirs = (network_start(data, UNKNOWN, SPACE.levels) for data in both)
    np.testing.assert_allclose(ours.loadings, theirs.loadings, atol=1e-6)
    points = [
        spectral_start(d, SPACE, Basis.over(SPACE, TERMS), UNKNOWN, predictors(d, K)) for d in both
    ]
    np.testing.assert_allclose(
        points[0].parameters.loadings, points[1].parameters.loadings, atol=1e-6
    )
    np.testing.assert_allclose(points[0].probabilities, points[1].probabilities, atol=1e-9)


@pytest.mark.parametrize("method", ["em", "saem"])
@pytest.mark.parametrize("law", ["network", "saturated"])
def test_a_weighted_fit_is_the_fit_of_repeated_rows(tables, method, law):
    values, weights, repeated = tables
    settings = {"family": FAMILIES, "method": method, "law": law, "random_state": 0}
    ours = DCRL(K, **settings).fit(values, sample_weight=weights)
    theirs = DCRL(K, **settings).fit(repeated)
    # Sampled latents are drawn once for a row, however often it counts: that is noisier.
    assert (ours.q_matrix_ != theirs.q_matrix_).sum() <= (method == "saem")
    edges = np.triu(ours.graph_.skeleton != theirs.graph_.skeleton).sum()
    assert edges <= (method == "saem")
    if method == "em":
        assert ours.graph_ == theirs.graph_
    close = 0.02 if method == "em" else 0.3
    np.testing.assert_allclose(ours.loadings_, theirs.loadings_, atol=close)
    gap = abs(ours.log_likelihood_ - theirs.log_likelihood_)
    assert gap < (0.5 if method == "em" else 10.0)


def test_weights_of_one_change_nothing_and_rows_of_weight_zero_are_left_out(tables):
    values = tables[0]
    plain = DCRL(K, family=FAMILIES, random_state=0).fit(values)
    ones = DCRL(K, family=FAMILIES, random_state=0).fit(values, sample_weight=np.ones(500))
    np.testing.assert_array_equal(plain.loadings_, ones.loadings_)
    half = np.arange(500) < 300
    some = DCRL(K, family=FAMILIES, random_state=0).fit(values, sample_weight=half * 1.0)
    first = DCRL(K, family=FAMILIES, random_state=0).fit(values[:300])
    np.testing.assert_allclose(some.loadings_, first.loadings_, atol=1e-9)
    assert [model.result_.n_counted for model in (plain, ones, some)] == [500, 500, 300]


def test_a_result_has_the_sum_of_the_weights(tables, tmp_path):
    values, weights, repeated = tables
    settings = {"family": FAMILIES, "q_matrix": np.tile(np.eye(K), (4, 1)), "random_state": 0}
    weighted = DCRL(K, **settings).fit(values, sample_weight=weights).result_
    found = load(weighted.save(tmp_path / "fit.npz"))
    assert (found.n_samples, found.n_counted) == (500, weights.sum())
    ours = information_criteria(found)
    assert ours.bic == pytest.approx(
        information_criteria(DCRL(K, **settings).fit(repeated).result_).bic, abs=1.0
    )
    # Files from before say that there were weights, and no more.
    assert np.isnan(replace(found, n_counted=np.nan).n_counted)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (
            np.ones(3),
            "sample_weight must have shape (500,), one weight for each row, got (3,)",
        ),
        (
            np.where(np.arange(500) == 7, -1.0, 1.0),
            "sample_weight must be finite numbers >= 0, but row 7 (counting from 0) has -1 (1 of "
            "500 rows)",
        ),
        ("heavy", "sample_weight must be numbers, one for each row"),
        (np.zeros(500), "sample_weight must be above zero for at least 2 rows"),
        (
            np.full(500, 1 / 500),
            "sample_weight must add up to the number of rows that the table stands for, at least "
            "2, but adds up to 1; scale weights that are shares with hidag.survey_weights",
        ),
    ],
)
def test_invalid_weights_are_an_error(tables, weights, sentence):
    with pytest.raises(DataError) as caught:
        DCRL(K, family=FAMILIES).fit(tables[0], sample_weight=weights)
    assert str(caught.value) == sentence


def test_survey_weights_add_up_to_the_effective_sample_size():
    people = np.array([1000.0, 3000.0, 0.0, 500.0])
    worth = people.sum() ** 2 / (people**2).sum()
    found = survey_weights(people)
    np.testing.assert_allclose(found / found[0], people / people[0])
    assert found.sum() == pytest.approx(worth)
    assert (found**2).sum() == pytest.approx(worth)
    np.testing.assert_allclose(survey_weights([2, 2, 2]), 1.0)
    np.testing.assert_array_equal(people, [1000.0, 3000.0, 0.0, 500.0])


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (["many", "few"], "weights must be numbers, one for each row"),
        (np.ones((3, 2)), "weights must be one number for each row, got shape (3, 2)"),
        (
            [1.0, np.nan, 2.0],
            "weights must be finite numbers >= 0, but row 1 (counting from 0) has nan (1 of 3 "
            "rows)",
        ),
        ([0.0, 4.0], "weights must be above zero for at least 2 rows"),
    ],
)
def test_invalid_survey_weights_are_an_error(weights, sentence):
    with pytest.raises(DataError) as caught:
        survey_weights(weights)
    assert str(caught.value) == sentence


def test_scaled_survey_weights_give_fewer_false_edges_than_weights_over_their_mean():
    n_edges = np.zeros(2, dtype=int)
    for seed in range(12):
        # Latents that have nothing in common.
        rng = np.random.default_rng(seed)
        states = rng.integers(0, 2, (800, 3))
        values = np.repeat(1.8 * states, 3, axis=1) + rng.normal(size=(800, 9))
        people = rng.exponential(size=800) ** 1.5
        model = DCRL(3, family="gaussian", q_matrix=np.repeat(np.eye(3), 3, axis=0), n_starts=1,
                     random_state=0)  # fmt: skip
        for i, weights in enumerate((survey_weights(people), people / people.mean())):
            graph = model.fit(values, sample_weight=weights).graph_
            n_edges[i] += len(graph.directed_edges) + len(graph.undirected_edges)
    assert n_edges[0] <= 1
    assert n_edges[1] >= 5


def test_categories_are_ordered_by_weight(tables):
    rng = np.random.default_rng(3)
    states = rng.integers(0, 2, 400)
    sure = 9.0 * states[:, None] + rng.normal(size=(400, 4))
    nominal = np.where(rng.random(400) < 0.3 + 0.4 * states, 1.0, rng.integers(0, 2, 400) * 2.0)
    values = np.column_stack([sure, nominal])
    # In these weights the rarest category is the most frequent one.
    weights = np.where(nominal == 2, 9.0, 1.0)
    families = ["gaussian"] * 4 + ["categorical"]
    weighted = DCRL(1, family=families, random_state=0).fit(values, sample_weight=weights)
    repeated = DCRL(1, family=families, random_state=0).fit(
        np.repeat(values, weights.astype(int), axis=0)
    )
    assert weighted.families_ == repeated.families_
    np.testing.assert_allclose(weighted.loadings_, repeated.loadings_, atol=1e-6)


def test_rows_of_weight_zero_do_not_affect_inferred_types(tables):
    values = np.array(tables[0][:, :8])
    grades = np.arange(500) % 3.0
    table = np.column_stack([values, grades])
    table[:5, 8] = 7.0
    weights = (np.arange(500) >= 5) * 1.0
    families = [*FAMILIES[:8], "ordinal"]
    fitted = DCRL(2, family=families, random_state=0).fit(table, sample_weight=weights)
    assert fitted.families_[8] == "ordinal(3)"


def test_items_without_variation_in_weighted_rows_are_an_error(tables):
    table = np.array(tables[0])
    table[5:, 0] = np.nan
    weights = (np.arange(500) >= 5) * 1.0
    with pytest.raises(DataError, match="item_0"):
        DCRL(K, family=FAMILIES).fit(table, sample_weight=weights)
    table[5:, 0] = 1.0
    with pytest.raises(DataError, match="item 'item_0' is 1 in all observed rows"):
        DCRL(K, family=FAMILIES).fit(table, sample_weight=weights)


def test_repeated_rows_and_weights_give_the_same_bits():
    truth = design("Tree-5", "Q1", "bernoulli", design="research-code", rng=1)
    repeated = np.array(simulate(truth, 5000, rng=2).X)
    rows, counts = np.unique(repeated, axis=0, return_counts=True)
    assert len(rows) < 0.8 * len(repeated)
    settings = {"family": "bernoulli", "random_state": 0}
    whole = DCRL(5, **settings).fit(repeated)
    weighted = DCRL(5, **settings).fit(rows, sample_weight=counts)
    assert np.array_equal(whole.q_matrix_, weighted.q_matrix_)
    assert whole.graph_ == weighted.graph_
    assert np.array_equal(whole.loadings_, weighted.loadings_)
    assert whole.log_likelihood_ == pytest.approx(weighted.log_likelihood_, rel=1e-12)


def test_distinct_rows_are_kept_and_equal_rows_are_added_up():
    values = np.array([[1.0, np.nan], [0.0, 2.0], [1.0, np.nan], [-0.0, 2.0], [3.0, 0.0]])
    rows, weights = collapse_rows(values)
    found = {tuple(np.nan_to_num(row, nan=-1.0)): w for row, w in zip(rows, weights, strict=True)}
    assert found == {(1.0, -1.0): 2.0, (0.0, 2.0): 2.0, (3.0, 0.0): 1.0}
    assert collapse_rows(values, np.arange(5.0))[1].sum() == 10.0
    distinct = values[[0, 1, 4]]
    assert collapse_rows(distinct)[0] is distinct
