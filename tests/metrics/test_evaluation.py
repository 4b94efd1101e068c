"""Every number of an evaluation, against one worked out by hand."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from hidag.latent import SaturatedLaw, StateSpace
from hidag.measurement import Responses
from hidag.metrics import Parts, evaluate
from hidag.simulation import design, make_truth, random_dag, random_law, random_q
from hidag.structure.graphs import CPDAG

NAMES = ("Z1", "Z2", "Z3")


def truth() -> SimpleNamespace:
    """Three latents, Z1 -> Z3 <- Z2, two pure items each."""
    q = np.vstack([np.eye(3), np.eye(3)]).astype(int)
    p = np.arange(1, 9) / 36
    return SimpleNamespace(
        q_matrix=q,
        intercept=np.zeros(6),
        loadings=2.0 * q,
        law=SaturatedLaw(StateSpace.binary(3), p),
        cpdag=CPDAG.from_edges(NAMES, directed=[("Z1", "Z3"), ("Z2", "Z3")]),
    )


def fitted(**changes) -> SimpleNamespace:
    """Return what a fitted estimator that made no mistake looks like, with changes."""
    t = truth()
    parts = {
        "q_matrix_": t.q_matrix,
        "intercept_": t.intercept,
        "loadings_": t.loadings,
        "latent_law_": t.law,
        "graph_": t.cpdag,
    }
    return SimpleNamespace(**(parts | changes))


def test_the_truth_is_at_distance_zero() -> None:
    found = evaluate(fitted(), truth())
    assert (found.shd, found.shd_graph, found.shd_q) == (0, 0, 0)
    assert found.permutation == (0, 1, 2)
    assert found.flips == (False, False, False)
    assert (found.tv_law, found.rmse_loadings, found.rmse_intercept) == (0, 0, 0)
    assert (found.q_f1, found.skeleton_f1) == (1, 1)


def test_coefficients_of_nominal_items_need_the_same_order_of_categories() -> None:
    t = truth()
    q = np.vstack([t.q_matrix, [[1, 0, 0]]])

    def parts(nominal: str, error: float) -> Parts:
        responses = Responses.of(("gaussian",) * 6 + (nominal,))
        loadings, intercept = 2.0 * q[responses.item], np.zeros(8)
        loadings[0, 0] += error
        intercept[1] = error
        return Parts(q, intercept, loadings, t.law, t.cpdag, questions=responses.questions)

    true = parts("categorical(3)", 0.0)
    found = evaluate(parts("categorical(0,1,2)", 0.6), true)
    assert found.rmse_loadings == pytest.approx(0.6 / np.sqrt(3 * 8))
    assert found.rmse_intercept == pytest.approx(0.6 / np.sqrt(8))
    # An error over some of the items would be taken for one over all.
    other = evaluate(parts("categorical(0,2,1)", 0.6), true)
    assert np.isnan([other.rmse_loadings, other.rmse_intercept]).all()
    # They still determine the polarity of the latents.
    turned = parts("categorical(0,2,1)", 0.6).relabelled([0, 1, 2], [True, False, True])
    assert evaluate(turned, true).flips == (True, False, True)


def test_distances_are_additive() -> None:
    q = np.array(truth().q_matrix)
    q[0, 1] = 1  # one entry too many
    q[5, 2] = 0  # one too few
    loadings = np.array(truth().loadings)
    loadings[0, 1], loadings[5, 2] = 0.5, 0.0
    graph = CPDAG.from_edges(NAMES, undirected=[("Z1", "Z3"), ("Z1", "Z2")])
    intercept = np.array([0.6, 0, 0, 0, 0, 0])
    p = np.arange(1, 9) / 36
    p[[0, 7]] += [0.1, -0.1]
    found = evaluate(
        fitted(
            q_matrix_=q,
            loadings_=loadings,
            intercept_=intercept,
            graph_=graph,
            latent_law_=SaturatedLaw(StateSpace.binary(3), p),
        ),
        truth(),
    )
    assert (found.shd, found.shd_graph, found.shd_q) == (5, 3, 2)
    assert found.graph.n_missing == found.graph.n_extra == found.graph.n_misdirected == 1
    assert (found.q_precision, found.q_recall) == pytest.approx((5 / 6, 5 / 6))
    assert (found.skeleton_precision, found.skeleton_recall) == (0.5, 0.5)
    assert found.tv_law == pytest.approx(0.1)
    assert found.rmse_loadings == pytest.approx(np.sqrt((0.25 + 4) / 18))
    assert found.rmse_intercept == pytest.approx(0.6 / np.sqrt(6))


def test_results_without_underscores_and_truths_are_read_too() -> None:
    t = truth()
    result = SimpleNamespace(
        q_matrix=t.q_matrix,
        intercept=t.intercept,
        loadings=t.loadings,
        latent_law=t.law,
        graph=t.cpdag,
    )
    assert evaluate(result, t) == evaluate(fitted(), t) == evaluate(t, t)


def test_fitted_attributes_come_before_settings_of_the_same_name() -> None:
    estimator = fitted(q_matrix=np.ones((6, 3)))
    assert evaluate(estimator, truth()).shd_q == 0


@pytest.mark.parametrize("seed", range(6))
def test_nothing_depends_on_labels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = random_law(random_dag(5, 1, rng=rng), rng=rng, root_probability=(0.3, 0.7))
    true = make_truth(law, random_q(15, 5, rng=rng), rng=rng)
    other = make_truth(
        random_law(random_dag(5, 1, rng=rng), rng=rng),
        np.where(rng.random((15, 5)) < 0.05, 1 - true.q_matrix, true.q_matrix),
        slope_ratio=1.5,
        rng=rng,
    )
    plain = evaluate(other, true)
    order, flips = rng.permutation(5), rng.random(5) < 0.5
    renamed = evaluate(Parts.of(other).relabelled(order, flips), true)
    for name, value in plain.to_dict().items():
        if name not in ("permutation", "flips"):
            assert renamed.to_dict()[name] == pytest.approx(value), name
    both = evaluate(
        Parts.of(other).relabelled(order, flips), Parts.of(true).relabelled(order, flips)
    )
    assert both.shd == plain.shd
    assert both.tv_law == pytest.approx(plain.tv_law)
    assert plain.shd_q > 0
    assert plain.tv_law > 0


def test_a_missing_latent_costs_its_entries_and_its_edges() -> None:
    t = Parts.of(truth())
    two = Parts(
        t.q_matrix[:, [2, 0]],
        t.intercept,
        t.loadings[:, [2, 0]],
        SaturatedLaw(StateSpace.binary(2), np.full(4, 0.25)),
        t.graph[np.ix_([2, 0], [2, 0])],
    )
    found = evaluate(two, t)
    assert found.permutation == (1, -1, 0)
    assert (found.shd_q, found.shd_graph, found.shd) == (2, 1, 3)
    assert found.graph.n_missing == 1
    assert np.isnan(found.tv_law)
    assert found.tv_law_missing == "2 estimated and 3 true latents"
    assert found.rmse_loadings == pytest.approx(np.sqrt(2 * 4 / 18))
    assert (found.n_latents_estimated, found.n_latents_true) == (2, 3)


def test_a_latent_too_many_costs_its_entries_and_its_edges() -> None:
    t = Parts.of(truth())
    extra = np.array([0, 0, 1, 0, 0, 0])
    graph = np.zeros((4, 4), dtype=int)
    graph[1:, 1:] = t.graph
    graph[0, 1] = graph[1, 0] = 1
    four = Parts(
        np.column_stack([extra, t.q_matrix]),
        t.intercept,
        np.column_stack([extra * 1.0, t.loadings]),
        graph=graph,
    )
    found = evaluate(four, t)
    assert found.permutation == (1, 2, 3)
    assert (found.shd_q, found.shd_graph, found.shd) == (1, 1, 2)
    assert found.graph.n_extra == 1
    assert found.rmse_loadings == pytest.approx(np.sqrt(1 / 24))


def test_other_levels_than_the_true_ones_are_named() -> None:
    t = Parts.of(truth())
    levels = (3, 2, 2)
    law = SaturatedLaw(StateSpace(levels), np.full(12, 1 / 12))
    found = evaluate(Parts(t.q_matrix, law=law), t)
    assert np.isnan(found.tv_law)
    assert found.tv_law_missing == (
        "the matched latents have (3, 2, 2) levels, the true ones (2, 2, 2)"
    )
    assert f"total variation not defined: {found.tv_law_missing}" in found.summary()
    assert evaluate(t, t).tv_law_missing == ""


def test_only_q_is_needed() -> None:
    found = evaluate(Parts(truth().q_matrix), truth())
    assert found.shd is None
    assert found.shd_graph is None
    assert found.shd_q == 0
    assert np.isnan([found.tv_law, found.rmse_loadings, found.skeleton_f1]).all()
    assert found.summary().startswith("wrong entries of Q      0 (no graph was given)")


def test_thirteen_latents_at_distance_zero() -> None:
    true = design("Model-13", "Q2", rng=0)
    found = evaluate(true, true)
    assert found.shd == 0
    assert found.tv_law == 0


def test_summary_has_every_metric() -> None:
    flipped = Parts.of(truth()).relabelled([1, 0, 2], [False, True, False])
    found = evaluate(flipped, truth())
    assert str(found) == found.summary()
    assert found.summary().splitlines() == [
        "SHD                     0 (0 latent pairs, 0 entries of Q)",
        "latent pairs            0 missing, 0 extra, 0 misdirected",
        "skeleton                precision 1.000, recall 1.000, F1 1.000",
        "Q                       precision 1.000, recall 1.000, F1 1.000",
        "latent law              total variation 0.0000",
        "root mean squared error loadings 0.0000, intercept 0.0000",
        "latents                 3 estimated, 3 true; Z1: 2 flipped, Z2: 1, Z3: 3",
    ]


def test_to_dict_is_flat_and_serialisable() -> None:
    row = evaluate(fitted(), truth()).to_dict()
    assert json.loads(json.dumps(row)) == row
    assert {"shd", "shd_graph", "shd_q", "tv_law", "skeleton_recall", "q_f1"} <= set(row)
    assert not any(isinstance(value, dict) for value in row.values())
