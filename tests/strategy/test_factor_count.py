"""Number of common factors in the correlations."""

from __future__ import annotations

import numpy as np
import pytest

from hidag import design, simulate
from hidag.em.design_data import WorkingData
from hidag.initialization.factor_count import (
    FactorCount,
    count_factors,
    largest_count,
    pair_correlations,
    shuffled_correlations,
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
    assert found.largest == 10


def test_gaps_in_the_table_add_no_latent():
    # Filled from a low-rank fit, as starts fill them, such a table seems to have more.
    found = count_factors(*drawn(missing=0.25))
    assert (found.by_parallel_analysis, found.by_factor_bic) == (7, 7)
    assert found.n_rows == pytest.approx(0.75**2 * 3000, rel=0.02)


def test_neither_the_order_of_rows_nor_that_of_columns_says_anything():
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


def test_noise_has_one_latent_and_says_so():
    values = np.random.default_rng(1).normal(size=(400, 9))
    found = count_factors(values, ["gaussian"] * 9)
    assert found.no_common_factor
    assert (found.by_parallel_analysis, found.by_factor_bic, found.by_gap) == (1, 1, 1)
    assert found.describe() == (
        "the correlations are consistent with independent items, and 1 is the minimum"
    )


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
    assert 1 <= count_factors(values, ["gaussian"] * 30).by_parallel_analysis <= 14


@pytest.mark.parametrize(("n_items", "most"), [(1, 1), (2, 1), (3, 1), (5, 2), (21, 10), (653, 40)])
def test_no_more_latents_than_items_can_identify(n_items, most):
    assert largest_count(n_items) == most


def test_shuffles_leave_no_correlation_and_keep_the_gaps():
    values, families = drawn(n=1500, missing=0.1)
    data = WorkingData.from_values(values, tuple(families))
    own = pair_correlations(data)
    apart = ~np.eye(data.n_items, dtype=bool)
    assert np.abs(own.matrix[apart]).max() > 0.3
    for shuffled in shuffled_correlations(data, 2):
        assert np.abs(shuffled.matrix[apart]).max() < 0.15
        assert shuffled.n_rows == own.n_rows


def test_a_count_that_ends_at_the_most_that_was_looked_at_says_so() -> None:
    rng = np.random.default_rng(0)
    causes = rng.normal(size=(800, 2))
    x = causes[:, [0, 0, 1, 1]] + rng.normal(0, 0.5, (800, 4))
    found = count_factors(x, ["gaussian"] * 4)
    assert found.describe() == (
        "parallel analysis and factor BIC both select 1 (the largest number considered)"
    )
