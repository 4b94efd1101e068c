"""Certificates of fits: conditions that Q leaves open, decided by the fitted parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import DataError, SettingError
from hidag.formatting import plural
from hidag.identifiability.certificate import Certificate, assemble, check_identifiability
from hidag.identifiability.design import MeasurementDesign, read_design
from hidag.identifiability.findings import Condition, Finding, join_names
from hidag.identifiability.fitted_conditions import (
    FittedModel,
    estimable_designs,
    item_tables,
    mask_undetermined,
)
from hidag.identifiability.information import ResponseModel, information_rank
from hidag.identifiability.strict_conditions import (
    find_equal_states,
    outside_identity_blocks,
    separation_condition,
    states_separated,
    unseparated_latents,
)
from hidag.latent.laws import SaturatedLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import ALL_ORDERS, Effects

if TYPE_CHECKING:
    from hidag.results import FitResult

Array = NDArray[np.float64]

#: Relative tolerance for predictors that must not depend on a latent, and for probabilities.
_RELATIVE = 1e-8
#: Null directions that the sentence names; the witness has all of them.
_MAX_DIRECTIONS = 3
#: Up to this many joint states predictors are computed for all of them; beyond that each item is
#: examined over its own latents only, and the information is not computed.
MOST_LISTED_STATES = 1 << 13


@dataclass(frozen=True, eq=False)
class FittedItems:
    """Fitted parameters of the items.

    Attributes
    ----------
    eta : array-like, shape (J, S)
        Linear predictor of every item in every joint state, numbered as in
        `hidag.latent.StateSpace` (the last latent changes fastest).
    dispersion : array-like, shape (J,), or None
        None means 1.
    cutpoints : array-like, shape (J, C), or None
        Cutpoints of ordinal items beyond the first, as in `MeasurementParameters`.
    """

    eta: ArrayLike
    dispersion: ArrayLike | None = None
    cutpoints: ArrayLike | None = None


def certify_fit(
    q_matrix: Any,
    items: FittedItems | ArrayLike,
    probabilities: ArrayLike,
    *,
    effects: str | int = "main",
    levels: int | Sequence[int] = 2,
    families: str | Sequence[str] | Mapping[str, str] | None = None,
    information: bool = True,
    random_state: int = 0,
) -> Certificate:
    """Return the certificate of fitted parameters.

    Parameters
    ----------
    q_matrix : array-like or data frame, shape (J, K)
        Ones and zeros.
    items : FittedItems, or array-like, shape (J, S)
        Fitted items, or their linear predictors alone.
    probabilities : array-like, shape (S,)
        Latent distribution over joint states.
    effects, levels, families
        As in `check_identifiability`.
    information : bool, default=True
        Whether to compute the rank of the information, which needs the families.
    random_state : int
        Seed of the responses from which the rank is computed if they cannot be listed.

    Raises
    ------
    DataError
        If shapes do not agree, or a predictor depends on a latent for which Q is 0.
    """
    design = read_design(q_matrix, effects=effects, levels=levels, families=families)
    if not isinstance(items, FittedItems):
        items = FittedItems(items)
    fitted = _read_parameters(design, items, probabilities)
    return certify_parameters(design, fitted, information=information, random_state=random_state)


def certify_parameters(
    design: MeasurementDesign,
    fitted: FittedModel,
    *,
    information: bool = True,
    random_state: int = 0,
) -> Certificate:
    """Return the certificate of a fitted model; parameters as in :func:`certify_fit`."""
    extra = []
    if information and design.families is not None:
        extra.append(full_rank(design, fitted, random_state=random_state))
    return assemble(design, fitted, separated=fitted_states_separated(design, fitted), extra=extra)


def certify_q_matrix(fit: FitResult) -> Certificate:
    """Return the certificate of the fit's Q-matrix, for any coefficients."""
    return check_identifiability(_design(fit, fit.q_matrix, fit.families))


def certify_result(fit: FitResult, *, information: bool = True) -> Certificate:
    """Return the certificate of a fit, with the rank of the Fisher information if requested."""
    # A nominal item has several responses; only the first counts as an item of the design.
    items = fit.parameters.reordered(items=fit.responses.starts)
    design = _design(fit, items.q_matrix, items.families)
    space = fit.law.space
    eta = items.predictors(space.states()) if space.n_states <= MOST_LISTED_STATES else None
    tables = mask_undetermined(design, _tables_of_parameters(items, design.q, space.levels))
    fitted = FittedModel(tables, fit.law, eta, items.dispersion, items.cutpoints)
    return certify_parameters(design, fitted, information=information)


def fitted_states_separated(design: MeasurementDesign, fitted: FittedModel) -> Finding:
    """Check whether fitted items outside the identity blocks separate all possible states."""
    by_q = states_separated(design)
    if by_q.status == "fails":
        return by_q
    condition = separation_condition(design)
    rest = outside_identity_blocks(design.q)
    if fitted.eta is None:
        tables = [fitted.tables[j] for j in np.flatnonzero(rest)]
        names = design.latents(unseparated_latents(tables, design.q[rest]))
        if names:
            return condition.undecided(
                "no single item outside the identity blocks separates all states that differ in "
                f"{join_names(names)}, and {fitted.law.space.n_states_text()} joint states are "
                "too many to compare in all items",
                {"latents": names},
                f"add an item that loads on one latent alone, for {join_names(names)}",
            )
        equal = None
    else:
        possible = _possible(design, fitted.eta.shape[1])
        equal = find_equal_states(fitted.eta[np.ix_(rest, possible)])
    if equal is None:
        kind = "states" if design.ruled_out is None else "possible states"
        return condition.holds(
            f"with the fitted coefficients any two {kind} differ in an item outside the identity "
            "blocks"
        )
    names = design.state_names(possible[list(equal)])
    return condition.fails(
        f"with the fitted coefficients the states {names[0]} and {names[1]} (levels in the order "
        "of the latents) have equal predictors in all items outside the identity blocks",
        {"states": names},
        "add an item on a latent in which these states differ",
    )


def full_rank(design: MeasurementDesign, fitted: FittedModel, *, random_state: int = 0) -> Finding:
    """Check whether the information about all parameters has full rank at the fit."""
    condition = Condition("information", "numerical check", required=False)
    if fitted.eta is None:
        states = fitted.law.space.n_states_text()
        return condition.undecided(
            f"the information over {states} joint states is too large to compute"
        )
    designs, feature_names = estimable_designs(design)
    possible = _possible(design, fitted.eta.shape[1])
    model = ResponseModel.create(
        fitted.eta[:, possible],
        np.asarray(fitted.law.probabilities)[possible],
        design.families or (),
        fitted.dispersion,
        fitted.cutpoints,
    )
    names = model.parameter_names(design.item_names, feature_names, design.state_names(possible))
    try:
        found = information_rank(model, designs, names, random_state=random_state)
    except SettingError as error:
        return condition.undecided(str(error))
    witness: dict[str, Any] = {"rank": found.rank, "parameters": found.n_parameters}
    if found.full:
        return condition.holds(
            f"the Fisher information has full rank: all {found.n_parameters} parameters are "
            f"locally identified (smallest singular value {found.weakest:.1g} of the largest)",
            witness,
        )
    n_flat = found.n_parameters - found.rank
    directions = [str(direction) for direction in found.flat[:_MAX_DIRECTIONS]]
    if n_flat > _MAX_DIRECTIONS:
        directions.append(f"and {n_flat - _MAX_DIRECTIONS} more")
    return condition.fails(
        f"the Fisher information has rank {found.rank} for {found.n_parameters} parameters: the "
        "distribution of the data does not change, to first order, along "
        f"{plural(n_flat, 'direction')}: {'; '.join(directions)}",
        {**witness, "flat": [dict(zip(d.names, d.amounts, strict=True)) for d in found.flat]},
        "fix one parameter of each direction, or add items on the latents they name",
    )


def _read_parameters(
    design: MeasurementDesign, items: FittedItems, probabilities: ArrayLike
) -> FittedModel:
    table = np.asarray(items.eta, dtype=np.float64)
    law = np.asarray(probabilities, dtype=np.float64)
    space = StateSpace(design.levels)
    expected = (design.n_items, space.n_states)
    if table.shape != expected or law.shape != expected[1:]:
        raise DataError(
            "wrong-shape",
            "eta must have shape {expected} (items, joint states) and probabilities {states}, got "
            "{eta} and {probabilities}",
            expected=expected,
            states=expected[1:],
            eta=table.shape,
            probabilities=law.shape,
        )
    if not np.isfinite(table).all() or not (law >= 0).all() or abs(law.sum() - 1) > _RELATIVE:
        raise DataError(
            "invalid-parameters",
            "eta must be finite, and probabilities must be nonnegative and sum to 1, but they sum "
            "to {total:g}",
            total=law.sum(),
        )
    grid = table.reshape(design.n_items, *design.levels)
    span = np.ptp(table, axis=1)
    for k, name in enumerate(design.latent_names):
        change = np.ptp(grid, axis=1 + k).reshape(design.n_items, -1).max(axis=1)
        wrong = np.flatnonzero(~design.q[:, k] & (change > _RELATIVE * np.maximum(span, 1e-300)))
        if len(wrong):
            raise DataError(
                "predictor-against-q",
                "the Q-matrix is 0 for item {item!r} and latent {latent!r}, but the predictor of "
                "the item depends on the latent",
                advice="use the Q-matrix of the same fit",
                item=design.item_names[wrong[0]],
                latent=name,
            )
    return FittedModel(
        item_tables(table, design.q, design.levels),
        SaturatedLaw(space, law),
        table,
        *(None if a is None else np.asarray(a, float) for a in (items.dispersion, items.cutpoints)),
    )


def _possible(design: MeasurementDesign, n_states: int) -> NDArray[np.intp]:
    """Return the numbers of the joint states that were not ruled out."""
    every = np.arange(n_states)
    return every if design.ruled_out is None else every[~design.ruled_out]


def _tables_of_parameters(
    items: MeasurementParameters, q: NDArray[np.bool_], levels: tuple[int, ...]
) -> tuple[Array, ...]:
    """Return each item's predictor over its own latents, one axis for each of them."""
    out = []
    for row, intercept, loadings in zip(q, items.intercept, items.loadings, strict=True):
        own = tuple(level for level, has in zip(levels, row, strict=True) if has)
        patterns = StateSpace(own).states() if own else np.zeros((1, 0), dtype=np.int64)
        states = np.zeros((len(patterns), len(levels)), dtype=np.int64)
        states[:, row] = patterns
        out.append((intercept + items.terms.features(states) @ loadings).reshape(own))
    return tuple(out)


def _design(fit: FitResult, q: NDArray[np.int8], families: tuple[str, ...]) -> MeasurementDesign:
    effects = Effects.of(fit.settings.get("effects", "main"))
    return MeasurementDesign(
        q == 1,
        fit.item_names,
        fit.latent_names,
        fit.law.space.levels,
        None if effects.highest >= ALL_ORDERS else effects.highest,
        families,
        effects.conjunctive,
        fit.ruled_out,
    )
