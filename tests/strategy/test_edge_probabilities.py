from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from hidag import DCRL, Knowledge, load, simulate
from hidag.config import CONFIG
from hidag.em.design_data import WorkingData
from hidag.exceptions import SettingError
from hidag.kernels.dag_sums import families_of_imset, imsets, members_of_class, sum_over_dags
from hidag.simulation import Truth, dag_from_parents, random_law
from hidag.strategy.observed_likelihood.edge_probabilities import edge_probabilities
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


def row_densities(truth, values):
    states = truth.law.space.states()
    p = 1.0 / (1.0 + np.exp(-(truth.intercept + states @ truth.loadings.T)))
    return np.exp(values @ np.log(p).T + (1 - values) @ np.log(1 - p).T)


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


def fit_by_em(densities, parents, states, n_steps=60):
    law = np.full(len(states), 1.0 / len(states))
    for _ in range(n_steps):
        posterior = densities * law
        posterior /= posterior.sum(axis=1, keepdims=True)
        law = project(posterior.sum(axis=0), parents, states)
    return float(np.log(densities @ law).sum())


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


@pytest.mark.parametrize(
    ("parents", "n_rows"), [([(), (), (0, 1)], 400), ([(), (0,), (0, 1), (2,)], 250)]
)
def test_probabilities_are_those_of_brute_force_over_all_graphs(parents, n_rows):
    truth, values = draw(parents, n_rows)
    observed, states = observe(truth, values), truth.law.space.states()
    dags, densities, ratio = all_dags(len(parents)), row_densities(truth, values), 0.8
    config, likelihoods = CONFIG.edge_probabilities, {}
    for one in dags:
        skeleton = frozenset(frozenset((a, k)) for k, pa in enumerate(one) for a in pa)
        colliders = frozenset(
            (frozenset((a, b)), k)
            for k, pa in enumerate(one)
            for a in pa
            for b in pa
            if a < b and frozenset((a, b)) not in skeleton
        )
        likelihoods.setdefault((skeleton, colliders), []).append(one)
    n_effective = ratio * n_rows
    of_pair = 2 * 2 * values.shape[1] / len(parents)
    share = n_effective / (n_effective + config.rows_per_coefficient * of_pair)
    complexity = 0.5 * np.log1p(config.complexity_rows * n_effective * share**2)
    edges, totals = [], []
    for group in likelihoods.values():
        value = share * fit_by_em(densities, group[0], states)
        size = sum(2 ** len(pa) for pa in group[0])
        shares = edge_shares(group, np.ones(len(group)))
        edges.append(np.where((shares > 0) & (shares.T > 0), 0.5, shares))
        totals.append(value - complexity * size + np.log(len(group)))
    weights = np.exp(np.array(totals) - max(totals))
    expected = np.tensordot(weights / weights.sum(), np.array(edges), 1)
    law = observed.law_over(truth.law.parents, observed.law)[0]
    found = edge_probabilities(
        observed, truth.law.parents, law, ratio=ratio, n_graphs=len(likelihoods)
    )
    np.testing.assert_allclose(found, expected, atol=0.02)


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
