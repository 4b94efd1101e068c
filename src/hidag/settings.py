"""Settings as users give them, turned into what the stages take, or refused in a sentence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from hidag.errors import SettingError
from hidag.measurement import Penalty, default_penalty


def checked_count(name: str, value: Any) -> int:
    """Return a whole number of at least 1, or say what came instead."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise SettingError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)


def root_seed(random_state: Any) -> int:
    """Return the seed that all random numbers of a fit come from."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(2))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise SettingError(f"random_state must not be negative, got {random_state}")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 62))
    try:
        return int(check_random_state(random_state).randint(0, 2**31 - 1))
    except ValueError as error:
        raise SettingError(
            f"random_state must be a whole number, a NumPy generator or None, got {random_state!r}"
        ) from error


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads; None is one, -1 all there are."""
    if n_jobs is None:
        return 1
    if n_jobs == -1:
        return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs < 1:
        raise SettingError(f"n_jobs must be None, -1 or at least 1, got {n_jobs!r}")
    return int(n_jobs)


def chosen_penalty(
    name: str | None,
    n_samples: int,
    n_latents: int,
    strength: float | None = None,
    threshold: float | None = None,
) -> Penalty:
    """Return the penalty that estimation begins with; None leaves a number to the default."""
    for given in (strength, threshold):
        if given is not None and not isinstance(given, Real):
            raise SettingError(
                f"penalty_strength and penalty_threshold must be numbers or None, got {given!r}"
            )
    standard = default_penalty(name, n_samples, n_latents)
    chosen = Penalty(
        standard.name,
        standard.strength if strength is None else float(strength),
        standard.threshold if threshold is None else float(threshold),
    )
    if not (0 <= chosen.strength < np.inf and 0 < chosen.threshold < np.inf):
        raise SettingError(
            f"penalty_strength must be >= 0 and penalty_threshold > 0, got {chosen.strength:g} and "
            f"{chosen.threshold:g}"
        )
    return chosen


def plain_value(value: Any) -> Any:
    """Return a setting as something JSON can hold."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(entry) for entry in value]
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    if isinstance(value, np.generic):
        return value.item()
    return repr(value)
