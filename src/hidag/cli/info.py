"""`hidag info`: versions, or a saved fit in words."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hidag.cli.console import columns, say, show_warning
from hidag.observations import shown_families
from hidag.versions import versions_used

_EXTRAS = ("pyarrow", "matplotlib", "jinja2", "typer", "rich")


def run_info(result: Path | None) -> None:
    """Carry out `hidag info`."""
    if result is None:
        _say_versions()
        return
    from hidag.cli.evaluate import load_result
    from hidag.cli.printed import say_result
    from hidag.report import concerns, what_was_fitted

    found = load_result(result)
    for sentence in what_was_fitted(found):
        say(sentence)
    say()
    say_result(found)
    say(f"\nseed {found.settings.get('seed')}, made with hidag {found.versions.get('hidag')}")
    for sentence in concerns(found):
        show_warning(sentence)


def _say_versions() -> None:
    known = versions_used()
    rows = [[name, known[name]] for name in ("hidag", *sorted(set(known) - {"hidag"}))]
    for name in _EXTRAS:
        try:
            rows.append([name, version(name)])
        except PackageNotFoundError:
            rows.append([name, "not installed"])
    rows.append(["families", ", ".join(shown_families())])
    for line in columns(rows):
        say(line)
