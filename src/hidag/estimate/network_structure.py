"""How much of the latents' dependence the items show, and how many rows a graph may count on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Rows of draws whose pairwise products are held at once.
BLOCK_ROWS = 8192


def pair_shares(draws: NDArray[np.uint8], weights: Array | None = None) -> Array:
    """Return, per pair of latents, which share of their joint information the items carry, (K, K).

    For ``s = (z_a - mu_a)(z_b - mu_b)`` that is ``Var(E[s | x]) / Var(s)``. The average of s over
    the first half of the draws and that over the second err independently, so their covariance is
    ``Var(E[s | x])`` without the draws' own noise.

    Parameters
    ----------
    draws : ndarray of uint8, shape (R, N, K)
        At least two draws of the same rows, far enough apart.
    weights : ndarray, shape (N,), or None
        How many rows each row counts for.
    """
    n_draws, n_rows, n_latents = draws.shape
    half = n_draws // 2
    counts = np.ones(n_rows) if weights is None else weights
    n_counted = float(counts.sum())
    mean = np.average(draws.mean(axis=0), axis=0, weights=weights)
    left, right = np.triu_indices(n_latents, 1)
    out = np.ones((n_latents, n_latents))
    if len(left) == 0:
        return out
    total = np.zeros((2, len(left)))
    cross, squares = np.zeros(len(left)), np.zeros(len(left))
    step = max(16, BLOCK_ROWS * 64 // max(len(left), 64))
    for start in range(0, n_rows, step):
        parts = np.zeros((2, len(range(start, min(start + step, n_rows))), len(left)))
        for r in range(n_draws):
            centred = draws[r, start : start + step] - mean
            product = centred[:, left] * centred[:, right]
            parts[int(r >= half)] += product
            squares += counts[start : start + step] @ product**2 / n_draws
        parts[0] /= half
        parts[1] /= n_draws - half
        total += np.einsum("i,rip->rp", counts[start : start + step], parts)
        cross += counts[start : start + step] @ (parts[0] * parts[1])
    both = total.mean(axis=0) / n_counted
    explained = cross / n_counted - total[0] * total[1] / n_counted**2
    variance = squares / n_counted - both**2
    share = np.where(variance > 1e-12, explained / np.maximum(variance, 1e-12), 1.0)
    out[left, right] = out[right, left] = np.clip(share, 0.0, 1.0)
    return out


def sampled_information_ratio(draws: NDArray[np.uint8], weights: Array | None = None) -> float:
    """Return the mean share over pairs of latents (1 for a single latent)."""
    shares = pair_shares(draws, weights)
    pairs = np.triu_indices(len(shares), 1)
    return float(shares[pairs].mean()) if len(pairs[0]) else 1.0
