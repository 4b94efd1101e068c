"""Plots of the latent distribution: probabilities of levels and of the most common profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.causal.probability_queries import condition_law
from hidag.exceptions import DataError
from hidag.plotting import figure as frame
from hidag.plotting import style
from hidag.plotting.figure import Size
from hidag.results import as_result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.results import AnyFit, FitResult

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
    """Return (width, height) in inches for `plot_law` of ``n_latents`` latents."""
    return 1.3 + min(max(0.5 * n_latents, 2.6), 9.0), 2.8


def plot_law(result: AnyFit, ax: Axes | None = None) -> Axes:
    """Draw the level probabilities of each latent as stacked bars, and return the axes.

    Parameters
    ----------
    result : FitResult or DCRL
    ax : matplotlib Axes, optional
    """
    fitted = as_result(result)
    levels, names = fitted.law.space.levels, fitted.latent_names
    ax = ax or frame.new_axes(size_of_law(len(names)))
    law, n_levels = condition_law(fitted.law), max(levels)
    shares = np.zeros((n_levels, len(levels)))
    for k, count in enumerate(levels):
        shares[:count, k] = law.marginal((k,))
    draw_stacked_bars(ax, shares, [f"level {v}" for v in range(n_levels)])
    middles = np.cumsum(shares, axis=0) - shares / 2
    written = shares > (0.07 if len(levels) <= _MAX_LATENTS_WITH_NUMBERS else 1.0)
    for v, k in np.argwhere(written).tolist():
        color = style.PAPER if v > n_levels / 2 - 0.5 else style.INK
        text, size = f"{shares[v, k]:.2f}", style.SMALL_FONT_SIZE - 1.0
        frame.write_centred(ax, k, middles[v, k], text, size, color=color)
    frame.label_columns(ax, names)
    frame.add_legend(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=min(n_levels, 6))
    return ax


def draw_stacked_bars(ax: Axes, shares: NDArray[np.float64], labels: Sequence[str]) -> None:
    """Draw stacked bars at 0, 1, ..., one for each column of ``shares``, and their axis."""
    outline: dict[str, Any] = {"edgecolor": style.PAPER, "linewidth": 0.8}
    bottoms = np.cumsum(shares, axis=0) - shares
    for v, shade in enumerate(frame.blue_shades(len(shares))):
        place: dict[str, Any] = {"bottom": bottoms[v], "label": labels[v]}
        ax.bar(range(shares.shape[1]), shares[v], 0.74, color=shade, **place, **outline)
    frame.style_axes(ax)
    ax.set_ylim(0.0, 1.0)
    frame.label_axes(ax, y="probability")


def common_profiles(
    result: FitResult, states: NDArray[np.integer] | None = None, *, most: int = MOST_PROFILES
) -> Profiles:
    """Return at most ``most`` joint states, shape (P, K), and their shares in descending order.

    Shares are probabilities of the fit, or relative frequencies of ``states``, shape (N, K).
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
        template = "states must be an array of shape (N, {k}), one column per latent, got {shape}"
        raise DataError("array-shape", template, k=space.n_latents, shape=rows.shape)
    found, counts = np.unique(rows, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:most]
    return found[order].astype(np.int64), counts[order] / len(rows)


def plot_profile_shares(
    result: AnyFit,
    ax: Axes | None = None,
    *,
    states: NDArray[np.integer] | None = None,
    most: int = MOST_PROFILES,
) -> Axes:
    """Draw the shares of the most common profiles above a table of their levels; return the axes.

    The axes have children for the bars and the levels.

    Parameters
    ----------
    result, ax
        As in `plot_law`.
    states : array of int, shape (N, K), optional
        Assigned states, such as ``result.most_probable_states(values)``; by default the fitted
        distribution is drawn.
    most : int
        Largest number of profiles.
    """
    fitted = as_result(result)
    profiles, shares = common_profiles(fitted, states, most=most)
    n_latents, space = profiles.shape[1], fitted.law.space
    ax = ax or frame.new_axes((1.6 + 0.36 * max(len(profiles), 8), 2.2 + _ROW_HEIGHT * n_latents))
    table_height = _ROW_HEIGHT * n_latents
    split = table_height / (table_height + 1.6)
    ax.set_axis_off()
    bars = ax.inset_axes((0.0, split + 0.02, 1.0, 0.98 - split))
    table = ax.inset_axes((0.0, 0.0, 1.0, split), sharex=bars)
    bars.bar(range(len(shares)), shares, width=0.66, color=style.BLUE)
    # Labels of tiny shares would all read 0.0 %.
    written = frame.axes_points(ax)[0] > 20 * max(len(shares), 1) and shares.max() >= 0.001
    options = style.text_options(style.SMALL_FONT_SIZE - 1.5, ha="center", va="bottom")
    for x, share in enumerate(shares.tolist() if written else ()):
        place: dict[str, Any] = {"xytext": (0, 2), "textcoords": "offset points"}
        bars.annotate(f"{share:.1%}", (x, share), **place, **options)
    frame.style_axes(bars)
    bars.tick_params(axis="x", bottom=False, labelbottom=False)
    bars.margins(y=0.12)
    bars.yaxis.set_major_formatter(lambda value, place: f"{100 * value:g} %")
    label = "probability" if space.listable else f"probability, {N_DRAWS:,} draws"
    label, whole = (label, "fitted distribution") if states is None else ("share of rows", "rows")
    everything = len(shares) == space.n_states
    which = "all profiles" if everything else f"the {len(shares)} most common profiles"
    frame.label_axes(bars, y=label, title=f"{which}: {100 * shares.sum():.3g} % of the {whole}")
    _draw_levels(table, profiles, space.levels, fitted.latent_names)
    return ax


def _draw_levels(
    ax: Axes, profiles: NDArray[np.int64], levels: tuple[int, ...], names: tuple[str, ...]
) -> None:
    """Draw a dot for each latent of each profile: empty at level 0, darker at higher levels."""
    shades = frame.blue_shades(max(levels))
    for k in range(0, len(levels), 2):
        ax.axhspan(k - 0.5, k + 0.5, color="#f3f5f9", zorder=0)
    for v in range(max(levels)):
        x, y = np.nonzero(profiles == v)
        face, edge = (shades[v], style.INK) if v else (style.PAPER, style.FAINT)
        frame.draw_dots(ax, x, y, 6.0, face, edge=edge, markeredgewidth=0.7)
    ax.set_yticks(range(len(names)))
    ax.set_yticklabels([style.display_name(name, 22) for name in names], **style.text_options())
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(labelbottom=False)
    frame.hide_frame(ax)
