"""The latent law alone, fitted to the observed data with the items' coefficients held."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.expectation import expect_states
from hidag.estimate.loop import LARGEST_STRETCH, STRETCH_GROWTH, LawStep, stretched_law
from hidag.estimate.working import WorkingData
from hidag.measurement import MeasurementParameters

Array = NDArray[np.float64]


def fit_law(
    expected: Callable[[Array], tuple[Array, float]],
    probabilities: Array,
    law_step: LawStep,
    *,
    tolerance: float,
    max_steps: int,
) -> tuple[Array, float]:
    """Return the law (S,) after EM, and the log-likelihood of that very law.

    Parameters
    ----------
    expected : callable
        A law (S,) to expected counts (S,) and the log-likelihood: the E-step, items held.
    probabilities : ndarray, shape (S,)
        Where EM starts, a law of the kind that ``law_step`` returns.
    law_step : callable
        Counts to the most likely law of the kind that is wanted.
    tolerance : float
        EM ends when a step gains less, in units of log-likelihood.
    max_steps : int
    """
    current, stretch = probabilities, 1.0
    settled, last = probabilities, -np.inf
    plain: Array | None = None
    for _ in range(max_steps):
        counts, value = expected(current)
        if plain is not None and value < last:
            # The stretched step overshot: the plain one cannot.
            current, plain, stretch = plain, None, 1.0
            continue
        gain = value - last
        settled, last = current, value
        if gain < tolerance:
            break
        fresh = law_step(counts)
        plain = None
        if stretch > 1.0:
            plain, fresh = fresh, law_step(stretched_law(current, fresh, stretch - 1.0))
        current = fresh
        stretch = min(stretch * STRETCH_GROWTH, LARGEST_STRETCH)
    # What the last step led to has no likelihood yet, and a stretched one may have overshot.
    return settled, last


def freed_law(
    parameters: MeasurementParameters,
    probabilities: Array,
    counts: Array,
    data: WorkingData,
    features: Array,
    n_steps: int,
    *,
    ratio: float,
    n_threads: int = 1,
) -> Array:
    """Return the law after a few steps in which it may become anything, shape (S,).

    Expected counts under a law over a graph confirm that graph. A few unrestricted steps let
    dependence show that the graph does not have; many would let the law fit noise. Each step is
    worth two of EM's: a step of EM closes a share ``ratio`` of the distance to go, one that is
    ``2 - ratio`` times as long closes as much as two, and none overshoots.

    Parameters
    ----------
    parameters : MeasurementParameters
        On the working scale, held.
    data : WorkingData
    features : ndarray, shape (S, T)
    probabilities, counts : ndarray, shape (S,)
        The law to begin with and the counts expected under it: the first step needs no E-step.
    n_steps : int
    ratio : float
        Share of the latents' information that the items carry.
    """
    current = probabilities
    for step in range(n_steps):
        if step > 0:
            counts, _ = expect_states(parameters, current, data, features, n_threads=n_threads)
        fresh = counts / counts.sum()
        further = stretched_law(current, fresh, 1.0 - ratio)
        current = further / further.sum()
    return current
