"""The certificate of a fit: what Q leaves open, decided by fitted predictors and the fitted law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import DataError, SettingError
from hidag.identifiability.assumptions import Fitted
from hidag.identifiability.certificate import Certificate, assemble, check_identifiability
from hidag.identifiability.design import MeasurementDesign, read_design
from hidag.identifiability.findings import Finding, counted, join_names
from hidag.identifiability.fitted_conditions import only_told, own_tables, told_designs
from hidag.identifiability.information import information_rank
from hidag.identifiability.strict_conditions import (
    latents_not_shown,
    outside_identity_blocks,
    rest_tells_states_apart,
    same_predictors,
    strict_theorem,
)
from hidag.latent.laws import SaturatedLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import ALL_ORDERS, Effects

if TYPE_CHECKING:
    from hidag.results import FitResult


#: Predictors that should not depend on a latent may differ by this share of the item's range.
_RELATIVE = 1e-8
#: Flat directions that a sentence spells out; the witness has all of them.
_SPELT_OUT = 3


def certify_fit(
    q_matrix: Any,
    eta: ArrayLike,
    probabilities: ArrayLike,
    *,
    effects: str | int = "main",
    levels: int | Sequence[int] = 2,
    families: str | Sequence[str] | Mapping[str, str] | None = None,
    dispersion: ArrayLike | None = None,
    cutpoints: ArrayLike | None = None,
    information: bool = True,
    random_state: int = 0,
) -> Certificate:
    """Return the certificate of fitted parameters: Q's conditions, and those a fit can decide.

    Parameters
    ----------
    q_matrix : array-like or data frame, shape (J, K)
        Ones and zeros.
    eta : array-like, shape (J, S)
        Linear predictor of every item in every joint state, numbered as in
        `hidag.latent.StateSpace` (the last latent changes fastest).
    probabilities : array-like, shape (S,)
        Joint law of the latents.
    effects, levels, families
        As in `check_identifiability`.
    dispersion : array-like, shape (J,), optional
        1 by default.
    cutpoints : array-like, shape (J, C), optional
        Cutpoints of ordered grades beyond the first, as `MeasurementParameters` has them.
    information : bool, default=True
        Whether to compute the rank of the information, which needs the families.
    random_state : int
        Seed of the answers that the rank is computed from where they cannot be listed.

    Raises
    ------
    DataError
        If the tables do not fit each other, or a predictor depends on a latent that Q denies it.
    """
    design = read_design(q_matrix, effects=effects, levels=levels, families=families)
    given = [None if a is None else np.asarray(a, float) for a in (dispersion, cutpoints)]
    return certify_parameters(
        design,
        _read_fit(design, eta, probabilities),
        *given,
        information=information,
        random_state=random_state,
    )


def certify_parameters(
    design: MeasurementDesign,
    fitted: Fitted,
    dispersion: NDArray[np.float64] | None = None,
    cutpoints: NDArray[np.float64] | None = None,
    *,
    information: bool = True,
    random_state: int = 0,
) -> Certificate:
    """Return what `certify_fit` returns, for parts of a fit that go together."""
    extra = []
    if information and design.families is not None:
        extra.append(full_rank(design, fitted, dispersion, cutpoints, random_state=random_state))
    return assemble(design, fitted, distinct=fitted_states_differ(design, fitted), extra=extra)


def fitted_states_differ(design: MeasurementDesign, fitted: Fitted) -> Finding:
    """Return whether fitted items outside the identity blocks tell all states apart."""
    by_q = rest_tells_states_apart(design)
    if by_q.status == "fails":
        return by_q
    source = f"{strict_theorem(design)} (ii)"
    rest = outside_identity_blocks(design.q)
    alike = None
    if fitted.eta is not None:
        possible = _possible(design, fitted.eta.shape[1])
        alike = same_predictors(fitted.eta[np.ix_(rest, possible)])
        if alike is not None:
            alike = int(possible[alike[0]]), int(possible[alike[1]])
    else:
        tables = [fitted.tables[j] for j in np.flatnonzero(rest)]
        hidden = latents_not_shown(tables, design.q[rest])
        if len(hidden):
            names = design.latents(hidden)
            return Finding(
                "distinct-states",
                source,
                "undecided",
                f"outside the two blocks no item by itself shows every difference in "
                f"{join_names(names)}, and {fitted.law.space.n_states_text()} joint states are "
                f"too "
                "many to compare in all items together",
                {"latents": names},
                f"add an item that loads on one latent alone, for {join_names(names)}",
            )
    occurring = "" if design.ruled_out is None else " that may occur"
    if alike is None:
        return Finding(
            "distinct-states",
            source,
            "holds",
            f"with the fitted coefficients any two states{occurring} differ in an item outside the "
            "two blocks",
        )
    names = [_state_name(design, state) for state in alike]
    return Finding(
        "distinct-states",
        source,
        "fails",
        f"with the fitted coefficients the states {names[0]} and {names[1]} (levels in the order "
        "of the latents) look alike in all items outside the two blocks",
        {"states": names},
        "add an item on a latent in which these states differ",
    )


def full_rank(
    design: MeasurementDesign,
    fitted: Fitted,
    dispersion: NDArray[np.float64] | None = None,
    cutpoints: NDArray[np.float64] | None = None,
    *,
    random_state: int = 0,
) -> Finding:
    """Return whether the information about all parameters has full rank at the fit."""
    source = "numerical check"
    if fitted.eta is None:
        sentence = (
            f"the information over {fitted.law.space.n_states_text()} joint states is too large "
            "to compute; it was not checked"
        )
        return Finding("information", source, "undecided", sentence, required=False)
    designs, feature_names = told_designs(design)
    possible = _possible(design, fitted.eta.shape[1])
    try:
        found = information_rank(
            fitted.eta[:, possible],
            designs,
            np.asarray(fitted.law.probabilities)[possible],
            levels=design.levels,
            state_names=[_state_name(design, int(state)) for state in possible],
            families=design.families or (),
            dispersion=dispersion,
            cutpoints=cutpoints,
            item_names=design.item_names,
            feature_names=feature_names,
            random_state=random_state,
        )
    except SettingError as error:
        return Finding("information", source, "undecided", str(error), required=False)
    if found.full:
        return Finding(
            "information",
            source,
            "holds",
            f"no direction is flat: all {found.n_parameters} parameters can be told apart from "
            f"their neighbours (weakest direction {found.weakest:.1g} of the strongest)",
            {"rank": found.rank, "parameters": found.n_parameters},
            required=False,
        )
    n_flat = found.n_parameters - found.rank
    shown = "; ".join(str(direction) for direction in found.flat[:_SPELT_OUT])
    more = "" if n_flat <= _SPELT_OUT else f"; and {n_flat - _SPELT_OUT} more"
    return Finding(
        "information",
        source,
        "fails",
        f"the information has rank {found.rank} for {found.n_parameters} parameters: the data do "
        f"not change, to first order, along {counted(n_flat, 'direction')}: {shown}{more}",
        {
            "rank": found.rank,
            "parameters": found.n_parameters,
            "flat": [dict(zip(d.names, d.amounts, strict=True)) for d in found.flat],
        },
        "fix one parameter of each direction, or add items on the latents they name",
        required=False,
    )


def _read_fit(design: MeasurementDesign, eta: ArrayLike, probabilities: ArrayLike) -> Fitted:
    table = np.asarray(eta, dtype=np.float64)
    law = np.asarray(probabilities, dtype=np.float64)
    space = StateSpace(design.levels)
    expected = (design.n_items, space.n_states)
    if table.shape != expected or law.shape != expected[1:]:
        raise DataError(
            f"eta must have shape {expected} (items, joint states) and probabilities "
            f"{expected[1:]}, got {table.shape} and {law.shape}"
        )
    if not np.isfinite(table).all() or not (law >= 0).all() or abs(law.sum() - 1) > _RELATIVE:
        raise DataError(
            "eta must be finite, and probabilities must not be negative and must add up to 1, but "
            f"they add up to {law.sum():g}"
        )
    grid = table.reshape(design.n_items, *design.levels)
    span = np.ptp(table, axis=1)
    for k, name in enumerate(design.latent_names):
        moves = np.ptp(grid, axis=1 + k).reshape(design.n_items, -1).max(axis=1)
        wrong = np.flatnonzero(~design.q[:, k] & (moves > _RELATIVE * np.maximum(span, 1e-300)))
        if len(wrong):
            raise DataError(
                f"Q says that item {design.item_names[wrong[0]]!r} does not depend on latent "
                f"{name!r}, but its predictor does; give the Q-matrix of the same fit"
            )
    tables = own_tables(table, design.q, design.levels)
    return Fitted(tables, SaturatedLaw(space, law), table)


def _possible(design: MeasurementDesign, n_states: int) -> NDArray[np.intp]:
    """Return the numbers of the joint states that were not ruled out."""
    every = np.arange(n_states)
    return every if design.ruled_out is None else every[~design.ruled_out]


def _state_name(design: MeasurementDesign, state: int) -> str:
    return "".join(map(str, np.unravel_index(state, design.levels)))


# --- What a fit lets be identified: by its Q alone, or by its coefficients and its law too

#: Up to so many joint states predictors are listed in all of them, to compare states and for the
#: rank of the information; beyond, each item is looked at over its own latents only.
MOST_LISTED_STATES = 1 << 13


def certify_q_matrix(fit: FitResult) -> Certificate:
    """Return what the fit's Q lets be identified, whatever its coefficients are."""
    return check_identifiability(_question(fit, fit.q_matrix, fit.families))


def certify_result(fit: FitResult, *, information: bool = True) -> Certificate:
    """Return what the fitted coefficients and the law let be identified.

    With ``information``, the rank of the Fisher information too.
    """
    # A nominal item stands in the blocks once, by its first response: more would count twice.
    items = fit.parameters.reordered(items=fit.responses.starts)
    design = _question(fit, items.q_matrix, items.families)
    space = fit.law.space
    eta = items.predictors(space.states()) if space.n_states <= MOST_LISTED_STATES else None
    return certify_parameters(
        design,
        Fitted(only_told(design, _own_tables(items, design.q, space.levels)), fit.law, eta),
        items.dispersion,
        items.cutpoints,
        information=information,
    )


def _own_tables(
    items: MeasurementParameters, q: NDArray[np.bool_], levels: tuple[int, ...]
) -> tuple[NDArray[np.float64], ...]:
    """Return each item's predictor over its own latents, an axis for each of them."""
    out = []
    for row, intercept, loadings in zip(q, items.intercept, items.loadings, strict=True):
        own = tuple(level for level, has in zip(levels, row, strict=True) if has)
        patterns = StateSpace(own).states() if own else np.zeros((1, 0), dtype=np.int64)
        states = np.zeros((len(patterns), len(levels)), dtype=np.int64)
        states[:, row] = patterns
        out.append((intercept + items.terms.features(states) @ loadings).reshape(own))
    return tuple(out)


def _question(fit: FitResult, q: NDArray[np.int8], families: tuple[str, ...]) -> MeasurementDesign:
    effects = Effects.of(fit.settings.get("effects", "main"))
    return MeasurementDesign.about(
        q == 1,
        fit.item_names,
        fit.latent_names,
        fit.law.space.levels,
        None if effects.highest >= ALL_ORDERS else effects.highest,
        families,
        conjunctive=effects.conjunctive,
        ruled_out=fit.ruled_out,
    )
