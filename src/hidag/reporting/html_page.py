"""Self-contained HTML pages, rendered from the templates in the folder ``templates``."""

from __future__ import annotations

import base64
import os
import re
import tempfile
import unicodedata
from collections.abc import Callable, Iterable
from functools import partial
from importlib.resources import files
from pathlib import Path

from hidag.exceptions import FileError, import_extra
from hidag.formatting import format_number, replace_hidden

_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"
#: Bidirectional classes of right-to-left letters and digits.
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
#: A command inside a sentence.
_COMMAND = re.compile(r"`(hidag [^`]+)`")


def read_asset(name: str) -> str:
    """Return the text of a template or a script."""
    return files("hidag.reporting").joinpath("templates", name).read_text(encoding="utf-8")


def name_isolator(names: Iterable[str]) -> Callable[[str], str]:
    """Return a function that makes hidden characters visible and isolates right-to-left names.

    A text that consists of a name alone gets no isolating characters, so that it can be copied
    from the page; the template puts it into a ``bdi`` element.

    Parameters
    ----------
    names : iterable of str
        Names of items and latents that sentences may quote.
    """
    isolated = {name for name in map(replace_hidden, names) if _has_right_to_left(name)}
    # Longer names first: a name may be part of another.
    ordered = sorted(isolated, key=lambda name: (-len(name), name))
    pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def isolate(text: str) -> str:
        text = replace_hidden(text)
        if text in isolated or pattern is None:
            return text
        return pattern.sub(lambda m: _FIRST_STRONG_ISOLATE + m[0] + _POP_ISOLATE, text)

    return isolate


def _has_right_to_left(text: str) -> bool:
    return not text.isascii() and any(unicodedata.bidirectional(c) in _RIGHT_TO_LEFT for c in text)


def require_templates() -> None:
    """Raise an error that names the extra to install if jinja2 is missing."""
    import_extra("jinja2", "writing pages", "report")


def render_page(template: str, *, names: Iterable[str] = (), **content: object) -> str:
    """Return a page as text.

    Parameters
    ----------
    template : str
        File name in ``templates``; most extend "page.html.jinja", which defines the style and
        forbids scripts and external resources.
    names : iterable of str
        Names that sentences may quote; right-to-left names are isolated.
    **content
        Variables of the template. Text is escaped, and hidden characters are made visible.
    """
    require_templates()
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup, escape

    isolate = name_isolator(names)

    def finalize(value: object) -> object:
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        text = isolate(value)
        if "`" not in text:
            return text
        return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(text))))

    environment = Environment(
        loader=FunctionLoader(read_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=finalize,
    )
    # For text to be copied: hidden characters visible, no isolating characters.
    environment.filters["visible"] = replace_hidden
    environment.filters["number"] = partial(format_number, grouped=True)
    return environment.get_template(template).render(**content)


def write_page(text: str, path: str | Path) -> Path:
    """Write a page atomically and return its path."""
    target = Path(path)
    try:
        handle, part = tempfile.mkstemp(dir=target.parent, prefix=".hidag-", suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            os.chmod(part, 0o644)
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as error:
        raise FileError(
            "cannot-write-file",
            "cannot write the page to '{path}': {reason}",
            path=target,
            reason=error.strerror or error,
        ) from error
    return target


def data_uri(png: bytes) -> str:
    """Return a PNG image as a data URI."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
