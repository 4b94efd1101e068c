"""Weighted counts of latent configurations, the input of the graph search (Stage II)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, log
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.exceptions import (
    Choices,
    DataError,
    HidagWarning,
    Setting,
    SettingError,
    Value,
    invalid_setting,
)
from hidag.latent.laws import LatentLaw


@dataclass(frozen=True)
class LatentCounts:
    """Distinct latent configurations with weights."""

    # (n_configurations, K): levels, 0-based; column k takes values in ``range(levels[k])``
    states: NDArray[np.uint8]
    # (n_configurations,): non-negative, not necessarily whole, number of rows per configuration
    weights: NDArray[np.float64]
    levels: tuple[int, ...]  # length K
    names: tuple[str, ...]  # length K

    def __post_init__(self) -> None:
        states = np.ascontiguousarray(self.states, dtype=np.uint8)
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        if states.ndim != 2 or weights.shape != (states.shape[0],):
            raise DataError(
                "wrong-shape",
                "states must be (n, K) and weights (n,), got {states} and {weights}",
                {"states": states.shape, "weights": weights.shape},
            )
        if len(self.levels) != states.shape[1] or len(self.names) != states.shape[1]:
            raise DataError(
                "wrong-shape",
                "{n} variables need as many levels and names, got {n_levels} and {n_names}",
                {"n": states.shape[1], "n_levels": len(self.levels), "n_names": len(self.names)},
            )
        top = states.max(axis=0, initial=0)
        for name, n_levels, state in zip(self.names, self.levels, top.tolist(), strict=True):
            if state >= n_levels:
                raise DataError(
                    "state-out-of-range",
                    "variable {name!r} has {n_levels} levels, but state {state} occurs",
                    {"name": name, "n_levels": n_levels, "state": state},
                )
        if not np.all(np.isfinite(weights)) or (weights < 0).any():
            raise DataError("invalid-weights", "weights must be finite and not negative")
        states.setflags(write=False)
        weights.setflags(write=False)
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "weights", weights)

    @property
    def n_variables(self) -> int:
        """Number of latents, K."""
        return int(self.states.shape[1])

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    @classmethod
    def from_rows(
        cls,
        rows: NDArray[np.integer],
        *,
        levels: tuple[int, ...] | None = None,
        names: tuple[str, ...] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> LatentCounts:
        """Return the counts of rows of states (n, K), from 0 to 255; equal rows are merged.

        Default levels are the largest state plus one, at least two; names Z1, ...; weights 1.
        """
        rows = np.asarray(rows)
        if rows.ndim != 2:
            sentence = "rows of states must be a two-dimensional array, got {ndim}-d"
            raise DataError("wrong-shape", sentence, ndim=rows.ndim)
        if rows.size and (rows.min() < 0 or rows.max() > 255):
            raise DataError("state-out-of-range", "states must be whole numbers from 0 to 255")
        n_variables = rows.shape[1]
        if levels is None:
            top = rows.max(axis=0) if len(rows) else np.ones(n_variables)
            levels = tuple(max(2, int(m) + 1) for m in top)
        if names is None:
            names = tuple(f"Z{k + 1}" for k in range(n_variables))
        packed = np.ascontiguousarray(rows.astype(np.uint8))
        keys = packed.view(np.dtype((np.void, max(1, packed.shape[1])))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        total = np.bincount(inverse, weights=weights, minlength=len(first)).astype(np.float64)
        return cls(packed[first], total, levels, names)


ResampleRule = str | int | float | Callable[[int], float]

_MULTIPLE = re.compile(r"^\s*(\d+(?:\.\d+)?)?\s*\*?\s*N\s*$")
#: Sample sizes at which a callable's growth is compared with N log N.
_HUGE = 10**18  # Larger whole numbers may be no floating-point numbers.
_PROBES = (10**3, 10**4, 10**5, 10**6)


def resample_size(rule: ResampleRule, n_samples: int) -> int:
    """Return f(N), rows to draw: ``"N"``, a multiple ("0.5N"), a number of rows or a function."""
    if callable(rule):
        given = [rule(n) for n in (n_samples, *_PROBES)]
        if not all(isinstance(one, Real) for one in given):
            problem = "{setting} must return a number of rows, got {given}"
            params = {"setting": Setting("resample"), "given": Value(given[0])}
            raise SettingError("invalid-resample", problem, params)
        rows, *probes = (float(min(one, _HUGE)) for one in given)
        growth = [one / (n * log(n)) for one, n in zip(probes, _PROBES, strict=True)]
        if all(b >= a * (1.0 - 1e-9) for a, b in pairwise(growth)):
            warning = HidagWarning(
                "fast-growing-resample",
                "{setting} grows as fast as N log N or faster; the graph is only guaranteed to be "
                "recovered when f(N) / (N log N) goes to zero",
                setting=Setting("resample"),
            )
            warnings.warn(warning, stacklevel=2)
    elif isinstance(rule, str) and (match := _MULTIPLE.match(rule)) is not None:
        rows = float(match.group(1) or 1.0) * n_samples
    elif isinstance(rule, Real):
        rows = float(min(rule, _HUGE))
    else:
        other = "a multiple of N such as 2N, a number of rows"
        raise invalid_setting("resample", Choices(("expected",), other, "a function of N"), rule)
    maximum = CONFIG.graph_stage.max_resampled_rows
    if not isfinite(rows) or not 1 <= rows <= maximum:
        raise SettingError(
            "invalid-resample",
            "{setting} must give at least one row and at most {maximum:g}, got {rows:g}",
            {"setting": Setting("resample"), "maximum": maximum, "rows": rows},
        )
    return round(rows)


def expected_counts(law: LatentLaw, n_rows: float, names: tuple[str, ...]) -> LatentCounts:
    """Return ``n_rows`` times the probabilities: the expected counts of resampling."""
    return _positive_counts(law, n_rows * np.asarray(law.probabilities), names)


def resample(
    law: LatentLaw, n_rows: int, names: tuple[str, ...], rng: np.random.Generator
) -> LatentCounts:
    """Return the counts of ``n_rows`` draws: one multinomial draw if there are fewer states."""
    if law.space.listable and law.space.n_states <= n_rows:
        p = np.asarray(law.probabilities)
        return _positive_counts(law, rng.multinomial(n_rows, p / p.sum()).astype(float), names)
    return LatentCounts.from_rows(law.sample(n_rows, rng), levels=law.space.levels, names=names)


def _positive_counts(
    law: LatentLaw, counts: NDArray[np.float64], names: tuple[str, ...]
) -> LatentCounts:
    """Return the joint states with positive counts (S,)."""
    kept = counts > 0
    states = law.space.states()[kept].astype(np.uint8)
    return LatentCounts(states, counts[kept], law.space.levels, names)
