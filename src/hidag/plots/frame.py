"""The look of axes with numbers on them, which all charts share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hidag.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plain_frame(ax: Axes, *, grid: str = "y") -> None:
    """Take away what is not data: two sides of the frame, strong ticks; a light grid one way."""
    ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT, labelcolor=style.INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(style.FAINT)
    (ax.yaxis if grid == "y" else ax.xaxis).grid(True, color=style.HAIR, linewidth=0.6)
    ax.set_axisbelow(True)


def name_columns(ax: Axes, names: Sequence[str], width: float) -> None:
    """Write names below columns 0, 1, ...; tilted if they do not fit side by side.

    ``width`` is that of the axes in points.
    """
    shown = [style.name_in_lines(name) for name in names]
    longest = max((len(line) for name in shown for line in name.split("\n")), default=0)
    # Letters are about 0.6 of their size wide.
    tilted = longest * style.SMALL_FONT_SIZE * 0.62 > width / max(len(names), 1)
    ax.set_xticks(range(len(names)))
    ax.set_xticklabels(
        shown,
        fontsize=style.SMALL_FONT_SIZE,
        color=style.INK,
        rotation=50 if tilted else 0,
        ha="right" if tilted else "center",
        rotation_mode="anchor",
        parse_math=False,
    )


def name_rows(ax: Axes, names: Sequence[str], height: float, what: str) -> None:
    """Write names beside rows 0, 1, ...: all, or every so many where there is no room."""
    every = max(1, -(-int(len(names) * (style.SMALL_FONT_SIZE + 2.0)) // max(int(height), 1)))
    rows = list(range(0, len(names), every))
    ax.set_yticks(rows)
    ax.set_yticklabels(
        [style.shown_name(names[r]) for r in rows],
        fontsize=style.SMALL_FONT_SIZE - (1.0 if every > 1 else 0.0),
        color=style.INK,
        parse_math=False,
    )
    if every > 1:
        ax.set_ylabel(
            thinned_in_words(len(names), what, every),
            fontsize=style.SMALL_FONT_SIZE,
            color=style.FAINT,
        )


def thinned_in_words(number: int, what: str, every: int) -> str:
    """Return that only some of many rows are named."""
    return f"{number:,} {what}, one in {every} named"


def grays(count: int) -> list[str]:
    """Return shades from light to dark blue that differ on paper without colours too."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    scale = colormaps["Blues"]
    steps = [0.12 + 0.8 * i / max(count - 1, 1) for i in range(count)]
    return [to_hex(scale(step)) for step in steps]
