"""Single files that commands write: never over what they read, nor over part of a fit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hidag.cli.folders import FIT_SIGN, is_one_of
from hidag.cli.leftovers import BOOTSTRAP_FILES, goodness_files
from hidag.cli.tables import FIT_FILES
from hidag.errors import FileError
from hidag.observations.paths import find_part


def check_file(out: Path | None, inputs: Iterable[Path | None], *, own: Path | None = None) -> None:
    """Make sure, before any long work, that a file may be written.

    Parameters
    ----------
    out : Path or None
        The file that will be written; with None there is nothing to check.
    inputs : iterable of Path or None
        What the command reads: files, and folders with a fit or a table.
    own : Path, optional
        A file of a fit that the command itself is there to write.

    Raises
    ------
    FileError
        If the file is one of those read, by whatever name or link, or part of a fit, or there is
        no folder for it.
    """
    if out is None:
        return
    if not out.parent.is_dir():
        raise FileError(f"there is no folder {out.parent}; make it, or choose another --out")
    if is_one_of(out, [file for path in inputs if path is not None for file in files_read(path)]):
        raise FileError(
            f"the results would overwrite {out}, which this command reads; choose another file "
            "with --out"
        )
    # A link is followed: what it points at would be written over.
    target = out.resolve()
    if own is not None and target == own.resolve():
        return
    of_fit = (target.parent / FIT_SIGN).exists()
    if of_fit and target.name in (*FIT_FILES, *BOOTSTRAP_FILES, *goodness_files(target.parent)):
        raise FileError(
            f"the results would overwrite {out}, which belongs to the fit in {target.parent}; "
            "choose another file with --out"
        )


def files_read(path: Path) -> list[Path]:
    """Return the files that a command reads at a path: itself, or those of its folder."""
    if not path.is_dir():
        return [path]
    parts = [find_part(path, stem) for stem in ("responses", "types", "q")]
    if parts[0] is None:
        return [path / FIT_SIGN]
    return [part for part in parts if part is not None]
