"""What is compared: the parts of a model, read off whatever holds them, and their relabelling."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import DataError
from hidag.latent.laws import LatentLaw, NetworkLaw, SaturatedLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms

#: Where each part is looked for, first hit first: fitted estimator, result, truth.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "q_matrix": ("q_matrix_", "q_matrix"),
    "intercept": ("intercept_", "intercept"),
    "loadings": ("loadings_", "loadings"),
    "terms": ("terms_", "terms"),
    "law": ("latent_law_", "latent_law", "law_", "law"),
    "graph": ("graph_", "graph", "cpdag_", "cpdag"),
}


@dataclass(frozen=True)
class Parts:
    """The parts of a model that can be held against another's; all but Q may be absent.

    Attributes
    ----------
    q_matrix : ndarray of int8, shape (J, K)
    intercept : ndarray, shape (R,), or None
        A row for each question: one per item, several for nominal items.
    loadings : ndarray, shape (R, T), or None
        On the terms; (R, K) means one step for every level of a latent.
    law : LatentLaw or None
        Anything with ``probabilities`` and ``space``.
    graph : ndarray of int8, shape (K, K), or None
        Adjacency of the latents' CPDAG: ``a[i, j] = 1, a[j, i] = 0`` for i -> j, both 1 for i - j.
        A DAG given here is replaced by its CPDAG.
    terms : Terms or None
        What the loadings multiply; the main terms when it is not said.
    questions : tuple, length R, or None
        What each row of coefficients is about, as `hidag.measurement.Responses` says it; the items
        one by one when it is not said.
    ruled_out : ndarray of bool, shape (S,), or None
        Joint states that cannot occur, whatever the law; None where all may.
    """

    q_matrix: NDArray[np.int8]
    intercept: NDArray[np.float64] | None = None
    loadings: NDArray[np.float64] | None = None
    law: LatentLaw | None = None
    graph: Any = None
    terms: Any = None
    questions: Any = None
    ruled_out: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        q = np.asarray(self.q_matrix)
        if q.ndim != 2 or not np.isin(q, (0, 1)).all():
            raise DataError("q_matrix must be a two-dimensional array of 0 and 1")
        object.__setattr__(self, "q_matrix", q.astype(np.int8))
        n_items, n_latents = q.shape
        if self.law is not None and self.law.space.n_latents != n_latents:
            raise DataError(
                f"q_matrix has {n_latents} columns, but the law has "
                f"{self.law.space.n_latents} latents"
            )
        terms = Terms.main(self.levels) if self.terms is None else self.terms
        if terms.n_latents != n_latents:
            raise DataError(f"terms must be of {n_latents} latents, got {terms.n_latents}")
        object.__setattr__(self, "terms", terms)
        if self.questions is None:
            object.__setattr__(self, "questions", tuple((j,) for j in range(n_items)))
        n_rows = len(self.questions)
        if self.loadings is not None and np.shape(self.loadings) == (n_rows, n_latents):
            object.__setattr__(self, "loadings", terms.even_steps(self.loadings))
        shapes = {"intercept": (n_rows,), "loadings": (n_rows, terms.n_terms)}
        for name, shape in shapes.items():
            if getattr(self, name) is not None:
                values = np.asarray(getattr(self, name), dtype=np.float64)
                if values.shape != shape:
                    raise DataError(f"{name} must have shape {shape}, got {values.shape}")
                object.__setattr__(self, name, values)
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
        result = getattr(model, "result_", model)
        responses = getattr(result, "responses", None)
        return cls(
            **found,
            questions=None if responses is None else responses.questions,
            ruled_out=getattr(result, "ruled_out", None),
        )

    @property
    def n_latents(self) -> int:
        """Number of latents, K."""
        return int(self.q_matrix.shape[1])

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each latent; binary when neither terms nor a law tell."""
        if self.terms is not None:
            return tuple(self.terms.levels)
        return (2,) * self.n_latents if self.law is None else self.law.space.levels

    @property
    def strengths(self) -> NDArray[np.float64] | None:
        """How strongly each latent drives each row over all its levels, (R, K), or None."""
        if self.loadings is None or self.ruled_out is None:
            return None if self.loadings is None else self.terms.strengths(self.loadings)
        states = StateSpace(self.levels).states()[~self.ruled_out]
        return np.asarray(self.terms.strengths_among(self.loadings, states))

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
        loadings, intercept = self.loadings, self.intercept
        if loadings is not None:
            n_rows = len(loadings)
            start = np.zeros(n_rows) if intercept is None else intercept
            # Families and dispersions play no part in this.
            items = MeasurementParameters.linear(start, loadings, self.terms)
            moved = items.reordered(latents=place).flipped(turned)
            loadings = moved.loadings
            intercept = None if intercept is None else moved.intercept
        return Parts(
            self.q_matrix[:, place],
            intercept,
            loadings,
            None if self.law is None else relabel_law(self.law, place, turned),
            None if self.graph is None else self.graph[np.ix_(place, place)],
            self.terms.reordered(place)[0],
            self.questions,
            self._ruled_out(place, turned),
        )

    def _ruled_out(
        self, order: NDArray[np.int64], flips: NDArray[np.bool_]
    ) -> NDArray[np.bool_] | None:
        """Return the states that cannot occur in another order, some levels reversed, (S,)."""
        if self.ruled_out is None:
            return None
        table = self.ruled_out.reshape(self.levels).transpose(order)
        return np.flip(table, tuple(np.flatnonzero(flips).tolist())).reshape(-1)

    def asking(self, questions: Sequence[Hashable]) -> Parts:
        """Return the same model with the coefficients of some questions, in their order.

        Without any question left it has no coefficients.
        """
        place = {question: row for row, question in enumerate(self.questions)}
        rows = [place[question] for question in questions]

        def kept(values: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
            return None if values is None or not rows else values[rows]

        return replace(
            self,
            intercept=kept(self.intercept),
            loadings=kept(self.loadings),
            questions=tuple(questions),
        )


def with_common_questions(one: Parts, other: Parts) -> tuple[Parts, Parts]:
    """Return two models with the coefficients that are about the same in both.

    Those of a nominal item depend on the order in which its categories are asked about: where two
    models have other orders, only its questions that are the same in both can be compared.
    """
    if one.questions == other.questions:
        return one, other
    theirs = set(other.questions)
    common = [question for question in one.questions if question in theirs]
    return one.asking(common), other.asking(common)


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
        levels = [
            np.arange(law.space.levels[k])[::-1] if turned else np.arange(law.space.levels[k])
            for k, turned in zip(order, flips, strict=True)
        ]
        return law.relabelled(order, levels)
    space = StateSpace(tuple(law.space.levels[k] for k in order))
    table = law.probabilities.reshape(law.space.levels).transpose(order)
    return SaturatedLaw(space, np.flip(table, tuple(np.flatnonzero(flips).tolist())).reshape(-1))
