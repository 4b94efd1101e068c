"""Pages: HTML files that hold all they show, made from templates beside this module."""

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

# --- Names that run from right to left turn nothing around but themselves, and hidden ones

_FIRST_STRONG, _END_OF_ISOLATE = "\u2068", "\u2069"
#: Bidirectional classes of letters that may change the order of what is around them.
_FROM_THE_RIGHT = frozenset({"R", "AL", "AN"})


def turns(text: str) -> bool:
    """Return whether a text holds letters that can change the order of their neighbours."""
    return not text.isascii() and any(unicodedata.bidirectional(c) in _FROM_THE_RIGHT for c in text)


def keeper_of(names: Iterable[str]) -> Callable[[str], str]:
    """Return a function that makes hidden characters seen and keeps turning names in themselves.

    A name alone gets nothing around it, so that it can be copied from a page: there an element of
    its own has to keep it in.

    Parameters
    ----------
    names : iterable of str
        Of items and latents, as texts may quote them.
    """
    # Longer ones first: a name may be part of another.
    alone = {name for name in map(replace_hidden, names) if turns(name)}
    turning = sorted(alone, key=lambda name: (-len(name), name))
    pattern = re.compile("|".join(map(re.escape, turning))) if turning else None

    def keep(text: str) -> str:
        text = replace_hidden(text)
        if text in alone or pattern is None:
            return text
        return pattern.sub(lambda m: _FIRST_STRONG + m[0] + _END_OF_ISOLATE, text)

    return keep


# ---

#: A command, as sentences that are also printed write it.
_COMMAND = re.compile(r"`(hidag [^`]+)`")


def require_templates() -> None:
    """Say how to install jinja2, which brings markupsafe with it, if it is not there."""
    import_extra("jinja2", "writing pages", "report")


def render_page(template: str, *, names: Iterable[str] = (), **content: object) -> str:
    """Return a page as text.

    Parameters
    ----------
    template : str
        File name of a template beside this module; most extend "page.html.jinja", which has the
        looks of all pages and forbids scripts and anything from outside.
    names : iterable of str
        Names that sentences may quote; those written from right to left leave their neighbours in
        order.
    **content
        What the template shows. Text is escaped wherever it stands, and hidden characters are
        shown as marks.
    """
    require_templates()
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup, escape

    keep = keeper_of(names)

    def finalize(value: object) -> object:
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        text = keep(value)
        if "`" not in text:
            return text
        return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(text))))

    environment = Environment(
        loader=FunctionLoader(_template_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=finalize,
    )
    # For what is to be copied: hidden characters are seen, and nothing is put around names.
    environment.filters["visible"] = replace_hidden
    environment.filters["number"] = partial(format_number, grouped=True)
    return environment.get_template(template).render(**content)


def write_page(text: str, path: str | Path) -> Path:
    """Write a page and return its path; the file appears whole or not at all."""
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
            f"cannot write the page to '{target}': {error.strerror or error}"
        ) from error
    return target


def as_data_address(png: bytes) -> str:
    """Return a PNG picture as an address that holds it, for a page without files beside it."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _template_text(name: str) -> str:
    return files("hidag.reporting").joinpath(name).read_text(encoding="utf-8")
