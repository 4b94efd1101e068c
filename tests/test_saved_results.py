from __future__ import annotations

import zipfile

import numpy as np
import pytest

from hidag.exceptions import FileError
from hidag.results import read_archive, write_archive


def test_archives_return_the_arrays_that_were_written(tmp_path):
    arrays = {"one": np.arange(3), "two": np.eye(2)}
    write_archive(tmp_path / "a.npz", {"n": 3, "none": float("nan")}, arrays, holds="thing")
    header, read = read_archive(tmp_path / "a.npz", holds="thing")
    assert (header["n"], header["none"]) == (3, None)
    assert list(read) == ["one", "two"]
    assert all(np.array_equal(read[name], arrays[name]) for name in arrays)


def test_objects_are_not_pickled(tmp_path):
    with pytest.raises(ValueError, match="arrays of objects would have to be pickled: odd"):
        write_archive(tmp_path / "a.npz", {}, {"odd": np.array([None])})
    assert not (tmp_path / "a.npz").exists()


def test_an_array_whose_name_is_damaged_is_reported_as_damage(tmp_path):
    # A byte in the list of contents can be wrong while every array is whole.
    write_archive(tmp_path / "a.npz", {}, {"law": np.ones(2)})
    with (
        zipfile.ZipFile(tmp_path / "a.npz") as whole,
        zipfile.ZipFile(tmp_path / "b.npz", "w") as damaged,
    ):
        for name in whole.namelist():
            damaged.writestr(name.replace("law", "lay"), whole.read(name))
    with pytest.raises(FileError, match="is not a saved hidag fit, or it is truncated"):
        read_archive(tmp_path / "b.npz")
