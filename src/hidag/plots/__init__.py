"""Plots: one function per figure, axes in, axes out."""

from __future__ import annotations

from hidag.plots.canvas import on_axes, render_figure, render_png, size_of_graph, size_of_q
from hidag.plots.graph import plot_graph
from hidag.plots.images import plot_effect_maps, plot_images, size_of_images
from hidag.plots.profiles import (
    ItemResponse,
    plot_item_responses,
    plot_profiles,
    size_of_item_responses,
    size_of_profiles,
)
from hidag.plots.q_matrix import plot_q
from hidag.plots.selection import plot_selection
from hidag.plots.trace import plot_trace

__all__ = [
    "ItemResponse",
    "on_axes",
    "plot_effect_maps",
    "plot_graph",
    "plot_images",
    "plot_item_responses",
    "plot_profiles",
    "plot_q",
    "plot_selection",
    "plot_trace",
    "render_figure",
    "render_png",
    "size_of_graph",
    "size_of_images",
    "size_of_item_responses",
    "size_of_profiles",
    "size_of_q",
]
