"""The parts of a model that metrics compare, taken from an estimator, a result or a truth."""

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

#: Attributes that hold each part in a fitted estimator, a result or a truth, in search order.
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
    """The parts of a model that can be compared with another model; only Q is required.

    Attributes
    ----------
    q_matrix : ndarray of int8, shape (J, K)
    intercept : ndarray, shape (R,), or None
        One row per item, several for nominal items.
    loadings : ndarray, shape (R, T), or None
        On the terms; shape (R, K) gives every level of a latent the same step.
    law : LatentLaw or None
        Anything with ``probabilities`` and ``space``.
    graph : ndarray of int8, shape (K, K), or None
        Adjacency of the latent CPDAG: ``a[i, j] = 1, a[j, i] = 0`` for i -> j, both 1 for i - j.
        A DAG given here is replaced by its CPDAG.
    terms : Terms or None
        Default: the main terms.
    questions : tuple, length R, or None
        Identifiers of the rows of coefficients, as in `hidag.measurement.Responses`; default one
        per item.
    ruled_out : ndarray of bool, shape (S,), or None
        Impossible joint states; None if all are possible.
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
            raise DataError(
                "invalid-q-matrix", "q_matrix must be a two-dimensional array of 0 and 1"
            )
        object.__setattr__(self, "q_matrix", q.astype(np.int8))
        n_items, n_latents = q.shape
        if self.law is not None:
            self._check_latents("law", self.law.space.n_latents)
        terms = Terms.main(self.levels) if self.terms is None else self.terms
        self._check_latents("set of terms", terms.n_latents)
        fields: dict[str, Any] = {"terms": terms}
        if self.questions is None:
            fields["questions"] = tuple((j,) for j in range(n_items))
        n_rows = n_items if self.questions is None else len(self.questions)
        shapes = {"intercept": (n_rows,), "loadings": (n_rows, terms.n_terms)}
        for name, shape in shapes.items():
            values = getattr(self, name)
            if values is None:
                continue
            if name == "loadings" and np.shape(values) == (n_rows, n_latents):
                values = terms.even_steps(values)
            fields[name] = np.asarray(values, dtype=np.float64)
            if fields[name].shape != shape:
                raise DataError(
                    "wrong-shape",
                    "{name} must have shape {shape}, got {got}",
                    name=name,
                    shape=shape,
                    got=fields[name].shape,
                )
        if self.graph is not None:
            fields["graph"] = cpdag_adjacency(self.graph)
            self._check_latents("graph", len(fields["graph"]))
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _check_latents(self, part: str, n_latents: int) -> None:
        if n_latents != self.n_latents:
            raise DataError(
                "size-mismatch",
                "q_matrix has {n_columns} columns, but the {part} has {n_latents} latents",
                n_columns=self.n_latents,
                part=part,
                n_latents=n_latents,
            )

    @classmethod
    def of(cls, model: object) -> Parts:
        """Return the parts of a fitted estimator, a result, a truth or :class:`Parts`."""
        if isinstance(model, Parts):
            return model
        found: dict[str, Any] = {}
        for part, names in ATTRIBUTES.items():
            values = (getattr(model, name, None) for name in names)
            found[part] = next((value for value in values if value is not None), None)
        if found["q_matrix"] is None:
            raise DataError(
                "no-q-matrix",
                "{kind!r} has neither q_matrix_ nor q_matrix",
                advice="pass a fitted estimator, its result, or Parts(q_matrix, ...)",
                kind=type(model).__name__,
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
        """Number of levels of each latent; binary without terms and law."""
        if self.terms is not None:
            return tuple(self.terms.levels)
        return (2,) * self.n_latents if self.law is None else self.law.space.levels

    @property
    def strengths(self) -> NDArray[np.float64] | None:
        """Effect of the highest against the lowest level of each latent, (R, K), or None."""
        if self.loadings is None or self.ruled_out is None:
            return None if self.loadings is None else self.terms.strengths(self.loadings)
        states = StateSpace(self.levels).states()[~self.ruled_out]
        return np.asarray(self.terms.strengths_among(self.loadings, states))

    def relabelled(self, order: ArrayLike, flips: ArrayLike) -> Parts:
        """Return the same model with latent ``order[k]`` at position k, levels reversed if flipped.

        A reversal changes the sign of a column of loadings and shifts the intercept, so that the
        distribution of the items stays the same.

        Parameters
        ----------
        order : array of int, shape (K,)
        flips : array of bool, shape (K,)
            Whether the latent at the new position k is reversed.
        """
        place, flipped = np.asarray(order, dtype=np.int64), np.asarray(flips, dtype=bool)
        if sorted(place.tolist()) != list(range(self.n_latents)) or flipped.shape != place.shape:
            raise DataError(
                "invalid-order",
                "order must contain each of 0..{last} once, and flips must have the same length",
                last=self.n_latents - 1,
            )
        loadings, intercept, ruled_out = self.loadings, self.intercept, self.ruled_out
        if loadings is not None:
            start = np.zeros(len(loadings)) if intercept is None else intercept
            items = MeasurementParameters.linear(start, loadings, self.terms)
            moved = items.reordered(latents=place).flipped(flipped)
            loadings = moved.loadings
            intercept = None if intercept is None else moved.intercept
        if ruled_out is not None:
            ruled_out = _relabel_table(ruled_out, self.levels, place, flipped)
        return Parts(
            self.q_matrix[:, place],
            intercept,
            loadings,
            None if self.law is None else relabel_law(self.law, place, flipped),
            None if self.graph is None else self.graph[np.ix_(place, place)],
            self.terms.reordered(place)[0],
            self.questions,
            ruled_out,
        )

    def _select_questions(self, questions: Sequence[Hashable]) -> Parts:
        """Return the same model with some rows of coefficients only; without any, none at all."""
        place = {question: row for row, question in enumerate(self.questions)}
        rows = [place[question] for question in questions]
        chosen: dict[str, Any] = {
            name: None if values is None or not rows else values[rows]
            for name, values in (("intercept", self.intercept), ("loadings", self.loadings))
        }
        return replace(self, questions=tuple(questions), **chosen)


def select_common_questions(one: Parts, other: Parts) -> tuple[Parts, Parts]:
    """Return two models with the rows of coefficients that have the same meaning in both.

    The coefficients of a nominal item depend on the order of its categories.
    """
    if one.questions == other.questions:
        return one, other
    theirs = set(other.questions)
    common = [question for question in one.questions if question in theirs]
    return one._select_questions(common), other._select_questions(common)


def cpdag_adjacency(graph: Any) -> NDArray[np.int8]:
    """Return the adjacency matrix of a CPDAG, of the CPDAG of a DAG, or a given matrix."""
    complete = graph.to_cpdag() if hasattr(graph, "to_cpdag") else graph
    out = np.asarray(getattr(complete, "adjacency", complete))
    if out.ndim != 2 or out.shape[0] != out.shape[1] or not np.isin(out, (0, 1)).all():
        raise DataError(
            "invalid-graph", "a graph must be a CPDAG, a DAG or a square array of 0 and 1"
        )
    return out.astype(np.int8)


def relabel_law(law: LatentLaw, order: NDArray[np.int64], flips: NDArray[np.bool_]) -> LatentLaw:
    """Return the distribution of the latents in another order, levels reversed if flipped.

    Parameters
    ----------
    law : LatentLaw
    order : ndarray of int, shape (K,)
        Index of the latent that moves to position k.
    flips : ndarray of bool, shape (K,)
        Whether the latent at the new position k is reversed.
    """
    sizes = law.space.levels
    if isinstance(law, NetworkLaw):
        levels = [
            np.arange(sizes[k])[::-1] if flip else np.arange(sizes[k])
            for k, flip in zip(order, flips, strict=True)
        ]
        return law.relabelled(order, levels)
    table = _relabel_table(law.probabilities, sizes, order, flips)
    return SaturatedLaw(StateSpace(tuple(sizes[k] for k in order)), table)


def _relabel_table(
    values: NDArray[Any],
    levels: tuple[int, ...],
    order: NDArray[np.int64],
    flips: NDArray[np.bool_],
) -> NDArray[Any]:
    """Return values of joint states (S,) with the latents reordered and some reversed."""
    table = values.reshape(levels).transpose(order)
    return np.flip(table, tuple(np.flatnonzero(flips).tolist())).reshape(-1)
