"""Names of files with tables: which endings are known, which file of a folder is meant."""

from __future__ import annotations

import difflib
from pathlib import Path

from hidag.errors import FileError

TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
BINARY_ENDINGS = (".parquet",)


def find_part(folder: Path, stem: str) -> Path | None:
    """Return the one file in the folder with this name and a known ending, or None."""
    found = [
        file
        for ending in (*TEXT_ENDINGS, *BINARY_ENDINGS)
        if (file := folder / f"{stem}{ending}").is_file()
    ]
    if len(found) > 1:
        raise FileError(
            f"the folder {folder} must hold {stem} once, but it holds "
            f"{' and '.join(file.name for file in found)}; remove all but one"
        )
    return found[0] if found else None


def existing_file(path: Path) -> Path:
    """Return the path if it is a file of a known format."""
    if path.is_dir():
        raise FileError(f"{path} is a folder, expected a file; use read_folder for a folder")
    if not path.exists():
        raise FileError(f"there is no file {path}{near_names(path)}")
    if not ending_of(path):
        known = ", ".join((*TEXT_ENDINGS, *BINARY_ENDINGS))
        raise FileError(f"{path} must end in one of {known}; convert it to CSV or Parquet")
    if path.stat().st_size == 0:
        raise FileError(
            f"{path} is empty; expected a line with the names of the items and one line per sample"
        )
    return path


def ending_of(path: Path) -> str:
    """Return the known ending of a file name, '' if it has none."""
    name = path.name.lower()
    return next((end for end in (*TEXT_ENDINGS, *BINARY_ENDINGS) if name.endswith(end)), "")


def near_names(path: Path) -> str:
    """Return a hint at the names in the same folder that look alike."""
    if not path.parent.is_dir():
        return f"; the folder {path.parent} does not exist either"
    names = [entry.name for entry in path.parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=2)
    return f"; did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
