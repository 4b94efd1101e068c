"""Stage II: from a fitted latent law to counts of latent configurations."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from itertools import pairwise
from math import isfinite, log
from numbers import Real

import numpy as np

from hidag.errors import HidagWarning, SettingError
from hidag.latent.counts import LatentCounts
from hidag.latent.laws import LatentLaw

ResampleRule = str | int | float | Callable[[int], float]

_MULTIPLE = re.compile(r"^\s*(\d+(?:\.\d+)?)?\s*\*?\s*N\s*$")
#: Sample sizes at which a callable's growth is compared with N log N.
_PROBES = (10**3, 10**4, 10**5, 10**6)
#: More resampled rows than this would not fit into memory.
MOST_ROWS = 10**8


def resampled_rows(rule: ResampleRule, n_samples: int) -> int:
    """Return f(N), the number of rows to draw.

    Parameters
    ----------
    rule : str, number or callable
        ``"N"``, ``"2N"``, ``"0.5N"`` (a multiple of N), a whole number of rows, or a function of N.
    n_samples : int
    """
    if callable(rule):
        rows = float(rule(n_samples))
        growth = [float(rule(n)) / (n * log(n)) for n in _PROBES]
        if all(b >= a * (1.0 - 1e-9) for a, b in pairwise(growth)):
            warnings.warn(
                "the resampling rule grows as fast as N log N or faster; the graph is only "
                "guaranteed to be recovered when f(N) / (N log N) goes to zero",
                HidagWarning,
                stacklevel=2,
            )
    elif isinstance(rule, str):
        match = _MULTIPLE.match(rule)
        if match is None:
            raise SettingError(
                f"resample must be 'expected', a multiple of N such as '2N', a number of rows or a "
                f"function of N, got {rule!r}"
            )
        rows = float(match.group(1) or 1.0) * n_samples
    elif isinstance(rule, Real):
        rows = float(rule)
    else:
        raise SettingError(
            f"resample must be 'expected', a multiple of N such as '2N', a number of rows or a "
            f"function of N, got {rule!r}"
        )
    if not isfinite(rows) or not 1 <= rows <= MOST_ROWS:
        raise SettingError(
            f"resample must give at least one row and at most {MOST_ROWS:g}, got {rows:g}"
        )
    return round(rows)


def expected_counts(law: LatentLaw, n_rows: float, names: tuple[str, ...]) -> LatentCounts:
    """Return ``n_rows`` times the law: the counts that resampling gives on average."""
    p = np.asarray(law.probabilities)
    kept = p > 0
    return LatentCounts(
        law.space.states()[kept].astype(np.uint8), n_rows * p[kept], law.space.levels, names
    )


def resample(
    law: LatentLaw, n_rows: int, names: tuple[str, ...], rng: np.random.Generator
) -> LatentCounts:
    """Return the counts of ``n_rows`` draws from the law (Algorithm 1, Stage II).

    Where joint states are fewer than the rows, their counts are drawn at once: the same law, at a
    cost that does not grow with f(N).
    """
    if law.space.listable and law.space.n_states <= n_rows:
        p = np.asarray(law.probabilities)
        drawn = rng.multinomial(n_rows, p / p.sum())
        seen = drawn > 0
        return LatentCounts(
            law.space.states()[seen].astype(np.uint8),
            drawn[seen].astype(np.float64),
            law.space.levels,
            names,
        )
    return LatentCounts.from_rows(law.sample(n_rows, rng), levels=law.space.levels, names=names)
