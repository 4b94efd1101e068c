"""How far two graphs are apart."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.errors import DataError
from hidag.evaluate.parts import cpdag_adjacency


@dataclass(frozen=True)
class Detection:
    """How well a set of claims (edges, entries of Q) covers a true set.

    A share of nothing is 1: who claims nothing claims nothing false.
    """

    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, estimated: NDArray[np.bool_], true: NDArray[np.bool_]) -> Detection:
        """Return the detection of the entries that are set, two arrays of the same shape."""
        hits = int((estimated & true).sum())
        claims, facts = int(estimated.sum()), int(true.sum())
        return cls(
            precision=hits / claims if claims else 1.0,
            recall=hits / facts if facts else 1.0,
            f1=2 * hits / (claims + facts) if claims + facts else 1.0,
        )


@dataclass(frozen=True)
class GraphComparison:
    """An estimated CPDAG held against a true one.

    Attributes
    ----------
    shd : int
        Structural Hamming distance: pairs whose status (none, ->, <-, -) differs.
    n_missing, n_extra, n_misdirected : int
        The pairs that make up ``shd``: joined only in truth, joined only in the estimate, joined
        in both but not in the same way.
    precision, recall, f1 : float
        Of the skeleton.
    """

    shd: int
    n_missing: int
    n_extra: int
    n_misdirected: int
    precision: float
    recall: float
    f1: float

    def to_dict(self) -> dict[str, int | float]:
        """Return the numbers by name."""
        return asdict(self)


def evaluate_graph(estimated: Any, true: Any) -> GraphComparison:
    """Return how far an estimated graph is from a true one, variables in the same order.

    Parameters
    ----------
    estimated, true : CPDAG, DAG or array, shape (K, K)
        A DAG stands for its CPDAG, since no more than that can be told from data.
    """
    a, b = cpdag_adjacency(estimated), cpdag_adjacency(true)
    if a.shape != b.shape:
        raise DataError(
            f"graphs must have the same variables, got {len(a)} estimated and {len(b)} true ones"
        )
    pairs = np.triu_indices(len(a), k=1)
    forward = (a[pairs], b[pairs])
    backward = (a.T[pairs], b.T[pairs])
    in_a, in_b = ((forward[i] | backward[i]).astype(bool) for i in (0, 1))
    differs = (forward[0] != forward[1]) | (backward[0] != backward[1])
    skeleton = Detection.of(in_a, in_b)
    return GraphComparison(
        shd=int(differs.sum()),
        n_missing=int((in_b & ~in_a).sum()),
        n_extra=int((in_a & ~in_b).sum()),
        n_misdirected=int((differs & in_a & in_b).sum()),
        precision=skeleton.precision,
        recall=skeleton.recall,
        f1=skeleton.f1,
    )
