"""Q and the loadings as one heat map: which latent drives which item, how strongly, which way."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import DataError
from hidag.formatting import format_cell
from hidag.measurement.families.registry import family_named, split_name
from hidag.measurement.nominal import categorical_named
from hidag.plotting import style
from hidag.plotting.figure import (
    Size,
    axes_points,
    name_columns,
    new_axes,
    plain_frame,
    size_of_q,
    thinned_in_words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patheffects import AbstractPathEffect

    from hidag.results import FitResult


# --- Where an estimated Q differs from another: frames for what it lacks, crosses for what

#: Points of a cell's height from which on frames and crosses have their full size.
_ROOMY = 9.0


@dataclass(frozen=True)
class Comparison:
    """What the other Q is called, and what marks mean then."""

    name: str
    lacking: str
    added: str


TRUTH = Comparison("true Q", "missed", "not in the truth")
PROVISIONAL = Comparison("provisional Q", "provisional only", "estimated only")


def checked_q(given: ArrayLike, shape: tuple[int, ...], kind: Comparison) -> NDArray[np.int8]:
    """Return the other Q with 1, 0, and -1 where it says nothing."""
    values = np.asarray(given, dtype=np.float64)
    if values.shape != shape:
        raise DataError(
            f"the {kind.name} must have the shape of the estimated one, {shape}, got "
            f"{values.shape}; match the latents first"
        )
    unknown = np.isnan(values) | (values < 0)
    return np.where(unknown, -1, np.where(unknown, 0.0, values) != 0).astype(np.int8)


def mark_differences(
    ax: Axes, q: NDArray[np.int8], other: NDArray[np.int8], kind: Comparison
) -> None:
    """Frame entries that the estimate lacks, cross out entries it adds, and say so below."""
    from matplotlib.collections import PatchCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle

    lacking, added = np.argwhere((other == 1) & (q == 0)), np.argwhere((other == 0) & (q == 1))
    room = min(axes_points(ax)[1] / max(len(q), 1) / _ROOMY, 1.0)
    line, size = max(1.4 * room, 0.5), max(5.0 * room, 2.2)
    frames = [Rectangle((k - 0.44, j - 0.4), 0.88, 0.8) for j, k in lacking.tolist()]
    if frames:
        ax.add_collection(
            PatchCollection(frames, facecolor="none", edgecolor=style.BLUE, linewidth=line)
        )
    if len(added):
        ax.plot(
            added[:, 1] + 0.36,
            added[:, 0],
            linestyle="none",
            marker="x",
            markersize=size,
            markeredgewidth=line,
            color=style.INK,
            path_effects=_edged(line),
        )
    missing = Patch(
        fill=False, edgecolor=style.BLUE, linewidth=1.4, label=f"{kind.lacking} ({len(lacking)})"
    )
    too_many = Line2D(
        [],
        [],
        linestyle="none",
        marker="x",
        markersize=5,
        markeredgewidth=1.4,
        color=style.INK,
        path_effects=_edged(1.4),
        label=f"{kind.added} ({len(added)})",
    )
    ax.legend(
        handles=[missing, too_many],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.01),
        ncols=2,
        frameon=False,
        fontsize=style.SMALL_FONT_SIZE,
        labelcolor=style.INK,
    )


def _edged(line: float) -> list[AbstractPathEffect]:
    """Return a pale edge around a mark, which is then seen on cells of any colour."""
    from matplotlib.patheffects import Normal, Stroke

    return [Stroke(linewidth=line + 1.8, foreground=style.PAPER), Normal()]


# ---

#: Up to this many cells each way, the numbers are written into them.
_WRITTEN_ITEMS, _WRITTEN_LATENTS = 45, 12
#: Share of the loadings that the colours span; the few beyond get the darkest colour.
_SPAN = 98.0
_ROOM_PER_LABEL = 10.0
_LONGEST_BAR = 240.0
_SHORTEST_LINE = 24


def plot_q(
    result: FitResult | ArrayLike,
    ax: Axes | None = None,
    *,
    truth: ArrayLike | None = None,
    provisional: ArrayLike | None = None,
    item_names: tuple[str, ...] | None = None,
    latent_names: tuple[str, ...] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw Q with the loadings as colours, and return the axes.

    Loadings of gaussian, lognormal and censored items are divided by the item's standard deviation,
    so that items on different scales can be seen in one picture. For latents with more than two
    levels the colour is what the highest level adds to the lowest; where latents interact, the
    average over even levels of the others.

    Parameters
    ----------
    result : FitResult or array, shape (J, K)
        A fitted ``result_``; or loadings, or Q itself.
    ax : matplotlib Axes, optional
        A new figure of fitting size unless given.
    truth : array of 0 and 1, shape (J, K), optional
        The true Q, its columns in the order of the latents. Entries that were missed get an empty
        frame, entries too many a cross.
    provisional : array of 1, 0 and -1, shape (J, K), optional
        A Q that was believed in: its entries that the fit lacks get a frame, entries of the fit
        beyond it a cross; -1 is not marked. Not with a truth.
    item_names, latent_names : tuple of str, optional
        Those of the result, or X1, X2, ... and Z1, Z2, ...
    title : str, optional

    Returns
    -------
    matplotlib Axes
    """
    strength, q, label = strengths(result)
    n_items, n_latents = strength.shape
    items = item_names or getattr(result, "item_names", None) or _made_up("X", n_items)
    latents = latent_names or getattr(result, "latent_names", None) or _made_up("Z", n_latents)
    if ax is None:
        ax = new_axes(size_of_q(n_items, n_latents))

    from matplotlib import colormaps

    only_zero_one = bool(np.isin(strength, (0.0, 1.0)).all())
    shown = np.where(q == 1, strength, np.nan)
    one_sided = bool((strength[q == 1] >= 0).all())
    colours = colormaps["Blues"] if only_zero_one else _coloured(one_sided)
    colours = colours.with_extremes(bad="#f6f7f9")
    present = np.abs(strength[q == 1])
    limit = float(np.percentile(present, _SPAN)) if present.size else 1.0
    limit = limit or 1.0
    low, high = (0.0, 1.4) if only_zero_one else (0.0 if one_sided else -limit, limit)
    image = ax.imshow(
        shown, cmap=colours, vmin=low, vmax=high, aspect="auto", interpolation="nearest"
    )
    _label(ax, items, latents)
    if n_items <= _WRITTEN_ITEMS and n_latents <= _WRITTEN_LATENTS and not only_zero_one:
        for j, k in np.argwhere(q == 1).tolist():
            dark = abs(strength[j, k]) > 0.55 * limit
            ax.text(
                k,
                j,
                format_cell(float(strength[j, k])),
                ha="center",
                va="center",
                fontsize=style.SMALL_FONT_SIZE - 0.5,
                color=style.PAPER if dark else style.INK,
            )
    if not only_zero_one:
        figure = ax.get_figure(root=True)
        assert figure is not None
        shrink = min(1.0, _LONGEST_BAR / axes_points(ax)[1])
        beyond = bool((present > limit).any())
        extend = ("max" if one_sided else "both") if beyond else "neither"
        bar = figure.colorbar(
            image,
            ax=ax,
            extend=extend,
            fraction=0.05,
            pad=0.03,
            aspect=28,
            shrink=shrink,
            anchor=(0.0, 1.0),
        )
        # Letters are about 0.6 of their size wide; a line is as long as the bar at the most.
        letters = int(shrink * axes_points(ax)[1] / (0.6 * style.SMALL_FONT_SIZE))
        words = textwrap.fill(label, max(letters, _SHORTEST_LINE))
        bar.set_label(words, fontsize=style.SMALL_FONT_SIZE, color=style.INK)
        bar.ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT)
        bar.outline.set_visible(False)  # type: ignore[operator]
    if truth is not None and provisional is not None:
        raise DataError("frames and crosses show the truth or a provisional Q; give one of them")
    if truth is not None:
        mark_differences(ax, q, checked_q(truth, q.shape, TRUTH), TRUTH)
    if provisional is not None:
        mark_differences(ax, q, checked_q(provisional, q.shape, PROVISIONAL), PROVISIONAL)
    if title:
        ax.set_title(title, fontsize=style.FONT_SIZE + 1, color=style.INK, parse_math=False)
    return ax


def _coloured(one_sided: bool) -> Any:
    """Return purple to orange without the white between, where weak loadings would vanish."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    whole = colormaps["PuOr_r"]
    above = whole(np.linspace(0.60, 0.96, 128))
    if one_sided:
        return ListedColormap(above)
    return ListedColormap(np.vstack([whole(np.linspace(0.04, 0.40, 128)), above]))


def strengths(
    result: FitResult | ArrayLike,
) -> tuple[NDArray[np.float64], NDArray[np.int8], str]:
    """Return what is coloured, shape (J, K); which cells count, shape (J, K); and what it is."""
    if hasattr(result, "strengths") and hasattr(result, "q_matrix"):
        fit: Any = result
        loadings = np.array(fit.strengths, dtype=np.float64)
        loadings /= fit.parameters.deviations[fit.responses.starts, None]
        label = _what_is_coloured(fit) + _divided(fit.families)
        return loadings, np.asarray(fit.q_matrix, dtype=np.int8), label
    values = np.asarray(result, dtype=np.float64)
    if values.ndim != 2 or values.size == 0:
        raise DataError(
            f"plot_q needs a fitted result or an array of shape (J, K), got shape {values.shape}"
        )
    return values, (values != 0).astype(np.int8), "loading"


def _divided(families: tuple[str, ...]) -> str:
    """Return which items' loadings are over a standard deviation, for the end of the legend."""
    over = [
        name
        for name in dict.fromkeys(families)
        if categorical_named(name) is None and family_named(name).dispersion_is_variance
    ]
    if not over:
        return ""
    if len(over) == len(set(families)):
        return " / standard deviation"
    kinds = " and ".join(sorted({split_name(name)[0] for name in over}))
    return f" ({kinds} items: / standard deviation)"


def _what_is_coloured(fit: FitResult) -> str:
    """Return what a colour stands for, in the words of the legend."""
    words = "loading" if max(fit.terms.levels) == 2 else "highest level against lowest"
    together = (fit.loadings[:, fit.terms.n_main :] != 0).any()
    if not together:
        return words
    where = " in states that can occur" if fit.has_prerequisites else ""
    return f"{words}, averaged over the other latents{where}"


def _label(ax: Axes, items: tuple[str, ...], latents: tuple[str, ...]) -> None:
    """Write as many names as there is room for, and thin lines between few rows."""
    width, height = axes_points(ax)
    every = max(1, int(np.ceil(len(items) * _ROOM_PER_LABEL / max(height, 1.0))))
    rows = list(range(0, len(items), every))
    ax.set_yticks(rows)
    size = style.SMALL_FONT_SIZE if every == 1 else style.SMALL_FONT_SIZE - 1
    ax.set_yticklabels(
        [style.shown_name(items[j]) for j in rows], fontsize=size, color=style.INK, parse_math=False
    )
    if every > 1:
        words = thinned_in_words(len(items), "items", every)
        ax.set_ylabel(words, fontsize=size, color=style.FAINT)
    names = [style.name_in_lines(name) for name in latents]
    longest = max(len(line) for name in names for line in name.split("\n"))
    # Letters are about 0.6 of their size wide; names that do not fit side by side are tilted.
    tilted = longest * size * 0.62 > width / len(latents)
    ax.set_xticks(range(len(latents)))
    ax.set_xticklabels(
        names,
        fontsize=style.SMALL_FONT_SIZE,
        color=style.INK,
        rotation=50 if tilted else 0,
        ha="left" if tilted else "center",
        rotation_mode="anchor",
        parse_math=False,
    )
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xticks(np.arange(len(latents) - 1) + 0.5, minor=True)
    if len(items) <= 80:
        ax.set_yticks(np.arange(len(items) - 1) + 0.5, minor=True)
    ax.grid(which="minor", color=style.PAPER, linewidth=1.2)
    ax.tick_params(which="minor", length=0)


def _made_up(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{i + 1}" for i in range(count))


# --- Loadings latent by latent: how many items each drives, how strongly, which way

#: Letters in a line of the label beside the axis.
_LONGEST_LINE = 44
#: With so few loadings in all, items are named beside their points.
_NAMED = 40
#: With more loadings in all, stems would run into each other.
_STEMS = 150


def size_of_loadings(n_latents: int) -> Size:
    """Return a size in inches for `plot_loadings`."""
    return 1.4 + min(max(1.3 * n_latents, 3.4), 11.0), 3.6


def plot_loadings(
    result: FitResult | ArrayLike,
    ax: Axes | None = None,
    *,
    latent_names: tuple[str, ...] | None = None,
    item_names: tuple[str, ...] | None = None,
) -> Axes:
    """Draw the loadings of each latent side by side, the largest first, and return the axes.

    On the scale of `plot_q`: loadings of gaussian, lognormal and censored items are divided by
    the item's standard deviation.

    Parameters
    ----------
    result : FitResult or array, shape (J, K)
    ax : matplotlib Axes, optional
        A new figure unless given.
    latent_names, item_names : tuple of str, optional
        Those of the result, or Z1, Z2, ... and X1, X2, ...

    Returns
    -------
    matplotlib Axes
    """
    values, q, label = strengths(result)
    n_items, n_latents = values.shape
    latents = latent_names or getattr(result, "latent_names", None)
    latents = latents or tuple(f"Z{k + 1}" for k in range(n_latents))
    items = item_names or getattr(result, "item_names", None)
    items = items or tuple(f"X{j + 1}" for j in range(n_items))
    if ax is None:
        ax = new_axes(size_of_loadings(n_latents))
    named = int((q == 1).sum()) <= _NAMED
    few = int((q == 1).sum()) <= _STEMS
    for k in range(n_latents):
        own = np.flatnonzero(q[:, k] == 1)
        own = own[np.argsort(-values[own, k], kind="stable")]
        x = k + (np.linspace(-0.34, 0.34, len(own)) if len(own) > 1 else np.zeros(len(own)))
        above = values[own, k] >= 0
        for part, colour, marker in ((above, style.BLUE, "o"), (~above, style.VERMILION, "v")):
            if few:
                ax.vlines(
                    x[part], 0.0, values[own[part], k], color=colour, linewidth=0.7, alpha=0.5
                )
            ax.plot(
                x[part],
                values[own[part], k],
                linestyle="none",
                marker=marker,
                markersize=4.0 if named else 2.6,
                color=colour,
            )
        for place, j in zip(x, own.tolist(), strict=True) if named else ():
            up = values[j, k] >= 0
            ax.annotate(
                style.shown_name(items[j], 12),
                (place, values[j, k]),
                xytext=(0, 4 if up else -4),
                textcoords="offset points",
                ha="center",
                va="bottom" if up else "top",
                rotation=90,
                fontsize=style.SMALL_FONT_SIZE - 2.0,
                color=style.INK,
                parse_math=False,
            )
    ax.axhline(0.0, color=style.FAINT, linewidth=0.8)
    plain_frame(ax)
    if q.any():
        low, high = min(values[q == 1].min(), 0.0), max(values[q == 1].max(), 0.0)
        spare = (0.16 if named else 0.05) * (high - low)
        ax.set_ylim(low - (spare if low < 0 else 0.0), high + (spare if high > 0 else 0.0))
    ax.set_xlim(-0.6, n_latents - 0.4)
    name_columns(ax, latents, axes_points(ax)[0])
    words = textwrap.fill(label, _LONGEST_LINE)
    ax.set_ylabel(words, fontsize=style.SMALL_FONT_SIZE, color=style.INK)
    return ax
