"""Tests of edges among latents of which some are prerequisites of others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.em.design_data import WorkingData
from hidag.latent import LatentCounts, SaturatedLaw
from hidag.latent.laws import factorise_counts
from hidag.measurement import MeasurementParameters
from hidag.strategy.observed_likelihood.edge_tests import confirm_edges
from hidag.strategy.observed_likelihood.likelihood_search import (
    LikelihoodSearch,
    ObservedFit,
    SingleChanges,
    move_estimates,
)
from hidag.structure import Knowledge, search_graph
from hidag.structure.scores import make_score

from .tables import SPACE

NAMES = ("a", "b", "c")
#: No row has b without a.
STEP = Knowledge(hierarchy=[("a", "b")])
POSSIBLE = STEP.possible_states(NAMES, SPACE.levels).ravel()
#: a -> b, and c adds to b; without c; with c and a joined as well.
TRUE, WITHOUT, MORE = ((), (0, 2), ()), ((), (0,), ()), ((), (0, 2), (0,))


def true_law(shift: float) -> np.ndarray:
    """Return the law in which c shifts the chance of b among those who have a, shape (8,)."""
    a, b, c = SPACE.states().T
    chance = np.where(a == 1, 0.5 + shift * (c - 0.5), 0.0)
    return np.where(a == 1, 0.7, 0.3) * np.where(b == 1, chance, 1 - chance) * 0.5


def observed(slope: float, n_rows: int, shift: float, seed: int) -> ObservedFit:
    """Return the true items of a drawn table, four for each latent."""
    rng = np.random.default_rng(seed)
    loadings = np.repeat(np.eye(3), 4, axis=0) * slope
    families = ("bernoulli",) * 12
    parameters = MeasurementParameters(families, -0.5 * loadings.sum(axis=1), loadings, np.ones(12))
    law = true_law(shift)
    eta = parameters.intercept + SaturatedLaw(SPACE, law).sample(n_rows, rng) @ loadings.T
    values = (rng.random(eta.shape) < 1 / (1 + np.exp(-eta))).astype(float)
    data = WorkingData.from_values(values, families)
    return ObservedFit(data, parameters, SPACE, law, possible=POSSIBLE)


@pytest.fixture(scope="module")
def seen() -> ObservedFit:
    return observed(2.5, 2000, 0.3, 0)


def test_an_edge_costs_its_free_probabilities_only(seen) -> None:
    counts = LatentCounts(SPACE.states().astype(np.uint8), 300 * true_law(0.4), (2,) * 3, NAMES)

    def search(knowledge, start=None):
        return search_graph(counts, knowledge=knowledge)

    score = make_score("bdeu", counts, 1.0, STEP)
    tests = {
        held.possible is not None: confirm_edges(
            search(STEP),
            search,
            STEP,
            held,
            score,
            n_rows=300,
            n_scored=counts.total,
            max_tests=10,
        ).tests
        for held in (seen, replace(seen, possible=None))
    }
    # c adds to b among those who have a, and nothing among the others: one number, not two.
    for known, n_numbers in ((True, 1), (False, 2)):
        assert [set(test.pair) for test in tests[known]] == [{"b", "c"}]
        assert tests[known][0].saved == pytest.approx(n_numbers * 0.5 * np.log(300))
    assert tests[True][0].likelihood_loss == tests[False][0].likelihood_loss


def test_graphs_by_likelihood_pay_for_possible_states_only(seen) -> None:
    search = LikelihoodSearch(seen)
    fits = [search.fitted(parents, seen.law) for parents in (TRUE, WITHOUT, MORE)]
    paid = [(fit.log_likelihood - fit.criterion) / search.cost for fit in fits]
    np.testing.assert_allclose(paid, [4, 3, 5])
    assert fits[0].law[~POSSIBLE].max() == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_estimated_gains_are_near_those_of_fits_under_prerequisites(seed) -> None:
    table = observed(1.5, 4000, 0.3, seed)
    search = LikelihoodSearch(table, SingleChanges(STEP.constraints(NAMES)))
    true, without = (search.fitted(parents, table.law) for parents in (TRUE, WITHOUT))
    worth = true.log_likelihood - without.log_likelihood
    joined = move_estimates(table, WITHOUT, without.law)
    assert joined.gains[1, 2] == pytest.approx(worth, rel=0.4, abs=2.0)
    assert joined.gains[0, 2] == pytest.approx(
        search.fitted(((), (0,), (0,)), table.law).log_likelihood - without.log_likelihood,
        rel=0.4,
        abs=2.0,
    )
    parted = move_estimates(table, TRUE, true.law)
    assert parted.losses[2, 1] == pytest.approx(worth, rel=0.4, abs=2.0)


def test_known_probabilities_have_no_part_in_the_other_estimates(seen) -> None:
    """Cutting the impossible states out of the tables changes nothing where all may occur."""
    law = factorise_counts(np.random.default_rng(0).dirichlet(np.ones(8)), TRUE, SPACE)
    plain = move_estimates(replace(seen, possible=None), TRUE, law)
    every = move_estimates(replace(seen, possible=np.ones(8, dtype=bool)), TRUE, law)
    assert plain.gains == every.gains
    assert plain.losses == every.losses


@pytest.mark.parametrize("begin", [WITHOUT, MORE])
def test_a_cause_beside_the_prerequisite_is_found(begin) -> None:
    table = observed(1.2, 4000, 0.6, 5)
    search = LikelihoodSearch(table, SingleChanges(STEP.constraints(NAMES)))
    assert search.best_from(begin).parents == TRUE
