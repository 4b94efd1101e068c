"""EM for tables of binary items without a penalty, compiled as a whole.

States that agree in the cells of all items are one class: the likelihood depends on the sum of
their probabilities only, and EM keeps their ratios.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hidag.config import CONFIG
from hidag.em.e_step import run_e_step
from hidag.em.em import Estimate, Problem, has_converged
from hidag.em.m_step import coefficient_scales
from hidag.kernels.cell_em import MOST_GROUPED, cell_em_steps
from hidag.kernels.coordinate_descent import FREE, ZERO
from hidag.measurement.families.base import family_named
from hidag.measurement.parameters import MeasurementParameters

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CellModel:
    """Binary items with a logistic link and free coefficients, by cells and classes of states."""

    problem: Problem
    weights: Array  # (N,)
    items: NDArray[np.int64]  # (G + 1,): first items of groups of neighbouring items, and J
    pattern: NDArray[np.int32]  # (N, G): pattern of a row's answers to a group's items
    patterns: NDArray[np.uint8]  # (G, M, I): their answers: 0, 1, or 2 for a missing cell
    n_patterns: NDArray[np.int64]  # (G,)
    classes: NDArray[np.intp]  # (S,): class of each state
    cell: NDArray[np.int32]  # (J, C): cell of each class, for C classes
    n_cells: NDArray[np.int64]  # (J,)
    columns: NDArray[np.intp]  # (J, P): free columns of the design, 1 + T for padding
    n_terms: NDArray[np.int64]  # (J,)
    design: Array  # (J, most cells, P): the terms in the cells
    inverse: Array  # (J, P, most cells): their inverse for saturated items
    saturated: NDArray[np.bool_]  # (J,): items with as many terms as cells
    scale: Array  # (J,): units of the coefficients

    @classmethod
    def of(cls, problem: Problem) -> CellModel | None:
        """Return the model of a problem, or None if it is of another kind or too large."""
        data, allowed, config = problem.data, problem.allowed, CONFIG.cells
        families = [family_named(name) for name in set(data.families)]
        if not all(one.is_logistic for one in families) or not np.isin(allowed, (ZERO, FREE)).all():
            return None
        found = [problem.basis.cells_of(row) for row in allowed]
        places = np.array([own.place for own in found])
        distinct, classes = np.unique(places, axis=1, return_inverse=True)
        most = max(len(own.values) for own in found)
        if data.n_samples * distinct.shape[1] > config.most_work or most > config.most_cells:
            return None
        n_items = len(found)
        n_cells = np.array([len(own.values) for own in found])
        n_terms = np.array([len(own.terms) for own in found])
        columns = np.full((n_items, n_terms.max()), allowed.shape[1])
        design = np.zeros((n_items, most, n_terms.max()))
        inverse = np.zeros((n_items, n_terms.max(), most))
        for j, own in enumerate(found):
            columns[j, : n_terms[j]] = own.terms
            design[j, : n_cells[j], : n_terms[j]] = own.values
            inverse[j, : n_terms[j], : n_cells[j]] = own.inverse
        saturated = np.array([own.saturated for own in found])
        answers = np.where(data.seen, data.x, 2.0).astype(np.uint8)
        return cls(
            problem,
            data.row_weights,
            *_group_items(answers, distinct.shape[1]),
            classes.ravel(),
            np.ascontiguousarray(distinct, dtype=np.int32),
            n_cells,
            columns,
            n_terms,
            design,
            inverse,
            saturated,
            coefficient_scales(data),
        )

    def fits(self, problem: Problem) -> bool:
        """Return whether this is the model of a problem, whatever its schedule."""
        own = self.problem
        same = own.data is problem.data and own.basis is problem.basis
        return same and own.allowed is problem.allowed


def run_cells(
    model: CellModel, problem: Problem, items: MeasurementParameters, law: Array
) -> Estimate:
    """Return what :func:`hidag.em.em.run_em` returns under a saturated law, from compiled steps."""
    m_step, em, schedule, data = CONFIG.m_step, CONFIG.em, problem.schedule, problem.data
    tolerance = schedule.tolerance * min(data.n_counted, em.max_tolerance_rows)
    padded = np.hstack([items.coefficients, np.zeros((data.n_items, 1))])
    rows = np.arange(data.n_items)[:, None]
    beta = np.ascontiguousarray(padded[rows, model.columns])
    before = np.bincount(model.classes, law, model.cell.shape[1]).astype(np.float64)
    of_class, longest = before.copy(), np.array([CONFIG.cells.extrapolation[1]])
    limits = (
        m_step.boundary_mean, m_step.ridge, float(schedule.n_newton),
        *CONFIG.cells.extrapolation, em.negligible_probability,
    )  # fmt: skip
    objectives: list[float] = []
    changes: list[float] = []
    converged = False
    while True:
        n_steps = min(em.gain_window, schedule.max_iter - len(changes))
        found, moved = np.empty(1 + n_steps), np.zeros(1 + n_steps)
        cell_em_steps(
            model.pattern, model.weights, model.items, model.patterns, model.n_patterns,
            model.cell, model.n_cells, model.n_terms, model.design, model.inverse,
            model.saturated, model.scale, beta, of_class, longest, found, moved, limits,
        )  # fmt: skip
        objectives += found[bool(objectives) :].tolist()
        changes += moved[1:].tolist()
        if problem.observer is not None:
            problem.observer(len(changes), schedule.max_iter, objectives[-1])
        converged = has_converged(objectives, tolerance)
        if converged or len(changes) >= schedule.max_iter:
            break
    padded[:] = 0.0
    padded[rows, model.columns] = beta
    items = replace(items, intercept=padded[:, 0], loadings=padded[:, 1:-1])
    # States share the probability of their class as they did at the start.
    n_members = np.bincount(model.classes)[model.classes]
    of_states = before[model.classes]
    share = np.where(of_states > 0, law / np.where(of_states > 0, of_states, 1.0), 1.0 / n_members)
    law = of_class[model.classes] * share
    statistics, value = run_e_step(items, law, data, problem.basis.features)
    trace = np.column_stack([objectives[1:], changes])
    return Estimate(items, law, value, value, len(changes), converged, trace, statistics)


def _group_items(
    answers: NDArray[np.uint8], n_classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8], NDArray[np.int64]]:
    """Return first items of groups, rows' patterns, the patterns' answers, and their numbers.

    The E-step visits a row once per group; a larger group has more patterns to tabulate.
    """
    n_rows, n_items = answers.shape
    sizes = np.arange(1, MOST_GROUPED + 1)
    n_patterns = np.minimum(2.0**sizes, n_rows)
    small = n_patterns * n_classes <= CONFIG.cells.most_table_cells
    cost = np.where(small | (sizes == 1), (n_patterns * sizes + n_rows) / sizes, np.inf)
    size = int(sizes[np.argmin(cost)])
    items = np.append(np.arange(0, n_items, size), n_items)
    found = [
        np.unique(answers[:, first:last], axis=0, return_inverse=True)
        for first, last in pairwise(items)
    ]
    patterns = np.zeros((len(found), max(len(own) for own, _ in found), size), np.uint8)
    for g, (own, _) in enumerate(found):
        patterns[g, : len(own), : own.shape[1]] = own
    pattern = np.column_stack([place.ravel() for _, place in found]).astype(np.int32)
    return items, pattern, patterns, np.array([len(own) for own, _ in found])
