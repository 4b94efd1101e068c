"""Coordinate descent for many small penalised regressions, given gradients and curvatures."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

#: Constraints on a coefficient: fixed at zero, penalised, free, penalised and not negative, or in a
#: fixed ratio to others of its term, with which it moves elsewhere.
ZERO, PENALISED, FREE, NONNEGATIVE, TIED = 0, 1, 2, 3, 4
#: Columns of a table of pieces: see :meth:`hidag.measurement.penalties.Penalty.pieces`.
START, END, SLOPE, FALL, ROOT, VALUE = range(6)


@njit(cache=True, nogil=True)
def value_on_piece(piece, b):
    """Return the penalty of b >= 0 on a piece (6,) of its derivative."""
    if piece[FALL] == 0.0:
        return piece[VALUE] + piece[SLOPE] * (b - piece[START])
    before, here = piece[ROOT] - piece[START], piece[ROOT] - b
    return piece[VALUE] + 0.5 * piece[FALL] * (before * before - here * here)


@njit(cache=True, nogil=True)
def proximal_step(pieces, strength, centre, curvature):
    """Return the minimiser of ``curvature/2 (b - centre)^2 + penalty(b)`` over real b.

    The best stationary point of the pieces (P, 6); the penalty is ``strength`` beyond the last.
    """
    n_pieces = pieces.shape[0]
    if n_pieces == 0:
        return centre
    sign = 1.0 if centre >= 0.0 else -1.0
    c = abs(centre)
    best, best_value = 0.0, 0.5 * curvature * c * c
    if c >= pieces[n_pieces - 1, END] and strength < best_value:
        best, best_value = c, strength
    for p in range(n_pieces):
        piece = pieces[p]
        fall = piece[FALL]
        if fall == 0.0:
            b = min(c - piece[SLOPE] / curvature, piece[END])
            if b <= piece[START]:
                continue
        elif curvature > fall:
            b = (curvature * c - fall * piece[ROOT]) / (curvature - fall)
            b = min(max(b, piece[START]), piece[END])
        else:
            # Concave: the minimum is at an end, which belongs to another piece as well.
            continue
        value = 0.5 * curvature * (b - c) ** 2 + value_on_piece(piece, b)
        if value < best_value:
            best, best_value = b, value
    return sign * best


@njit(cache=True, nogil=True)
def descend(beta, gradient, curvature, allowed, pieces, strength, max_sweeps, tolerance):
    """Return coefficients that maximise each item's penalised quadratic model at ``beta`` (J, P).

    Column 0 is the intercept, never penalised. Gradients (J, P) and curvatures (J, P, P), positive
    semi-definite, are those of the log-likelihood; ``allowed`` (J, P) is ZERO, PENALISED, FREE,
    NONNEGATIVE or TIED; ``pieces`` are (J, number of pieces, 6). Sweeps end when no coefficient
    moves by more than ``tolerance`` standard errors.
    """
    n_items, size = beta.shape
    out = beta.copy()
    residual = np.empty(size)
    for j in range(n_items):
        residual[:] = gradient[j]
        for _ in range(max_sweeps):
            moved = 0.0
            for a in range(size):
                if allowed[j, a] == ZERO or allowed[j, a] == TIED:
                    continue
                h = curvature[j, a, a]
                if h <= 1e-12:
                    continue
                old = out[j, a]
                centre = old + residual[a] / h
                new = centre
                if a > 0 and allowed[j, a] != FREE:
                    new = proximal_step(pieces[j], strength, centre, h)
                    if allowed[j, a] == NONNEGATIVE and new < 0.0:
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
