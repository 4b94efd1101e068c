"""What is compared: the parts of a model, read off whatever holds them, and their relabelling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.errors import DataError
from hidag.latent import LatentLaw, NetworkLaw, SaturatedLaw, StateSpace

#: Where each part is looked for, first hit first: fitted estimator, result, truth.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "q_matrix": ("q_matrix_", "q_matrix"),
    "intercept": ("intercept_", "intercept"),
    "loadings": ("loadings_", "loadings"),
    "law": ("latent_law_", "latent_law", "law_", "law"),
    "graph": ("graph_", "graph", "cpdag_", "cpdag"),
}


@dataclass(frozen=True)
class Parts:
    """The parts of a model that can be held against another's; all but Q may be absent.

    Attributes
    ----------
    q_matrix : ndarray of int8, shape (J, K)
    intercept : ndarray, shape (J,), or None
    loadings : ndarray, shape (J, K), or None
    law : LatentLaw or None
        Anything with ``probabilities`` and ``space``.
    graph : ndarray of int8, shape (K, K), or None
        Adjacency of the latents' CPDAG: ``a[i, j] = 1, a[j, i] = 0`` for i -> j, both 1 for i - j.
        A DAG given here is replaced by its CPDAG.
    """

    q_matrix: NDArray[np.int8]
    intercept: NDArray[np.float64] | None = None
    loadings: NDArray[np.float64] | None = None
    law: LatentLaw | None = None
    graph: Any = None

    def __post_init__(self) -> None:
        q = np.asarray(self.q_matrix)
        if q.ndim != 2 or not np.isin(q, (0, 1)).all():
            raise DataError("q_matrix must be a two-dimensional array of 0 and 1")
        object.__setattr__(self, "q_matrix", q.astype(np.int8))
        n_items, n_latents = q.shape
        shapes = {"intercept": (n_items,), "loadings": (n_items, n_latents)}
        for name, shape in shapes.items():
            if getattr(self, name) is not None:
                values = np.asarray(getattr(self, name), dtype=np.float64)
                if values.shape != shape:
                    raise DataError(f"{name} must have shape {shape}, got {values.shape}")
                object.__setattr__(self, name, values)
        if self.law is not None and self.law.space.n_latents != n_latents:
            raise DataError(
                f"q_matrix has {n_latents} columns, but the law has "
                f"{self.law.space.n_latents} latents"
            )
        if self.graph is not None:
            adjacency = cpdag_adjacency(self.graph)
            if len(adjacency) != n_latents:
                raise DataError(
                    f"q_matrix has {n_latents} columns, but the graph has {len(adjacency)} latents"
                )
            object.__setattr__(self, "graph", adjacency)

    @classmethod
    def of(cls, model: object) -> Parts:
        """Return the parts of a fitted estimator, a result, a truth, or parts as they are."""
        if isinstance(model, Parts):
            return model
        found: dict[str, Any] = {}
        for part, names in ATTRIBUTES.items():
            values = (getattr(model, name, None) for name in names)
            found[part] = next((value for value in values if value is not None), None)
        if found["q_matrix"] is None:
            raise DataError(
                f"{type(model).__name__!r} has neither q_matrix_ nor q_matrix; pass a fitted "
                f"estimator, its result, or Parts(q_matrix, ...)"
            )
        return cls(**found)

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return int(self.q_matrix.shape[1])

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each latent; binary when there is no law to tell."""
        return (2,) * self.n_latents if self.law is None else self.law.space.levels

    def relabelled(self, order: ArrayLike, flips: ArrayLike) -> Parts:
        """Return the same model with latent ``order[k]`` in place k, levels reversed if flipped.

        A reversal turns the sign of a column of loadings and moves the intercept, so that the
        distribution of the items stays the same.

        Parameters
        ----------
        order : array of int, shape (K,)
        flips : array of bool, shape (K,)
            Whether the latent that lands in place k is reversed.
        """
        place = np.asarray(order, dtype=np.int64)
        turned = np.asarray(flips, dtype=bool)
        if sorted(place.tolist()) != list(range(self.n_latents)) or turned.shape != place.shape:
            raise DataError(
                f"order must hold each of 0..{self.n_latents - 1} once, and flips be as long"
            )
        loadings = None if self.loadings is None else self.loadings[:, place]
        intercept = self.intercept
        if loadings is not None:
            top = np.array(self.levels)[place] - 1
            if intercept is not None:
                intercept = intercept + loadings[:, turned] @ top[turned]
            loadings = np.where(turned, -loadings, loadings)
        return Parts(
            self.q_matrix[:, place],
            intercept,
            loadings,
            None if self.law is None else relabel_law(self.law, place, turned),
            None if self.graph is None else self.graph[np.ix_(place, place)],
        )


def cpdag_adjacency(graph: Any) -> NDArray[np.int8]:
    """Return the adjacency of a CPDAG; of the CPDAG of a DAG; or of an array, as it is."""
    complete = graph.to_cpdag() if hasattr(graph, "to_cpdag") else graph
    out = np.asarray(getattr(complete, "adjacency", complete))
    if out.ndim != 2 or out.shape[0] != out.shape[1] or not np.isin(out, (0, 1)).all():
        raise DataError("a graph must be a CPDAG, a DAG or a square array of 0 and 1")
    return out.astype(np.int8)


def relabel_law(law: LatentLaw, order: NDArray[np.int64], flips: NDArray[np.bool_]) -> LatentLaw:
    """Return the law of the latents in another order, with the levels of flipped ones reversed.

    Parameters
    ----------
    law : LatentLaw
    order : ndarray of int, shape (K,)
        Which latent comes to place k.
    flips : ndarray of bool, shape (K,)
        Whether the latent that comes to place k is reversed.
    """
    if isinstance(law, NetworkLaw):
        return law.relabelled(order, flips)
    space = StateSpace(tuple(law.space.levels[k] for k in order))
    table = law.probabilities.reshape(law.space.levels).transpose(order)
    return SaturatedLaw(space, np.flip(table, tuple(np.flatnonzero(flips).tolist())).reshape(-1))
