"""Questions about a fit have the same answers over small tables as over all joint states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.diagnostics import fit_statistics
from hidag.diagnostics.goodness_of_fit import compute_criteria
from hidag.diagnostics.item_fit import compute_item_fit
from hidag.diagnostics.pair_residuals import compute_pair_residuals
from hidag.inference import standard_errors
from hidag.information.free_parameters import FreeParameters, row_scores
from hidag.information.moment_tests import LocalScores, ScoredColumns
from hidag.information.observed_information import (
    complete_information,
    observed_information,
)
from hidag.information.posterior_tables import TreeTables, state_tables
from hidag.latent import NetworkLaw, StateSpace
from hidag.measurement import MeasurementParameters, Responses, Terms, family_named
from hidag.network_em.junction_tree import TreePosterior

from ..fitted_models import drawn, result_at
from .test_row_scores import EVERY

#: A chain and a collider, one latent of three levels, one that drives nothing alone.
LEVELS = (2, 3, 2, 2)
PARENTS = ((), (0,), (), (1, 2))


def four_latents(families=EVERY, seed=0, n_samples=400):
    """Return a result with four latents over a graph, items of one to three of them."""
    rng = np.random.default_rng(seed)
    space = StateSpace(LEVELS)
    tables = []
    for k, parents in enumerate(PARENTS):
        table = rng.uniform(0.5, 1.5, (*(LEVELS[a] for a in parents), LEVELS[k]))
        tables.append(table / table.sum(axis=-1, keepdims=True))
    law = NetworkLaw(space, PARENTS, tuple(tables))
    responses = Responses.of(families)
    q = np.zeros((len(families), len(LEVELS)), dtype=np.int8)
    for j in range(len(families)):
        q[j, rng.permutation(len(LEVELS))[: rng.integers(1, 4)]] = 1
    terms = Terms.main(LEVELS)
    support = terms.support(responses.of_items(q))
    loadings = np.where(support, rng.uniform(0.3, 0.9, support.shape), 0.0)
    n = len(responses.families)
    intercept, dispersion = rng.uniform(-0.6, 0.2, n), np.full(n, 0.4)
    cutpoints = np.full((n, 2), np.nan)
    for r, name in enumerate(responses.families):
        family = family_named(name)
        if family.lowest_predictor > -1:
            intercept[r] = 1.0
        cutpoints[r, : family.n_cutpoints] = 0.8 * np.arange(1, 1 + family.n_cutpoints)
    parameters = MeasurementParameters(
        responses.families, intercept, loadings, dispersion, terms, cutpoints
    )
    named = () if responses.plain else tuple(families)
    return result_at(parameters, law, n_samples=n_samples, item_families=named, q_given=q)


@pytest.fixture(scope="module")
def both():
    """Return the free parameters over all joint states, over small tables, and the rows."""
    result = four_latents()
    X, _ = drawn(result, 400, seed=1, missing=0.1)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    q = result.responses.of_items(result.q_matrix)
    small = TreeTables.of(TreePosterior.of(result.parameters, result.law, q))
    listed = FreeParameters.of(result, X, weights)
    assert listed.is_listed
    return listed, FreeParameters.over(small, result, X, weights), X


def test_tree_tables_cover_items_and_families(both):
    listed, small, _ = both
    tables = small.tables
    assert max(len(tables.shares(t)) for t in range(tables.n_tables)) < listed.probabilities.size
    for r, t in enumerate(tables.of_response):
        own = set(np.flatnonzero(small.result.responses.of_items(small.result.q_matrix)[r]))
        assert own == set(tables.scopes[t])


def test_joint_sums_of_two_tables_agree_with_the_joint_law(both):
    listed, small, _ = both
    p, states = listed.probabilities, listed.tables.states(0)
    tables, rng = small.tables, np.random.default_rng(0)

    def place(table):
        own = tables.states(table)[:, list(tables.scopes[table])]
        here = states[:, list(tables.scopes[table])]
        return (here[:, None] == own[None]).all(axis=2).argmax(axis=1)

    for first in range(tables.n_tables):
        np.testing.assert_allclose(
            tables.shares(first),
            np.bincount(place(first), p, minlength=len(tables.shares(first))),
            atol=1e-14,
        )
        for second in range(tables.n_tables):
            numbers = rng.normal(size=(2, len(tables.shares(first))))
            expected = [
                np.bincount(place(second), p * row[place(first)], len(tables.shares(second)))
                for row in numbers
            ]
            np.testing.assert_allclose(
                tables.joint_sums(first, numbers, second), expected, atol=1e-14
            )


def test_rows_have_the_same_densities_entropies_and_scores(both):
    listed, small, _ = both
    assert small.names() == listed.names()
    ours, theirs = (
        [np.concatenate(parts) for parts in zip(*blocks, strict=True)]
        for blocks in (
            [(b.log_density, b.joint_entropy()) for b in free.row_blocks()]
            for free in (small, listed)
        )
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-10)
    np.testing.assert_allclose(row_scores(small), row_scores(listed), atol=1e-10)


def test_information_is_the_same(both):
    listed, small, _ = both
    ours, theirs = complete_information(small)[0], complete_information(listed)[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)
    scores = row_scores(listed)
    expected = observed_information(listed, scores, theirs)
    np.testing.assert_allclose(observed_information(small, scores), expected, rtol=1e-5, atol=1e-3)


def test_pairs_items_and_criteria_are_the_same(both):
    listed, small, X = both
    scores = LocalScores.of(listed, row_scores(listed))
    for statistic, columns in (
        (compute_pair_residuals, ("observed", "expected", "residual", "tested", "z", "n_rows")),
        (compute_item_fit, ("observed", "expected", "chi_square", "degrees", "p_value", "n_rows")),
    ):
        ours = statistic(small, ScoredColumns.of(small, X), scores)
        theirs = statistic(listed, ScoredColumns.of(listed, X), scores)
        assert ours.column(ours.columns[0]) == theirs.column(theirs.columns[0])
        for name in columns:
            a, b = (np.array(one.column(name), dtype=float) for one in (ours, theirs))
            np.testing.assert_allclose(a, b, atol=1e-7, err_msg=name)
        if statistic is compute_pair_residuals:
            # The precision of a spread depends on moments in the states of each table.
            a, b = (np.array(one.column("p_value")) for one in (ours, theirs))
            np.testing.assert_allclose(a, b, atol=0.02)
    ours, theirs = compute_criteria(small, X), compute_criteria(listed, X)
    assert ours.entropy == pytest.approx(theirs.entropy, abs=1e-10)
    assert ours.bic == pytest.approx(theirs.bic)


@pytest.mark.parametrize("kind", ["louis", "sandwich", "scores"])
def test_standard_errors_do_not_depend_on_listing_states(kind, configure):
    result = four_latents(("bernoulli", "gaussian", "poisson", "ordinal(4)", "categorical(3)") * 2)
    X, _ = drawn(result, 500, seed=3, missing=0.05)
    expected = standard_errors(result, X, kind=kind)
    configure("derivatives", max_states=2)
    assert isinstance(state_tables(result), TreeTables)
    found = standard_errors(result, X, kind=kind)
    for ours, theirs in ((found.table, expected.table), (found.patterns, expected.patterns)):
        assert ours.columns == theirs.columns
        for name in ours.columns:
            a, b = ours.column(name), theirs.column(name)
            if isinstance(a[0], str):
                assert a == b
            else:
                np.testing.assert_allclose(
                    np.array(a, float), np.array(b, float), rtol=1e-4, atol=1e-6
                )
    assert found.not_estimated == expected.not_estimated
    assert found.distance == pytest.approx(expected.distance, rel=1e-4)


def test_fit_statistics_without_listed_states_lack_m2_only(configure):
    result = four_latents(("bernoulli",) * 10)
    X, _ = drawn(result, 400, seed=4)
    expected = fit_statistics(result, X, n_tables=2)
    configure("derivatives", max_states=2)
    found = fit_statistics(result, X, n_tables=2)
    assert found.absolute is None
    assert found.notes[0].code == "m2-too-many-states"
    assert found.notes[0].params["n_states"] == "24"
    assert found.criteria.bic == pytest.approx(expected.criteria.bic)
    assert len(found.pairs) == len(expected.pairs)
    assert len(found.items) == len(expected.items)


def test_prerequisites_among_many_states_leave_no_tables(configure):
    result = four_latents(("bernoulli",) * 10)
    knowledge = {"knowledge": {"hierarchy": [["Z1", "Z3"]]}}
    result = replace(result, settings={**result.settings, **knowledge})
    configure("derivatives", max_states=2)
    assert state_tables(result) is None


@pytest.mark.parametrize("most_states", [2, 1 << 13])
def test_a_latent_without_items_does_not_change_other_statistics(most_states, configure):
    # The last latent has neither items nor a graph: nothing is known of it, and of others all.
    configure("derivatives", max_states=most_states)
    space = StateSpace((2, 2, 2))
    law = NetworkLaw(
        space,
        ((), (0,), ()),
        (np.array([0.4, 0.6]), np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([0.45, 0.55])),
    )
    q = np.array([[1, 0, 0]] * 4 + [[0, 1, 0]] * 4, dtype=np.int8)
    families = ("bernoulli",) * 8
    items = MeasurementParameters(families, np.full(8, -1.0), 2.0 * q, np.ones(8))
    result = result_at(items, law, n_samples=400, q_given=q)
    X, _ = drawn(result, 400, seed=5)
    errors = standard_errors(result, X, kind="scores")
    assert errors.not_estimated == ("log ratio of Z3=0",)
    for row in errors.to_rows():
        if row["kind"] == "share":
            assert np.isnan(row["standard_error"]) == (row["of"] == "Z3"), row
    without = result_at(
        MeasurementParameters(families, np.full(8, -1.0), 2.0 * q[:, :2], np.ones(8)),
        NetworkLaw(StateSpace((2, 2)), law.parents[:2], law.tables[:2]),
        n_samples=400,
        q_given=q[:, :2],
    )
    ours, theirs = (fit_statistics(one, X, n_tables=2).pairs for one in (result, without))
    np.testing.assert_allclose(ours.column("z"), theirs.column("z"), atol=1e-8)
