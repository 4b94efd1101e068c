"""Plots of the latent distribution: level probabilities of each latent, most common profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.causal.probability_queries import condition_law
from hidag.exceptions import DataError
from hidag.plotting import style
from hidag.plotting.figure import (
    Size,
    add_legend,
    axes_points,
    blue_shades,
    hide_frame,
    label_columns,
    new_axes,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.results import FitResult


#: Profiles drawn by default.
MOST_PROFILES = 20
#: Draws for finding the common profiles where joint states are too many to enumerate.
N_DRAWS = 100_000
#: Numbers are written into the bars for at most this many latents.
_MAX_LATENTS_WITH_NUMBERS = 14
#: Inches per latent in the table of levels.
_ROW_HEIGHT = 0.19

Profiles = tuple[NDArray[np.int64], NDArray[np.float64]]


def size_of_law(n_latents: int) -> Size:
    """Return a size in inches for `plot_law`."""
    return 1.3 + min(max(0.5 * n_latents, 2.6), 9.0), 2.8


def size_of_profile_shares(n_profiles: int, n_latents: int) -> Size:
    """Return a size in inches for `plot_profile_shares`."""
    return 1.6 + 0.36 * max(n_profiles, 8), 2.2 + _ROW_HEIGHT * n_latents


def plot_law(result: FitResult, ax: Axes | None = None) -> Axes:
    """Draw the level probabilities of each latent as stacked bars, and return the axes.

    Parameters
    ----------
    result : FitResult
    ax : matplotlib Axes, optional
        Default: a new figure.
    """
    levels, names = result.law.space.levels, result.latent_names
    if ax is None:
        ax = new_axes(size_of_law(len(names)))
    law, n_levels = condition_law(result.law), max(levels)
    shares = np.zeros((n_levels, len(levels)))
    for k, count in enumerate(levels):
        shares[:count, k] = law.marginal((k,))
    bottoms = np.cumsum(shares, axis=0) - shares
    for v, (height, bottom) in enumerate(zip(shares, bottoms, strict=True)):
        draw_stacked_bar(ax, height, bottom, blue_shades(n_levels)[v], f"level {v}")
        written = height > 0.07 if len(levels) <= _MAX_LATENTS_WITH_NUMBERS else height > 1
        color = style.PAPER if v > n_levels / 2 - 0.5 else style.INK
        options = style.text_options(style.SMALL_FONT_SIZE - 1.0, color=color)
        for k in np.flatnonzero(written).tolist():
            y = bottom[k] + height[k] / 2
            ax.text(k, y, f"{height[k]:.2f}", ha="center", va="center", **options)
    style_axes(ax)
    ax.set_ylim(0.0, 1.0)
    ax.set_ylabel("probability", **style.text_options())
    label_columns(ax, names)
    add_legend(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=min(n_levels, 6))
    return ax


def draw_stacked_bar(
    ax: Axes, heights: NDArray[np.float64], bottoms: NDArray[np.float64], color: str, label: str
) -> None:
    """Draw one layer of stacked bars at 0, 1, ..."""
    outline: dict[str, Any] = {"edgecolor": style.PAPER, "linewidth": 0.8}
    ax.bar(range(len(heights)), heights, 0.74, bottoms, color=color, label=label, **outline)


def common_profiles(
    result: FitResult,
    states: NDArray[np.integer] | None = None,
    *,
    most: int = MOST_PROFILES,
) -> Profiles:
    """Return the most common joint states, shape (P, K), and their shares in descending order.

    Parameters
    ----------
    result : FitResult
    states : array of int, shape (N, K), optional
        Assigned states, such as ``result.classify(values)``, whose relative frequencies are
        returned. Default: probabilities under the fitted latent distribution.
    most : int
        Largest number of profiles.
    """
    space = result.law.space
    if states is None and space.listable:
        p = np.asarray(result.law.probabilities)
        order = np.argsort(-p, kind="stable")[:most]
        order = order[p[order] > 0]
        return np.stack(np.unravel_index(order, space.levels), axis=1), p[order]
    if states is None:
        states = result.law.sample(N_DRAWS, np.random.default_rng(0))
    rows = np.asarray(states)
    if rows.ndim != 2 or rows.shape[1] != space.n_latents or not len(rows):
        raise DataError(
            "array-shape",
            "states must be an array of shape (N, {k}), one column per latent, got {shape}",
            k=space.n_latents,
            shape=rows.shape,
        )
    found, counts = np.unique(rows, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:most]
    return found[order].astype(np.int64), counts[order] / len(rows)


def plot_profile_shares(
    result: FitResult,
    ax: Axes | None = None,
    *,
    states: NDArray[np.integer] | None = None,
    most: int = MOST_PROFILES,
) -> Axes:
    """Draw the shares of the most common profiles as bars, above a table of their levels.

    Parameters
    ----------
    result : FitResult
    ax : matplotlib Axes, optional
        Default: a new figure.
    states : array of int, shape (N, K), optional
        Assigned states, such as ``result.classify(values)``. Default: the fitted distribution.
    most : int
        Largest number of profiles.

    Returns
    -------
    matplotlib Axes
        Its child axes contain the bars and the levels.
    """
    profiles, shares = common_profiles(result, states, most=most)
    n_latents, space = profiles.shape[1], result.law.space
    if ax is None:
        ax = new_axes(size_of_profile_shares(len(profiles), n_latents))
    table_height = _ROW_HEIGHT * n_latents
    split = table_height / (table_height + 1.6)
    ax.set_axis_off()
    bars = ax.inset_axes((0.0, split + 0.02, 1.0, 0.98 - split))
    table = ax.inset_axes((0.0, 0.0, 1.0, split), sharex=bars)
    bars.bar(range(len(shares)), shares, width=0.66, color=style.BLUE)
    # Labels of tiny shares would all read 0.0 %.
    written = axes_points(ax)[0] > 20 * max(len(shares), 1) and shares.max() >= 0.001
    options = style.text_options(style.SMALL_FONT_SIZE - 1.5, ha="center", va="bottom")
    for x, share in enumerate(shares.tolist() if written else ()):
        place: dict[str, Any] = {"xytext": (0, 2), "textcoords": "offset points"}
        bars.annotate(f"{share:.1%}", (x, share), **place, **options)
    style_axes(bars)
    bars.tick_params(axis="x", bottom=False, labelbottom=False)
    bars.margins(y=0.12)
    bars.yaxis.set_major_formatter(lambda value, place: f"{100 * value:g} %")
    if states is not None:
        label, whole = "share of rows", "rows"
    else:
        label = "probability" if space.listable else f"probability, {N_DRAWS:,} draws"
        whole = "fitted distribution"
    bars.set_ylabel(label, **style.text_options())
    everything = len(shares) == space.n_states
    which = "all profiles" if everything else f"the {len(shares)} most common profiles"
    title = f"{which}: {100 * shares.sum():.3g} % of the {whole}"
    bars.set_title(title, loc="left", **style.text_options())
    _draw_levels(table, profiles, space.levels, result.latent_names)
    return ax


def _draw_levels(
    ax: Axes, profiles: NDArray[np.int64], levels: tuple[int, ...], names: tuple[str, ...]
) -> None:
    """Draw a dot for each latent of each profile: empty at level 0, darker at higher levels."""
    shades = blue_shades(max(levels))
    for k in range(0, len(levels), 2):
        ax.axhspan(k - 0.5, k + 0.5, color="#f3f5f9", zorder=0)
    for v in range(max(levels)):
        x, y = np.nonzero(profiles == v)
        face, edge = (shades[v], style.INK) if v else (style.PAPER, style.FAINT)
        options: dict[str, Any] = {
            "markerfacecolor": face,
            "markeredgecolor": edge,
            "markeredgewidth": 0.7,
        }
        ax.plot(x, y, linestyle="none", marker="o", markersize=6.0, **options)
    ax.set_yticks(range(len(names)))
    ax.set_yticklabels([style.display_name(name, 22) for name in names], **style.text_options())
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(labelbottom=False)
    hide_frame(ax)
