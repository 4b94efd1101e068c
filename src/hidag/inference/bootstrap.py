"""The bootstrap: how sure a fit is, by fitting it again to resampled rows."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.data.sample_weights import rows_with_answers
from hidag.data.table import Observations, frame_labels
from hidag.estimator import DCRL
from hidag.exceptions import DataError, FileError, HidagError, SettingError
from hidag.fitting.settings import checked_count, plain_value, root_seed, thread_count
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.inference.fitted_rows import need_weights
from hidag.inference.refit import Refit, Task, remembered_settings, run_resample
from hidag.parallel import run_all
from hidag.results import FitResult, as_result, read_archive, versions_used, write_archive

# --- Where a bootstrap keeps its resamples while it runs, so that it can go on after a stop

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


# ---

KINDS = ("nonparametric", "parametric")
STARTS = ("full", "fitted")


@dataclass(frozen=True)
class BootstrapProgress:
    """Where a bootstrap is.

    Attributes
    ----------
    n_done, n_resamples : int
        Resamples that are done, those of earlier runs included, of how many.
    n_failed : int
        Of those done, how many could not be fitted.
    """

    n_done: int
    n_resamples: int
    n_failed: int


def bootstrap(
    fit: DCRL | FitResult,
    X: Any,
    *,
    n_resamples: int = 200,
    kind: str = "nonparametric",
    start: str = "full",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    observer: Callable[[BootstrapProgress], None] | None = None,
    folder: str | Path | None = None,
) -> BootstrapResult:
    """Return how the fit varies over resampled tables.

    Each resample is fitted with the settings of the first fit (its Q where that was given, its
    families, its knowledge), and its latents are matched to the first fit's. How well they match is
    part of the answer. What is known about latents is about the fit's: where Q is estimated, refits
    are told it once their latents have been matched.

    Parameters
    ----------
    fit : DCRL or FitResult
        A fitted estimator, or its result.
    X : array or frame, shape (N, J)
        The table that was fitted. A frame's columns are found by the items' names, in any order,
        and others are left out.
    n_resamples : int
    kind : {"nonparametric", "parametric"}
        Rows of the table drawn with replacement, or rows drawn from the fitted model, with the same
        cells missing: the first doubts the model, the second takes it for granted.
    start : {"full", "fitted"}
        "full" looks for starts as the first fit did, so that a resample may end in another optimum:
        that belongs to how sure one can be. "fitted" begins at the first fit, which is much quicker
        and hides other optima; "dina" and "dino" items whose Q is estimated begin at the main
        effects nearest to the fit, because main effects choose their latents.
    sample_weight : array, shape (N,), optional
        As in ``fit``; weights go with their rows.
    n_jobs : int, optional
        Processes; never changes a result. -1 takes all processors.
    random_state : int, RandomState or None
    observer : callable, optional
        Called with a `BootstrapProgress` at the beginning and after each resample.
    folder : path, optional
        Where resamples are kept as they are done. The same call goes on with what is there.

    Returns
    -------
    BootstrapResult
    """
    count = checked_count("n_resamples", n_resamples)
    for name, value, known in (("kind", kind, KINDS), ("start", start, STARTS)):
        if value not in known:
            raise SettingError(f"{name} must be {known[0]!r} or {known[1]!r}, got {value!r}")
    if folder == "":
        raise SettingError("folder must name a folder for the resamples, or be None, got ''")
    task = _task(fit, X, sample_weight, kind, start, root_seed(random_state))
    store = None if folder is None else RefitStore(Path(folder), task)
    done: dict[int, Refit | str] = {}
    if store is not None:
        kept = ((i, store.read(i)) for i in range(count))
        done = {i: found for i, found in kept if found is not None}
    tell = observer or (lambda progress: None)

    def progress() -> BootstrapProgress:
        failed = sum(isinstance(found, str) for found in done.values())
        return BootstrapProgress(len(done), count, failed)

    tell(progress())
    pieces = [(task, i) for i in range(count) if i not in done]
    try:
        for index, found in run_all(run_resample, pieces, workers=thread_count(n_jobs)):
            if store is not None:
                store.write(index, found)
            done[index] = found
            tell(progress())
    except MemoryError as error:
        raise HidagError(
            "the bootstrap stopped for want of memory, or because a worker process was ended from "
            "outside; with a folder what is done is kept: run it again with a smaller n_jobs"
        ) from error
    return BootstrapResult.of(task, [done[i] for i in range(count)])


def _task(
    fit: DCRL | FitResult, X: Any, sample_weight: Any, kind: str, start: str, seed: int
) -> Task:
    result = as_result(fit, "bootstrap needs")
    table = _fitted_rows(result, X)
    if start == "fitted" and result.law.space.n_states > CONFIG.network_em.max_listed_states:
        raise SettingError(
            f"start='fitted' needs latent states that can be listed, not "
            f"{result.law.space.n_states_text()}; use start='full'"
        )
    need_weights(result, sample_weight, "a bootstrap")
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None and weights.shape != (len(table),):
        raise DataError(
            f"sample_weight must have shape ({len(table)},), one weight for each row, got "
            f"{weights.shape}"
        )
    # Empty rows count for nothing in the fit; drawn among the others they would make it unsure.
    answered = rows_with_answers(table)
    values = table[answered]
    weights = None if weights is None else weights[answered]
    settings = fit.get_params() if isinstance(fit, DCRL) else _settings_of(result)
    settings |= {
        # What was inferred from the whole table is not inferred again from a part of its rows.
        "n_latents": len(result.latent_names),
        "family": list(result.families),
        "q_matrix": result.q_given,
        "latent_names": list(result.latent_names),
        "n_jobs": None,
        "verbose": 0,
        "observer": None,
    }
    settings.pop("random_state", None)
    return Task(values, weights, result, settings, kind, start, seed)


def _fitted_rows(result: FitResult, X: Any) -> NDArray[np.float64]:
    """Return the table that was fitted, its items in the fit's order, shape (N, J)."""
    if isinstance(X, Observations):
        other = X.named and X.names != result.item_names
    else:
        labels = frame_labels(X)
        # pandas numbers the columns of a frame that was given no names.
        named = labels is not None and labels != list(range(len(labels)))
        other = named and not {str(label) for label in labels or ()} & set(result.item_names)
    if other:
        raise DataError("bootstrap needs the table that was fitted, but its items have other names")
    rows = result.rows(X)
    if len(rows) != result.n_samples:
        raise DataError(
            f"bootstrap needs the table that was fitted, {result.n_samples} rows and "
            f"{len(result.item_names)} items, got {len(rows)} and {rows.shape[1]}"
        )
    return rows


def _settings_of(result: FitResult) -> dict[str, Any]:
    """Return the estimator's settings that a result remembers."""
    settings, forgotten = remembered_settings(result)
    if forgotten:
        raise SettingError(
            f"a result does not remember {', '.join(forgotten)} well enough to fit again; pass the "
            "fitted DCRL itself"
        )
    return settings
