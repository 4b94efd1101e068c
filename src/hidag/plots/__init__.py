"""Plots: one function per figure, axes in, axes out."""

from __future__ import annotations

from hidag.plots.canvas import on_axes, render_figure, render_png, size_of_graph, size_of_q
from hidag.plots.edge_marks import support_of
from hidag.plots.effects import plot_effects, size_of_effects
from hidag.plots.graph import plot_graph
from hidag.plots.images import plot_effect_maps, plot_images, size_of_images
from hidag.plots.law import plot_law, plot_profile_shares, size_of_law, size_of_profile_shares
from hidag.plots.loadings import plot_loadings, size_of_loadings
from hidag.plots.profiles import (
    ItemResponse,
    plot_item_responses,
    plot_profiles,
    size_of_item_responses,
    size_of_profiles,
)
from hidag.plots.q_matrix import plot_q
from hidag.plots.responses import (
    plot_item_response,
    plot_responses,
    size_of_response,
    size_of_responses,
)
from hidag.plots.selection import plot_selection
from hidag.plots.trace import plot_trace

__all__ = [
    "ItemResponse",
    "on_axes",
    "plot_effect_maps",
    "plot_effects",
    "plot_graph",
    "plot_images",
    "plot_item_responses",
    "plot_item_response",
    "plot_law",
    "plot_loadings",
    "plot_profile_shares",
    "plot_profiles",
    "plot_q",
    "plot_responses",
    "plot_selection",
    "plot_trace",
    "render_figure",
    "render_png",
    "size_of_effects",
    "size_of_graph",
    "size_of_images",
    "size_of_item_responses",
    "size_of_law",
    "size_of_loadings",
    "size_of_profile_shares",
    "size_of_profiles",
    "size_of_q",
    "size_of_response",
    "size_of_responses",
    "support_of",
]
