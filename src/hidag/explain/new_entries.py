"""Scores of loadings that are not in the model, where joint states are too many to be listed.

Whether an item loads on one latent more shows in what its latents and that one are together, given
a row. Small tables hold the first alone. But where the item's latents are taken to be in a state,
sums over small tables tell of every other latent; with that state's probability this is the two
together, for all other latents at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hidag.estimate.tree_tables import RowGroups
from hidag.explain.free_parameters import FreeParameters
from hidag.explain.row_scores import RowChannels, row_bases
from hidag.explain.state_tables import TreeTables
from hidag.measurement import Terms

Array = NDArray[np.float64]


def scores_of_loadings(free: FreeParameters) -> Iterator[tuple[int, Array]]:
    """Yield responses with derivatives of rows' log densities by their loadings, shape (N, T).

    By those that are in the model and those that are not; effects add up.

    Parameters
    ----------
    free : FreeParameters
        Told over small tables.
    """
    tables, data = free.tables, free.data
    assert isinstance(tables, TreeTables)
    bases = row_bases(free)
    density = tables.tree.working_densities(data, free.working)
    for table in np.unique(tables.of_response).tolist():
        channels = RowChannels(free, table, bases)
        own = [
            c for c, one in enumerate(channels.channels) if free.channels[one].kind == "predictor"
        ]
        found = np.zeros((len(own), data.n_samples, free.result.terms.n_main))
        scope = tables.scopes[table]
        for place, state in enumerate(tables.states(table)[:, list(scope)]):
            known = tables.tree.given(scope, state) if scope else tables.tree
            for rows, groups in known.groups(data, free.working):
                share = np.exp(groups.log_density - density[rows])
                told = (channels.columns(rows) * channels.slopes[:, place][:, None]).sum(axis=0)
                residual = (told - channels.falls[place]) * channels.seen(rows)
                reached = _reached(groups, free.result.terms) * share[:, None]
                for c, out in zip(own, found, strict=True):
                    out[rows] += residual[:, c, None] * reached
        for c, out in zip(own, found, strict=True):
            yield free.channels[channels.channels[c]].response, out


def _reached(groups: RowGroups, terms: Terms) -> Array:
    """Return the probability of each main term for a block of n rows, shape (n, T)."""
    out = np.empty((len(groups.log_density), terms.n_main))
    for t, (latent, level) in enumerate(zip(terms.main_latents, terms.main_levels, strict=True)):
        shares = groups.by_state((int(latent),))
        out[:, t] = shares[level:].sum(axis=0) / shares.sum(axis=0)
    return out
