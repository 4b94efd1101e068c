from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln

from hidag import DCRL, Knowledge, load, simulate
from hidag.config import override
from hidag.em.design_data import WorkingData
from hidag.exceptions import SettingError
from hidag.kernels.dag_sums import (
    families_of_imset,
    imsets,
    members_of_class,
    sum_over_dags,
    sums_over_margins,
)
from hidag.simulation import Truth, dag_from_parents, random_law
from hidag.strategy.observed_likelihood.edge_probabilities import (
    GraphLikelihoods,
    edge_probabilities,
)
from hidag.strategy.observed_likelihood.likelihood_search import ObservedFit


def all_dags(n):
    """Return the parents of all directed acyclic graphs, as sets."""
    subsets = [frozenset(a for a in range(n) if mask >> a & 1) for mask in range(1 << n)]

    def acyclic(parents):
        left = set(range(n))
        while left:
            roots = {k for k in left if not parents[k] & left}
            if not roots:
                return False
            left -= roots
        return True

    choices = [[one for one in subsets if k not in one] for k in range(n)]
    return [parents for parents in product(*choices) if acyclic(parents)]


def edge_shares(dags, weights):
    n = len(dags[0])
    out = np.zeros((n, n))
    for parents, weight in zip(dags, weights, strict=True):
        for effect, causes in enumerate(parents):
            out[list(causes), effect] += weight
    return out / sum(weights)


def draw(parents, n_rows, slope=4.0, n_items=3, seed=0):
    rng = np.random.default_rng(seed)
    law = random_law(dag_from_parents(parents), rng=rng)
    q = np.vstack([np.eye(len(parents), dtype=int)] * n_items)
    loadings = slope * q
    items = (q, -loadings.sum(axis=1) / 2, loadings, np.ones(len(q)), ("bernoulli",) * len(q))
    truth = Truth(*items, law)
    return truth, np.array(simulate(truth, n_rows, rng=rng).X)


def observe(truth, values):
    data = WorkingData.from_values(values, truth.families)
    space = truth.law.space
    return ObservedFit(data, truth.items, space, np.asarray(truth.law.probabilities))


def project(counts, parents, states):
    """Return the product of the conditional frequencies of counts over a graph."""
    law = np.ones(len(states))
    for k, causes in enumerate(parents):
        given = [a for a in range(len(parents)) if a in causes]
        for s, state in enumerate(states):
            same = (states[:, given] == state[given]).all(axis=1)
            own = same & (states[:, k] == state[k])
            law[s] *= counts[own].sum() / counts[same].sum()
    return law


def fit_by_em(truth, values, parents, n_steps=1000):
    """Return the largest log-likelihood over laws of a graph and coefficients on the support."""
    states = truth.law.space.states()
    design = np.hstack([np.ones((len(states), 1)), states])
    free = np.hstack([np.ones((len(truth.loadings), 1), dtype=bool), truth.loadings != 0])
    coefficients = np.hstack([truth.intercept[:, None], truth.loadings])
    law, previous = np.asarray(truth.law.probabilities), -np.inf
    for _ in range(n_steps):
        p = 1.0 / (1.0 + np.exp(-design @ coefficients.T))
        joint = law * np.exp(values @ np.log(p).T + (1 - values) @ np.log(1 - p).T)
        total = float(np.log(joint.sum(axis=1)).sum())
        if total - previous < 1e-5:
            break
        previous, posterior = total, joint / joint.sum(axis=1, keepdims=True)
        counts = posterior.sum(axis=0)
        law = project(counts, parents, states)
        for j, own in enumerate(free):
            x = design[:, own]
            slope = x.T @ (posterior.T @ values[:, j] - counts * p[:, j])
            bend = x.T @ (x * (counts * p[:, j] * (1 - p[:, j]))[:, None])
            coefficients[j, own] += np.linalg.solve(bend, slope)
    return total, coefficients, law


@pytest.mark.parametrize(("n", "count"), [(3, 25), (4, 543)])
def test_sums_over_all_graphs_are_those_of_brute_force(n, count):
    scores = np.random.default_rng(n).normal(size=(n, 1 << n)) * 40.0
    dags = all_dags(n)
    assert len(dags) == count
    totals = np.array(
        [sum(scores[k, sum(1 << a for a in pa)] for k, pa in enumerate(one)) for one in dags]
    )
    edges = np.empty((n, n))
    log_sum = sum_over_dags(scores, edges)
    weights = np.exp(totals - totals.max())
    np.testing.assert_allclose(log_sum, np.log(weights.sum()) + totals.max(), rtol=1e-12)
    np.testing.assert_allclose(edges, edge_shares(dags, weights), atol=1e-10)


def test_imsets_and_members_are_those_of_equivalence_classes():
    graphs = np.array([[sum(1 << a for a in pa) for pa in one] for one in all_dags(4)])
    rng = np.random.default_rng(0)
    coordinates = np.zeros((len(graphs), 10), dtype=np.uint8)
    keys = imsets(graphs, rng.integers(1 << 63, size=10, dtype=np.uint64), coordinates)
    for graph, key in zip(graphs, keys, strict=True):
        members = {tuple(one) for one in members_of_class(graph, 100).tolist()}
        assert members == {tuple(one) for one in graphs[keys == key].tolist()}
    assert len(set(keys.tolist())) == len(np.unique(coordinates, axis=0)) == 185
    effects, tables = rng.normal(size=10), np.empty((4, 16))
    families_of_imset(effects, tables)
    sums = tables[np.arange(4), graphs].sum(axis=1)
    np.testing.assert_allclose(sums, coordinates @ effects, atol=1e-12)


def test_sums_over_margins_are_those_of_the_cells():
    rng, levels = np.random.default_rng(0), (2, 3, 2)
    counts, prior = rng.gamma(2.0, size=12), rng.gamma(2.0, size=12)
    prior[3] = counts[3] = 0.0
    sums = np.empty((2, 8))
    sums_over_margins(counts, prior, np.array(levels), sums)
    for mask in range(8):
        away = tuple(a for a in range(3) if not mask >> a & 1)
        m, a = (part.reshape(levels).sum(axis=away).ravel() for part in (counts, prior))
        m, a = m[a > 0], a[a > 0]
        expected = [(m * np.log(m)).sum(), (gammaln(a + m) - gammaln(a)).sum()]
        np.testing.assert_allclose(sums[:, mask], expected, rtol=1e-12)


GRAPHS = [[(), (), (0, 1)], [(), (0,), (0,)], [(), (), (0,)], [(), (), (1,)]]


def masks(parents):
    return tuple(sum(1 << a for a in causes) for causes in parents)


def likelihoods_of(truth, values, parents):
    """Return the likelihoods of graphs about the best fit with one of them."""
    _, coefficients, law = fit_by_em(truth, values, parents)
    items = replace(truth.items, intercept=coefficients[:, 0], loadings=coefficients[:, 1:])
    data, space = WorkingData.from_values(values, truth.families), truth.law.space
    return GraphLikelihoods.of(ObservedFit(data, items, space, law), law)


def test_likelihoods_of_graphs_are_those_of_fits_of_law_and_items():
    truth, values = draw(GRAPHS[0], 800, slope=2.0)
    likelihoods, share = likelihoods_of(truth, values, GRAPHS[0])
    assert 0.9 < share < 0.99
    found = likelihoods.of_graphs([masks(one) for one in GRAPHS])
    expected = np.array([fit_by_em(truth, values, one)[0] for one in GRAPHS])
    assert np.ptp(expected) > 3.0
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=0.2)


def test_functions_of_three_latents_are_enough():
    parents = [(), (0,), (0, 1), (2,), (2, 3)]
    truth, values = draw(parents, 800, slope=3.0)
    observed = observe(truth, values)
    fewer = [(), (), (0, 1), (2,), (2, 3)], [(), (0,), (0, 1), (2,), (2,)]
    graphs = [masks(one) for one in (parents, *fewer)]
    every = GraphLikelihoods.of(observed, observed.law)
    with override({"edge_probabilities.most_functions": 8}):
        some = GraphLikelihoods.of(observed, observed.law)
    assert some[0].basis.shape == (32, 26)
    found, expected = some[0].of_graphs(graphs), every[0].of_graphs(graphs)
    np.testing.assert_allclose(found, expected, rtol=0.12, atol=0.1)
    assert some[1] == pytest.approx(every[1], abs=1e-3)


@pytest.mark.parametrize(
    ("parents", "n_rows"), [([(), (), (0, 1)], 400), ([(), (0,), (0, 1), (2,)], 250)]
)
def test_probabilities_are_those_of_brute_force_over_all_graphs(parents, n_rows):
    truth, values = draw(parents, n_rows)
    observed, ratio = observe(truth, values), 0.8
    law = observed.law_over(truth.law.parents, observed.law)[0]
    likelihoods, share = GraphLikelihoods.of(observed, law)
    shape, n = truth.law.space.levels, len(parents)
    effective = n_rows * ratio * share
    evidence = effective / (effective + 2 * 2 * values.shape[1] / n)
    counts = (observed.law * effective * evidence).reshape(shape)

    def margin_score(members):
        m = counts.sum(axis=tuple(a for a in range(n) if a not in members)).ravel()
        a = 8.0 / len(m)
        return (gammaln(a + m) - gammaln(a) - m * np.log(m)).sum()

    classes = {}
    for one in all_dags(n):
        skeleton = frozenset(frozenset((a, k)) for k, pa in enumerate(one) for a in pa)
        colliders = frozenset(
            (frozenset((a, b)), k)
            for k, pa in enumerate(one)
            for a in pa
            for b in pa
            if a < b and frozenset((a, b)) not in skeleton
        )
        classes.setdefault((skeleton, colliders), []).append(one)
    edges, totals, sizes = [], [], []
    for group in classes.values():
        score = sum(margin_score({k, *pa}) - margin_score(pa) for k, pa in enumerate(group[0]))
        shares = edge_shares(group, np.ones(len(group)))
        edges.append(np.where((shares > 0) & (shares.T > 0), 0.5, shares))
        value = evidence * likelihoods.of_graphs([masks(group[0])])[0]
        totals.append(value + score + np.log(len(group)))
        sizes.append(sum(map(len, group[0])))
    numbers = np.bincount([sum(map(len, one)) for one in all_dags(n)])
    grid, density, sizes = np.linspace(-6.0, 3.0, 181), 0.0, np.array(sizes)
    for _ in range(20):
        weights = np.exp(np.array(totals) + density * sizes - max(totals))
        expected = np.tensordot(weights / weights.sum(), np.array(edges), 1)
        sums = np.exp(np.outer(grid, np.arange(len(numbers)))) @ numbers
        density = grid[np.argmax(expected.sum() * grid - np.log(sums) - grid**2 / 2)]
    found = edge_probabilities(observed, truth.law.parents, law, ratio=ratio, n_graphs=len(classes))
    np.testing.assert_allclose(found, expected, atol=0.03)


@pytest.fixture(scope="module")
def table():
    truth, values = draw([(), (), (0, 1), (2,)], 900, slope=2.5, n_items=4, seed=3)
    return truth, values


def fitted(values, **settings):
    return DCRL(4, family="bernoulli", random_state=0, **settings).fit(values)


def test_probabilities_are_stored_and_sum_to_those_of_adjacencies(table, tmp_path):
    model = fitted(table[1])
    p = model.edge_probabilities_
    assert np.all(np.diag(p) == 0.0)
    assert np.all((p >= 0.0) & (p + p.T <= 1.0 + 1e-9))
    again = load(model.result_.save(tmp_path / "fit.npz"))
    np.testing.assert_array_equal(again.edge_probabilities, p)
    assert again.claims() == model.result_.claims()


def test_order_of_rows_and_columns_and_threads_do_not_matter(table):
    values = table[1]
    p = fitted(values).edge_probabilities_
    np.testing.assert_array_equal(fitted(values, n_jobs=2).edge_probabilities_, p)
    rng = np.random.default_rng(0)
    mixed = values[rng.permutation(len(values))][:, rng.permutation(values.shape[1])]
    np.testing.assert_array_equal(fitted(mixed).edge_probabilities_, p)


def test_order_of_given_latents_only_permutes_the_probabilities(table):
    truth, values = table
    order = np.array([2, 0, 3, 1])
    one = fitted(values, q_matrix=truth.q_matrix).edge_probabilities_
    other = fitted(values, q_matrix=truth.q_matrix[:, order]).edge_probabilities_
    np.testing.assert_allclose(other, one[np.ix_(order, order)], atol=0.01)


def test_none_computes_no_probabilities_and_states_the_best_graph(table):
    model = fitted(table[1], uncertainty="none")
    assert np.isnan(model.edge_probabilities_).all()
    assert model.result_.uncertainty_note == "they were not requested"
    quick = fitted(table[1])
    np.testing.assert_array_equal(model.graph_.adjacency, quick.graph_.adjacency)
    claims = model.result_.claims()
    assert {frozenset((c.one, c.other)) for c in claims} == {
        frozenset(e) for e in (*model.graph_.directed_edges, *model.graph_.undirected_edges)
    }


def test_knowledge_restricts_the_graphs(table):
    truth, values = table
    names = truth.latent_names
    known = Knowledge(required=[(names[0], names[2])], forbidden=[(names[3], names[2])])
    model = fitted(values, q_matrix=truth.q_matrix, latent_names=names, knowledge=known)
    p = model.edge_probabilities_
    assert p[0, 2] == pytest.approx(1.0)
    assert p[3, 2] == 0.0


@pytest.mark.parametrize("setting", [{"uncertainty": "some"}, {"claim_level": 0.5}])
def test_settings_are_checked(table, setting):
    with pytest.raises(SettingError, match=next(iter(setting))):
        fitted(table[1], **setting)
