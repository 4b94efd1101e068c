"""Residual correlations of all pairs of items, with z scores."""

from __future__ import annotations

import numpy as np

from hidag.inference.result_tables import N_EFFECTIVE, Table
from hidag.information.free_parameters import FreeParameters
from hidag.information.moment_tests import LocalScores, ScoredColumns
from hidag.information.pair_sums import PairSums

COLUMNS = (
    "first", "second", "observed", "expected", "residual", "tested", "z", "p_value", "n_rows",
)  # fmt: skip


def compute_pair_residuals(
    free: FreeParameters, columns: ScoredColumns, scores: LocalScores
) -> Table:
    """Return the residual correlation of every pair of items with its z score.

    Covariances are about the model's means and divided by the observed standard deviations. A pair
    uses the rows that observed both. *tested* is the part of the residual that no small change of
    the parameters can remove, which *z* tests: equal to the residual at a maximum of the
    likelihood, but not after a penalised fit or in another table. *z* is NaN without a valid test.
    Weights may depend on the answers. ``scores`` are those of the same rows.
    """
    sums = PairSums.of(free, columns, scores)
    names = np.array(columns.names, dtype=object)
    rows: list[tuple[object, ...]] = []
    n_effective: list[float] = []
    for first, both, total, rest, z, p_values in sums.blocks():
        inside = np.arange(first.start, first.stop)
        a, b = np.nonzero(columns.item[inside][:, None] < columns.item[None])
        count = both.total[a, b]
        scale = sums.spread[inside[a]] * sums.spread[b]
        safe = np.where((scale > 0) & (count > 0), scale, np.nan)
        counted = np.where(count > 0, count, 1.0)
        residual, tested = (part[a, b] / counted / safe for part in (total, rest))
        model = sums.expected[inside[a], b] / safe
        moments = (residual + model, model, residual, tested)
        values = (*moments, z[a, b], p_values[a, b], both.number[a, b].astype(np.intp))
        lists = (part.tolist() for part in values)
        rows.extend(zip(names[inside[a]], names[b], *lists, strict=True))
        n_effective += both.effective[a, b].tolist()
    found = Table(COLUMNS, tuple(rows))
    return found if free.data.weights is None else found.with_column(N_EFFECTIVE, n_effective)
