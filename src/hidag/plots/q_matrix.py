"""Q and the loadings as one heat map: which latent drives which item, how strongly, which way."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.errors import DataError
from hidag.measurement import categorical_named, family_named
from hidag.measurement.families import split_name
from hidag.plots import style
from hidag.plots.canvas import axes_points, new_axes, size_of_q
from hidag.plots.frame import thinned_in_words
from hidag.plots.q_marks import PROVISIONAL, TRUTH, checked_q, mark_differences
from hidag.shown_numbers import shown_in_cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.result import FitResult

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
                shown_in_cell(float(strength[j, k])),
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
