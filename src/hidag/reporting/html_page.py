"""Self-contained HTML pages, rendered from the templates in the folder ``templates``."""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import partial
from importlib.resources import files
from typing import Any

from hidag.exceptions import import_extra
from hidag.formatting import format_number, replace_hidden

_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"
#: Bidirectional classes of right-to-left letters and digits.
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})


def read_asset(name: str) -> str:
    """Return the text of a template or a script."""
    return files("hidag.reporting").joinpath("templates", name).read_text(encoding="utf-8")


def name_isolator(names: Iterable[str]) -> Callable[[str], str]:
    """Return a function that makes hidden characters visible and isolates right-to-left names.

    A name alone is not isolated, so that it can be copied; templates have it in a ``bdi`` element.
    """

    def is_right_to_left(name: str) -> bool:
        return any(unicodedata.bidirectional(letter) in _RIGHT_TO_LEFT for letter in name)

    isolated = set(filter(is_right_to_left, map(replace_hidden, names)))
    # Longer names first: a name may be part of another.
    ordered = sorted(isolated, key=lambda name: (-len(name), name))
    pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def isolate(text: str) -> str:
        text = replace_hidden(text)
        if text in isolated or pattern is None:
            return text
        return pattern.sub(lambda m: _FIRST_STRONG_ISOLATE + m[0] + _POP_ISOLATE, text)

    return isolate


def require_templates() -> None:
    """Raise an error that names the extra to install if jinja2 is missing."""
    import_extra("jinja2", "writing pages", "report")


def render_page(template: str, *, names: Iterable[str] = (), **content: object) -> str:
    """Return a page as text, from a file in ``templates``.

    Text in the variables is escaped, hidden characters are made visible, and right-to-left
    ``names`` that sentences quote are isolated.
    """
    require_templates()
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup, escape

    isolate = name_isolator(names)
    # Names come first: a name that looks like a command is none.
    quoted = [re.escape(escape(replace_hidden(name))) for name in names if "`" in name]
    command = re.compile("|".join([*quoted, "`(hidag [^`]+)`"]))

    def finalize(value: object) -> object:
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        mark = partial(command.sub, lambda m: f"<code>{m[1]}</code>" if m[1] else m[0])
        return Markup(mark(str(escape(isolate(value)))))

    escaping: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "finalize": finalize}
    environment = Environment(
        loader=FunctionLoader(read_asset), undefined=StrictUndefined, **escaping
    )
    # For text to be copied: hidden characters visible, no isolating characters.
    environment.filters["visible"] = replace_hidden
    environment.filters["number"] = partial(format_number, grouped=True)
    return environment.get_template(template).render(**content)


def data_uri(png: bytes) -> str:
    """Return a PNG image as a data URI."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
