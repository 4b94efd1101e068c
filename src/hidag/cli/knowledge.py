"""What is known beforehand, as options and as a file."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path

from hidag.cli.named_parts import read_arrows, split_known
from hidag.discover import Knowledge
from hidag.errors import FileError, SettingError


def read_knowledge(
    file: Path | None,
    required: Sequence[str],
    forbidden: Sequence[str],
    tiers: str | None,
    hierarchy: Sequence[str],
    names: Collection[str] = (),
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
    names : collection of str
        Of the latents, where they are known beforehand: their commas part nothing.
    """
    told = Knowledge() if file is None else _read_file(file)
    levels = [
        tuple(name for name in split_known(tier, lambda part: part in names) if name)
        for tier in (tiers or "").split(";")
        if tier.strip()
    ]
    if levels and told.tiers:
        raise SettingError(f"tiers are in {file} and in --tiers; say them once")
    whole = Knowledge(
        (*told.required, *read_arrows(required, "--require", names)),
        (*told.forbidden, *read_arrows(forbidden, "--forbid", names)),
        tuple(levels) or told.tiers,
        (*told.hierarchy, *read_arrows(hierarchy, "--hierarchy", names)),
    )
    return whole if whole.to_dict() else None


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
