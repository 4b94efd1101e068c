"""Files and folders that change as a whole: written beside their place, then swapped in.

An interruption at any moment leaves either what was there or what is new. A folder may hold other
files, so it is not renamed itself: its new files are completed in a folder inside it, one rename
makes them valid, and whoever opens the folder next finishes moving them if that was interrupted.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hidag.exceptions import Advice, FileError
from hidag.files.json_text import read_json

#: The content of a file: as it is (text in UTF-8), or a function that writes it to a path.
Content = bytes | str | Callable[[Path], object]

_PART = ".hidag-part-"  # Prefix of folders whose files are not complete.
_SWAP = ".hidag-swap"  # Complete files of a folder that are being moved into it.
_OBSOLETE = ".obsolete.json"  # In the latter: names of files that are removed from the folder.
_STALE_SECONDS = 600.0  # Age from which an incomplete folder was left by a killed process.


def write_file(path: str | Path, content: Content) -> Path:
    """Write a file beside its place, swap it in, and return its path.

    Through a link its target is replaced; devices and pipes are written directly.
    """
    given = Path(path)
    try:
        if _is_stream(given):
            _write(given, content)
            return given
        target = given.resolve()
        with _part_folder(target.parent) as part:
            new = part / target.name
            _write(new, content)
            if target.exists():
                shutil.copymode(target, new)
            _swap(new, target)
    except OSError as error:
        raise cannot_write(given, error) from error
    return given


def fill_folder(folder: Path, files: Mapping[str, Content], known: Iterable[str] = ()) -> list[str]:
    """Replace files of a folder as a whole, created if needed; return the names of removed ones.

    The last of ``files`` marks a complete folder. ``known`` files, which an earlier run may have
    left, are removed unless they are written now.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        complete_folder(folder)
        with _part_folder(folder) as part:
            for name, write in files.items():
                _write(part / name, write)
            removed = [n for n in known if n not in files and (folder / n).is_file()]
            _write(part / _OBSOLETE, json.dumps({"moved": list(files), "removed": removed}))
            _swap(part, folder / _SWAP)
        try:
            complete_folder(folder)
        except BaseException:
            complete_folder(folder)  # A signal must not leave half of the files.
            raise
    except OSError as error:
        raise cannot_write(folder, error) from error
    return removed


def complete_folder(folder: Path) -> None:
    """Finish moving the files of a folder whose replacement was interrupted, if it was."""
    swap = folder / _SWAP
    if not swap.is_dir():
        return
    try:
        names = read_json(swap / _OBSOLETE)
        moved, removed = ([Path(n).name for n in names[part]] for part in ("moved", "removed"))
        for name in removed:
            (folder / name).unlink(missing_ok=True)
        for name in moved:
            if (swap / name).exists():
                os.replace(swap / name, folder / name)
    except FileNotFoundError:
        pass  # Another process has finished it, or all is moved but the folder not removed.
    except (OSError, ValueError, KeyError, TypeError) as error:
        template = "{folder} was being replaced when a command was interrupted: {reason}"
        advice = "write the results again, into another folder"
        reason = getattr(error, "strerror", None) or "its folder {swap} is damaged"
        params = {"folder": folder, "reason": str(reason).format(swap=_SWAP)}
        raise FileError("interrupted-folder", template, params, advice=advice) from error
    shutil.rmtree(swap, ignore_errors=True)


def cannot_write(path: Path, error: OSError) -> FileError:
    """Return the error that a file or folder cannot be written; that of a part names the whole."""
    reason = error.params.get("reason") if isinstance(error, FileError) else error.strerror
    template = "cannot write {path}: {reason}"
    advice = Advice("another-place", "choose another place")
    params = {"path": path, "reason": reason or str(error)}
    return FileError("cannot-write", template, params, advice=advice)


@contextmanager
def _part_folder(parent: Path) -> Iterator[Path]:
    """Yield an empty folder for incomplete files, removed afterwards; and those of killed runs."""
    for old in parent.glob(f"{_PART}*"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(old, ignore_errors=True)
    part = Path(tempfile.mkdtemp(dir=parent, prefix=_PART))
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _is_stream(path: Path) -> bool:
    """Return whether a path is a device, a pipe or an open stream of this process."""
    standard = path.is_symlink() and str(path) in ("/dev/stdout", "/dev/stderr")
    opened = str(path.parent.resolve()).startswith("/proc/")
    return standard or opened or (path.exists() and not path.is_file())


def _write(path: Path, content: Content) -> None:
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    with suppress(OSError), path.open("rb+") as stream:
        os.fsync(stream.fileno())


def _swap(new: Path, target: Path) -> None:
    """Rename, and wait until the entry is on the disk, where the system supports it."""
    os.replace(new, target)
    with suppress(OSError):
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
