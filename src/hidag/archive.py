"""One file for arrays and a JSON header: what saved fits are made of. No pickle anywhere."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.errors import FileError

Arrays = dict[str, NDArray[Any]]

#: Raised when the layout of saved files changes.
FORMAT_VERSION = 1


def write_archive(
    path: Path, header: Mapping[str, Any], arrays: Arrays, *, holds: str = "fit"
) -> None:
    """Write a zip of arrays with a header that JSON can hold; NaN and infinity become null.

    ``holds`` says in a word what is saved; it must be said again to read it.
    """
    about = {"format": f"hidag-{holds}", "format_version": FORMAT_VERSION, "arrays": list(arrays)}
    full = {**about, **header}
    text = json.dumps(without_nan(full), ensure_ascii=False, allow_nan=False).encode("utf-8")
    # Not left to `allow_pickle`: older numpys take that for one more array to save.
    pickled = [name for name, array in arrays.items() if np.asarray(array).dtype.hasobject]
    if pickled:
        raise ValueError(f"arrays of objects would have to be pickled: {', '.join(pickled)}")
    contents: dict[str, Any] = {"header": np.frombuffer(text, dtype=np.uint8), **arrays}
    try:
        with path.open("wb") as stream:
            np.savez_compressed(stream, **contents)
    except OSError as error:
        raise FileError(
            f"cannot write the result to '{path}': {error.strerror or error}"
        ) from error


def read_archive(path: Path, *, holds: str = "fit") -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a file that `write_archive` wrote."""
    if not path.exists():
        saver = "result_.save(path)" if holds == "fit" else f"a {holds}'s save(path)"
        raise FileError(f"no result at '{path}': expected a file written by {saver}")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header: dict[str, Any] = json.loads(arrays.pop("header").tobytes().decode("utf-8"))
        if header["format"] != f"hidag-{holds}" or int(header["format_version"]) < 1:
            raise KeyError("format")
        # Earlier files have no list. Names lie outside of what a zip checks.
        if header.pop("arrays", list(arrays)) != list(arrays):
            raise KeyError("arrays")
    except Exception as error:  # a damaged file can fail in any way a reader knows
        raise FileError(
            f"'{path}' is not a saved hidag {holds}, or it is truncated; save it again"
        ) from error
    if header["format_version"] > FORMAT_VERSION:
        raise FileError(
            f"'{path}' was written by a newer hidag (format {header['format_version']}, this one "
            f"reads up to {FORMAT_VERSION}); upgrade hidag to read it"
        )
    return header, arrays


def number(value: float | None) -> float:
    """Return a number of a header, NaN for null."""
    return float("nan") if value is None else value


def without_nan(value: Any) -> Any:
    """Return a value with null for numbers that are none: JSON has no NaN."""
    if isinstance(value, Mapping):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
