from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon

from hidag import CPDAG, DCRL
from hidag.exceptions import DataError, GraphError, SettingError
from hidag.plotting import (
    plot_graph,
    plot_q,
    plot_trace,
    render_png,
    size_of_graph,
    size_of_q,
    style,
)
from hidag.plotting.style import display_name
from hidag.simulation import design, random_dag, random_q, simulate

PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def result():
    data = simulate(design("Chain-5", rng=1), 300, rng=2)
    return DCRL(5, random_state=0, n_starts=1).fit(data.X).result_


def _lines(ax: Axes) -> dict[str, PathPatch]:
    return {str(p.get_label()): p for p in ax.patches if isinstance(p, PathPatch)}


def _count(ax: Axes, kind: type) -> int:
    return sum(type(patch) is kind for patch in ax.patches)


def test_arrows_for_directed_and_lines_for_undirected_edges():
    graph = CPDAG.from_edges("ABCD", [("A", "C"), ("B", "C")], [("C", "D")])
    ax = plot_graph(graph)
    assert set(_lines(ax)) == {"A -> C", "B -> C", "C - D"}
    assert _count(ax, Polygon) == 2
    assert _count(ax, FancyBboxPatch) == 4
    assert [text.get_text() for text in ax.texts] == ["A", "B", "C", "D"]


def test_truth_changes_colour_and_dashes_of_edges():
    graph = CPDAG.from_edges("ABCD", [("A", "C"), ("B", "C")], [("C", "D")])
    truth = CPDAG.from_edges("DCBA", [("A", "C"), ("C", "B")], [("A", "D")])
    ax = plot_graph(graph, truth=truth)
    lines = _lines(ax)
    assert set(lines) == {"A -> C", "B -> C", "C - D", "A - D"}
    assert len({line.get_edgecolor() for line in lines.values()}) == 4
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        "found",
        "found, direction differs",
        "not in the truth",
        "missed",
    ]


def test_truth_of_another_size_raises():
    with pytest.raises(GraphError) as caught:
        plot_graph(CPDAG(np.zeros((2, 2))), truth=CPDAG(np.zeros((3, 3))))
    assert str(caught.value) == (
        "the truth must have the same variables as the graph, but it has 3 and the graph has 2; "
        "match the latents first"
    )


@pytest.mark.parametrize("size", [1, 2, 30])
def test_graphs_without_edges_and_of_any_size(size):
    graph = CPDAG(np.zeros((size, size)))
    ax = plot_graph(graph)
    assert _lines(ax) == {}
    assert len(ax.texts) == size


def test_thirty_latents_are_drawn_at_full_font_size():
    graph = random_dag(30, 2.0, rng=1).to_cpdag()
    ax = plot_graph(graph)
    assert {text.get_fontsize() for text in ax.texts} == {10.0}
    assert len(_lines(ax)) == graph.n_edges


def test_font_shrinks_to_fit_given_axes():
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2, figsize=(6, 3))
    graph = random_dag(20, 1.5, rng=1).to_cpdag()
    assert plot_graph(graph, axes[0]) is axes[0]
    assert axes[0].texts[0].get_fontsize() < 10.0
    matrix = np.eye(3)
    assert plot_q(matrix, axes[1]) is axes[1]


def test_plot_q_of_a_fit_has_names_and_numbers(result):
    ax = plot_q(result)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["Z1", "Z2", "Z3", "Z4", "Z5"]
    assert len(ax.get_yticklabels()) == 15
    assert len(ax.texts) == int(result.q_matrix.sum())
    standardised = result.loadings / np.sqrt(result.dispersion)[:, None]
    shown = np.asarray(ax.images[0].get_array().filled(0.0))
    np.testing.assert_allclose(shown, standardised)


def test_only_some_of_many_items_are_labelled():
    q = random_q(500, 30, rng=1) * np.random.default_rng(0).normal(size=(500, 30))
    ax = plot_q(q)
    assert ax.images[0].get_array().shape == (500, 30)
    assert 20 < len(ax.get_yticklabels()) < 110
    assert ax.get_ylabel() == "500 items, one in 8 labelled"
    assert plot_q(np.eye(4)[np.arange(1000) % 4]).get_ylabel() == "1,000 items, one in 15 labelled"


def test_truth_marks_missed_and_extra_entries():
    ax = plot_q(np.array([[1, 0], [0, 1], [0, 0]]), truth=np.array([[1, 1], [0, 0], [0, 0]]))
    legend = ax.get_legend()
    assert [t.get_text() for t in legend.get_texts()] == ["missed (1)", "not in the truth (1)"]


def test_truth_and_provisional_q_together_raise():
    with pytest.raises(SettingError) as caught:
        plot_q(np.eye(2), truth=np.eye(2), provisional=np.eye(2))
    assert caught.value.code == "exclusive-options"


def test_wrong_shapes_raise():
    with pytest.raises(DataError) as caught:
        plot_q(np.ones((3, 2)), truth=np.ones((2, 3)))
    assert str(caught.value) == (
        "the true Q must have the shape of the estimated Q, (3, 2), got (2, 3); match the "
        "latents first"
    )
    with pytest.raises(DataError, match=r"shape \(J, K\) is required, got shape \(3,\)"):
        plot_q(np.ones(3))


@pytest.mark.parametrize("matrix", [np.ones((3, 1)), np.zeros((4, 2)), -np.ones((2, 2))])
def test_small_and_empty_matrices_are_drawn(matrix):
    picture = render_png(lambda ax: plot_q(matrix, ax), size_of_q(*matrix.shape))
    assert picture.startswith(PNG)


def test_trace_of_em_and_of_a_sampler(result):
    ax = plot_trace(result)
    assert ax.get_ylabel() == "penalised log-likelihood"
    drawn = np.concatenate([line.get_xdata() for line in ax.lines if line.get_marker() == "o"])
    assert set(drawn) >= set(range(1, result.n_iter + 1))
    # EM is monotone: a decrease means another objective, drawn as a separate line.
    bent = result.trace.copy()
    bent[:, 0] = np.linspace(-20.0, -10.0, len(bent))
    assert plot_trace(dataclasses.replace(result, trace=bent)).get_title(loc="left") == ""
    bent[len(bent) // 2 :, 0] -= 100.0
    ax = plot_trace(dataclasses.replace(result, trace=bent))
    assert "change of penalty or latent distribution" in ax.get_title(loc="left")
    unknown = result.trace.copy()
    unknown[:, 0] = np.nan
    ax = plot_trace(dataclasses.replace(result, trace=unknown))
    assert ax.get_ylabel() == "largest change of a coefficient"


@pytest.mark.parametrize(
    "name",
    ["$x_2", "a\nb", "\u202eabc", "\u0627\u0644\u0642\u0631", "\u6570\u5b66", "", "x" * 300],
)
def test_any_name_can_be_drawn(name):
    graph = CPDAG.from_edges([name, "other"], [], [(name, "other")])
    size = size_of_graph(graph)
    assert render_png(lambda ax: plot_graph(graph, ax), size, fill=True).startswith(PNG)
    draw = lambda ax: plot_q(np.eye(2), ax, item_names=(name, "b"), latent_names=(name, "c"))  # noqa: E731
    assert render_png(draw, size_of_q(2, 2)).startswith(PNG)


def test_display_names_are_short_and_in_one_line():
    assert display_name("a\tb\nc") == "a b c"
    assert display_name("x" * 40) == "x" * 14 + "…" + "x" * 13


def test_rendering_creates_no_pyplot_figure():
    import matplotlib.pyplot as plt

    render_png(lambda ax: plot_q(np.eye(3), ax), (3, 3))
    assert plt.get_fignums() == []


def _colorbar_label(ax: Axes) -> str:
    label = next(other.get_ylabel() for other in ax.figure.axes if other is not ax)
    assert max(len(line) for line in label.splitlines()) <= 52
    return label.replace("\n", " ")


def test_colorbar_label_with_several_levels_and_interactions(result):
    from hidag.latent import SaturatedLaw, StateSpace
    from hidag.measurement import MeasurementParameters, Terms

    terms = Terms((3, 2), (((0, 2), (1, 1)),))
    loadings = np.zeros((len(result.item_names), 4))
    loadings[:, 0], loadings[:, 1], loadings[0, 2] = 1.0, 0.5, 1.0
    # A gaussian item is shown in standard deviations.
    plain = MeasurementParameters(
        result.families, result.intercept, loadings, np.full(len(loadings), 4.0), terms
    )
    fit = dataclasses.replace(
        result,
        parameters=plain,
        law=SaturatedLaw(StateSpace((3, 2)), np.full(6, 1 / 6)),
        latent_names=("A", "B"),
        graph=CPDAG(np.zeros((2, 2)), ("A", "B")),
    )
    ax = plot_q(fit)
    assert _colorbar_label(ax) == "highest vs lowest level / standard deviation"
    assert {text.get_text() for text in ax.texts} == {"0.75", "0.50"}
    with_product = loadings.copy()
    with_product[0, 3] = 1.2
    ax = plot_q(
        dataclasses.replace(fit, parameters=dataclasses.replace(plain, loadings=with_product))
    )
    assert _colorbar_label(ax) == (
        "highest vs lowest level, averaged over the other latents / standard deviation"
    )
    # B is 1 half of the time, A reaches level 2 a third of it: 0.75 + 0.3 and 0.5 + 0.2.
    assert {"1.05", "0.70"} <= {text.get_text() for text in ax.texts}
    assert _colorbar_label(plot_q(result)) == "loading / standard deviation"


def test_crosses_have_an_outline():
    ax = plot_q(np.array([[2.0, 0.0], [0.0, -2.0]]), truth=np.zeros((2, 2)))
    (crosses,) = [line for line in ax.lines if line.get_marker() == "x"]
    assert crosses.get_color() == style.INK
    assert crosses.get_path_effects()


def test_iteration_ticks_are_integers(result):
    ticks = plot_trace(dataclasses.replace(result, trace=result.trace[:3])).get_xticks()
    assert all(float(tick).is_integer() for tick in ticks)
