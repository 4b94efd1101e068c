"""`hidag check`: what a Q-matrix allows to be identified."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hidag.cli.console import say
from hidag.errors import FileError, SettingError
from hidag.identify import check_identifiability
from hidag.observations.files import existing_file, find_part, read_q, read_types

#: Commas inside parentheses belong to a family's own settings.
_BETWEEN_FAMILIES = re.compile(r",(?![^()]*\))")


def run_check(
    path: Path, levels: str, effects: str, families: str | None, *, as_json: bool
) -> None:
    """Carry out `hidag check`."""
    matrix = read_q(_q_file(path))
    certificate = check_identifiability(
        matrix,
        effects=effects,
        levels=_levels(levels),
        families=_families(families, matrix),
    )
    say(json.dumps(certificate.to_dict(), indent=1) if as_json else certificate.summary())


def _q_file(path: Path) -> Path:
    if not path.is_dir():
        return existing_file(path)
    found = find_part(path, "q")
    if found is None:
        raise FileError(f"the folder {path} holds no q.csv; name the file with the Q-matrix")
    return found


def _levels(text: str) -> int | list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() for word in words):
        raise SettingError(
            f"--levels must be a whole number from 2 up, or one per latent with commas between "
            f"(2,3,2), got {text!r}"
        )
    numbers = [int(word) for word in words]
    return numbers[0] if len(numbers) == 1 else numbers


def _families(text: str | None, matrix: Any) -> str | list[str] | dict[str, str] | None:
    if text is None:
        return None
    if text.lower().endswith((".csv", ".tsv", ".parquet")):
        items = tuple(str(name) for name in matrix.column(0).to_pylist())
        return dict(read_types(existing_file(Path(text)), items))
    names = [name.strip() for name in _BETWEEN_FAMILIES.split(text)]
    return names[0] if len(names) == 1 else names
