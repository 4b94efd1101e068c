"""Plots of fits: every function draws one figure into given or new axes and returns the axes."""

from hidag.plotting.dispatch import figure_bytes, plot, save_plot
from hidag.plotting.effect_maps import plot_effects
from hidag.plotting.figure import on_axes, render_figure, render_png, size_of_graph, size_of_q
from hidag.plotting.graph import plot_claims, plot_graph, support_of
from hidag.plotting.item_responses import plot_item_response, plot_responses, size_of_responses
from hidag.plotting.latent_distribution import plot_law, plot_profile_shares, size_of_law
from hidag.plotting.q_matrix import plot_loadings, plot_q
from hidag.plotting.selection import plot_selection, plot_trace

__all__ = [
    "figure_bytes", "on_axes", "plot", "plot_claims", "plot_effects", "plot_graph",
    "plot_item_response", "plot_law", "plot_loadings", "plot_profile_shares", "plot_q",
    "plot_responses", "plot_selection", "plot_trace", "render_figure", "render_png", "save_plot",
    "size_of_graph", "size_of_law", "size_of_q", "size_of_responses", "support_of",
]  # fmt: skip
