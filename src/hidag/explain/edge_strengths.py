"""How strongly neighbours in the graph go together under the fitted law."""

from __future__ import annotations

import numpy as np

from hidag.explain.inference import beliefs
from hidag.result import FitResult


def edge_strengths(result: FitResult) -> dict[tuple[str, str], float]:
    """Return the absolute correlation of the levels of each two latents that are joined."""
    law = beliefs(result.law)
    names = result.latent_names
    out = {}
    for i, j in np.argwhere(np.triu(result.graph.skeleton)).tolist():
        table = law.marginal((i, j))
        rows, columns = np.arange(table.shape[0]), np.arange(table.shape[1])
        p, q = table.sum(axis=1), table.sum(axis=0)
        both = rows @ table @ columns - (rows @ p) * (columns @ q)
        spread = (rows**2 @ p - (rows @ p) ** 2) * (columns**2 @ q - (columns @ q) ** 2)
        out[(names[i], names[j])] = float(abs(both) / np.sqrt(spread)) if spread > 1e-12 else 0.0
    return out
