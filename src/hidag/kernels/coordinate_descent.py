"""Coordinate descent for many small penalised regressions, given gradients and curvatures."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

#: Whether a coefficient must stay zero, may be at a cost, may be for free, or may be at a cost but
#: not below zero.
ZERO, PENALISED, FREE, RISING = 0, 1, 2, 3
NO_PENALTY = 0
TLP = 1
SCAD = 2
#: The usual shape of SCAD: the slope starts to fall at 1/3.7 of the threshold.
SCAD_SHAPE = 3.7


@njit(cache=True, nogil=True)
def penalty_value(kind, strength, threshold, b):
    """Return the penalty of one loading."""
    if kind == NO_PENALTY:
        return 0.0
    u = abs(b) / threshold
    if u >= 1.0:
        return strength
    if kind == TLP:
        return strength * u
    slope = 2.0 * strength / (1.0 + 1.0 / SCAD_SHAPE)
    bend = 1.0 / SCAD_SHAPE
    if u <= bend:
        return slope * u
    past = u - bend
    return slope * (u - 0.5 * past * past / (1.0 - bend))


@njit(cache=True, nogil=True)
def minimise_one(kind, strength, threshold, centre, curvature):
    """Return the minimiser of ``curvature/2 (b - centre)^2 + penalty(b)`` over real b.

    The function is piecewise quadratic: the best of the pieces' stationary points is the answer.
    """
    if kind == NO_PENALTY:
        return centre
    sign = 1.0 if centre >= 0.0 else -1.0
    c = abs(centre)
    best = 0.0
    best_value = 0.5 * curvature * c * c
    if c >= threshold and strength < best_value:
        best = c
        best_value = strength
    if kind == TLP:
        b = c - strength / threshold / curvature
        if b > threshold:
            b = threshold
        if b > 0.0:
            v = 0.5 * curvature * (b - c) ** 2 + penalty_value(kind, strength, threshold, b)
            if v < best_value:
                best = b
                best_value = v
    else:
        slope = 2.0 * strength / (1.0 + 1.0 / SCAD_SHAPE) / threshold
        bend = threshold / SCAD_SHAPE
        b = min(c - slope / curvature, bend)
        if b > 0.0:
            v = 0.5 * curvature * (b - c) ** 2 + penalty_value(kind, strength, threshold, b)
            if v < best_value:
                best = b
                best_value = v
        # Falling piece: the penalty's slope is slope * (threshold - b) / (threshold - bend).
        fall = slope / (threshold - bend)
        if curvature > fall:
            b = (curvature * c - fall * threshold) / (curvature - fall)
            b = min(max(b, bend), threshold)
            v = 0.5 * curvature * (b - c) ** 2 + penalty_value(kind, strength, threshold, b)
            if v < best_value:
                best = b
                best_value = v
    return sign * best


@njit(cache=True, nogil=True)
def descend(beta, gradient, curvature, allowed, kind, strength, thresholds, max_sweeps, tolerance):
    """Return coefficients that maximise each item's penalised quadratic model.

    Parameters
    ----------
    beta : float64 (J, P)
        Expansion point; column 0 is the intercept, never penalised.
    gradient, curvature : float64 (J, P), (J, P, P)
        Of the log-likelihood at ``beta``; curvature is positive semi-definite.
    allowed : uint8 (J, P)
        0 for coefficients that stay zero, 1 (PENALISED), 2 (FREE) and 3 (RISING) for the others.
    kind, strength, thresholds : int, float, float64 (J,)
        The penalty; thresholds are on the items' own scales.
    max_sweeps, tolerance : int, float
        Sweeps end when no coefficient moves by more than ``tolerance`` standard errors.
    """
    n_items, size = beta.shape
    out = beta.copy()
    residual = np.empty(size)
    for j in range(n_items):
        for a in range(size):
            residual[a] = gradient[j, a]
        for _ in range(max_sweeps):
            moved = 0.0
            for a in range(size):
                if allowed[j, a] == 0:
                    continue
                h = curvature[j, a, a]
                if h <= 1e-12:
                    continue
                old = out[j, a]
                centre = old + residual[a] / h
                new = centre
                if a > 0 and allowed[j, a] != FREE:
                    new = minimise_one(kind, strength, thresholds[j], centre, h)
                    if allowed[j, a] == RISING and new < 0.0:
                        new = 0.0
                step = new - old
                if step != 0.0:
                    out[j, a] = new
                    for b in range(size):
                        residual[b] -= curvature[j, a, b] * step
                    moved = max(moved, abs(step) * math.sqrt(h))
            if moved < tolerance:
                break
    return out
