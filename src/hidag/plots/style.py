"""Colours and letters that all figures share."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

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


def shown_name(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a name as figures show it: one line, no control characters, not too long."""
    plain = "".join(
        " " if unicodedata.category(letter) in ("Cc", "Zl", "Zp") else letter for letter in name
    )
    return plain if len(plain) <= longest else plain[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"


@contextmanager
def any_script() -> Iterator[None]:
    """Let names be in scripts that the font lacks: an empty box is drawn, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support")
        yield
