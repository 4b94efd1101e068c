"""What items cost by the table's evidence."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest

from hidag import DCRL, design, simulate
from hidag.items_price import price_of_items


@pytest.fixture(scope="module")
def fitted():
    truth = design("Chain-5", "Q1", "bernoulli", rng=1)
    values = np.array(simulate(truth, 2000, rng=2).X)
    model = DCRL(5, q_matrix=truth.q_matrix, family="bernoulli", random_state=0)
    result = model.fit(values).result_
    # As if Q had been chosen: given entries cost nothing.
    return replace(result, q_given=None), result, values


def test_a_loading_costs_less_than_bic_asks_and_more_than_nothing(fitted):
    found, _, values = fitted
    n_loadings = np.count_nonzero(found.loadings)
    price = price_of_items(found, values)
    assert 0 < price < 2 * n_loadings * log(len(values))


def test_items_that_fit_no_better_with_a_needless_loading_cost_more(fitted):
    found, _, values = fitted
    loadings = found.parameters.loadings.copy()
    where = tuple(np.argwhere(loadings == 0)[0])
    loadings[where] = 1e-9
    more = replace(found, parameters=replace(found.parameters, loadings=loadings))
    assert price_of_items(more, values) > price_of_items(found, values) + 1.0


def test_the_order_of_latents_and_rows_does_not_matter(fitted):
    found, _, values = fitted
    rows = np.random.default_rng(0).permutation(len(values))
    # Information is taken from all of these rows.
    assert price_of_items(found, values[rows]) == pytest.approx(price_of_items(found, values))


def test_entries_of_q_that_were_given_were_not_chosen(fitted):
    found, told, values = fitted
    assert price_of_items(told, values) < price_of_items(found, values) - 20.0


def test_weights_count_rows(fitted):
    found, _, values = fitted
    twice = price_of_items(found, np.vstack([values[:900], values[:900]]))
    assert price_of_items(found, values[:900], np.full(900, 2.0)) == pytest.approx(twice)


@pytest.mark.filterwarnings("ignore")
def test_latents_that_act_together_have_no_price(fitted):
    _, told, values = fitted
    model = DCRL(5, q_matrix=told.q_matrix, effects="gdina", family="bernoulli", random_state=0)
    together = model.set_params(max_iter=3).fit(values).result_
    assert np.isnan(price_of_items(together, values))
