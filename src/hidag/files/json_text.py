"""JSON that may have been edited, damaged or made by someone else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MAX_JSON_BYTES = 1 << 26  # Of a report, which lists all rows of its tables, a few MB.
_MAX_REASON = 160  # Characters of the reason why a file is damaged.


def read_json(content: bytes | Path) -> Any:
    """Return JSON from a file or its bytes; what is no JSON in UTF-8 is a ValueError."""
    if isinstance(content, Path):
        if content.stat().st_size > MAX_JSON_BYTES:
            raise ValueError(f"it has more than {MAX_JSON_BYTES >> 20} MB")
        content = content.read_bytes()

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no number of JSON")

    try:
        found = json.loads(content.decode("utf-8"), parse_constant=refuse)
        # Escapes can name half of a character, which no output can show.
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return found


def describe_damage(error: Exception) -> str:
    """Return what is wrong with a file as one short clause."""
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]!r:.60}"
    text = " ".join(f"{error}".split())
    return text[:_MAX_REASON] or type(error).__name__
