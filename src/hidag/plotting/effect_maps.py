"""Heat map of average causal effects among latents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hidag.plotting import figure as frame
from hidag.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hidag.causal.causal_effects import AverageEffects

#: Ranges and effects below this are not drawn as a range or a number.
_NEGLIGIBLE = 5e-3
#: Numbers are written for at most this many latents.
_MAX_LATENTS_WITH_NUMBERS = 9


def plot_effects(effects: AverageEffects, ax: Axes | None = None) -> Axes:
    """Draw the average effects of latents (rows) on latents (columns), and return the axes.

    The colour is the effect. Where undirected edges leave a range of effects, the colour is its
    midpoint, the cell is hatched, and the range is written if space permits. A dot marks effects
    whose range, or confidence interval if there is one, excludes zero.

    Parameters
    ----------
    effects : AverageEffects, from `hidag.average_effects`
    ax : matplotlib Axes, optional; by default in a new figure
    """
    k = effects.n_latents
    low, high = effects.low[:, :k], effects.high[:, :k]
    width, height = 2.2 + min(max(0.8 * k, 2.4), 9.0), 1.2 + min(max(0.5 * len(low), 1.6), 8.0)
    ax = ax or frame.new_axes((width, height))

    from matplotlib import colormaps
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    middle = (low + high) / 2
    largest = float(np.nanmax(np.abs(middle), initial=0.0)) or 1.0
    colors = colormaps["PuOr_r"].with_extremes(bad=style.HAIR)
    image = frame.draw_heat_map(ax, middle, colors, (-largest, largest))
    written = k <= _MAX_LATENTS_WITH_NUMBERS
    for c, e in np.argwhere(~np.isnan(middle)).tolist():
        if written and max(abs(low[c, e]), abs(high[c, e])) > _NEGLIGIBLE:
            a, b = f"{low[c, e]:.2f}", f"{high[c, e]:.2f}"
            # The background of the text interrupts the hatching.
            shade = image.to_rgba(middle[c, e])
            background = {"facecolor": shade, "edgecolor": "none", "pad": 1.5}
            color = frame.text_color(shade)
            text, size = a if a == b else f"{a} to\n{b}", style.SMALL_FONT_SIZE - 1.0
            frame.write_centred(ax, e, c, text, size, color=color, bbox=background, zorder=4)
    ranges = np.argwhere(high - low > _NEGLIGIBLE).tolist()
    if ranges:
        cells = [Rectangle((e - 0.5, c - 0.5), 1.0, 1.0) for c, e in ranges]
        hatching: dict[str, Any] = {"facecolor": "none", "edgecolor": style.FAINT, "linewidth": 0.0}
        ax.add_collection(PatchCollection(cells, hatch="////", **hatching))
    lower, upper = low, high
    if effects.lower is not None and effects.upper is not None:
        lower, upper = effects.lower[:, :k], effects.upper[:, :k]
    y, x = np.nonzero((lower > 1e-9) | (upper < -1e-9))
    right, up = (0.4, 0.36) if written else (0.0, 0.0)
    rim: dict[str, Any] = {"edge": style.PAPER, "markeredgewidth": 0.6}
    frame.draw_dots(ax, x + right, y - up, 3.6, style.INK, **rim)
    frame.label_columns(ax, effects.effects[:k])
    frame.label_rows(ax, effects.causes, "causes")
    frame.label_axes(ax, "change in the mean level of", "intervention: lowest to highest level of")
    more = "\nhatched: midpoint of range" if ranges else ""
    frame.add_colorbar(ax, image, f"average effect{more}", aspect=26)
    return ax
