"""What is known beforehand, as options and as a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hidag.discover import Knowledge
from hidag.errors import FileError, SettingError


def read_knowledge(
    file: Path | None,
    required: Sequence[str],
    forbidden: Sequence[str],
    tiers: str | None,
    hierarchy: Sequence[str],
) -> Knowledge | None:
    """Return what options and a file say together; None if they say nothing.

    Parameters
    ----------
    file : Path or None
        JSON with the lists required, forbidden, tiers and hierarchy, as `Knowledge.to_dict` writes.
    required, forbidden, hierarchy : sequence of str
        Such as "A->B", several with commas.
    tiers : str or None
        Such as "A,B;C": A and B before C.
    """
    told = Knowledge() if file is None else _read_file(file)
    levels = [
        tuple(name.strip() for name in tier.split(",") if name.strip())
        for tier in (tiers or "").split(";")
        if tier.strip()
    ]
    if levels and told.tiers:
        raise SettingError(f"tiers are in {file} and in --tiers; say them once")
    whole = Knowledge(
        (*told.required, *_arrows(required, "--require")),
        (*told.forbidden, *_arrows(forbidden, "--forbid")),
        tuple(levels) or told.tiers,
        (*told.hierarchy, *_arrows(hierarchy, "--hierarchy")),
    )
    return whole if whole.to_dict() else None


def _arrows(texts: Sequence[str], option: str) -> list[tuple[str, str]]:
    out = []
    for text in texts:
        for part in text.split(","):
            a, arrow, b = part.partition("->")
            if not arrow or not a.strip() or not b.strip() or "->" in b:
                raise SettingError(f"{option} takes CAUSE->EFFECT, such as 'Z1->Z2', got {part!r}")
            out.append((a.strip(), b.strip()))
    return out


def _read_file(path: Path) -> Knowledge:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or error
        raise FileError(f"cannot read the knowledge in {path}: {words}") from error
    except json.JSONDecodeError as error:
        raise FileError(
            f"{path} is not JSON ({error}); it should look like "
            '{"required": [["Z1", "Z2"]], "tiers": [["Z1"], ["Z2", "Z3"]]}'
        ) from error
    return Knowledge.from_dict(content)
