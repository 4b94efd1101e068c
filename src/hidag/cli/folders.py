"""Output folders: checked before the computation."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hidag.exceptions import FileError
from hidag.files import cannot_write, complete_folder

#: The file that identifies the folder of a fit.
FIT_SIGN = "result.npz"
#: Files of a fit; the last one marks a complete folder.
FIT_FILES = (
    "q.csv", "loadings.csv", "latent_law.csv", "latent_tables.csv", "graph.json", "graph.dot",
    "posterior.csv", "trace.csv", "q.png", "graph.png", "report.json", "report.html", FIT_SIGN,
)  # fmt: skip
#: Files of `hidag bootstrap`, beside those of the fit; the last one identifies the others.
BOOTSTRAP_FILES = (
    "edge_support.csv", "q_support.csv", "intervals.csv", "law_intervals.csv",
    "effect_intervals.csv", "bootstrap.npz",
)  # fmt: skip
#: Folder of the refits, so that a bootstrap can be resumed.
RESAMPLES = "resamples"


def check_folder(
    folder: Path, names: Iterable[str], inputs: Iterable[Path] = (), *, sign: str | None = None
) -> None:
    """Check, before any long computation, that files can be written into a folder.

    A folder that does not exist is not created yet. Files that the command reads are not
    overwritten, and others only if the folder has the ``sign`` of an earlier run.
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
        raise cannot_write(folder, error) from error
    complete_folder(folder)
    read = list(inputs)
    for name in names:
        target = (folder / name).resolve()
        if is_one_of(target, read):
            raise overwrite_error("overwrites-input", folder / name, "this command reads")
        if target.is_dir():
            template = "cannot write {path}: there is a folder of that name"
            raise FileError("is-folder", template, path=folder / name)
        if sign is not None and target.exists() and not (folder / sign).exists():
            origin = "no earlier run has written"
            raise overwrite_error("overwrites-other-file", folder / name, origin)


def overwrite_error(code: str, path: Path, origin: str, kind: str = "folder") -> FileError:
    """Return the error that results would overwrite a file, with advice to choose another place."""
    advice = f"choose another {kind} with --out"
    template = "the results would overwrite {path}, which {origin}"
    return FileError(code, template, advice=advice, path=path, origin=origin)


def is_one_of(target: Path, files: Iterable[Path]) -> bool:
    """Return whether a path leads to one of these files, also through links."""
    return any(
        target.resolve() == file.resolve()
        or (target.exists() and file.exists() and target.samefile(file))
        for file in files
    )
