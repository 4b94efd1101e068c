"""Plots of loadings, latent distribution, item responses and effects."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import PatchCollection
from matplotlib.patches import PathPatch

from hidag.causal import average_effects, edge_strengths
from hidag.exceptions import DataError, GraphError, SettingError
from hidag.plotting import (
    plot_effects,
    plot_graph,
    plot_item_response,
    plot_law,
    plot_loadings,
    plot_profile_shares,
    plot_q,
    plot_responses,
    render_png,
    size_of_law,
    size_of_responses,
)
from hidag.plotting.latent_distribution import common_profiles
from hidag.plotting.q_matrix import standardized_loadings
from hidag.simulation import Truth, chain_dag, make_truth, random_dag, random_law, random_q
from hidag.structure import CPDAG

PNG = b"\x89PNG\r\n"


def a_truth(n_latents, n_items, levels=None, family="bernoulli"):
    rng = np.random.default_rng(0)
    law = random_law(random_dag(n_latents, 1.0, rng=rng), rng=rng, levels=levels)
    return make_truth(law, random_q(n_items, n_latents, rng=rng), family)


@pytest.fixture(scope="module")
def small(as_result):
    return as_result(a_truth(4, 20, levels=(2, 3, 2, 2), family="gaussian"))


@pytest.fixture(scope="module")
def large(as_result):
    return as_result(a_truth(30, 500))


def test_strength_sets_width_and_support_sets_dashes():
    graph = CPDAG.from_edges("ABC", [("A", "C"), ("B", "C")])
    ax = plot_graph(
        graph,
        strength={("C", "A"): 0.2, ("B", "C"): 0.8},
        support={("A", "C"): 0.45, frozenset("BC"): 0.97},
    )
    lines = {str(p.get_label()): p for p in ax.patches if isinstance(p, PathPatch)}
    assert lines["B -> C"].get_linewidth() > 2 * lines["A -> C"].get_linewidth()
    assert lines["B -> C"].get_linestyle() == "solid"
    assert lines["A -> C"].get_linestyle() != "solid"
    assert {".45", ".97"} <= {text.get_text() for text in ax.texts}
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["probability at least .8", "below .5"]
    ax = plot_graph(graph, support={("A", "C"): 0.85, ("B", "C"): 0.97}, claim_level=0.9)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["probability at least .9", ".5 to .9"]


def test_missing_support_and_support_with_truth_raise():
    graph = CPDAG.from_edges("ABC", [("A", "C"), ("B", "C")])
    with pytest.raises(DataError) as caught:
        plot_graph(graph, support={("A", "C"): 0.4})
    assert str(caught.value) == (
        "support must have a number >= 0 for each edge, but B - C has none"
    )
    with pytest.raises(GraphError) as refused:
        plot_graph(graph, truth=graph, support={("A", "C"): 0.4, ("B", "C"): 1.0})
    assert str(refused.value) == (
        "truth and support cannot be drawn in the same graph, both use dashes; omit one of them"
    )


def test_strengths_are_correlations_under_the_law(small):
    found = edge_strengths(small)
    states, p = small.law.space.states(), small.law.probabilities
    assert len(found) == small.graph.n_edges
    for (a, b), value in found.items():
        i, j = small.latent_names.index(a), small.latent_names.index(b)
        expected = np.cov(states[:, i], states[:, j], aweights=p, ddof=0)
        wanted = abs(expected[0, 1]) / np.sqrt(expected[0, 0] * expected[1, 1])
        assert value == pytest.approx(wanted)


def test_differences_from_a_provisional_q_are_marked(small):
    provisional = small.q_matrix.astype(float)
    there = np.argwhere(provisional == 1)[0]
    absent = np.argwhere(provisional == 0)[:3]
    provisional[tuple(there)] = 0
    provisional[tuple(absent[0])] = provisional[tuple(absent[1])] = 1
    provisional[tuple(absent[2])] = np.nan
    ax = plot_q(small, provisional=provisional)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["provisional only (2)", "estimated only (1)"]
    frames = [c for c in ax.collections if isinstance(c, PatchCollection)]
    assert len(frames[0].get_paths()) == 2


def test_every_loading_is_drawn(small, large):
    for result in (small, large):
        ax = plot_loadings(result)
        drawn = sum(len(line.get_xdata()) for line in ax.lines if line.get_marker() in "ov")
        assert drawn == int(result.q_matrix.sum())


def test_loadings_of_lognormal_and_censored_items_are_standardized(as_result):
    truth = make_truth(
        random_law(chain_dag(2), rng=0),
        np.tile(np.eye(2, dtype=int), (3, 1)),
        ["lognormal"] * 4 + ["poisson"] * 2,
        dispersion=0.25,
    )
    result = as_result(truth)
    families = (*result.families[:2], *["censored-lognormal(60)"] * 2, *result.families[4:])
    result = replace(result, parameters=replace(result.parameters, families=families))
    found, _, label = standardized_loadings(result)
    by = np.array([0.5] * 4 + [1.0] * 2)[:, None]
    np.testing.assert_allclose(found, result.strengths / by)
    assert label == "loading (censored-lognormal and lognormal items: / standard deviation)"


def test_level_probabilities_sum_to_one(small):
    ax = plot_law(small)
    heights = np.zeros(4)
    for bar in ax.patches:
        heights[round(bar.get_x() + bar.get_width() / 2)] += bar.get_height()
    np.testing.assert_allclose(heights, 1.0)


def test_common_profiles_of_the_distribution_and_of_rows(small, large):
    profiles, shares = common_profiles(small, most=5)
    p = np.asarray(small.law.probabilities)
    np.testing.assert_allclose(shares, np.sort(p)[::-1][:5])
    assert p[small.law.space.number(profiles)] == pytest.approx(shares)
    rows = np.array([[0, 2, 1, 1]] * 3 + [[0, 0, 0, 0]])
    profiles, shares = common_profiles(small, rows)
    assert profiles.tolist() == [[0, 2, 1, 1], [0, 0, 0, 0]]
    assert shares.tolist() == [0.75, 0.25]
    with pytest.raises(DataError) as caught:
        plot_profile_shares(small, states=np.zeros((3, 2), dtype=int))
    assert str(caught.value) == (
        "states must be an array of shape (N, 4), one column per latent, got (3, 2)"
    )
    assert len(common_profiles(large)[0]) == 20


def test_item_response_has_means_or_category_probabilities(small, as_result):
    j = int(np.argmax(small.q_matrix.sum(axis=1)))
    ax = plot_item_response(small, small.item_names[j])
    points = next(line for line in ax.lines if line.get_marker() == "o").get_ydata()
    latents = np.flatnonzero(small.q_matrix[j])
    shape = [small.law.space.levels[k] for k in latents]
    states = np.zeros((int(np.prod(shape)), 4), dtype=int)
    states[:, latents] = np.indices(shape).reshape(len(shape), -1).T
    np.testing.assert_allclose(points, small.item_means(states)[:, j])
    graded = Truth(
        [[1, 1]],
        [0.3],
        [[1.0, -2.0]],
        [1.0],
        ("ordinal(4)",),
        random_law(chain_dag(2), rng=0),
        cutpoints=[[1.0, 2.0]],
    )
    bars = plot_item_response(as_result(graded), 0).patches
    assert len(bars) == 16
    assert sum(bar.get_height() for bar in bars) == pytest.approx(4.0)
    with pytest.raises(SettingError) as caught:
        plot_item_response(small, "none")
    assert str(caught.value) == "the fit has 20 items, but not 'none'"


def test_states_excluded_by_a_hierarchy_are_not_drawn(as_result):
    knowledge = {"hierarchy": [["Z1", "Z2"], ["Z2", "Z3"]]}
    law = random_law(chain_dag(3), rng=0)
    loadings = [[1.0, 0, 2.0], [1.0, 0, 1.0]]
    truth = Truth(
        [[1, 0, 1]] * 2,
        [0.3, 0.3],
        loadings,
        [1.0, 1.0],
        ("gaussian", "ordinal(3)"),
        law,
        cutpoints=[[np.nan], [1.0]],
    )
    plain = as_result(truth)
    bound = replace(plain, settings={**plain.settings, "knowledge": knowledge})
    # Z2 stands between the item's latents: the third needs the first all the same.
    ax = plot_item_response(bound, 0)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["00", "10", "11"]
    points = next(line for line in ax.lines if line.get_marker() == "o").get_ydata()
    np.testing.assert_allclose(points, [0.3, 1.3, 3.3])
    assert ax.get_xlabel() == "levels of Z1, Z3\n1 state excluded by the hierarchy"
    assert len(plot_item_response(bound, 1).patches) == 9
    assert len(plot_item_response(plain, 1).patches) == 12
    assert "excluded" not in plot_item_response(plain, 1).get_xlabel()


def test_effects_that_exclude_zero_are_dotted(small):
    found = average_effects(small, items=False)
    ax = plot_effects(found)
    image = ax.images[0].get_array()
    np.testing.assert_allclose(image.filled(np.nan), (found.low + found.high) / 2)
    n_dotted = int(((found.low > 1e-9) | (found.high < -1e-9)).sum())
    assert len(ax.lines[0].get_xdata()) == n_dotted


def test_thirty_latents_and_five_hundred_items_are_drawn(large, monkeypatch):
    monkeypatch.setattr("hidag.plotting.latent_distribution.N_DRAWS", 2000)
    draws = [
        (lambda ax: plot_loadings(large, ax), (11.0, 3.6)),
        (lambda ax: plot_law(large, ax), size_of_law(30)),
        (lambda ax: plot_profile_shares(large, ax, most=8), (4.5, 7.9)),
        (lambda ax: plot_responses(large, ax, most=8), size_of_responses(500, 8)),
    ]
    for draw, size in draws:
        assert render_png(draw, size, dots_per_inch=40).startswith(PNG)
    some = average_effects(large, causes=large.latent_names[:2], items=False)
    picture = render_png(lambda ax: plot_effects(some, ax), (11.2, 2.8))
    assert picture.startswith(PNG)


def test_ranges_of_effects_are_hatched(small):
    found = average_effects(small, items=False)
    k = found.n_latents
    for wide in (True, False):
        low = np.where(np.isnan(found.low), np.nan, 0.1)
        some = replace(found, low=low, high=low + (0.3 if wide else 0.0), lower=None, upper=None)
        ax = plot_effects(some)
        cells = [part for part in ax.collections if part.get_hatch()]
        label = ax.get_figure().axes[1].get_ylabel()
        if wide:
            assert len(cells[0].get_paths()) == k * (k - 1)
            assert label == "average effect\nhatched: midpoint of range"
        else:
            assert not cells
            assert label == "average effect"


def test_axis_of_means_far_from_zero_excludes_zero(as_result):
    truth = make_truth(
        random_law(chain_dag(2), rng=0), np.vstack([np.eye(2, dtype=int)] * 3), "gaussian"
    )
    result = as_result(truth)
    own = result.parameters
    late = replace(result, parameters=replace(own, intercept=own.intercept + 2000.0))
    low, high = plot_item_response(late, 0).get_ylim()
    assert 1900 < low < high < 2100
    assert plot_item_response(result, 0).get_ylim()[0] <= 0.0
