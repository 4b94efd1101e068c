"""The bootstrap: refits of resampled rows, optionally stored in a folder so that it can resume."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.data.rows import nonempty_rows
from hidag.data.table import Observations, frame_labels
from hidag.estimator import DCRL
from hidag.exceptions import (
    Advice,
    Choices,
    DataError,
    FileError,
    HidagError,
    Setting,
    SettingError,
    invalid_setting,
)
from hidag.files import cannot_write, read_json, write_file
from hidag.files.schema import check_arrays, read_as
from hidag.fitting.settings import checked_count, plain_value, root_seed, thread_count
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.inference.fitted_rows import require_weights
from hidag.inference.refit import (
    REFIT_ARRAYS,
    BootstrapTask,
    Failure,
    Refit,
    given_levels,
    refit_settings,
    run_resample,
)
from hidag.parallel import run_all
from hidag.results import AnyFit, FitResult, as_result, read_archive, versions_used, write_archive

KINDS = ("nonparametric", "parametric")
STARTS = ("full", "fitted")
_SIGNATURE = "bootstrap.json"  # The signature of a folder of resamples
_RESAMPLE = "resample-{}.npz"  # The files of these
_HOLDS = "resample"


class RefitStore:
    """A folder with one file for each finished resample."""

    def __init__(self, path: Path, task: BootstrapTask) -> None:
        self.path, self.fit = path, task.fit
        signature = _signature(task)
        file = path / _SIGNATURE
        try:
            if file.exists():
                _check_signature(file, signature)
            path.mkdir(parents=True, exist_ok=True)
            write_file(file, json.dumps(signature, indent=1))
        except FileError:
            raise
        except OSError as error:
            raise cannot_write(path, error) from error

    def read(self, index: int) -> Refit | Failure | None:
        """Return a finished resample, the reason why it failed, or None if it is not finished."""
        file = self._file(index)
        if not file.exists():
            return None
        with suppress(FileError):  # Damaged: it is fitted again.
            return read_archive(file, self._found_of, holds=_HOLDS)
        return None

    def _found_of(self, header: dict[str, Any], arrays: dict[str, Any]) -> Refit | Failure:
        if header["failure"] is not None:
            failure: Failure = read_as(header["failure"], Failure, "failure")
            return failure
        fit = self.fit
        sizes = {"K": len(fit.latent_names), "J": len(fit.item_names), "R": len(fit.intercept)}
        check_arrays(arrays, REFIT_ARRAYS, sizes)
        return Refit.of(arrays)

    def write(self, index: int, found: Refit | Failure) -> None:
        """Store a resample atomically."""
        failure, arrays = (found, {}) if isinstance(found, Failure) else (None, found.arrays())
        write_archive(self._file(index), {"failure": failure}, arrays, holds=_HOLDS)

    def _file(self, index: int) -> Path:
        return self.path / _RESAMPLE.format(f"{index:05d}")


def remove_refits(path: Path) -> bool:
    """Remove the resamples in a folder, and the folder if empty; return if there were any."""
    if not (path / _SIGNATURE).is_file():
        return False
    for file in (*path.glob(_RESAMPLE.format("*")), path / _SIGNATURE):
        file.unlink()
    if not any(path.iterdir()):
        path.rmdir()
    return True


def _signature(task: BootstrapTask) -> dict[str, Any]:
    """Return everything that determines the resamples, except their number."""
    digest = hashlib.sha256(np.ascontiguousarray(task.values).tobytes())
    if task.weights is not None:
        digest.update(task.weights.tobytes())
    digest.update(task.fit.digest.encode())
    settings = {name: plain_value(value) for name, value in task.settings.items()}
    if isinstance(task.settings.get("q_matrix"), np.ndarray):
        settings["q_matrix"] = task.settings["q_matrix"].tolist()
    return {
        **{name: getattr(task, name) for name in ("kind", "start", "seed")},
        "table and fit": digest.hexdigest()[:16],
        "settings": settings,
        "hidag": versions_used()["hidag"],
    }


def _check_signature(file: Path, expected: dict[str, Any]) -> None:
    try:
        stored = read_json(file)
        differing = [name for name in expected if stored[name] != expected[name]]
    except (ValueError, KeyError, TypeError) as error:
        reason = "{file} was not written by a bootstrap, or it is damaged"
        advice = "choose another folder"
        raise FileError("invalid-file", reason, advice=advice, file=str(file)) from error
    if differing:
        advice = "repeat the former settings to resume it, or choose another folder"
        raise SettingError(
            "other-bootstrap",
            "{folder} holds resamples of another bootstrap (different {differing})",
            {"folder": str(file.parent), "differing": ", ".join(differing)},
            advice=Advice("resume-elsewhere", advice),
        )


@dataclass(frozen=True)
class BootstrapProgress:
    """The progress of a bootstrap: ``n_done`` of ``n_resamples``, with those of earlier runs."""

    n_done: int
    n_resamples: int
    n_failed: int  # finished, but could not be fitted


def bootstrap(  # noqa: PLR0913
    fit: AnyFit,
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
    """Refit the model to resampled tables.

    Each resample is fitted with the settings of the first fit, including its families, its
    knowledge and, if given, its Q. The latents of a refit are then matched to those of the first
    fit; the quality of the match is part of the result. If Q is estimated, knowledge is applied
    after the match.

    Parameters
    ----------
    fit : DCRL or FitResult
    X : array or frame, shape (N, J)
        The table that was fitted. The columns of a frame are found by name; others are ignored.
    n_resamples : int
    kind : {"nonparametric", "parametric"}
        Rows of the table drawn with replacement, or rows drawn from the fitted model with the same
        missing cells, which assumes that the model is correct.
    start : {"full", "fitted"}
        "full" searches for starting values as the first fit did, so that a resample may end in
        another optimum, which is part of the uncertainty. "fitted" starts at the first fit, which
        is much faster but ignores other optima; with an estimated Q, "dina" and "dino" items start
        at the main effects nearest to the fit, because main effects select their latents.
    sample_weight : array, shape (N,), optional
        As in ``fit``; weights are resampled with their rows.
    n_jobs : int, optional
        Number of processes, -1 for all processors; never changes a result.
    random_state : int, RandomState or None
    observer : callable, optional
        Called with a `BootstrapProgress` at the start and after each resample.
    folder : path, optional
        Where to store finished resamples. The same call resumes with those stored there.

    Returns
    -------
    BootstrapResult
        The refits, and tables of intervals and of the support of edges and of Q.

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> hidag.bootstrap(model, skills.X, n_resamples=3, start="fitted", random_state=0)
    BootstrapResult(3 refits of 800 rows, nonparametric)
    """
    count = checked_count("n_resamples", n_resamples)
    for name, value, choices in (("kind", kind, KINDS), ("start", start, STARTS)):
        if value not in choices:
            raise invalid_setting(name, Choices(choices), value)
    if folder == "":
        raise invalid_setting("folder", "the path of a folder, or None", folder)
    task = _make_task(fit, X, sample_weight, kind, start, root_seed(random_state))
    store = None if folder is None else RefitStore(Path(folder), task)
    stored = ((i, None if store is None else store.read(i)) for i in range(count))
    done: dict[int, Refit | Failure] = {i: found for i, found in stored if found is not None}

    def report() -> None:
        if observer is not None:
            failed = sum(isinstance(found, Failure) for found in done.values())
            observer(BootstrapProgress(len(done), count, failed))

    report()
    tasks = [(task, i) for i in range(count) if i not in done]
    try:
        for index, found in run_all(run_resample, tasks, workers=thread_count(n_jobs)):
            if store is not None:
                store.write(index, found)
            done[index] = found
            report()
    except MemoryError as error:
        reason = "the bootstrap ran out of memory, or a worker process was killed"
        advice = "run it again with a smaller {n_jobs}; resamples stored in a folder are reused"
        jobs = Setting("n_jobs")
        raise HidagError("out-of-memory", reason, advice=advice, n_jobs=jobs) from error
    return BootstrapResult.of(task, [done[i] for i in range(count)]).like(X)


def _make_task(
    fit: AnyFit, X: Any, sample_weight: Any, kind: str, start: str, seed: int
) -> BootstrapTask:
    result = as_result(fit, "bootstrap needs")
    table = _fitted_rows(result, X)
    if start == "fitted" and result.law.space.n_states > CONFIG.network_em.max_listed_states:
        reason = "{start} needs latent states that can be listed, not {number}"
        choices = {"start": Setting("start", "fitted"), "other": Setting("start", "full")}
        number = result.law.space.n_states_text()
        raise SettingError("too-many-states", reason, choices, advice="use {other}", number=number)
    if start == "fitted":
        result.refuse_nuisance("a bootstrap that starts at the fit")
    require_weights(result, sample_weight, "a bootstrap")
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None and weights.shape != (len(table),):
        reason = "sample_weight must have shape ({n_rows},), one weight for each row, got {shape}"
        raise DataError("wrong-shape", reason, n_rows=len(table), shape=weights.shape)
    # The fit ignores empty rows; resampling them would change the number of rows used.
    answered = nonempty_rows(table)
    if isinstance(fit, DCRL):
        settings = fit.get_params()
    else:
        settings, absent = refit_settings(result)
        if absent:
            reason = "the result does not store {names}, so that the model cannot be refitted"
            names, advice = ", ".join(absent), "pass the fitted DCRL itself"
            raise SettingError("settings-not-stored", reason, advice=advice, names=names)
    settings |= {
        "checks": "none",
        # Choices made from the whole table are not made again from a resample.
        "n_latents": len(result.latent_names),
        "levels": given_levels(settings["levels"], result),
        "family": list(result.families),
        "q_matrix": result.q_given,
        "latent_names": list(result.latent_names),
        "n_jobs": None,
        "verbose": 0,
        "observer": None,
    }
    settings.pop("random_state", None)
    weights = None if weights is None else weights[answered]
    return BootstrapTask(table[answered], weights, result, settings, kind, start, seed)


def _fitted_rows(result: FitResult, X: Any) -> NDArray[np.float64]:
    """Return the table that was fitted, items in the order of the fit, shape (N, J)."""
    if isinstance(X, Observations):
        other = X.named and X.names != result.item_names
    else:
        labels = frame_labels(X)
        # pandas numbers the columns of a frame without names.
        named = labels is not None and labels != list(range(len(labels)))
        other = named and not {str(label) for label in labels or ()} & set(result.item_names)
    if other:
        reason = "bootstrap needs the table that was fitted, but its items have other names"
        raise DataError("other-items", reason)
    rows = result.rows(X)
    if len(rows) != result.n_samples:
        raise DataError(
            "other-rows",
            "bootstrap needs the table that was fitted, {n_rows} rows and {n_items} items, got "
            "{got_rows} and {got_items}",
            {"n_rows": result.n_samples, "n_items": len(result.item_names)},
            got_rows=len(rows),
            got_items=rows.shape[1],
        )
    return rows
