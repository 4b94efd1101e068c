"""The latent law: how common the levels of each latent are, and which profiles there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.causal.probability_queries import beliefs
from hidag.exceptions import DataError
from hidag.plotting import style
from hidag.plotting.figure import Size, axes_points, grays, name_columns, new_axes, plain_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.results import FitResult


#: Profiles that are drawn unless asked otherwise.
MOST_PROFILES = 20
#: Draws that tell which profiles are common where joint states are too many to list.
N_DRAWS = 100_000
#: Up to so many latents, shares are written into the bars.
_WRITTEN = 14

Profiles = tuple[NDArray[np.int64], NDArray[np.float64]]


def size_of_law(n_latents: int) -> Size:
    """Return a size in inches for `plot_law`."""
    return 1.3 + min(max(0.5 * n_latents, 2.6), 9.0), 2.8


def size_of_profile_shares(n_profiles: int, n_latents: int) -> Size:
    """Return a size in inches for `plot_profile_shares`."""
    return 1.6 + 0.36 * max(n_profiles, 8), 2.2 + 0.19 * n_latents


def plot_law(result: FitResult, ax: Axes | None = None) -> Axes:
    """Draw how common the levels of each latent are, as shares of a bar, and return the axes.

    Parameters
    ----------
    result : FitResult
    ax : matplotlib Axes, optional
        A new figure unless given.
    """
    levels, names = result.law.space.levels, result.latent_names
    if ax is None:
        ax = new_axes(size_of_law(len(names)))
    law = beliefs(result.law)
    shares = [law.marginal((k,)) for k in range(len(levels))]
    shades = grays(max(levels))
    for v in range(max(levels)):
        height = np.array([one[v] if v < len(one) else 0.0 for one in shares])
        below = np.array([one[:v].sum() for one in shares])
        ax.bar(
            range(len(levels)),
            height,
            bottom=below,
            width=0.72,
            color=shades[v],
            edgecolor=style.PAPER,
            linewidth=0.8,
            label=f"level {v}",
        )
        for k in np.flatnonzero(height > 0.07).tolist() if len(levels) <= _WRITTEN else ():
            ax.text(
                k,
                below[k] + height[k] / 2,
                f"{height[k]:.2f}",
                ha="center",
                va="center",
                fontsize=style.SMALL_FONT_SIZE - 1.0,
                color=style.PAPER if v > max(levels) / 2 - 0.5 else style.INK,
            )
    plain_frame(ax)
    ax.set_ylim(0.0, 1.0)
    ax.set_ylabel("share of rows", fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    name_columns(ax, names, axes_points(ax)[0])
    ax.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=min(max(levels), 6),
        frameon=False,
        reverse=False,
        fontsize=style.SMALL_FONT_SIZE,
        labelcolor=style.INK,
    )
    return ax


def common_profiles(
    result: FitResult,
    states: NDArray[np.integer] | None = None,
    *,
    most: int = MOST_PROFILES,
) -> Profiles:
    """Return the most common joint states, shape (P, K), and their shares, the largest first.

    Parameters
    ----------
    result : FitResult
    states : array of int, shape (N, K), optional
        Rows' states, such as ``result.classify(values)``: shares are then of these rows; else of
        the fitted law.
    most : int
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
            f"states must be an array of shape (N, {space.n_latents}), one column per latent, got "
            f"{rows.shape}"
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
    """Draw the most common profiles: a bar for the share of each, its levels below.

    Parameters
    ----------
    result : FitResult
    ax : matplotlib Axes, optional
        A new figure of fitting size unless given; levels are drawn in axes below it.
    states : array of int, shape (N, K), optional
        Rows' states, such as ``result.classify(values)``; the fitted law unless given.
    most : int
        Profiles drawn.

    Returns
    -------
    matplotlib Axes
        With the bars; its only child axes have the levels.
    """
    profiles, shares = common_profiles(result, states, most=most)
    n_latents, levels = profiles.shape[1], result.law.space.levels
    if ax is None:
        ax = new_axes(size_of_profile_shares(len(profiles), n_latents))
    # The bars keep an inch or so; each latent below has a line of its own.
    lines = 0.19 * n_latents
    share = lines / (lines + 1.6)
    ax.set_axis_off()
    bars = ax.inset_axes((0.0, share + 0.02, 1.0, 0.98 - share))
    grid = ax.inset_axes((0.0, 0.0, 1.0, share), sharex=bars)
    bars.bar(range(len(shares)), shares, width=0.66, color=style.BLUE)
    room = axes_points(ax)[0] / max(len(shares), 1)
    # Shares of profiles that hardly anybody shares say nothing one by one.
    told = room > 20 and shares.max() >= 0.001
    for x, share_of in enumerate(shares.tolist() if told else ()):
        bars.annotate(
            f"{share_of:.1%}",
            (x, share_of),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=style.SMALL_FONT_SIZE - 1.5,
            color=style.INK,
        )
    plain_frame(bars)
    bars.tick_params(axis="x", bottom=False, labelbottom=False)
    bars.margins(y=0.12)
    bars.yaxis.set_major_formatter(lambda value, place: f"{100 * value:g} %")
    whose = "law" if states is None else "rows"
    if states is None and not result.law.space.listable:
        whose = f"law, from {N_DRAWS:,} draws"
    bars.set_ylabel(f"share ({whose})", fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    bars.set_title(
        f"{_profiles(shares, result)}: {100 * shares.sum():.3g} % of the {whose}",
        fontsize=style.SMALL_FONT_SIZE,
        color=style.INK,
        loc="left",
    )
    _draw_levels(grid, profiles, levels, result.latent_names)
    return ax


def _profiles(shares: NDArray[np.float64], result: FitResult) -> str:
    everything = len(shares) == result.law.space.n_states
    return "all profiles" if everything else f"the {len(shares)} most common profiles"


def _draw_levels(
    ax: Axes,
    profiles: NDArray[np.int64],
    levels: tuple[int, ...],
    names: tuple[str, ...],
) -> None:
    """Draw a dot for each latent of each profile: empty at 0, darker the higher the level."""
    shades = grays(max(levels))
    for k in range(0, len(levels), 2):
        ax.axhspan(k - 0.5, k + 0.5, color="#f3f5f9", zorder=0)
    for v in range(max(levels)):
        x, y = np.nonzero(profiles == v)
        ax.plot(
            x,
            y,
            linestyle="none",
            marker="o",
            markersize=6.0,
            markerfacecolor=style.PAPER if v == 0 else shades[v],
            markeredgecolor=style.FAINT if v == 0 else style.INK,
            markeredgewidth=0.7,
        )
    ax.set_yticks(range(len(names)))
    ax.set_yticklabels(
        [style.shown_name(name, 22) for name in names],
        fontsize=style.SMALL_FONT_SIZE,
        color=style.INK,
        parse_math=False,
    )
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(length=0, labelbottom=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
