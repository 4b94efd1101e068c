"""The bootstrap: how sure a fit is, by fitting it again to resampled rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError, HidagError, SettingError
from hidag.estimator import DCRL
from hidag.explain.bootstrap_result import BootstrapResult
from hidag.explain.refit import Refit
from hidag.explain.refit_store import RefitStore
from hidag.explain.remembered import remembered_settings
from hidag.explain.resample import Task, run_resample
from hidag.explain.rows import need_weights, result_of
from hidag.observations import Observations
from hidag.observations.frames import frame_labels
from hidag.processes import run_all
from hidag.result import FitResult
from hidag.row_posteriors import MOST_EXACT_STATES
from hidag.row_weights import rows_with_answers
from hidag.settings import checked_count, root_seed, thread_count

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
    result = result_of(fit, "bootstrap needs")
    table = _fitted_rows(result, X)
    if start == "fitted" and result.law.space.n_states > MOST_EXACT_STATES:
        raise SettingError(
            f"start='fitted' needs latent states that can be listed, not "
            f"{result.law.space.count_in_words()}; use start='full'"
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
