"""Settings as users give them, turned into what the stages take, or refused in a sentence."""

from __future__ import annotations

import os
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
    return int(check_random_state(random_state).randint(0, 2**31 - 1))


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads; None is one, -1 all there are."""
    if n_jobs is None:
        return 1
    if n_jobs == -1:
        return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    return checked_count("n_jobs", n_jobs)


def chosen_penalty(
    name: str | None,
    n_samples: int,
    n_latents: int,
    strength: float | None = None,
    threshold: float | None = None,
) -> Penalty:
    """Return the penalty that estimation begins with; None leaves a number to the default."""
    standard = default_penalty(name, n_samples, n_latents)
    chosen = Penalty(
        standard.name,
        standard.strength if strength is None else float(strength),
        standard.threshold if threshold is None else float(threshold),
    )
    if not (chosen.strength >= 0 and chosen.threshold > 0):
        raise SettingError(
            f"penalty_strength must be >= 0 and penalty_threshold > 0, got {chosen.strength:g} and "
            f"{chosen.threshold:g}"
        )
    return chosen


def plain_value(value: Any) -> Any:
    """Return a setting as something JSON can hold."""
    if hasattr(value, "items"):
        return {str(key): entry for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return repr(value)
