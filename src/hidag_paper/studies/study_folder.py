"""Folder of a study: its settings, the requested replicates, and the rows so far."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hidag.exceptions import Advice, FileError, Setting, SettingError
from hidag.files import cannot_write, read_json, write_file
from hidag.fitting.settings import plain_value
from hidag.results import versions_used
from hidag_paper.studies.catalogue import Plan
from hidag_paper.studies.cells import Cell
from hidag_paper.studies.rows import MERGE_AT, VARYING, Row, add_run, merge_runs, read_rows
from hidag_paper.studies.summary import Published

_FORMAT = "hidag-study"
_VERSION = 2
SETTINGS_FILE, ROWS_FOLDER = "study.json", "rows"
#: Settings that determine the rows; cells and replicates are part of the addresses.
_ROW_SETTINGS = ("study", "design", "seed", "estimator", "hidag")
_ANOTHER_FOLDER = Advice("another-folder", "choose another folder")


@dataclass(frozen=True)
class StudyFolder:
    """A study on disk.

    Attributes
    ----------
    path : Path
    settings : mapping
        ``study``, ``design``, ``seed``, ``estimator`` and the version of ``hidag``.
    asked : mapping from (cell, method) to int
        Requested replicates of each cell, over all runs of the command.
    published : mapping
        Published means, if given.
    """

    path: Path
    settings: Mapping[str, Any]
    asked: Mapping[tuple[Cell, str], int]
    published: Published

    def rows(self) -> list[Row]:
        """Return the rows so far, by address, method and rule."""
        return read_rows(self.path / ROWS_FOLDER)

    def add(self, run: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add the rows of a completed run."""
        add_run(self.path / ROWS_FOLDER, run, rows)
        merge_runs(self.path / ROWS_FOLDER, at=MERGE_AT)

    def merge(self) -> None:
        """Merge the files of rows into one."""
        merge_runs(self.path / ROWS_FOLDER)


def open_folder(path: Path, plan: Plan, published: Published | None = None) -> StudyFolder:
    """Open or create the folder of a plan, which may extend the same study.

    Parameters
    ----------
    path : Path
    plan : Plan
    published : mapping, optional
        In addition to those in the folder.

    Raises
    ------
    SettingError
        If the folder contains a study with other settings.
    """
    wanted = _row_settings(plan)
    asked = {(cell, method): plan.replicates for cell in plan.cells for method in plan.methods}
    known = dict(published or {})
    if (path / SETTINGS_FILE).exists():
        before = read_folder(path)
        _check_settings(path, before.settings, wanted)
        asked = {**before.asked, **{c: max(r, before.asked.get(c, 0)) for c, r in asked.items()}}
        known = {**before.published, **known}
    elif (path / ROWS_FOLDER).exists():
        raise FileError(
            "missing-settings",
            "{path} has {rows} but no {settings}, so that the origin of the rows is unknown",
            advice=_ANOTHER_FOLDER,
            path=path,
            rows=ROWS_FOLDER,
            settings=SETTINGS_FILE,
        )
    folder = StudyFolder(path, wanted, asked, known)
    try:
        path.mkdir(parents=True, exist_ok=True)
        _write_settings(folder)
        folder.merge()
    except FileError:
        raise
    except OSError as error:
        raise cannot_write(path, error) from error
    return folder


def read_folder(path: Path) -> StudyFolder:
    """Read the folder of a study."""
    file = path / SETTINGS_FILE
    if not file.is_file():
        raise FileError(
            "not-a-study",
            "{path} is not the folder of a study: it has no {settings}",
            path=path,
            settings=SETTINGS_FILE,
        )
    try:
        content = read_json(file)
        if content["format"] != _FORMAT or content["version"] != _VERSION:
            raise KeyError("format")
        return StudyFolder(
            path,
            {name: content[name] for name in _ROW_SETTINGS},
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
            "invalid-file",
            "{file} is damaged or was not written by this version of hidag study",
            advice=_ANOTHER_FOLDER,
            file=file,
        ) from error


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Prevent a second process from writing to the same folder.

    The lock ends with the process. Systems without ``fcntl`` have no lock.
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
        raise cannot_write(path, error) from error
    with lock as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileError(
                "locked-folder",
                "another process is writing a study to {path}",
                advice=Advice("wait-or-move", "wait until it ends, or choose another folder"),
                path=path,
            ) from None
        yield


def _row_settings(plan: Plan) -> dict[str, Any]:
    return {
        "study": plan.study,
        "design": plan.design,
        "seed": plan.seed,
        "estimator": plain_value(plan.estimator),
        "hidag": versions_used()["hidag"],
    }


def _check_settings(path: Path, there: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name in _ROW_SETTINGS:
        if there[name] != wanted[name]:
            raise SettingError(
                "other-settings",
                "{path} contains a study with {found}, but {value} was requested",
                advice=Advice(
                    "same-settings", "repeat the settings to resume it, or choose another folder"
                ),
                path=path,
                found=Setting(name, there[name]),
                value=json.dumps(wanted[name]),
            )


def _write_settings(folder: StudyFolder) -> None:
    """Write the settings."""
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
    write_file(folder.path / SETTINGS_FILE, json.dumps(content, indent=1) + "\n")
