"""Matching of estimated to true latents, whose order and polarity are arbitrary."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

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
#: Matchings whose agreement differs by less are ties, which the latent distribution breaks.
TIE = 1e-9
#: Weights, relative to one entry of Q, that break ties between columns: equal numbers of levels
#: first, then loadings. Their total over all latents is below 1, so that Q always decides first.
SAME_LEVELS, SAME_LOADINGS = 0.6, 0.3
#: With more joint states, ties are not broken: each trial would take as long as a fit.
MAX_STATES_FOR_TIES = 1 << 14
Array = NDArray[np.float64]
Order = NDArray[np.int64]
Flips = NDArray[np.bool_]


@dataclass(frozen=True)
class Parts:
    """The parts of a model that can be compared with another model; only Q is required."""

    q_matrix: NDArray[np.int8]  # (J, K)
    intercept: NDArray[np.float64] | None = None  # (R,), one row per item, several if nominal
    loadings: NDArray[np.float64] | None = None  # (R, T) on the terms, or (R, K) for even steps
    law: LatentLaw | None = None  # or anything with ``probabilities`` and ``space``
    #: CPDAG, DAG or adjacency (K, K): ``a[i, j] = 1, a[j, i] = 0`` for i -> j, both 1 for i - j.
    graph: Any = None
    terms: Any = None  # Terms; default the main terms
    #: Identifiers of rows of coefficients (`hidag.measurement.Responses`); default one per item.
    questions: Any = None
    ruled_out: NDArray[np.bool_] | None = None  # (S,), impossible joint states

    def __post_init__(self) -> None:
        q = np.asarray(self.q_matrix)
        if q.ndim != 2 or not np.isin(q, (0, 1)).all():
            reason = "q_matrix must be a two-dimensional array of 0 and 1"
            raise DataError("invalid-q-matrix", reason)
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
                reason = "{name} must have shape {shape}, got {got}"
                params = {"name": name, "shape": shape, "got": fields[name].shape}
                raise DataError("wrong-shape", reason, params)
        if self.graph is not None:
            fields["graph"] = cpdag_adjacency(self.graph)
            self._check_latents("graph", len(fields["graph"]))
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _check_latents(self, part: str, n_latents: int) -> None:
        if n_latents != self.n_latents:
            reason = "q_matrix has {n_columns} columns, but the {part} has {n_latents} latents"
            sizes = {"n_columns": self.n_latents, "n_latents": n_latents}
            raise DataError("size-mismatch", reason, sizes, part=part)

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
            reason = "{kind!r} has neither q_matrix_ nor q_matrix"
            advice = "pass a fitted estimator, its result, or Parts(q_matrix, ...)"
            raise DataError("no-q-matrix", reason, advice=advice, kind=type(model).__name__)
        result = getattr(model, "result_", model)
        questions = getattr(getattr(result, "responses", None), "questions", None)
        return cls(**found, questions=questions, ruled_out=getattr(result, "ruled_out", None))

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
        """Return the model with latent ``order[k]`` at position k, reversed if ``flips[k]``."""
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


def cpdag_adjacency(graph: Any) -> NDArray[np.int8]:
    """Return the adjacency matrix of a CPDAG, of the CPDAG of a DAG, or a given matrix."""
    complete = graph.to_cpdag() if hasattr(graph, "to_cpdag") else graph
    out = np.asarray(getattr(complete, "adjacency", complete))
    if out.ndim != 2 or out.shape[0] != out.shape[1] or not np.isin(out, (0, 1)).all():
        reason = "a graph must be a CPDAG, a DAG or a square array of 0 and 1"
        raise DataError("invalid-graph", reason)
    return out.astype(np.int8)


def relabel_law(law: LatentLaw, order: NDArray[np.int64], flips: NDArray[np.bool_]) -> LatentLaw:
    """Return the law with its latents in another order, and levels reversed where asked.

    Parameters
    ----------
    law : LatentLaw
    order : ndarray of int, shape (K,), position k gets latent ``order[k]``
    flips : ndarray of bool, shape (K,), whether the levels at position k are reversed
    """
    sizes = law.space.levels
    if isinstance(law, NetworkLaw):
        pairs = zip(order, flips, strict=True)
        return law.relabelled(
            order, [np.arange(sizes[k])[:: -1 if flip else 1] for k, flip in pairs]
        )
    table = _relabel_table(law.probabilities, sizes, order, flips)
    return SaturatedLaw(StateSpace(tuple(sizes[k] for k in order)), table)


def _relabel_table(
    values: NDArray[Any], levels: tuple[int, ...], order: Order, flips: Flips
) -> NDArray[Any]:
    """Return values of joint states (S,) with the latents reordered and some reversed."""
    table = values.reshape(levels).transpose(order)
    return np.flip(table, tuple(np.flatnonzero(flips).tolist())).reshape(-1)


@dataclass(frozen=True)
class Matching:
    """A matching of estimated to true latents."""

    permutation: tuple[int, ...]  # estimated latent of each true one; -1 if there is none
    flips: tuple[bool, ...]  # whether the levels of that latent have to be reversed
    extra: tuple[int, ...] = ()  # unmatched estimated latents


def total_variation(law: LatentLaw | None, other: LatentLaw | None) -> float:
    """Return the total variation distance of two latent distributions, ``law`` and ``other``.

    NaN if one is absent, the state spaces differ, or there are too many states to list.
    """
    if law is None or other is None or law.space != other.space or not law.space.listable:
        return float("nan")
    return 0.5 * float(np.abs(law.probabilities - other.probabilities).sum())


def match_latents(
    estimate: object, truth: object, *, allowed: NDArray[np.bool_] | None = None
) -> Matching:
    """Return the matching of estimated to true latents with the largest agreement.

    The matching minimises the number of wrong entries of Q (an assignment problem). Ties are broken
    by the loadings, then by the latent distribution. A latent is flipped if its loadings have the
    opposite sign, or, without loadings, if that brings the distributions closer. Loadings of
    nominal items are used if both models have the categories in the same order.

    Parameters
    ----------
    estimate, truth : object
        Fitted estimators, results, truths or :class:`Parts`; the numbers of latents may differ.
    allowed : ndarray of bool, shape (K true, K estimated), optional
        Pairs that may be matched; others are matched only if no complete matching avoids them.
    """
    ours, true = Parts.of(estimate), Parts.of(truth)
    if ours.questions != true.questions:
        # The rows of coefficients that have the same meaning in both.
        theirs = set(true.questions)
        common = [question for question in ours.questions if question in theirs]
        ours, true = ours._select_questions(common), true._select_questions(common)
    if len(ours.q_matrix) != len(true.q_matrix):
        reason = "estimate and truth must have the same items, got {n_estimated} and {n_true}"
        sizes = {"n_estimated": len(ours.q_matrix), "n_true": len(true.q_matrix)}
        raise DataError("different-items", reason, sizes)
    agreement = _agreement(ours, true)
    if allowed is not None:
        # One pair that is not allowed costs more than agreement in all of Q gains.
        worst = agreement.size * len(true.q_matrix)
        agreement[: true.n_latents, : ours.n_latents][~allowed] = -worst
    rows, columns = linear_sum_assignment(agreement, maximize=True)
    permutation = np.full(true.n_latents, -1, dtype=np.int64)
    inside = (rows < true.n_latents) & (columns < ours.n_latents)
    permutation[rows[inside]] = columns[inside]
    # Signs that relate true (rows) and estimated loadings (columns); 0 if undefined.
    direction = np.zeros((true.n_latents, ours.n_latents))
    if true.strengths is not None and ours.strengths is not None:
        direction = np.sign(true.strengths.T @ ours.strengths)
    matched = permutation >= 0
    flips = np.zeros(true.n_latents, dtype=bool)
    flips[matched] = direction[np.flatnonzero(matched), permutation[matched]] < 0
    if ours.n_latents == true.n_latents:
        permutation, flips = _break_ties(ours, true, agreement, direction, permutation, flips)
    extra = sorted(set(range(ours.n_latents)) - set(permutation.tolist()))
    return Matching(tuple(permutation.tolist()), tuple(flips.tolist()), tuple(extra))


def _agreement(ours: Parts, true: Parts) -> NDArray[np.float64]:
    """Return the agreement of true (rows) and estimated latents (columns), zero-padded square."""
    size = max(ours.n_latents, true.n_latents)
    out = np.zeros((size, size))
    share = SAME_LEVELS * (np.array(true.levels)[:, None] == np.array(ours.levels))
    a, b = true.strengths, ours.strengths
    if a is not None and b is not None:
        norm_a, norm_b = (a**2).sum(axis=0)[:, None], (b**2).sum(axis=0)[None, :]
        # Squared distance to the column or to its mirror image, whichever is nearer.
        distance = np.maximum(norm_a + norm_b - 2 * np.abs(a.T @ b), 0.0)
        share = share + SAME_LOADINGS / (1.0 + np.sqrt(distance))
    # The number of ones in Q is fixed, so the most common ones mean the fewest differing entries.
    common = true.q_matrix.T.astype(np.int64) @ ours.q_matrix
    out[: true.n_latents, : ours.n_latents] = common + share / (size + 1)
    return out


def _break_ties(
    ours: Parts, true: Parts, agreement: Array, direction: Array, permutation: Order, flips: Flips
) -> tuple[Order, Flips]:
    """Return the matching after exchanges and flips, of equal agreement, that bring laws closer."""
    if ours.law is None or true.law is None or true.law.space.n_states > MAX_STATES_FOR_TIES:
        return permutation, flips
    law, target = ours.law, true.law
    best = total_variation(relabel_law(law, permutation, flips), target)
    improved = not np.isnan(best)
    while improved:
        improved = False
        for i, j in combinations_with_replacement(range(true.n_latents), 2):
            for order, flipped in _moves(i, j, agreement, direction, permutation, flips):
                value = total_variation(relabel_law(law, order, flipped), target)
                if value < best - TIE:
                    best, permutation, flips, improved = value, order, flipped, True
    return permutation, flips


def _moves(
    i: int, j: int, agreement: Array, direction: Array, permutation: Order, flips: Flips
) -> list[tuple[Order, Flips]]:
    """Return the matchings that differ at latents i and j only, with the same agreement."""
    out = []
    places = sorted({i, j})
    for exchange in (False, True) if i != j else (False,):
        order = permutation.copy()
        if exchange:
            order[[i, j]] = permutation[[j, i]]
            before = agreement[i, permutation[i]] + agreement[j, permutation[j]]
            if agreement[i, order[i]] + agreement[j, order[j]] < before - TIE:
                continue
        # Loadings determine the flip unless their direction is undefined.
        signs = [direction[k, order[k]] for k in places]
        choices = [(sign < 0,) if sign else (False, True) for sign in signs]
        for flip in product(*choices):
            flipped = flips.copy()
            flipped[places] = flip
            if exchange or (flipped != flips).any():
                out.append((order, flipped))
    return out
