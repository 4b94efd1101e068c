"""Colours and letters that all figures share."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from hidag.formatting import replace_hidden, shorten

#: Okabe and Ito's colours, which readers with any common colour blindness can tell apart.
INK = "#1b2a41"
FAINT = "#8a94a6"
HAIR = "#d8dde6"
PAPER = "#ffffff"
NODE_FILL = "#eef3fa"
BLUE = "#0072b2"
VERMILION = "#d55e00"
ORANGE = "#e69f00"
PURPLE = "#cc79a7"

#: Points.
FONT_SIZE = 10.0
SMALL_FONT_SIZE = 8.0

#: Longer names are cut in figures; tables and files keep them whole.
LONGEST_NAME = 28
#: A line of a heading.
LONGEST_LINE = 22


def shown_name(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a name as figures show it: one line, no hidden characters, not too long."""
    spaced = "".join(" " if letter.isspace() else letter for letter in name)
    return shorten(replace_hidden(spaced), longest)


def name_in_lines(name: str, longest: int = LONGEST_LINE) -> str:
    """Return a name as headings show it: in two lines if it is long, cut if that is not enough."""
    plain = shown_name(name, longest=len(name))
    lines = textwrap.wrap(plain, longest)
    if len(lines) <= 1:
        return plain
    rest = plain[plain.index(lines[0]) + len(lines[0]) :].strip()
    return f"{lines[0]}\n{shown_name(rest, longest)}"


@contextmanager
def any_script() -> Iterator[None]:
    """Let names be in scripts that the font lacks: an empty box is drawn, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support")
        yield
