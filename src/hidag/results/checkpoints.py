"""Finished fits of a long command, stored so that it resumes after it was killed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from hidag.exceptions import FileError, HidagError
from hidag.results.fit_result import FitResult
from hidag.results.saved_result import load, versions_used, write_result

_FOLDER: ContextVar[Path | None] = ContextVar("_FOLDER", default=None)


@contextmanager
def resumable(out: Path | None) -> Iterator[None]:
    """Store the fits made inside, hidden beside the folder ``out``, until it is left.

    They remain if the process ends inside, for the same command to read; an error that the command
    reports would be the same again.
    """
    folder = None
    if out is not None:
        place = out.resolve()
        folder = place.with_name(f".{place.name}.hidag-resume")
    token = _FOLDER.set(folder)
    try:
        yield
    except HidagError:
        _remove(folder)
        raise
    else:
        _remove(folder)
    finally:
        _FOLDER.reset(token)


def _remove(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def resumed_fit(
    compute: Callable[[], FitResult], facts: Mapping[str, Any], arrays: Sequence[Any]
) -> FitResult:
    """Return a fit: the stored one that the same inputs determined, or the computed one.

    ``facts`` are plain values and ``arrays`` are numbers: all that determines the fit.
    """
    folder = _FOLDER.get()
    if folder is None:
        return compute()
    key = hashlib.sha256(json.dumps([facts, versions_used()], sort_keys=True).encode())
    for array in arrays:
        numbers = np.ascontiguousarray([] if array is None else array)
        key.update(f"{numbers.shape}{numbers.dtype}".encode() + numbers.tobytes())
    file = folder / f"{key.hexdigest()}.npz"
    with suppress(FileError):  # None, or damaged: it is fitted again.
        return load(file)
    found = compute()
    with suppress(OSError):  # The fit goes on without a checkpoint.
        folder.mkdir(exist_ok=True)
        write_result(found, file)
    return found
