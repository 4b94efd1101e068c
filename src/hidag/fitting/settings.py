"""Validation of user settings, with an error that names the setting and the expected values."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from hidag.exceptions import Choices, SettingError, invalid_setting
from hidag.measurement.penalties import Penalty, default_penalty
from hidag.structure.graph_search import check_exact_size
from hidag.structure.knowledge import Knowledge, check_knowledge
from hidag.structure.scores import SCORES

#: Levels are stored as uint8.
MAX_LEVELS = 255
#: Values of the settings of Stage III.
NAMED_SEARCHES, NAMED_SCORES = ("xges", "ges", "exact"), ("auto", *SCORES)


def checked_count(name: str, value: Any) -> int:
    """Return an integer of at least 1, or raise a `SettingError`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise invalid_setting(name, "a whole number of at least 1", value)
    return int(value)


def checked_levels(value: Any, n_latents: int) -> tuple[int, ...]:
    """Return the number of levels of each latent, or raise a `SettingError`."""
    many = not isinstance(value, (str, bytes)) and hasattr(value, "__iter__")
    given = list(value) if many else [value] * n_latents
    whole = all(
        isinstance(m, (int, np.integer)) and not isinstance(m, bool) and 2 <= m <= MAX_LEVELS
        for m in given
    )
    if not whole or len(given) != n_latents:
        expected = (
            f"a whole number from 2 to {MAX_LEVELS}, or {n_latents} of them (one for each latent)"
        )
        raise invalid_setting("levels", expected, value)
    return tuple(int(m) for m in given)


def root_seed(random_state: Any) -> int:
    """Return the seed of all random numbers of a fit."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(2))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise invalid_setting("random_state", "at least 0", random_state)
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 62))
    try:
        return int(check_random_state(random_state).randint(0, 2**31 - 1))
    except ValueError as error:
        expected = "a whole number, a NumPy generator or None"
        raise invalid_setting("random_state", expected, random_state) from error


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads: 1 for None, all available ones for -1."""
    if n_jobs is None:
        return 1
    if n_jobs == -1:
        return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs < 1:
        raise invalid_setting("n_jobs", "-1 or at least 1", n_jobs)
    return int(n_jobs)


def chosen_penalty(
    name: str | None,
    n_samples: float,
    n_latents: int,
    strength: float | None = None,
    threshold: float | None = None,
) -> Penalty:
    """Return the initial penalty; ``strength`` and ``threshold`` have defaults for None."""
    for setting, given in (("penalty_strength", strength), ("penalty_threshold", threshold)):
        if given is not None and not isinstance(given, Real):
            raise invalid_setting(setting, "a number or None", given)
    standard = default_penalty(name, n_samples, n_latents)
    chosen = Penalty(
        standard.name,
        standard.strength if strength is None else float(strength),
        standard.threshold if threshold is None else float(threshold),
    )
    if not 0 <= chosen.strength < np.inf:
        raise invalid_setting("penalty_strength", "a finite number >= 0", chosen.strength)
    if not 0 < chosen.threshold < np.inf:
        raise invalid_setting("penalty_threshold", "a finite number > 0", chosen.threshold)
    return chosen


def plain_value(value: Any) -> Any:
    """Return a setting as a value that JSON can represent."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(entry) for entry in value]
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    if isinstance(value, Knowledge):
        return plain_value(value.to_dict())
    if isinstance(value, np.generic):
        return value.item()
    return repr(value)


def plain_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an estimator's settings as plain values, under the names of saved results.

    The Q-matrix and the seed are stored elsewhere, and the observer is not stored.
    """
    elsewhere = ("observer", "q_matrix", "random_state")
    # Saved results have had the key "score" since their first version.
    stored = {"graph_score": "score"}
    return {
        stored.get(name, name): plain_value(value)
        for name, value in given.items()
        if name not in elsewhere
    }


def latent_names_of(
    given: Any, n_latents: int, from_q: tuple[str, ...] | None, items: Sequence[str]
) -> tuple[str, ...]:
    """Return the latents' names: those given, else those of Q, else Z1, Z2, ...

    Names of items are not allowed; if items are called Z1, ..., the default is ZZ1, ...
    """
    if given is None and from_q is None:
        letters = "Z"
        while set(items) & {f"{letters}{k + 1}" for k in range(n_latents)}:
            letters += "Z"
        return tuple(f"{letters}{k + 1}" for k in range(n_latents))
    if given is None:
        _refuse_names_of_items(from_q or (), items, "its column of the Q-matrix")
        return from_q or ()
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise invalid_setting("latent_names", f"{n_latents} different names", given)
    names = tuple(str(name) for name in given)
    if len(names) != n_latents or len(set(names)) != n_latents:
        raise invalid_setting("latent_names", f"{n_latents} different names", list(names))
    _refuse_names_of_items(names, items, "the latent")
    return names


def _refuse_names_of_items(names: Sequence[str], items: Sequence[str], what: str) -> None:
    both = [name for name in names if name in set(items)]
    if both:
        raise SettingError(
            "latent-named-as-item",
            "latents and items must have different names, but {name!r} is the name of both ({n} of "
            "{n_latents} latents)",
            advice="rename {what} or the item",
            name=both[0],
            n=len(both),
            n_latents=len(names),
            what=what,
        )


def check_search(
    search: Any, score: Any, sample_size: Any, knowledge: Any, names: tuple[str, ...]
) -> None:
    """Check the settings of Stage III before the costly Stage I."""
    if not callable(search) and search not in NAMED_SEARCHES:
        raise invalid_setting("search", Choices(NAMED_SEARCHES, python_only="a callable"), search)
    if isinstance(search, str) and search == "exact":
        check_exact_size(len(names))
    if not hasattr(score, "local") and score not in NAMED_SCORES:
        raise invalid_setting(
            "graph_score", Choices(NAMED_SCORES, python_only="a local score"), score
        )
    number = isinstance(sample_size, Real) and 0 < float(sample_size) < np.inf
    if not number and sample_size != "auto":
        raise invalid_setting("equivalent_sample_size", "a positive number or 'auto'", sample_size)
    known = check_knowledge(knowledge)
    if known is not None:
        known.constraints(names)
