"""The numbers that observed and expected are compared in: one per item, one per category else.

Most items are their own number. Lognormal times are compared on the log scale, where no single time
rules a covariance, and are called ``log(item)``; times that end at a limit are called
``min(item, limit)``, because that is what is compared. A nominal item has a yes or no for each of
its categories but the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidag.explain.free_parameters import FreeParameters
from hidag.explain.item_channels import auxiliary_of, shaped
from hidag.explain.over_states import OverStates
from hidag.explain.state_tables import ListedTables
from hidag.measurement import Family, MeasurementParameters, family_named
from hidag.measurement.families import split_name, written
from hidag.measurement.families.censored import CensoredLognormal
from hidag.measurement.families.gaussian import Lognormal
from hidag.measurement.families.ordinal import Ordinal
from hidag.measurement.responses import categorical_named, worded
from hidag.result import FitResult

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Families whose items take finitely many values.
_FINITE = ("bernoulli", "bernoulli-probit", "bernoulli-cloglog", "binomial", "ordinal")


@dataclass(frozen=True)
class ScoredColumns:
    """G columns of numbers with what the model expects of them.

    Attributes
    ----------
    names : tuple of str, length G
    item : ndarray of int, shape (G,)
        Ascending.
    values : ndarray, shape (N, G)
        NaN where nothing was observed.
    expected : OverStates
        What is expected in each state.
    categorical : ndarray of bool, shape (G,)
        Whether the item takes finitely many values.
    """

    names: tuple[str, ...]
    item: Indices
    values: Array
    expected: OverStates
    categorical: NDArray[np.bool_]

    @property
    def means(self) -> Array:
        """What is expected in each joint state, shape (S, G); only where these are listed."""
        assert isinstance(self.expected.tables, ListedTables)
        return self.expected.parts[0]

    @classmethod
    def of(cls, free: FreeParameters, values: Array) -> ScoredColumns:
        """Return the columns of a table (N, J) under a fit.

        The table is as the families take it: :func:`hidag.explain.rows.taken_rows`.
        """
        result, tables = free.result, free.tables
        names, item = zip(*column_names(result), strict=True)
        columns: list[Array] = []
        finite: list[bool] = []
        for j, name in enumerate(result.families):
            nominal = categorical_named(name)
            x = values[:, j]
            if nominal is not None:
                for category in nominal.categories[:-1]:
                    columns.append(np.where(np.isnan(x), np.nan, x == category))
                    finite.append(True)
                continue
            family = family_named(name)
            columns.append(family.to_working(x) if family.is_location_scale else x)
            finite.append(split_name(name)[0] in _FINITE)
        of_item = tables.of_response[result.responses.starts]
        parts = {}
        for t in np.unique(of_item).tolist():
            eta = result.parameters.predictors(tables.states(t))
            own = np.flatnonzero(of_item == t).tolist()
            parts[t] = np.vstack([item_means(result, result.parameters, j, eta) for j in own]).T
        place = np.array(item, dtype=np.intp)
        return cls(
            names,
            place,
            np.column_stack(columns),
            OverStates(tables, of_item[place], parts),
            np.array(finite),
        )

    def selected(self, columns: Indices) -> ScoredColumns:
        """Return some of the columns, in their order."""
        return ScoredColumns(
            tuple(self.names[g] for g in columns),
            self.item[columns],
            self.values[:, columns],
            self.expected.selected(columns),
            self.categorical[columns],
        )

    def pairs(self) -> tuple[Indices, Indices]:
        """Return the pairs of columns of different items, the first one's item before."""
        left, right = np.triu_indices(len(self.names), 1)
        apart = self.item[left] != self.item[right]
        return left[apart], right[apart]


def column_names(result: FitResult) -> list[tuple[str, int]]:
    """Return what the columns of a fit are called, with the item of each."""
    out, words = [], result.answer_words
    for j, (item, name) in enumerate(zip(result.item_names, result.families, strict=True)):
        nominal = categorical_named(name)
        if nominal is None:
            out.append((_compared_name(item, family_named(name)), j))
        else:
            out += [(f"{item}={worded(c, words.get(item))}", j) for c in nominal.categories[:-1]]
    return out


def _compared_name(item: str, family: Family) -> str:
    if isinstance(family, Lognormal):
        return f"log({item})"
    if isinstance(family, CensoredLognormal):
        return f"min({item}, {written(family.limit)})"
    return item


def item_means(
    result: FitResult, parameters: MeasurementParameters, item: int, eta: Array
) -> Array:
    """Return the means of an item's columns given predictors (R, S) of all responses, (G_j, S)."""
    own = np.flatnonzero(result.responses.item == item)
    nominal = categorical_named(result.families[item])
    if nominal is not None:
        yes = family_named(parameters.families[own[0]]).response_mean(eta[own], np.ones(1))
        return nominal.probabilities(yes.T)[:, :-1].T
    family = family_named(parameters.families[own[0]])
    if family.is_location_scale:
        return eta[own]
    aux = shaped(family, auxiliary_of(parameters, int(own[0])))
    return np.asarray(family.response_mean(eta[own[0]], aux))[None]


def telling_columns(complete: Array, item: Indices) -> NDArray[np.bool_]:
    """Return which columns (G,) vary, and not only as the others of their item do.

    A category that nobody chose has next to no variance to hold its moments against, and would
    count as degrees of freedom that cannot be missed.
    """
    out = np.asarray((complete != complete[0]).any(axis=0))
    for own in (np.flatnonzero(item == j) for j in np.unique(item)):
        if out[own].any() and len(own) > 1 and (complete[:, own].sum(axis=1) == 1.0).all():
            # Nobody chose the category without a column: of the others, too, the last one goes.
            out[own[np.flatnonzero(out[own])[-1]]] = False
    return out


def item_second_moments(result: FitResult, item: int, eta: Array) -> Array:
    """Return E[h_a h_b | state] of a categorical item's columns, shape (G_j, G_j, S)."""
    parameters = result.parameters
    own = np.flatnonzero(result.responses.item == item)
    means = item_means(result, parameters, item, eta)
    if categorical_named(result.families[item]) is not None:
        # One category at a time: products of different ones are zero.
        return np.asarray(np.einsum("ab,as->abs", np.eye(len(means)), means))
    name = result.families[item]
    family = family_named(name)
    if isinstance(family, Ordinal):
        aux = shaped(family, auxiliary_of(parameters, int(own[0])))
        chances = np.exp(family.log_probabilities(eta[own[0]], aux))
        grades = family.lowest + np.arange(family.n_grades)
        return np.asarray((grades**2 @ chances)[None, None])
    n_trials = float(getattr(family, "n_trials", 1.0))
    return np.asarray(means * (1.0 + (n_trials - 1.0) * means / n_trials))[None]
