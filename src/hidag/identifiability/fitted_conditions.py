"""Conditions that need fitted parameters: monotone items, ties, estimable coefficients.

An item's predictor depends on its own latents only. It is stored as a table with one axis for each
of them, so no joint states are listed, however many latents there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from hidag.identifiability.design import MeasurementDesign
from hidag.identifiability.findings import Condition, Finding, join_names, with_noun
from hidag.identifiability.flow import Bools, Ints
from hidag.identifiability.strict_conditions import RELATIVE_TIE
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.latent.state_space import StateSpace

Array = NDArray[np.float64]

#: Smaller probabilities count as zero: no data set shows such a state.
SMALLEST_PROBABILITY = 1e-12
#: Relative rounding error of singular values and projections.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Fitted predictors and latent distribution.

    Attributes
    ----------
    tables : tuple of J ndarrays
        Linear predictor of each item, one axis for each of its latents; NaN where the possible
        states do not determine it.
    law : LatentLaw
    eta : ndarray, shape (J, S), or None
        Linear predictor of every item in every joint state; None if there are too many states.
    dispersion : ndarray, shape (J,), or None
    cutpoints : ndarray, shape (J, C), or None
    """

    tables: tuple[Array, ...]
    law: LatentLaw
    eta: Array | None = None
    dispersion: Array | None = None
    cutpoints: Array | None = None


def design_matrix(
    design: MeasurementDesign, row: Bools, states: NDArray[np.integer]
) -> tuple[Array, list[str]]:
    """Return the features of an item with a row of Q (K,) in states (n, K), (n, P), and names.

    The features are the constant, 1{Z_k >= u} for each latent of the item and each threshold
    u = 1, ..., M_k - 1, and products of indicators of different latents up to the order of effects.
    """
    columns, names = [np.ones(len(states))], ["intercept"]

    def name(latent: int, step: int) -> str:
        word = design.latent_names[latent]
        return word if design.levels[latent] == 2 else f"{word}>={step}"

    for size in range(1, design.order + 1):
        for latents in combinations(np.flatnonzero(row).tolist(), size):
            for steps in product(*(range(1, design.levels[k]) for k in latents)):
                reached = states[:, latents] >= np.array(steps)
                columns.append(np.asarray(reached.all(axis=1), dtype=np.float64))
                names.append("*".join(map(name, latents, steps)))
    return np.column_stack(columns), names


def estimable_designs(design: MeasurementDesign) -> tuple[list[Array], list[list[str]]]:
    """Return each item's design matrix over the possible states, shape (S, P_j), and names.

    Features that are linear combinations of earlier ones are left out.
    """
    states = possible_states(design)
    matrices, names = [], []
    for row in design.q:
        features, words = design_matrix(design, row, states)
        columns = list(range(len(words)))
        if design.ruled_out is not None:
            columns = _independent_columns(features)
        matrices.append(features[:, columns])
        names.append([words[c] for c in columns])
    return matrices, names


def _independent_columns(features: Array) -> list[int]:
    """Return the columns that are no linear combination of those before them."""
    out: list[int] = []
    for column in range(features.shape[1]):
        if np.linalg.matrix_rank(features[:, [*out, column]]) > len(out):
            out.append(column)
    return out


def possible_states(design: MeasurementDesign) -> Ints:
    """Return the joint states that were not ruled out, shape (n, K)."""
    states = StateSpace(design.levels).states()
    return states if design.ruled_out is None else states[~design.ruled_out]


def _possible_designs(design: MeasurementDesign) -> list[Array]:
    """Return for each item its features in the possible patterns of its latents, (n_j, P_j)."""
    states = possible_states(design)
    rows, place = np.unique(design.q, axis=0, return_inverse=True)
    found = [
        design_matrix(design, row, np.unique(np.where(row, states, 0), axis=0))[0] for row in rows
    ]
    return [found[number] for number in place.ravel()]


def n_estimable(design: MeasurementDesign) -> int:
    """Return the number of estimable coefficients of all items, intercepts included."""
    return sum(int(np.linalg.matrix_rank(features)) for features in _possible_designs(design))


def estimable_coefficients(design: MeasurementDesign) -> Finding | None:
    """Check whether the possible states determine all coefficients; None if all are possible."""
    if design.ruled_out is None:
        return None
    condition = Condition(
        "estimable-coefficients", "states that the hierarchy rules out", required=False
    )
    # Conjunctive items have one coefficient each.
    names = [] if design.conjunctive else [
        name
        for name, features in zip(design.item_names, _possible_designs(design), strict=True)
        if np.linalg.matrix_rank(features) < features.shape[1]
    ]  # fmt: skip
    if not names:
        return condition.holds("the possible states determine the coefficients of every item")
    return condition.fails(
        f"{with_noun('item', names)}: only sums of some coefficients are estimable, because the "
        "states that would separate them are ruled out; predictions in possible states do not "
        "depend on it",
        {"items": names},
        provably_bad=True,
    )


def mask_undetermined(design: MeasurementDesign, tables: Sequence[Array]) -> tuple[Array, ...]:
    """Return items' predictors with NaN where the possible states do not determine them.

    Parameters
    ----------
    design : MeasurementDesign
    tables : sequence of J ndarrays
        One axis for each of an item's latents.
    """
    if design.ruled_out is None:
        return tuple(tables)
    out = []
    for row, possible, table in zip(design.q, _possible_designs(design), tables, strict=True):
        every = np.zeros((table.size, design.n_latents), dtype=np.int64)
        every[:, row] = np.indices(table.shape).reshape(table.ndim, table.size).T
        _, sizes, right = np.linalg.svd(possible)
        null_space = right[int((sizes > _ROUNDING * sizes[0]).sum()) :]
        outside = design_matrix(design, row, every)[0] @ null_space.T
        determined = (outside**2).sum(axis=1) <= _ROUNDING
        out.append(np.where(determined.reshape(table.shape), table, np.nan))
    return tuple(out)


def item_tables(eta: Array, q: Bools, levels: tuple[int, ...]) -> tuple[Array, ...]:
    """Return each item's predictor over its own latents, others at their lowest level.

    Parameters
    ----------
    eta : ndarray, shape (J, S)
        Over joint states, numbered as in `hidag.latent.StateSpace`.
    q : ndarray of bool, shape (J, K)
    levels : tuple of int, length K
    """
    return tuple(
        np.asarray(line.reshape(levels)[tuple(slice(None) if own else 0 for own in row)])
        for line, row in zip(eta, q, strict=True)
    )


def not_maximal_at_top(tables: Sequence[Array]) -> Ints:
    """Return items whose predictor is not largest where all their latents are at the top level.

    This is Assumption 1(b), and for more than two levels the first part of its ordered analogue.
    """
    bad = []
    for j, table in enumerate(tables):
        values = table.ravel()
        others = values[:-1][~np.isnan(values[:-1])]
        if len(others) and not values[-1] > others.max():
            bad.append(j)
    return np.array(bad, dtype=np.int64)


def nonmonotone_steps(tables: Sequence[Array], q: Bools) -> list[tuple[int, int]]:
    """Return pairs (item, latent) whose predictor does not increase level by level.

    Second part of the ordered analogue: with the other latents of the item at their top levels,
    every step up in one latent must increase the predictor.
    """
    bad = []
    for j, table in enumerate(tables):
        for axis, k in enumerate(np.flatnonzero(q[j])):
            edge = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)[:, -1]
            if not (np.diff(edge[~np.isnan(edge)]) > 0).all():
                bad.append((j, int(k)))
    return bad


def loading_sums(tables: Sequence[Array], q: Bools) -> Array:
    """Return the sum over items of each latent's main effects, shape (K,) (Assumption 1'(b))."""
    out = np.zeros(q.shape[1])
    for j, table in enumerate(tables):
        for axis, k in enumerate(np.flatnonzero(q[j])):
            edge = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)[:, 0]
            out[k] += edge[1] - edge[0]
    return out


def items_with_ties(tables: Sequence[Array]) -> Ints:
    """Return items with equal predictors for different combinations of their latents."""
    bad = []
    for j, table in enumerate(tables):
        values = np.sort(table[~np.isnan(table)])
        if len(values) > 1 and np.diff(values).min() <= RELATIVE_TIE * (values[-1] - values[0]):
            bad.append(j)
    return np.array(bad, dtype=np.int64)


def zero_states(probabilities: Array) -> Ints:
    """Return the joint states with probability zero (Assumption 1(a) excludes them)."""
    return np.flatnonzero(~(probabilities > SMALLEST_PROBABILITY))


def zero_entries(design: MeasurementDesign, law: NetworkLaw) -> list[str]:
    """Return the zero entries of conditional probability tables, such as "B = 1 with A = 0".

    All joint states have positive probability if and only if there are none. The joint
    probabilities themselves are no criterion: with many latents every state is rare.
    """
    out = []
    for name, parents, table in zip(design.latent_names, law.parents, law.tables, strict=True):
        for where in np.argwhere(~(table > SMALLEST_PROBABILITY)).tolist():
            given = [
                f"{design.latent_names[a]} = {value}"
                for a, value in zip(parents, where[:-1], strict=True)
            ]
            out.append(f"{name} = {where[-1]}{' with ' * bool(given)}{join_names(given)}")
    return out
