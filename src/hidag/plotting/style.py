"""Colours, font sizes and name formatting shared by all figures."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hidag.formatting import replace_hidden, shorten

#: Colours of Okabe and Ito (2008), distinguishable under the common colour vision deficiencies.
INK, FAINT, HAIR, PAPER, NODE_FILL = "#1b2a41", "#8a94a6", "#d8dde6", "#ffffff", "#eef3fa"
BLUE, VERMILION, ORANGE, PURPLE = "#0072b2", "#d55e00", "#e69f00", "#cc79a7"

#: Points.
FONT_SIZE, SMALL_FONT_SIZE = 10.0, 8.0

#: Longer names are shortened in figures; tables and files have them in full.
MAX_NAME_LENGTH = 28
#: Characters in a line of a column heading.
MAX_LINE_LENGTH = 22


def text_options(size: float = SMALL_FONT_SIZE, **options: Any) -> dict[str, Any]:
    """Return the properties of a matplotlib text: size, colour, no interpretation of ``$``."""
    return {"fontsize": size, "color": INK, "parse_math": False, **options}


def display_name(name: str, max_length: int = MAX_NAME_LENGTH) -> str:
    """Return a name for a figure: one line, no control characters, shortened if necessary."""
    spaced = "".join(" " if letter.isspace() else letter for letter in name)
    return shorten(replace_hidden(spaced), max_length)


def wrap_name(name: str, max_length: int = MAX_LINE_LENGTH) -> str:
    """Return a name for a column heading: at most two lines, the second shortened if necessary."""
    plain = display_name(name, len(name))
    lines = textwrap.wrap(plain, max_length)
    if len(lines) <= 1:
        return plain
    rest = plain[plain.index(lines[0]) + len(lines[0]) :].strip()
    return f"{lines[0]}\n{display_name(rest, max_length)}"


@contextmanager
def ignore_missing_glyphs() -> Iterator[None]:
    """Draw an empty box, without a warning, for characters that the font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support")
        yield
