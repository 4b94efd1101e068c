"""Why two blocks and a rest cannot be had: the latents and items that prove it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hidag.identify.blocks import BlockSearch, connected_parts
from hidag.identify.flow import Bools, Ints, group_rows, smallest_lack


@dataclass(frozen=True)
class Lack:
    """Latents with too few items.

    Attributes
    ----------
    kind : {"blocks", "rest", "joint"}
        "blocks": fewer items than the two blocks need. "rest": just enough, so that none is left
        over. "joint": every latent could be served, but not all at once; found by search.
    latents, items : tuple of int
        The latents, and all items that load on any of them.
    needed : int
        Items that these latents need at the least, in the blocks and outside.
    bare : tuple of int
        For "joint": latents without an item outside in the best choice there is.
    """

    kind: Literal["blocks", "rest", "joint"]
    latents: tuple[int, ...]
    items: tuple[int, ...]
    needed: int
    bare: tuple[int, ...] = ()

    @property
    def n_more(self) -> int:
        """Items that these latents lack, at the least."""
        return max(1, self.needed - len(self.items))


def find_lacks(q: Bools, per_block: Ints, search: BlockSearch) -> tuple[Lack, ...]:
    """Return one proof for each group of latents that the condition fails for.

    Parameters
    ----------
    q : ndarray of bool, shape (J, K)
    per_block : ndarray of int, shape (K,)
    search : BlockSearch
        The outcome of `find_blocks` for the same matrix.
    """
    lacks = []
    for latents in connected_parts(q, search.part):
        if search.missing[latents].any() or search.uncovered[latents].any():
            lacks.append(_lack_of(q, per_block, latents, search))
    return tuple(lacks)


def _lack_of(q: Bools, per_block: Ints, latents: Ints, search: BlockSearch) -> Lack:
    rows = group_rows(q[q[:, latents].any(axis=1)][:, latents])
    demands = 2 * per_block[latents]
    short = smallest_lack(rows.loads, rows.counts, demands)
    if short is not None:
        return _proof("blocks", q, per_block, latents[short])
    bare = search.uncovered[latents]
    smallest = None
    for place in np.argsort(~bare, kind="stable"):
        one_more = demands.copy()
        one_more[place] += 1
        tight = smallest_lack(rows.loads, rows.counts, one_more)
        # The fewer latents a proof names, the more it says about where items are missing.
        if tight is not None and (smallest is None or len(tight) < len(smallest)):
            smallest = tight
    if smallest is not None:
        return _proof("rest", q, per_block, latents[smallest])
    return _proof("joint", q, per_block, latents, tuple(latents[bare].tolist()))


def _proof(
    kind: Literal["blocks", "rest", "joint"],
    q: Bools,
    per_block: Ints,
    latents: Ints,
    bare: tuple[int, ...] = (),
) -> Lack:
    return Lack(
        kind,
        tuple(latents.tolist()),
        tuple(np.flatnonzero(q[:, latents].any(axis=1)).tolist()),
        2 * int(per_block[latents].sum()) + 1,
        bare,
    )
