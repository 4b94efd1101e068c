"""The folder of a study: what was asked for, and the rows so far."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hidag.exceptions import FileError, SettingError
from hidag.fitting.settings import plain_value
from hidag.results import versions_used
from hidag_paper.studies.catalogue import Plan
from hidag_paper.studies.cells import Cell
from hidag_paper.studies.rows import MERGE_AT, VARYING, Row, add_run, merge_runs, read_rows
from hidag_paper.studies.summary import Published

_FORMAT = "hidag-study"
_VERSION = 2
SETTINGS_FILE, ROWS_FOLDER = "study.json", "rows"
#: What decides the contents of rows. Cells and replicates do not: rows have their addresses.
_DECISIVE = ("study", "design", "seed", "estimator", "hidag")
#: The options that set them, for the sentence of a refusal.
_IN_WORDS = {"study": "study", "design": "--design", "seed": "--seed", "hidag": "hidag"}


@dataclass(frozen=True)
class StudyFolder:
    """A study on disk.

    Attributes
    ----------
    path : Path
    settings : mapping
        ``study``, ``design``, ``seed``, ``estimator`` and the version of ``hidag``.
    asked : mapping from (cell, method) to int
        How many replicates of each cell were asked for, all runs of the command together.
    published : mapping
        Published means, where they were given.
    """

    path: Path
    settings: Mapping[str, Any]
    asked: Mapping[tuple[Cell, str], int]
    published: Published

    def rows(self) -> list[Row]:
        """Return the rows so far, by address, method and rule."""
        return read_rows(self.path / ROWS_FOLDER)

    def add(self, run: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add the rows of a run that has ended."""
        add_run(self.path / ROWS_FOLDER, run, rows)
        merge_runs(self.path / ROWS_FOLDER, at=MERGE_AT)

    def tidy(self) -> None:
        """Merge what is in several files into one."""
        merge_runs(self.path / ROWS_FOLDER)


def open_folder(path: Path, plan: Plan, published: Published | None = None) -> StudyFolder:
    """Return the folder of a plan, made if need be; more of the same study may be asked for.

    Parameters
    ----------
    path : Path
    plan : Plan
    published : mapping, optional
        None leaves what the folder knows already.

    Raises
    ------
    SettingError
        If the folder holds a study with other settings: its rows could not be told apart.
    """
    wanted = _settings_of(plan)
    asked = {(cell, method): plan.replicates for cell in plan.cells for method in plan.methods}
    known = dict(published or {})
    if (path / SETTINGS_FILE).exists():
        before = read_folder(path)
        _refuse_others(path, before.settings, wanted)
        asked = {**before.asked, **{c: max(r, before.asked.get(c, 0)) for c, r in asked.items()}}
        known = {**before.published, **known}
    elif (path / ROWS_FOLDER).exists():
        raise FileError(
            f"{path} has {ROWS_FOLDER} but no {SETTINGS_FILE}, so nobody can tell how they "
            "were made; choose another folder with --out"
        )
    folder = StudyFolder(path, wanted, asked, known)
    try:
        path.mkdir(parents=True, exist_ok=True)
        _write_settings(folder)
        folder.tidy()
    except FileError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from error
    return folder


def read_folder(path: Path) -> StudyFolder:
    """Return a folder that a study was run into."""
    file = path / SETTINGS_FILE
    if not file.is_file():
        raise FileError(
            f"{path} holds no study: expected a {SETTINGS_FILE} there, as hidag study writes it"
        )
    try:
        content = json.loads(file.read_text("utf-8"))
        if content["format"] != _FORMAT or content["version"] != _VERSION:
            raise KeyError("format")
        return StudyFolder(
            path,
            {name: content[name] for name in _DECISIVE},
            {
                (Cell.named(name), method): int(count)
                for name, counts in content["replicates"].items()
                for method, count in counts.items()
            },
            {
                (Cell.named(entry["cell"]), entry["method"], entry["f_n"]): float(entry["mean"])
                for entry in content["published"]
            },
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(
            f"{file} was not written by hidag study as it is today, or it is damaged; choose "
            "another folder"
        ) from error


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Keep a second process from running the same study into the same folder.

    The lock dies with the process, however it ends. Where the system has no such locks, nothing
    is locked.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / ".lock").open("w")
    except OSError as error:
        raise _unwritable(path, error) from error
    with lock as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileError(
                f"another process is running a study into {path}; wait until it ends, or choose "
                "another folder with --out"
            ) from None
        yield


def _unwritable(path: Path, error: OSError) -> FileError:
    return FileError(
        f"cannot write into the folder {path}: {error.strerror or error}; choose another one with "
        "--out"
    )


def _settings_of(plan: Plan) -> dict[str, Any]:
    return {
        "study": plan.study,
        "design": plan.design,
        "seed": plan.seed,
        "estimator": plain_value(plan.estimator),
        "hidag": versions_used()["hidag"],
    }


def _refuse_others(path: Path, there: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    other = [name for name in _DECISIVE if there[name] != wanted[name]]
    if not other:
        return
    said = [f"{_IN_WORDS.get(name, name)} {_shown(there[name])}" for name in other]
    asked = [_shown(wanted[name]) for name in other]
    raise SettingError(
        f"{path} holds a study with {', '.join(said)}, but {', '.join(asked)} was asked for; "
        "repeat the settings to go on with it, or choose another folder with --out"
    )


def _shown(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _write_settings(folder: StudyFolder) -> None:
    """Write the settings aside and move them into place, so that they are never half there."""
    replicates: dict[str, dict[str, int]] = {}
    for (cell, method), count in folder.asked.items():
        replicates.setdefault(cell.name, {})[method] = count
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        **folder.settings,
        "replicates": replicates,
        "varying_columns": VARYING,
        "published": [
            {"cell": cell.name, "method": method, "f_n": rule, "mean": mean}
            for (cell, method, rule), mean in folder.published.items()
        ],
    }
    aside = folder.path / f"{SETTINGS_FILE}.part"
    aside.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    os.replace(aside, folder.path / SETTINGS_FILE)
