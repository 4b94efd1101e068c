"""One function that draws any result, and one that writes it to a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hidag.exceptions import Choices, SettingError, invalid_setting
from hidag.files.writing import write_file
from hidag.plotting import effect_maps, graph, item_responses, latent_distribution, selection, style
from hidag.plotting import figure as frame
from hidag.plotting import q_matrix as q_figures
from hidag.results import as_result
from hidag.results.methods import FitMethods
from hidag.views import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[..., Any]
#: Figures of a fit by kind, the main one first.
FIT_FIGURES: dict[str, Draw] = {
    "graph": graph.plot_claims,
    "items": item_responses.plot_responses,
    "q": q_figures.plot_q,
    "law": latent_distribution.plot_law,
    "profiles": latent_distribution.plot_profile_shares,
    "loadings": q_figures.plot_loadings,
    "trace": selection.plot_trace,
    "item": item_responses.plot_item_response,
}
FORMATS = ("svg", "pdf", "png")
_ESTIMATE = ("estimate", "lower", "upper")
#: Rows of a figure of numbers.
_MAX_ROWS = 40


def figures_of(thing: Any) -> dict[str, Draw]:
    """Return the functions by kind that draw a fit or another result, the main one first."""
    if isinstance(thing, FitMethods):
        return FIT_FIGURES
    return next((found for kind, found in _figures_by_class() if isinstance(thing, kind)), {})


@cache  # Imported at first use: figures of a fit need none of these packages.
def _figures_by_class() -> tuple[tuple[Any, dict[str, Draw]], ...]:
    from hidag import causal, diagnostics, identifiability, inference, latent, metrics, simulation
    from hidag.model_selection import Selection
    from hidag.structure import CPDAG, DAG

    def numbers(table: str, labels: Sequence[str], values: Sequence[str]) -> dict[str, Draw]:
        return {"numbers": partial(plot_numbers, table=table, labels=labels, values=values)}

    return (
        ((CPDAG, DAG), {"graph": graph.plot_graph}),
        (inference.BootstrapResult, {"graph": _plot_bootstrap, "q": _plot_frequencies}),
        (simulation.Truth, {"graph": _plot_true_graph, "q": _plot_true_q}),
        (simulation.Simulation, {"graph": lambda data, ax: _plot_true_graph(data.truth, ax)}),
        (diagnostics.QValidation, {"q": _plot_validation}),
        (causal.AverageEffects, {"effects": effect_maps.plot_effects}),
        (Selection, {"criteria": _plot_selection}),
        (identifiability.Certificate, {"q": _plot_certified}),
        (inference.StandardErrors,
         numbers("table", ("of", "term"), _ESTIMATE)),
        (causal.WhatIfResult, numbers("rows", ("name", "what"), ("before", "low", "high"))),
        (diagnostics.Classification, numbers("profiles", ("profile",), ("share",))),
        (diagnostics.FitStatistics, numbers("items", ("item",), ("rmsd",))),
        (diagnostics.PersonFit, numbers("rows", ("id",), ("lz",))),
        (metrics.Evaluation, numbers("measures", ("name",), ("value",))),
        ((latent.SaturatedLaw, latent.NetworkLaw), numbers("law", (), ("probability",))),
    )  # fmt: skip


def plot(thing: Any, kind: str | None = None, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw a result into given or new axes, and return the axes.

    Parameters
    ----------
    thing : FitResult, DCRL, CPDAG, DAG, or any other result
    kind : str, optional
        Of a fit: "graph" (the default), "items", "q", "law", "profiles", "loadings", "trace" or
        "item" (with ``item=``). Other results have one kind or two; a wrong one lists them.
    ax : matplotlib Axes, optional
    **options
        Of the function that draws this kind.
    """
    axes: Axes = _draw_function(thing, kind)(thing, ax=ax, **options)
    return axes


def _draw_function(thing: Any, kind: str | None) -> Draw:
    figures = figures_of(thing)
    if not figures:
        text = "there is no figure of an object of type {kind}"
        raise SettingError("no-figure", text, kind=type(thing).__name__)
    chosen = next(iter(figures)) if kind is None else kind
    if chosen not in figures:
        raise invalid_setting("kind", Choices(tuple(figures)), kind)
    return figures[chosen]


def figure_bytes(thing: Any, kind: str | None, file_format: str, **options: Any) -> bytes:
    """Return a figure of a result as the bytes of a file, without pyplot.

    ``thing``, ``kind`` and ``options`` are those of `plot`; ``file_format`` is "svg", "pdf" or
    "png".
    """
    draw = partial(_draw_function(thing, kind), thing, **options)
    size = _size(thing, kind)
    kinds: dict[str, Any] = {"file_format": file_format}
    return frame.render_figure(frame.on_axes(lambda ax: draw(ax=ax)), size, **kinds)


def save_plot(thing: Any, path: str | Path, kind: str | None = None, **options: Any) -> Path:
    """Write a figure of a result to an SVG, PDF or PNG file and return its path.

    Parameters
    ----------
    thing, kind, **options : as in `plot`
    path : str or Path
        The ending, .svg, .pdf or .png, is the format.
    """
    file = Path(path)
    ending = file.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise invalid_setting("path", Choices(tuple(f"*.{one}" for one in FORMATS)), str(path))
    return write_file(file, figure_bytes(thing, kind, ending, **options))


def _size(thing: Any, kind: str | None) -> frame.Size:
    """Return the size of a figure in inches."""
    if isinstance(thing, FitMethods):
        fitted = as_result(thing)
        n_items, n_latents = fitted.n_items, fitted.n_latents
        if kind in ("q", "loadings"):
            return frame.size_of_q(n_items, n_latents)
        if kind == "items":
            shown = min(2**n_latents, latent_distribution.MOST_PROFILES)
            return item_responses.size_of_responses(n_items, shown)
        if kind == "law":
            return latent_distribution.size_of_law(n_latents)
    if kind is None and hasattr(thing, "adjacency") and hasattr(thing, "names"):
        return frame.size_of_graph(thing)
    return 6.0, 4.0


def _plot_bootstrap(found: Any, ax: Axes | None, **options: Any) -> Axes:
    from hidag.structure.graphs import CPDAG

    best = CPDAG(found.fitted.adjacency, found.latent_names)
    return graph.plot_graph(best, ax, support=graph.support_of(found), **options)


def _named_q(found: Any, q: Any, ax: Axes | None, **options: Any) -> Axes:
    names = {"item_names": found.item_names, "latent_names": found.latent_names}
    return q_figures.plot_q(q, ax, **{**names, **options})


def _plot_frequencies(found: Any, ax: Axes | None, **options: Any) -> Axes:
    return _named_q(found, found.q_probability, ax, **{"label": "share of refits", **options})


def _plot_true_q(truth: Any, ax: Axes | None, **options: Any) -> Axes:
    return _named_q(truth, truth.q_matrix, ax, **options)


def _plot_true_graph(truth: Any, ax: Axes | None, **options: Any) -> Axes:
    return graph.plot_graph(truth.dag, ax, **options)


def _plot_certified(found: Any, ax: Axes | None, **options: Any) -> Axes:
    return _named_q(found.design, found.design.q.astype(float), ax, **options)


def _plot_validation(found: Any, ax: Axes | None, **options: Any) -> Axes:
    more = {"provisional": found.provisional, **options}
    return _named_q(found, found.suggested.astype(float), ax, **more)


def _plot_selection(found: Any, ax: Axes | None, **options: Any) -> Axes:
    """Draw the criteria; several panels, which have a figure of their own."""
    figure = None if ax is None else ax.get_figure(root=True)
    if figure is not None:
        figure.clear()
    axes: Axes = selection.plot_selection(found, figure, **options)[0]
    return axes


def plot_numbers(
    thing: View,
    ax: Axes | None = None,
    *,
    table: str,
    labels: Sequence[str],
    values: Sequence[str],
) -> Axes:
    """Draw a column of a table as points, with two more as ends of lines; return the axes ``ax``.

    ``table`` is a table of the result ``thing``; ``labels`` are the columns that name its rows, all
    others by default, ``values`` that of the points and perhaps those of the ends.
    """
    columns, rows = thing.content(table)
    named = [columns.index(name) for name in labels or columns if name not in values]
    places = [columns.index(name) for name in values]
    shown = [row for row in rows if isinstance(row[places[0]], int | float)][:_MAX_ROWS]
    numbers = np.array([[row[c] for c in places] for row in shown], dtype=np.float64)
    axes = ax or frame.new_axes((6.0, 1.2 + 0.2 * max(len(shown), 4)))
    y = np.arange(len(shown))
    if len(places) > 1:
        axes.hlines(y, numbers[:, 1], numbers[:, 2], color=style.BLUE, linewidth=2.0)
        for end in (1, 2):  # An interval without length is a mark, not nothing.
            frame.draw_dots(axes, numbers[:, end], y, 7.0, style.BLUE, marker="|")
    frame.draw_dots(axes, numbers[:, 0], y, 5.0, style.INK)
    axes.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    frame.label_rows(axes, [" ".join(str(row[c]) for c in named) for row in shown], "rows")
    frame.style_axes(axes, grid="x")
    ends = f"; line: {values[1]} to {values[2]}" if len(places) > 1 else ""
    frame.label_axes(axes, f"{values[0]}{ends}".replace("_", " "))
    return axes
