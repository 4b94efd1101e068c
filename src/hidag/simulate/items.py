"""Which latents each item measures, and how strongly."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.errors import SettingError
from hidag.simulate.sample import Seed


def banded_q(n_latents: int, bandwidth: int) -> NDArray[np.int8]:
    """Return the paper's measurement matrix, shape (3K, K): a band over two identities.

    Parameters
    ----------
    n_latents : int
        K.
    bandwidth : int
        Item j of the band measures the latents at distance at most ``bandwidth`` from j: 1 gives
        the paper's Q1, 2 its Q2.
    """
    if n_latents < 1 or bandwidth < 0:
        raise SettingError(
            f"a banded Q needs at least 1 latent and a bandwidth >= 0, got n_latents={n_latents} "
            f"and bandwidth={bandwidth}"
        )
    place = np.arange(n_latents)
    band = np.abs(place[:, None] - place[None, :]) <= bandwidth
    identity = np.eye(n_latents, dtype=bool)
    return np.vstack([band, identity, identity]).astype(np.int8)


def random_q(
    n_items: int,
    n_latents: int,
    *,
    pure_share: float = 2 / 3,
    max_parents: int = 3,
    rng: Seed = None,
) -> NDArray[np.int8]:
    """Return a random measurement matrix, shape (J, K), with a given share of pure items.

    Pure items (one latent each) come last and are dealt to the latents in turn, so that every
    latent gets as many as every other, up to one. The other items measure 2 to ``max_parents``
    latents, one of them dealt in turn as well.

    Parameters
    ----------
    n_items, n_latents : int
        J and K, J >= K.
    pure_share : float
        Share of pure items, rounded to whole items.
    max_parents : int
        Largest number of latents an item measures.
    rng : int, SeedSequence, Generator or None
    """
    if n_items < n_latents:
        raise SettingError(
            f"every latent needs an item: {n_latents} latents, but only {n_items} items"
        )
    if not 0 <= pure_share <= 1:
        raise SettingError(f"pure_share must be from 0 to 1, got {pure_share}")
    n_pure = round(pure_share * n_items)
    if n_pure < n_items and not 2 <= max_parents <= n_latents:
        raise SettingError(
            f"items that are not pure measure at least 2 latents: max_parents must be from 2 to "
            f"{n_latents}, got {max_parents}"
        )
    generator = np.random.default_rng(rng)
    out = np.zeros((n_items, n_latents), dtype=np.int8)
    n_mixed = n_items - n_pure
    # Dealing goes on through both kinds, so that J >= K items reach every latent.
    out[np.arange(n_items), np.arange(n_items) % n_latents] = 1
    for row in out[:n_mixed]:
        others = np.flatnonzero(row == 0)
        n_more = generator.integers(1, max_parents)
        row[generator.choice(others, size=n_more, replace=False)] = 1
    return out


def spread_slopes(
    q_matrix: ArrayLike, total: ArrayLike, *, ratio: float = 1.0, rng: Seed = None
) -> NDArray[np.float64]:
    """Return loadings, shape (J, K), that add up to ``total`` over each item's latents.

    Parameters
    ----------
    q_matrix : array of 0 and 1, shape (J, K)
    total : float or array, shape (J,)
        Sum of an item's slopes.
    ratio : float
        Ratio of an item's successive slopes: 1 makes them equal, as in the paper; 2 makes every
        subset of an item's latents give a mean of its own.
    rng : int, SeedSequence, Generator or None
        Decides which latent gets which slope; None with ``ratio=1`` needs no draws.
    """
    q = np.asarray(q_matrix)
    if ratio <= 0:
        raise SettingError(f"ratio must be > 0, got {ratio}")
    sums = np.broadcast_to(np.asarray(total, dtype=np.float64), (q.shape[0],))
    generator = np.random.default_rng(rng)
    out = np.zeros(q.shape)
    for j, row in enumerate(q):
        latents = np.flatnonzero(row)
        if ratio != 1.0:
            latents = generator.permutation(latents)
        weight = ratio ** np.arange(len(latents))
        out[j, latents] = sums[j] * weight / weight.sum() if len(latents) else 0.0
    return out
