from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hidag
from hidag.exceptions import FileError, HidagError
from hidag.files import write_file
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.reporting import assemble_report, load_content, render_report
from hidag.reporting.fit_description import describe_fit
from hidag.results import read_archive, write_archive
from hidag.simulation.truth import read_truth, truth_json


def test_archives_return_the_arrays_that_were_written(tmp_path):
    arrays = {"one": np.arange(3), "two": np.eye(2)}
    write_archive(tmp_path / "a.npz", {"n": 3, "none": float("nan")}, arrays, holds="thing")
    header, read = read_archive(tmp_path / "a.npz", lambda *parts: parts, holds="thing")
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
        read_archive(tmp_path / "b.npz", lambda *parts: parts)


FUZZ = settings(
    max_examples=100,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
ODD = (
    None, True, -1, 0, 3, 10**400, 0.5, -1e308, float("inf"), "", "x", "\ud800", "\x00", [], [[]],
    [None], ["a", "a"], [[[[0]]]], {}, {"a": {}}, [1, [2]], {"not stored": 1}, "gaussian(1",
    "categorical(100000)", [[0, 1], [1, 0]], [[10**9, 1]], json.loads("[" * 400 + "]" * 400),
)  # fmt: skip
CHANGES = (
    lambda a: a.T, lambda a: np.atleast_1d(a)[:0], lambda a: a[..., None], lambda a: a.ravel()[:1],
    lambda a: a.astype(np.complex128), lambda a: a.astype("U3"), lambda a: a.astype(np.float16),
    lambda a: a.astype(np.int8), lambda a: a.astype(bool), lambda a: a + 7, lambda a: -1.0 - a,
    lambda a: np.full(a.shape, np.nan), lambda a: np.full(a.shape, np.inf), lambda a: a * 0,
    lambda a: np.append(a, a), lambda a: np.array("x"), lambda a: np.zeros((1, 0)),
)  # fmt: skip


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Saved files of a fit with several families, a bootstrap, a report and a truth."""
    truth = hidag.design("Chain-5", "Q1", "gaussian", levels=(2, 3, 2, 2, 2), rng=1)
    X = hidag.simulate(truth, 300, rng=2, missing=0.05).X
    X = np.column_stack([X, np.arange(300) % 3])
    family = ["gaussian"] * (X.shape[1] - 1) + ["ordinal"]
    fit = hidag.DCRL(
        5, levels=(2, 3, 2, 2, 2), family=family, n_starts=1, random_state=0, uncertainty="none"
    )
    result = fit.fit(X).result_
    found = hidag.bootstrap(result, X, n_resamples=2, start="fitted", random_state=0)
    folder = tmp_path_factory.mktemp("saved")
    result.save(folder / "result.npz")
    found.save(folder / "bootstrap.npz")
    write_file(folder / "report.json", assemble_report(result, X, statistics=False).to_json())
    write_file(folder / "truth.json", truth_json(truth))
    return folder, result


def places(value, path=()):
    """Yield the path of each entry of JSON, itself included."""
    yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*path, key))


def changed(value, path, new):
    """Return JSON with another entry at a path; None removes a key."""
    if not path:
        return new
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    if not rest and new is None and isinstance(copy, dict):
        del copy[key]
    else:
        copy[key] = changed(value[key], rest, new)
    return copy


def use(place, name, result):
    if name == "result.npz":
        read = hidag.load(place)
        describe_fit(read)
        read.posterior(np.zeros((2, len(read.item_names))))
        render_report(read, plots=False)
    elif name == "bootstrap.npz":
        BootstrapResult.load(place).summary()
    elif name == "report.json":
        render_report(result, load_content(place, result), plots=False)
    else:
        read_truth(place).cpdag.to_json()


@pytest.mark.parametrize("name", ["result.npz", "bootstrap.npz", "report.json", "truth.json"])
def test_edited_files_are_refused_in_a_sentence_or_work(fitted, tmp_path_factory, name):
    folder, result = fitted
    place = tmp_path_factory.mktemp("edited") / name
    arrays, header = {}, None
    if name.endswith(".npz"):
        with np.load(folder / name) as stored:
            arrays = dict(stored)
        header = json.loads(arrays.pop("header").tobytes())
    else:
        header = json.loads((folder / name).read_text("utf-8"))
    known, refused = list(places(header)), []

    @FUZZ
    @given(st.data())
    def fuzz(data):
        content, parts = header, dict(arrays)
        if arrays and data.draw(st.booleans()):
            chosen = data.draw(st.sampled_from(sorted(arrays)))
            with np.errstate(all="ignore"):
                parts[chosen] = data.draw(st.sampled_from(CHANGES))(arrays[chosen])
        else:
            content = changed(
                content, data.draw(st.sampled_from(known)), data.draw(st.sampled_from(ODD))
            )
        text = json.dumps(content).encode()
        if arrays:
            with place.open("wb") as stream:
                np.savez(stream, header=np.frombuffer(text, dtype=np.uint8), **parts)
        else:
            place.write_bytes(text)
        with np.errstate(all="ignore"):
            try:
                use(place, name, result)
            except HidagError as error:
                refused.append(str(error))

    fuzz()
    assert all(len(text) < 600 and "\n" not in text for text in refused)
    assert len(refused) > 20


def test_a_file_that_would_fill_the_memory_is_refused(fitted, tmp_path):
    folder, _ = fitted
    with np.load(folder / "result.npz") as stored:
        arrays = dict(stored)
    arrays["trace"] = np.zeros((1 << 25, 2))
    np.savez_compressed(tmp_path / "large.npz", **arrays)
    with pytest.raises(FileError, match="it would take more than 256 MB"):
        hidag.load(tmp_path / "large.npz")


@pytest.mark.parametrize("text", ["[" * 100_000, "{", '{"format": NaN}', "\ud800", "null", "3"])
def test_odd_json_is_refused(fitted, tmp_path, text):
    _, result = fitted
    (tmp_path / "x.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    for read in (lambda p: load_content(p, result), read_truth):
        with pytest.raises(FileError, match=r"damaged|truncated"):
            read(tmp_path / "x.json")
