"""Files of arrays with a JSON header: the format of saved results. Nothing is pickled."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.exceptions import Advice, FileError

Arrays = dict[str, NDArray[Any]]

#: Raised when the layout of saved files changes.
FORMAT_VERSION = 1
_PACKAGES = ("hidag", "numpy", "scipy", "numba", "scikit-learn", "networkx")


def versions_used() -> dict[str, str]:
    """Return the versions of hidag, Python and the numerical packages."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


@cache  # Reading package metadata takes milliseconds, and every fit asks for it.
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def write_archive(
    path: Path, header: Mapping[str, Any], arrays: Arrays, *, holds: str = "fit"
) -> None:
    """Write a zip file of arrays and a JSON header; NaN and infinity become null.

    Parameters
    ----------
    path : Path
    header : mapping
        Values that JSON can hold.
    arrays : dict from str to ndarray
        None of dtype object.
    holds : str
        Kind of the contents, part of the format name; `read_archive` checks it.
    """
    about = {"format": f"hidag-{holds}", "format_version": FORMAT_VERSION, "arrays": list(arrays)}
    full = {**about, **header}
    text = json.dumps(without_nan(full), ensure_ascii=False, allow_nan=False).encode("utf-8")
    # numpy before 2 takes `allow_pickle` as one more array to save, so the check is made here.
    pickled = [name for name, array in arrays.items() if np.asarray(array).dtype.hasobject]
    if pickled:
        raise ValueError(f"arrays of objects would have to be pickled: {', '.join(pickled)}")
    contents: dict[str, Any] = {"header": np.frombuffer(text, dtype=np.uint8), **arrays}
    try:
        with path.open("wb") as stream:
            np.savez_compressed(stream, **contents)
    except OSError as error:
        raise FileError(
            "result-not-written",
            "cannot write the result to '{path}': {reason}",
            {"path": path, "reason": error.strerror or error},
        ) from error


def read_archive(path: Path, *, holds: str = "fit") -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a file that `write_archive` wrote."""
    if not path.exists():
        raise FileError(
            "result-not-found",
            "no result at '{path}': expected a file written by {writer}",
            path=path,
            writer="result_.save(path)" if holds == "fit" else f"a {holds}'s save(path)",
        )
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header: dict[str, Any] = json.loads(arrays.pop("header").tobytes().decode("utf-8"))
        if header["format"] != f"hidag-{holds}" or int(header["format_version"]) < 1:
            raise KeyError("format")
        # Checksums of a zip file do not cover the names. Early files have no list of them.
        if header.pop("arrays", list(arrays)) != list(arrays):
            raise KeyError("arrays")
    except Exception as error:  # A damaged file can fail in any way a reader knows.
        raise FileError(
            "result-damaged",
            "'{path}' is not a saved hidag {holds}, or it is truncated",
            {"path": path, "holds": holds},
            advice="save it again",
        ) from error
    if header["format_version"] > FORMAT_VERSION:
        raise FileError(
            "result-too-new",
            "'{path}' was written by a newer hidag (format {found}, this one reads up to {known})",
            {"path": path, "found": header["format_version"], "known": FORMAT_VERSION},
            advice=Advice("upgrade", "upgrade hidag to read it"),
        )
    return header, arrays


def number(value: float | None) -> float:
    """Return a number of a header, NaN for null."""
    return float("nan") if value is None else value


def without_nan(value: Any) -> Any:
    """Return a value with null in place of numbers that are not finite: JSON has no NaN."""
    if isinstance(value, Mapping):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
