"""Result folders: checked before the work, filled at once after it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from hidag.exceptions import FileError

#: Writes one file at the path it is given.
Writer = Callable[[Path], object]

#: The file that tells a folder with a fit.
FIT_SIGN = "result.npz"
_STAGE = ".hidag-part-"


def check_folder(
    folder: Path,
    names: Iterable[str],
    inputs: Iterable[Path | None] = (),
    *,
    sign: str | None = None,
) -> None:
    """Make sure that files can be written into a folder, before any long work.

    A folder that is not there yet is not there afterwards either: work that is refused later on
    leaves nothing behind.

    Parameters
    ----------
    folder : Path
    names : iterable of str
        Of the files that may be written.
    inputs : iterable of Path or None
        Files that were read; none of them may be among those that will be written.
    sign : str, optional
        The file that tells a folder we filled before, whose files may be written anew. Without it
        there, files of our names are somebody else's and stay.

    Raises
    ------
    FileError
        If it cannot be made or written to, or a file that is not ours would be overwritten.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        finally:
            for path in made:
                with suppress(OSError):
                    path.rmdir()
    except OSError as error:
        raise FileError(
            f"cannot write into the folder {folder}: {error.strerror or error}; choose another one "
            "with --out"
        ) from error
    read = [path for path in inputs if path is not None]
    for name in names:
        target = (folder / name).resolve()
        if is_one_of(target, read):
            raise FileError(
                f"the results would overwrite {folder / name}, which this command reads; choose "
                "another folder with --out"
            )
        if target.is_dir():
            raise FileError(f"cannot write {folder / name}: there is a folder of that name")
        if sign is not None and target.exists() and not (folder / sign).exists():
            raise FileError(
                f"the results would overwrite {folder / name}, which no earlier run has written; "
                "choose another folder with --out"
            )


def is_one_of(target: Path, files: Iterable[Path]) -> bool:
    """Return whether a path leads to one of these files, links of either kind followed."""
    for file in files:
        if target.resolve() == file.resolve():
            return True
        if target.exists() and file.exists() and target.samefile(file):
            return True
    return False


def fill_folder(folder: Path, files: Mapping[str, Writer], known: Iterable[str]) -> list[Path]:
    """Write all files aside, then move each to its place, and return their paths.

    The folder is made if need be.

    Parameters
    ----------
    folder : Path
    files : mapping from name to writer
        Moved in this order, so that the last one tells that the others are there.
    known : iterable of str
        Names that an earlier run may have left; those not written now are removed, so that no
        folder holds files of two runs.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(dir=folder, prefix=_STAGE))
        try:
            for name, write in files.items():
                write(stage / name)
            for name in known:
                if name not in files:
                    (folder / name).unlink(missing_ok=True)
            written = []
            for name in files:
                os.replace(stage / name, folder / name)
                written.append(folder / name)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    except OSError as error:
        raise FileError(
            f"cannot write into the folder {folder}: {error.strerror or error}; choose another one "
            "with --out"
        ) from error
    return written
