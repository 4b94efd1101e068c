"""Pages: HTML files that hold all they show, made from templates beside this module."""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Iterable
from functools import partial
from importlib.resources import files
from pathlib import Path

from hidag.errors import FileError
from hidag.extras import import_extra
from hidag.report.direction import keeper_of
from hidag.shown_numbers import shown_number
from hidag.shown_text import visible

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
    environment.filters["visible"] = visible
    environment.filters["number"] = partial(shown_number, grouped=True)
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
    return files("hidag.report").joinpath(name).read_text(encoding="utf-8")
