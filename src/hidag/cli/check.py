"""`hidag check`: what a Q-matrix allows to be identified."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hidag.cli.console import say
from hidag.errors import FileError
from hidag.identify import check_identifiability
from hidag.observations.folders import read_q, read_types
from hidag.observations.paths import existing_file, find_part

#: Commas inside parentheses belong to a family's own settings.
_BETWEEN_FAMILIES = re.compile(r",(?![^()]*\))")


def run_check(
    path: Path, levels: int | list[int], effects: str, families: str | None, *, as_json: bool
) -> None:
    """Carry out `hidag check`."""
    matrix = read_q(_q_file(path))
    certificate = check_identifiability(
        matrix,
        effects=effects,
        levels=levels,
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


def _families(text: str | None, matrix: Any) -> str | list[str] | dict[str, str] | None:
    if text is None:
        return None
    if text.lower().endswith((".csv", ".tsv", ".parquet")):
        items = tuple(str(name) for name in matrix.column(0).to_pylist())
        return dict(read_types(existing_file(Path(text)), items))
    names = [name.strip() for name in _BETWEEN_FAMILIES.split(text)]
    return names[0] if len(names) == 1 else names
