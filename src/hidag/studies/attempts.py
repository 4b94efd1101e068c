"""Trying something that may fail: what came of it, how long it took, and why there is nothing."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from hidag.errors import HidagWarning

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Attempt(Generic[Outcome]):
    """What came of a task.

    Attributes
    ----------
    outcome : object or None
        None where it failed.
    seconds : float
        CPU time.
    reason : str or None
        Why it failed.
    warnings : str or None
        The library's, each once.
    """

    outcome: Outcome | None
    seconds: float
    reason: str | None
    warnings: str | None


def attempt(task: Callable[[], Outcome]) -> Attempt[Outcome]:
    """Return what came of a task, whatever it raised but want of memory."""
    outcome, reason = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=HidagWarning)
        begin = time.process_time()
        try:
            outcome = task()
        except MemoryError:
            # The machine's failure, not the estimator's: elsewhere the same run may succeed.
            raise
        except Exception as error:
            # Whatever went wrong belongs into the table: a study that drops or dies of its
            # hardest runs flatters the estimator.
            reason = f"{type(error).__name__}: {error}"
        seconds = time.process_time() - begin
    said = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
    return Attempt(outcome, seconds, reason, said or None)
