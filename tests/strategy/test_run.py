"""Stage I as one function: both algorithms agree, and the order of the table is irrelevant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidag.em.em import Schedule
from hidag.exceptions import SettingError
from hidag.fitting.settings import GraphSettings
from hidag.fitting.stages import learn_graph
from hidag.latent import NetworkLaw
from hidag.latent.laws import factorise_counts
from hidag.measurement import default_penalty
from hidag.metrics import Parts, evaluate
from hidag.simulation import chain_dag, make_truth, random_law, simulate
from hidag.strategy.estimation import StageOneSettings, estimate_measurement
from hidag.strategy.measurement import ExactMeasurement, SampledMeasurement
from hidag.structure import CPDAG, DAG

K, N = 4, 1200
NAMES = ("A", "B", "C", "D")
METHODS = ("em", "saem")


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(4)
    law = random_law(chain_dag(K), rng=rng)
    truth = make_truth(law, np.vstack([np.eye(K)] * 3), "gaussian", rng=rng)
    return truth, np.array(simulate(truth, N, rng=rng, missing=0.05).X)


def measure(values, method, n_latents=K, **options):
    return estimate_measurement(
        values,
        ("gaussian",) * values.shape[1],
        StageOneSettings(
            (2,) * n_latents,
            default_penalty("tlp", len(values), K),
            Schedule(max_iter=80),
            method=method,
            law="network",
            seed=1,
        ),
        **options,
    )


@pytest.fixture(scope="module")
def both(problem):
    return {method: measure(problem[1], method) for method in METHODS}


def chain(order=range(K)):
    adjacency = np.zeros((K, K), dtype=np.int8)
    for a, b in zip(list(order)[:-1], list(order)[1:], strict=True):
        adjacency[a, b] = 1
    return DAG(adjacency).to_cpdag()


def test_exact_and_sampled_estimates_agree(problem, both):
    truth = problem[0]
    exact, sampled = both["em"], both["saem"]
    assert isinstance(exact, ExactMeasurement)
    assert isinstance(sampled, SampledMeasurement)
    fits = []
    for found in (exact, sampled):
        p = found.parameters
        graph = np.zeros((K, K), dtype=np.int8)
        held = evaluate(Parts(p.q_matrix, p.intercept, p.loadings, found.law, graph), truth)
        assert held.shd_q == 0
        fits.append((p.loadings[:, held.permutation], held))
    # The spread of a coefficient is about 2 / sqrt(N); Monte-Carlo error is well inside it.
    np.testing.assert_allclose(fits[0][0], fits[1][0], atol=2 * N**-0.5)
    assert abs(fits[0][1].tv_law - fits[1][1].tv_law) < 0.05
    assert sampled.record.log_likelihood == pytest.approx(exact.record.log_likelihood, abs=5.0)
    assert sampled.information_ratio() == pytest.approx(exact.information_ratio(), abs=0.08)


@pytest.mark.parametrize("method", METHODS)
def test_loadings_rise_with_their_latents(both, method):
    loadings = both[method].parameters.loadings
    assert (loadings.sum(axis=0) > 0).all()
    assert both[method].record.method == method


@pytest.mark.parametrize("method", METHODS)
def test_permuting_rows_and_columns_only_permutes_the_answer(problem, both, method):
    values = problem[1]
    rng = np.random.default_rng(8)
    rows, columns = rng.permutation(N), rng.permutation(values.shape[1])
    one, two = both[method], measure(values[np.ix_(rows, columns)], method)
    assert np.array_equal(one.parameters.loadings[columns], two.parameters.loadings)
    assert np.array_equal(one.parameters.intercept[columns], two.parameters.intercept)
    assert one.law.parents == two.law.parents
    for a, b in zip(one.law.tables, two.law.tables, strict=True):
        assert np.array_equal(a, b)
    assert one.record.log_likelihood == two.record.log_likelihood
    assert np.array_equal(one.counts(100.0, NAMES).weights, two.counts(100.0, NAMES).weights)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_rows", [1.0, 250.5, 4.0 * N])
def test_counts_sum_to_the_requested_number_of_rows(both, method, n_rows):
    counts = both[method].counts(n_rows, NAMES)
    assert counts.total == pytest.approx(n_rows, rel=1e-10)
    assert counts.names == NAMES


@pytest.mark.parametrize("method", METHODS)
def test_some_latents_alone_are_the_margin_of_all(both, method):
    whole = both[method]
    kept = np.array([3, 1])
    part = whole.restricted(kept)
    assert part.n_samples == N
    assert np.array_equal(part.parameters.loadings, whole.parameters.loadings[:, kept])

    def shares(counts, columns):
        out = np.zeros((2, 2))
        np.add.at(out, tuple(counts.states[:, columns].T), counts.weights)
        return out / counts.total

    margin = shares(whole.counts(N, NAMES), kept)
    np.testing.assert_allclose(shares(part.counts(N, ("D", "B")), [0, 1]), margin, atol=1e-12)
    # Both latents are clearly shown: leaving out the others leaves a share for this pair alone.
    assert 0 < part.information_ratio() <= 1


def test_the_information_ratio_of_some_latents_ignores_the_others(problem):
    # A latent that no item shows carries nothing; the others' share must not suffer for it.
    found = measure(problem[1], "saem")
    blurred = found.draws.copy()
    blurred[:, :, 0] = np.random.default_rng(0).integers(0, 2, blurred.shape[:2])

    found = replace(found, draws=blurred, ratio=0.5 * found.ratio)
    part = found.restricted(np.array([1, 2, 3]))
    assert part.information_ratio() > 1.5 * found.information_ratio()


@pytest.mark.parametrize("method", METHODS)
def test_the_law_over_a_graph_is_over_that_graph(both, method):
    found = both[method]
    for graph in (chain(), chain([2, 0, 3, 1]), CPDAG(np.zeros((K, K), dtype=np.int8), NAMES)):
        law = found.law_over(graph, None)
        assert isinstance(law, NetworkLaw)
        p = law.probabilities
        parents = graph.to_dag().parents
        np.testing.assert_allclose(p, factorise_counts(p, parents, law.space), atol=1e-10)
        assert found.log_likelihood_of(law) < found.log_likelihood_of(found.law) + 3.0
    empty = found.law_over(CPDAG(np.zeros((K, K), dtype=np.int8), NAMES), None)
    assert found.log_likelihood_of(empty) < found.log_likelihood_of(found.law) - 20.0


def idle_measurement(problem):
    """Return a sampled measurement whose first latent drives nothing."""

    found = measure(problem[1], "saem")
    loadings = found.parameters.loadings.copy()
    loadings[:, 0] = 0.0
    return replace(found, parameters=replace(found.parameters, loadings=loadings))


@pytest.mark.parametrize("rule", ["expected", "2N"])
def test_latents_beside_an_idle_one_keep_their_edges(problem, rule):
    found = learn_graph(idle_measurement(problem), NAMES, GraphSettings(resample=rule))
    assert not found.graph.adjacency[0].any()
    assert not found.graph.adjacency[:, 0].any()
    assert found.graph.adjacency.any()
    assert found.n_rows == pytest.approx(2 * N) if rule == "2N" else found.n_rows <= N


@pytest.mark.parametrize("method", METHODS)
def test_given_start_is_used(problem, both, method):
    found = both[method]
    order = np.array([1, 0, 3, 2])
    law = np.full(1 << K, 1.0 / (1 << K))
    start = (found.parameters.reordered(latents=order), law)
    again = measure(problem[1], method, start=start)
    columns = [sorted(map(tuple, m.parameters.q_matrix.T)) for m in (again, found)]
    assert columns[0] == columns[1]
    if method == "em":
        assert [record.label for record in again.record.starts] == ["given"]


@pytest.mark.parametrize("method", METHODS)
def test_one_latent_has_no_graph(problem, method):
    found = measure(problem[1][:, [0, 4, 8]], method, n_latents=1)
    assert found.law.parents == ((),)
    assert found.information_ratio() == 1.0
    graph = learn_graph(found, ("A",))
    assert not graph.graph.adjacency.any()


def test_a_law_of_no_kind_is_refused(problem):
    with pytest.raises(SettingError) as caught:
        estimate_measurement(
            problem[1],
            ("gaussian",) * 12,
            StageOneSettings((2,) * K, default_penalty("tlp", N, K), Schedule(), law="chain"),
        )
    assert str(caught.value) == "law must be 'auto', 'network' or 'saturated', got 'chain'"
