"""Output folders: checked before the computation, filled atomically after it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from hidag.exceptions import FileError

#: Writes one file at the given path.
Writer = Callable[[Path], object]

#: The file that identifies the folder of a fit.
FIT_SIGN = "result.npz"
_STAGE = ".hidag-part-"


def check_folder(
    folder: Path,
    names: Iterable[str],
    inputs: Iterable[Path | None] = (),
    *,
    sign: str | None = None,
) -> None:
    """Check, before any long computation, that files can be written into a folder.

    A folder that does not exist is not created yet.

    Parameters
    ----------
    folder : Path
    names : iterable of str
        Files that may be written.
    inputs : iterable of Path or None
        Files that the command reads and must not overwrite.
    sign : str, optional
        The file that identifies a folder of an earlier run. Without it in the folder, existing
        files with these names are not overwritten.

    Raises
    ------
    FileError
        If the folder cannot be written to, or a file would be overwritten.
    """
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        finally:
            for path in created:
                with suppress(OSError):
                    path.rmdir()
    except OSError as error:
        raise _cannot_write(folder, error) from error
    read = [path for path in inputs if path is not None]
    for name in names:
        target = (folder / name).resolve()
        if is_one_of(target, read):
            raise FileError(
                "overwrites-input",
                "the results would overwrite {path}, which this command reads",
                advice="choose another folder with --out",
                path=folder / name,
            )
        if target.is_dir():
            raise FileError(
                "is-folder",
                "cannot write {path}: there is a folder of that name",
                path=folder / name,
            )
        if sign is not None and target.exists() and not (folder / sign).exists():
            raise FileError(
                "overwrites-other-file",
                "the results would overwrite {path}, which no earlier run has written",
                advice="choose another folder with --out",
                path=folder / name,
            )


def _cannot_write(folder: Path, error: OSError) -> FileError:
    return FileError(
        "cannot-write-folder",
        "cannot write into the folder {folder}: {reason}",
        advice="choose another one with --out",
        folder=folder,
        reason=error.strerror or error,
    )


def is_one_of(target: Path, files: Iterable[Path]) -> bool:
    """Return whether a path leads to one of these files, also through links."""
    for file in files:
        if target.resolve() == file.resolve():
            return True
        if target.exists() and file.exists() and target.samefile(file):
            return True
    return False


def fill_folder(folder: Path, files: Mapping[str, Writer], known: Iterable[str]) -> list[Path]:
    """Write files into a temporary folder, move them to their folder and return their paths.

    Parameters
    ----------
    folder : Path
        Created if needed.
    files : mapping from name to writer
        Moved in this order, so that the last one marks a complete folder.
    known : iterable of str
        Files that an earlier run may have left; those not written now are removed.
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
            for name in files:
                os.replace(stage / name, folder / name)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    return [folder / name for name in files]
