"""Plots of Q and the loadings: a heat map of both, and the loadings of each latent in order."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import Advice, DataError, Setting, SettingError
from hidag.formatting import format_cell
from hidag.measurement.families.base import family_named, split_name
from hidag.measurement.parameters import nominal_item
from hidag.plotting import figure as frame
from hidag.plotting import style
from hidag.results import as_result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.results import AnyFit, FitResult

#: Numbers are written into the cells of Q matrices up to this size.
_MAX_ITEMS_WITH_NUMBERS, _MAX_LATENTS_WITH_NUMBERS = 45, 12
#: Lines between the rows are drawn for at most this many items.
_MAX_ITEMS_WITH_LINES = 80
#: Percentile of the absolute loadings at which the colour scale ends.
_COLOR_PERCENTILE = 98.0
#: Points of row height from which marks have their full size.
_FULL_MARK_HEIGHT = 9.0
#: Characters per line of the label of the loadings axis.
_MAX_LABEL_LENGTH = 44
#: Items are named in the loadings plot, and stems drawn, for at most this many loadings.
_MAX_NAMED_LOADINGS, _MAX_STEMS = 40, 150

_Names = tuple[str, ...] | None
#: A Q to compare with: its name, and the legends of its missing and additional entries.
_TRUTH = ("true Q", "missed", "not in the truth")
_PROVISIONAL = ("provisional Q", "provisional only", "estimated only")


def plot_q(
    result: AnyFit | ArrayLike,
    ax: Axes | None = None,
    *,
    truth: ArrayLike | None = None,
    provisional: ArrayLike | None = None,
    item_names: tuple[str, ...] | None = None,
    latent_names: tuple[str, ...] | None = None,
    title: str | None = None,
    label: str | None = None,
) -> Axes:
    """Draw Q as a heat map, coloured by the loadings, and return the axes.

    Loadings of gaussian, lognormal and censored items are divided by the standard deviation of the
    item. For latents with more than two levels the colour is the difference between the highest and
    the lowest level; with interactions it is averaged over the levels of the other latents, equally
    weighted.

    Parameters
    ----------
    result : FitResult, DCRL or array, shape (J, K)
        A fit; or loadings, or Q itself.
    ax : matplotlib Axes, optional
    truth : array of 0 and 1, shape (J, K), optional
        The true Q, columns as the latents: missed entries are framed, additional ones crossed.
    provisional : array of 1, 0 and -1, shape (J, K), optional
        A provisional Q, marked likewise except its unknown entries (-1); not with ``truth``.
    item_names, latent_names : tuple of str, optional
        Default: those of the result, or X1, X2, ... and Z1, Z2, ...
    title, label : str, optional
        Of the figure, and of the colour bar, by default a description of the loadings.
    """
    if truth is not None and provisional is not None:
        template = "{first} and {second} cannot be drawn in the same figure"
        params = {"first": Setting("truth"), "second": Setting("provisional")}
        advice = Advice("omit-option", "omit one of them")
        raise SettingError("exclusive-options", template, params, advice=advice)
    result = as_result(result) if hasattr(result, "get_params") else result
    values, q, default_label = standardized_loadings(result)
    items, latents = _names(result, values.shape, item_names, latent_names)
    ax = ax or frame.new_axes(frame.size_of_q(*values.shape))

    from matplotlib import colormaps

    is_binary = bool(np.isin(values, (0.0, 1.0)).all())
    nonnegative = bool((values[q == 1] >= 0).all())
    sizes = np.abs(values[q == 1])
    limit = (float(np.percentile(sizes, _COLOR_PERCENTILE)) if sizes.size else 0.0) or 1.0
    colors = colormaps["Blues"] if is_binary else _loading_colors(nonnegative)
    colors = colors.with_extremes(bad="#f6f7f9")
    ends = (0.0 if nonnegative or is_binary else -limit, 1.4 if is_binary else limit)
    image = frame.draw_heat_map(ax, np.where(q == 1, values, np.nan), colors, ends)
    frame.label_rows(ax, items, "items")
    frame.label_columns(ax, latents, top=True)
    # White lines between the columns, and between the rows if they are few.
    ax.set_xticks(np.arange(len(latents) - 1) + 0.5, minor=True)
    if len(items) <= _MAX_ITEMS_WITH_LINES:
        ax.set_yticks(np.arange(len(items) - 1) + 0.5, minor=True)
    ax.grid(which="minor", color=style.PAPER, linewidth=1.2)
    ax.tick_params(which="minor", length=0)
    if not is_binary:
        if len(items) <= _MAX_ITEMS_WITH_NUMBERS and len(latents) <= _MAX_LATENTS_WITH_NUMBERS:
            for j, k in np.argwhere(q == 1).tolist():
                color = frame.text_color(image.to_rgba(values[j, k]))
                text = format_cell(float(values[j, k]))
                frame.write_centred(ax, k, j, text, style.SMALL_FONT_SIZE - 0.5, color=color)
        clipped = bool((sizes > limit).any())
        extend = ("max" if nonnegative else "both") if clipped else "neither"
        frame.add_colorbar(ax, image, label or default_label, extend=extend)
    for other, kind in ((truth, _TRUTH), (provisional, _PROVISIONAL)):
        if other is not None:
            _mark_differences(ax, q, other, kind)
    if title:
        ax.set_title(title, **style.text_options(style.FONT_SIZE + 1))
    return ax


def _names(result: Any, shape: tuple[int, ...], items: _Names, latents: _Names) -> tuple[Any, Any]:
    """Return the given names, those of the result, or X1, ... and Z1, ..."""
    items = items or getattr(result, "item_names", None)
    latents = latents or getattr(result, "latent_names", None)
    defaults = [tuple(f"{a}{i + 1}" for i in range(n)) for a, n in zip("XZ", shape, strict=True)]
    return items or defaults[0], latents or defaults[1]


def _loading_colors(nonnegative: bool) -> Any:
    """Return purple to orange without the light middle, in which weak loadings would vanish."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    shades = np.concatenate([np.linspace(0.04, 0.40, 128), np.linspace(0.60, 0.96, 128)])
    return ListedColormap(colormaps["PuOr_r"](shades[128:] if nonnegative else shades))


def _mark_differences(
    ax: Axes, q: NDArray[np.int8], other: ArrayLike, kind: tuple[str, str, str]
) -> None:
    """Frame the entries missing in the estimate, cross its additional entries, add a legend."""
    from matplotlib.collections import PatchCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle
    from matplotlib.patheffects import Normal, Stroke

    given = np.asarray(other, dtype=np.float64)
    if given.shape != q.shape:
        template = "the {name} must have the shape of the estimated Q, {expected}, got {shape}"
        params = {"name": kind[0], "expected": q.shape, "shape": given.shape}
        advice = Advice("match-latents", "match the latents first")
        raise DataError("q-shape", template, params, advice=advice)
    # Negative and missing entries are unknown.
    missing = np.argwhere((given > 0) & (q == 0))
    additional = np.argwhere((given == 0) & (q == 1))
    scale = min(frame.axes_points(ax)[1] / max(len(q), 1) / _FULL_MARK_HEIGHT, 1.0)
    width, size = max(1.4 * scale, 0.5), max(5.0 * scale, 2.2)
    frames = [Rectangle((k - 0.44, j - 0.4), 0.88, 0.8) for j, k in missing.tolist()]
    if frames:
        outline: dict[str, Any] = {"facecolor": "none", "edgecolor": style.BLUE, "linewidth": width}
        ax.add_collection(PatchCollection(frames, **outline))

    def cross(width: float, size: float) -> dict[str, Any]:
        # A light outline makes the cross visible on cells of any colour.
        outline = [Stroke(linewidth=width + 1.8, foreground=style.PAPER), Normal()]
        shape: dict[str, Any] = {"marker": "x", "markersize": size, "markeredgewidth": width}
        return {"linestyle": "none", "color": style.INK, "path_effects": outline, **shape}

    if len(additional):
        ax.plot(additional[:, 1] + 0.36, additional[:, 0], **cross(width, size))
    labels = f"{kind[1]} ({len(missing)})", f"{kind[2]} ({len(additional)})"
    box = Patch(fill=False, edgecolor=style.BLUE, linewidth=1.4, label=labels[0])
    crossed = Line2D([], [], label=labels[1], **cross(1.4, 5.0))
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.01)}
    frame.add_legend(ax, handles=[box, crossed], ncols=2, **place)


def standardized_loadings(
    result: AnyFit | ArrayLike,
) -> tuple[NDArray[np.float64], NDArray[np.int8], str]:
    """Return loadings in comparable units, shape (J, K), Q, shape (J, K), and an axis label."""
    if hasattr(result, "strengths") and hasattr(result, "q_matrix"):
        fit: Any = result
        loadings = np.array(fit.strengths, dtype=np.float64)
        loadings /= fit.parameters.deviations[fit.responses.starts, None]
        return loadings, np.asarray(fit.q_matrix, dtype=np.int8), _loading_label(fit)
    values = np.asarray(result, dtype=np.float64)
    if values.ndim != 2 or values.size == 0:
        template = "a fitted result or an array of shape (J, K) is required, got shape {shape}"
        raise DataError("array-shape", template, shape=values.shape)
    return values, (values != 0).astype(np.int8), "loading"


def _loading_label(fit: FitResult) -> str:
    label = "loading" if max(fit.terms.levels) == 2 else "highest vs lowest level"
    if (fit.loadings[:, fit.terms.n_main :] != 0).any():
        where = " in possible states" if fit.has_prerequisites else ""
        label += f", averaged over the other latents{where}"
    numeric = {name for name in fit.families if nominal_item(name) is None}
    scaled = {name for name in numeric if family_named(name).dispersion_is_variance}
    if not scaled:
        return label
    if scaled == set(fit.families):
        return f"{label} / standard deviation"
    kinds = " and ".join(sorted({split_name(name)[0] for name in scaled}))
    return f"{label} ({kinds} items: / standard deviation)"


def plot_loadings(
    result: AnyFit | ArrayLike,
    ax: Axes | None = None,
    *,
    latent_names: tuple[str, ...] | None = None,
    item_names: tuple[str, ...] | None = None,
) -> Axes:
    """Draw the loadings of each latent in descending order, and return the axes.

    The scale is that of `plot_q`: loadings of gaussian, lognormal and censored items are divided by
    the standard deviation of the item.

    Parameters
    ----------
    result : FitResult, DCRL or array, shape (J, K)
    ax : matplotlib Axes, optional
    latent_names, item_names : tuple of str, optional
        Default: those of the result, or Z1, Z2, ... and X1, X2, ...
    """
    result = as_result(result) if hasattr(result, "get_params") else result
    values, q, label = standardized_loadings(result)
    items, latents = _names(result, values.shape, item_names, latent_names)
    ax = ax or frame.new_axes((1.4 + min(max(1.3 * len(latents), 3.4), 11.0), 3.6))
    count = int((q == 1).sum())
    named = count <= _MAX_NAMED_LOADINGS
    for k in range(len(latents)):
        order = np.flatnonzero(q[:, k] == 1)
        order = order[np.argsort(-values[order, k], kind="stable")]
        y = values[order, k]
        x = k + (np.linspace(-0.34, 0.34, len(y)) if len(y) > 1 else np.zeros(len(y)))
        for part, color, marker in ((y >= 0, style.BLUE, "o"), (y < 0, style.VERMILION, "v")):
            if count <= _MAX_STEMS:
                ax.vlines(x[part], 0.0, y[part], color=color, linewidth=0.7, alpha=0.5)
            size = 4.0 if named else 2.6
            frame.draw_dots(ax, x[part], y[part], size, color, marker=marker)
        for i, j in enumerate(order.tolist() if named else ()):
            up = y[i] >= 0
            place: dict[str, Any] = {"xytext": (0, 4 if up else -4), "textcoords": "offset points"}
            text = {"ha": "center", "va": "bottom" if up else "top", "rotation": 90}
            options = style.text_options(style.SMALL_FONT_SIZE - 2.0, **text)
            ax.annotate(style.display_name(items[j], 12), (x[i], y[i]), **place, **options)
    ax.axhline(0.0, color=style.FAINT, linewidth=0.8)
    frame.style_axes(ax)
    if q.any():
        low, high = min(values[q == 1].min(), 0.0), max(values[q == 1].max(), 0.0)
        margin = (0.16 if named else 0.05) * (high - low)
        ax.set_ylim(low - (margin if low < 0 else 0.0), high + (margin if high > 0 else 0.0))
    ax.set_xlim(-0.6, len(latents) - 0.4)
    frame.label_columns(ax, latents)
    frame.label_axes(ax, y=textwrap.fill(label, _MAX_LABEL_LENGTH))
    return ax
