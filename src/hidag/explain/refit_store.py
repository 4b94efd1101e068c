"""Where a bootstrap keeps its resamples while it runs, so that it can go on after a stop."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from hidag.archive import read_archive, write_archive
from hidag.errors import FileError, SettingError
from hidag.explain.refit import Refit
from hidag.explain.resample import Task
from hidag.settings import plain_value
from hidag.versions import versions_used

_SIGN = "bootstrap.json"
_HOLDS = "resample"
_NAMED = "resample-{}.npz"


class RefitStore:
    """A folder with one file for each resample that is done."""

    def __init__(self, path: Path, task: Task) -> None:
        self.path = path
        wanted = _signature(task)
        sign = path / _SIGN
        try:
            if sign.exists():
                _refuse_others(sign, wanted)
            path.mkdir(parents=True, exist_ok=True)
            _put(sign, json.dumps(wanted, indent=1).encode())
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(
                f"cannot write into the folder {path}: {error.strerror or error}; choose another "
                "one for the bootstrap"
            ) from error

    def read(self, index: int) -> Refit | str | None:
        """Return a resample that is done, the reason why it failed, or None if it is not done."""
        file = self._file(index)
        if not file.exists():
            return None
        try:
            header, arrays = read_archive(file, holds=_HOLDS)
        except FileError:
            return None  # torn when the machine went off: nothing is lost but its time
        if header["failure"] is not None:
            return str(header["failure"])
        # What an earlier state of the code kept may lack something: it is done again.
        whole = set(arrays) == {field.name for field in fields(Refit)}
        return Refit.of(arrays) if whole else None

    def write(self, index: int, found: Refit | str) -> None:
        """Keep a resample; the file is whole or not there."""
        file = self._file(index)
        aside = file.with_suffix(".part")
        failed = isinstance(found, str)
        arrays = {} if isinstance(found, str) else found.arrays()
        write_archive(aside, {"failure": found if failed else None}, arrays, holds=_HOLDS)
        os.replace(aside, file)

    def _file(self, index: int) -> Path:
        return self.path / _NAMED.format(f"{index:05d}")


def remove_refits(path: Path) -> bool:
    """Remove the resamples that a bootstrap kept in a folder, and return whether there were any.

    Other files there stay, and with them the folder.
    """
    if not (path / _SIGN).is_file():
        return False
    for file in (*path.glob(_NAMED.format("*")), path / _SIGN):
        file.unlink()
    if not any(path.iterdir()):
        path.rmdir()
    return True


def _signature(task: Task) -> dict[str, Any]:
    """Return what decides the contents of resamples: all but how many there are."""
    total = hashlib.sha256(np.ascontiguousarray(task.values).tobytes())
    if task.weights is not None:
        total.update(task.weights.tobytes())
    for array in (task.fit.intercept, task.fit.loadings, task.fit.q_matrix):
        total.update(np.ascontiguousarray(array).tobytes())
    settings = {name: plain_value(value) for name, value in task.settings.items()}
    if isinstance(task.settings.get("q_matrix"), np.ndarray):
        settings["q_matrix"] = task.settings["q_matrix"].tolist()
    return {
        "kind": task.kind,
        "start": task.start,
        "seed": task.seed,
        "table and fit": total.hexdigest()[:16],
        "settings": settings,
        "hidag": versions_used()["hidag"],
    }


def _refuse_others(sign: Path, wanted: dict[str, Any]) -> None:
    try:
        there = json.loads(sign.read_text("utf-8"))
        other = [name for name in wanted if there[name] != wanted[name]]
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{sign} was not written by a bootstrap, or it is damaged; choose another folder"
        ) from error
    if other:
        raise SettingError(
            f"{sign.parent} holds resamples of another bootstrap (other {', '.join(other)}); "
            "repeat what they were made with to go on, or choose another folder"
        )


def _put(path: Path, content: bytes) -> None:
    aside = path.with_suffix(".part")
    aside.write_bytes(content)
    os.replace(aside, path)
