"""Tables for the golden master, drawn with numpy alone: no change of the library moves them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: One name per kind of item, as ``DCRL(family=...)`` takes them.
FAMILIES = (
    "bernoulli",
    "bernoulli-probit",
    "bernoulli-cloglog",
    "binomial(5)",
    "poisson",
    "poisson-identity",
    "negative-binomial",
    "zero-inflated-poisson",
    "ordinal",
    "categorical",
    "gaussian",
    "lognormal",
    "censored-lognormal(6)",
    "gamma",
    "beta",
)


def band_q(n_latents: int) -> NDArray[np.int8]:
    """Return a Q-matrix of shape (3K, K): two pure items a latent and one of two neighbours."""
    pure = np.eye(n_latents, dtype=np.int8)
    both = pure.copy()
    both[np.arange(n_latents - 1), np.arange(1, n_latents)] = 1
    return np.vstack([both, pure, pure])


def chain_states(
    n_rows: int, levels: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return latent states of a chain, shape (N, K): each repeats its parent's share by chance."""
    states = np.empty((n_rows, len(levels)), dtype=np.intp)
    states[:, 0] = rng.integers(levels[0], size=n_rows)
    for k in range(1, len(levels)):
        fresh = rng.integers(levels[k], size=n_rows)
        follows = np.rint(states[:, k - 1] * (levels[k] - 1) / (levels[k - 1] - 1)).astype(int)
        states[:, k] = np.where(rng.random(n_rows) < 0.5, follows, fresh)
    return states


def draw_items(signal: Array, family: str, rng: np.random.Generator) -> Array:
    """Return responses, shape (N, J), of a family whose predictor is the signal in 0, 1, 2, ..."""
    share = 1.0 / (1.0 + np.exp(-(3.0 * signal - 1.7)))
    mean = np.exp(0.3 + 1.2 * signal)
    noise = rng.standard_normal(signal.shape)
    kind = family.partition("(")[0]
    if kind.startswith("bernoulli"):
        drawn = rng.random(signal.shape) < share
    elif kind == "binomial":
        drawn = rng.binomial(5, share)
    elif kind in ("poisson", "poisson-identity"):
        drawn = rng.poisson(mean)
    elif kind == "negative-binomial":
        drawn = rng.poisson(mean * rng.gamma(3.0, 1.0 / 3.0, signal.shape))
    elif kind == "zero-inflated-poisson":
        drawn = rng.poisson(1.0 + mean) * (rng.random(signal.shape) < 0.8)
    elif kind == "ordinal":
        drawn = np.digitize(2.0 * signal - 1.0 + rng.logistic(size=signal.shape), [-1.0, 0.0, 1.2])
    elif kind == "categorical":
        drawn = np.where(rng.random(signal.shape) < share, 2, rng.integers(3, size=signal.shape))
    elif kind == "gaussian":
        drawn = 2.0 * signal + noise
    elif kind == "lognormal":
        drawn = np.exp(signal + 0.5 * noise)
    elif kind == "censored-lognormal":
        drawn = np.minimum(np.exp(signal + 0.5 * noise), 6.0)
    elif kind == "gamma":
        drawn = rng.gamma(4.0, mean / 4.0)
    else:
        drawn = np.clip(rng.beta(8.0 * share, 8.0 * (1.0 - share)), 1e-4, 1.0 - 1e-4)
    return np.asarray(drawn, dtype=np.float64)


def table(
    n_rows: int,
    n_latents: int,
    family: str = "bernoulli",
    *,
    seed: int,
    levels: int = 2,
    conjunctive: bool = False,
    missing: float = 0.0,
) -> tuple[Array, NDArray[np.int8]]:
    """Return responses, shape (N, 3K), and the Q-matrix they were drawn with."""
    rng = np.random.default_rng(seed)
    q = band_q(n_latents)
    states = chain_states(n_rows, (levels,) * n_latents, rng) / (levels - 1.0)
    signal = states @ q.T
    if conjunctive:
        signal = (signal >= q.sum(axis=1)).astype(np.float64)
    values = draw_items(signal, family, rng)
    values[rng.random(values.shape) < missing] = np.nan
    return values, q
