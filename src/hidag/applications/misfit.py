"""What a fit leaves unexplained: pairs of items that go together more, or less, than it says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hidag.applications.naming import within_table
from hidag.estimate.working import WorkingData
from hidag.result import FitResult
from hidag.select.candidates import Table
from hidag.start.pair_correlations import pair_correlations

#: Rows drawn from the fit to see what it says about pairs.
N_DRAWN = 20_000


@dataclass(frozen=True)
class Misfit:
    """Correlations of items, observed and under the fit.

    Attributes
    ----------
    pairs : list of (int, int, float, float)
        Two items, their correlation in the table and under the fit; the worst first.
    root_mean_square : float
        Of the differences over all pairs.
    unexplained : float
        The same if no items went together at all: what there was to explain.
    """

    pairs: list[tuple[int, int, float, float]]
    root_mean_square: float
    unexplained: float


def misfit(result: FitResult, table: Table) -> Misfit:
    """Return the differences between observed correlations and those of draws from the fit."""
    responses = result.responses
    rng = np.random.default_rng(0)
    drawn = within_table(result.sample_items(result.law.sample(N_DRAWN, rng), rng), table)
    # Correlations want a common number of columns; items that never vary have none.
    seen, said = (
        pair_correlations(
            WorkingData.from_values(responses.expand(values), responses.families, weights=weights)
        ).matrix
        for values, weights in ((table.values, table.weights), (drawn, None))
    )
    first = responses.starts
    seen, said = seen[np.ix_(first, first)], said[np.ix_(first, first)]
    i, j = np.triu_indices(len(seen), 1)
    gap = seen[i, j] - said[i, j]
    order = np.argsort(-np.abs(gap), kind="stable")
    pairs = [
        (int(i[p]), int(j[p]), float(seen[i[p], j[p]]), float(said[i[p], j[p]])) for p in order
    ]
    return Misfit(
        pairs,
        float(np.sqrt((gap**2).mean())),
        float(np.sqrt((seen[i, j] ** 2).mean())),
    )
