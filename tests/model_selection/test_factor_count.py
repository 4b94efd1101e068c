"""Number of common factors in the correlations."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from hidag import design, simulate
from hidag.config import FactorCountConfig
from hidag.em.design_data import WorkingData
from hidag.initialization.item_columns import ItemColumns, pair_correlations
from hidag.model_selection import factor_count
from hidag.model_selection.factor_count import (
    FactorCount,
    count_factors,
    identifiable_count,
    largest_count,
)


def drawn(model="Model-7", family="bernoulli", n=3000, missing=0.0, seed=11):
    truth = design(model, "Q1", family, design="research-code", rng=seed)
    return np.array(simulate(truth, n, rng=seed + 1, missing=missing).X), truth.families


@pytest.mark.parametrize("family", ["gaussian", "poisson", "bernoulli"])
def test_all_three_criteria_find_the_number_of_latents(family):
    found = count_factors(*drawn(family=family))
    assert (found.by_parallel_analysis, found.by_factor_bic, found.by_gap) == (7, 7, 7)
    assert found.agreed
    assert found.span == (7, 7)
    assert (found.largest, found.limited) == (10, False)


def test_gaps_in_the_table_add_no_latent():
    # Filled from a low-rank fit, as starts fill them, such a table seems to have more.
    found = count_factors(*drawn(missing=0.25))
    assert (found.by_parallel_analysis, found.by_factor_bic) == (7, 7)
    assert found.n_rows == pytest.approx(0.75**2 * 3000, rel=0.02)


def test_the_result_does_not_depend_on_the_order_of_rows_or_columns():
    values, families = drawn(n=500)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(500), rng.permutation(len(families))
    one = count_factors(values, families)
    two = count_factors(values[np.ix_(rows, columns)], [families[j] for j in columns])
    assert np.array_equal(one.eigenvalues, two.eigenvalues)
    assert np.array_equal(one.noise, two.noise)
    assert np.array_equal(one.factor_bic, two.factor_bic, equal_nan=True)


def test_a_weight_of_two_is_the_row_twice_up_to_the_shuffles():
    values, families = drawn(n=800)
    weighed = count_factors(values, families, weights=np.full(800, 2.0))
    twice = count_factors(np.vstack([values, values]), families)
    assert weighed.eigenvalues == pytest.approx(twice.eigenvalues)
    assert weighed.factor_bic == pytest.approx(twice.factor_bic, nan_ok=True, abs=0.05)
    assert weighed.noise == pytest.approx(twice.noise, abs=0.05)


def test_independent_items_have_no_common_factor():
    values = np.random.default_rng(1).normal(size=(400, 9))
    found = count_factors(values, ["gaussian"] * 9)
    assert found.no_common_factor
    assert (found.by_parallel_analysis, found.by_factor_bic, found.by_gap) == (0, 0, 0)
    assert found.describe() == "the correlations are consistent with independent items"


def test_independence_is_rejected_at_level_one_in_a_hundred():
    tables = [np.random.default_rng([3, r]).normal(size=(200, 7)) for r in range(150)]
    counts = [count_factors(x, ["gaussian"] * 7) for x in tables]
    wrong = sum(not found.no_common_factor for found in counts)
    # More than 5 of 150 have a probability of .004 at level .01, and of .996 at level .09.
    assert wrong <= 5


def test_weak_dependence_is_no_independence():
    rng = np.random.default_rng(5)
    causes = rng.integers(0, 2, 3000)
    x = 0.6 * causes[:, None] + rng.normal(size=(3000, 6))
    found = count_factors(x, ["gaussian"] * 6)
    assert (found.by_parallel_analysis, found.by_factor_bic) == (1, 1)


def nominal_table(n_latents: int, n: int, seed: int, n_categories: int = 3) -> np.ndarray:
    """Return three nominal items per latent; each latent moves categories in its own direction."""
    rng = np.random.default_rng(seed)
    states = rng.integers(0, 2, (n, n_latents)) - 0.5
    logits = (
        3.0
        * rng.normal(size=(3 * n_latents, n_categories))[None]
        * np.repeat(states, 3, 1)[..., None]
    )
    return np.argmax(logits + rng.gumbel(size=logits.shape), axis=2).astype(float)


@pytest.mark.parametrize(("n_latents", "n_categories"), [(1, 4), (2, 3), (3, 3), (3, 5)])
def test_nominal_items_count_once_whatever_their_number_of_categories(n_latents, n_categories):
    values = nominal_table(n_latents, 3000, seed=1, n_categories=n_categories)
    found = count_factors(values, [f"categorical({n_categories})"] * values.shape[1])
    assert (found.by_parallel_analysis, found.by_factor_bic) == (n_latents, n_latents)
    assert found.largest == identifiable_count(3 * n_latents)


def test_the_score_of_a_nominal_item_is_the_one_that_others_correlate_with():
    rng = np.random.default_rng(2)
    cause = rng.integers(0, 2, 4000)
    # Categories 0 and 1 are similar; only 2 depends on the cause.
    nominal = np.where(rng.random(4000) < np.where(cause, 0.8, 0.1), 2, rng.integers(0, 2, 4000))
    other = cause + rng.normal(0, 0.5, 4000)
    table = np.column_stack([nominal, other]).astype(float)
    missing = rng.random(table.shape) < 0.1
    table[missing] = np.nan
    both = ~missing.any(axis=1)
    found = ItemColumns.of(table, ["categorical(3)", "gaussian"]).correlations()
    expected = np.corrcoef(nominal[both] == 2, other[both])[0, 1]
    assert abs(found.raw[0, 1]) == pytest.approx(expected, abs=0.01)
    assert found.matrix.shape == (2, 2)


def test_criteria_that_disagree():
    found = FactorCount(
        np.array([3.0, 1.0, 0.5, 0.01]),
        np.array([0.3, 0.2, 0.1, 0.05]),
        np.array([90.0, 20.0, 0.0, 5.0, 40.0]),
        500.0,
    )
    assert found.describe() == (
        "parallel analysis selects 3 and factor BIC 2; the largest spectral gap is after 3"
    )
    assert found.span == (2, 3)
    assert found.gaps == pytest.approx([3.0, 2.0, 10.0])


def test_more_items_than_rows_still_get_an_answer():
    values = np.random.default_rng(2).normal(size=(12, 30))
    assert 0 <= count_factors(values, ["gaussian"] * 30).by_parallel_analysis <= 14


@pytest.mark.parametrize(("n_items", "most"), [(1, 1), (2, 1), (3, 1), (5, 2), (21, 10), (653, 40)])
def test_no_more_latents_than_items_can_identify(n_items, most):
    assert largest_count(n_items) == most


def test_shuffles_leave_no_correlation_and_keep_the_gaps():
    values, families = drawn(n=1500, missing=0.1)
    data = WorkingData.from_values(values, tuple(families))
    own = pair_correlations(data)
    apart = ~np.eye(data.n_items, dtype=bool)
    assert np.abs(own.matrix[apart]).max() > 0.3
    for shuffled in ItemColumns.of_data(data).permuted(2):
        assert np.abs(shuffled.matrix[apart]).max() < 0.15
        assert shuffled.n_rows == own.n_rows


def test_more_factors_than_items_can_identify_are_reported() -> None:
    rng = np.random.default_rng(0)
    causes = rng.normal(size=(800, 2))
    x = causes[:, [0, 0, 1, 1]] + rng.normal(0, 0.5, (800, 4))
    found = count_factors(x, ["gaussian"] * 4)
    assert (found.span, found.limited) == ((1, 1), True)
    assert found.describe() == (
        "parallel analysis selects 2 and factor BIC 1, but 1 is the largest number that can be "
        "selected"
    )
    # Two factors are not more than five items can identify.
    five = np.column_stack([x, causes[:, 0] + rng.normal(0, 0.5, 800)])
    assert not count_factors(five, ["gaussian"] * 5).limited


def test_the_count_may_exceed_the_first_numbers_examined(monkeypatch) -> None:
    monkeypatch.setattr(
        factor_count, "CONFIG", SimpleNamespace(factor_count=FactorCountConfig(max_factors=3))
    )
    found = count_factors(*drawn(family="gaussian", n=1500))
    assert (found.by_parallel_analysis, found.by_factor_bic, found.largest) == (7, 7, 10)
