"""Fits that might as well have been found: parameters drawn from their asymptotic law.

With graph and Q held, estimates err like a normal law whose covariance is the inverse of the
model's Fisher information times the number of rows. The information is that of the observed items,
so latents that items hardly show err more. Nothing is refitted and no data are needed; how unsure
the graph and Q are is not in these draws: a bootstrap shows that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hidag.errors import SettingError
from hidag.identify.scores import answers, auxiliaries, scores
from hidag.latent import LatentLaw, NetworkLaw, SaturatedLaw
from hidag.measurement import MeasurementParameters, family_named
from hidag.result import FitResult

Array = NDArray[np.float64]

#: The information is computed with joint states listed, up to so many.
MOST_STATES = 1 << 10
#: Answers that it is averaged over; fewer where states are many.
N_ANSWERS = 10_000
MOST_CELLS = 1 << 22
#: Directions with less than this share of the largest scaled information are held.
FLAT = 1e-7
#: No probability of a drawn law is below this, unless it was zero in the fit.
SMALLEST = 1e-6


@dataclass(frozen=True)
class _Family:
    """Where the free parameters of one row of a table are: log ratios of its probabilities."""

    latent: int
    row: tuple[int, ...]
    begin: int


def draws_of_law(
    result: FitResult, n_draws: int = 200, *, random_state: int = 0
) -> Iterator[FitResult]:
    """Yield fits with law and coefficients drawn around those of a fit, graph and Q held.

    For the intervals of :func:`hidag.explain.average_effects`.

    Parameters
    ----------
    result : FitResult
    n_draws : int
    random_state : int

    Raises
    ------
    SettingError
        If joint states are too many to list, an item is nominal, or the fit had weights and does
        not say what they add up to.
    """
    reason = why_no_draws(result)
    if reason is not None:
        raise SettingError(f"{reason}; give replicates of a bootstrap instead")
    rng = np.random.default_rng(random_state)
    law_score, families = _law_design(result.law)
    root, n_items = _covariance_root(result, law_score, random_state)
    for _ in range(n_draws):
        step = root @ rng.standard_normal(root.shape[1])
        yield replace(
            result,
            parameters=_moved_items(result.parameters, step[:n_items]),
            law=_moved_law(result.law, families, step[n_items:]),
        )


def why_no_draws(result: FitResult) -> str | None:
    """Return why there are no draws around a fit, in words; None where there are."""
    space = result.law.space
    if space.n_states > MOST_STATES:
        return (
            f"intervals from the information need joint states listed, at most {MOST_STATES}, but "
            f"there are {space.count_in_words()}"
        )
    if not result.responses.plain:
        return "intervals from the information are not there for unordered categories"
    if np.isnan(result.n_counted):
        return (
            "intervals from the information need the sum of the weights that rows were counted by, "
            "but the fit was saved without it"
        )
    return None


def _law_design(law: LatentLaw) -> tuple[Array, list[_Family]]:
    """Return the derivative of each state's log probability by the law's parameters, (S, P)."""
    if not isinstance(law, NetworkLaw):
        p = np.asarray(law.probabilities)
        return np.eye(len(p)) - p, [_Family(-1, (), 0)]
    states = law.space.states()
    columns: list[Array] = []
    families = []
    for k, (causes, table) in enumerate(zip(law.parents, law.tables, strict=True)):
        for row in np.ndindex(*table.shape[:-1]):
            there = (states[:, list(causes)] == np.array(row, dtype=np.int64)).all(axis=1)
            families.append(_Family(k, row, len(columns)))
            columns += [
                there * ((states[:, k] == v) - table[row][v]) for v in range(table.shape[-1])
            ]
    return np.column_stack(columns), families


def _covariance_root(result: FitResult, law_score: Array, seed: int) -> tuple[Array, int]:
    """Return a root of the estimates' covariance, shape (P, rank), and how many P are items'."""
    parameters = result.parameters
    states = result.law.space.states()
    p = np.asarray(result.law.probabilities)
    p = p / p.sum()
    features = parameters.terms.features(states)
    eta = parameters.predictors(states)
    designs = [
        np.column_stack([np.ones(len(states)), features[:, row != 0]])
        for row in parameters.loadings
    ]
    auxiliary = auxiliaries(parameters.families, parameters.dispersion, parameters.cutpoints)
    n_answers = min(N_ANSWERS, MOST_CELLS // len(p))
    rows, weights, _ = answers(eta, p, parameters.families, auxiliary, n_answers, seed)
    with np.errstate(divide="ignore"):
        score = scores(rows, eta, designs, p, parameters.families, auxiliary)
    n_items = score.shape[1] - (len(p) - 1)
    # The most probable state is left out there; posterior less prior sums to zero over states.
    of_states = np.insert(
        score[:, n_items:], int(np.argmax(p)), -score[:, n_items:].sum(axis=1), axis=1
    )
    score = np.hstack([score[:, :n_items], of_states @ law_score]) * np.sqrt(weights)[:, None]
    scale = np.sqrt((score**2).sum(axis=0))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh((score / scale).T @ (score / scale))
    kept = values > FLAT * values[-1]
    n_rows = result.n_counted * (1.0 - result.missing_share)
    root = vectors[:, kept] / np.sqrt(values[kept] * n_rows)
    return root / scale[:, None], n_items


def _moved_items(parameters: MeasurementParameters, step: Array) -> MeasurementParameters:
    """Return the items with their free parameters moved, in the order of the scores."""
    intercept, loadings = parameters.intercept.copy(), parameters.loadings.copy()
    dispersion, cutpoints = parameters.dispersion.copy(), parameters.cutpoints.copy()
    at = 0
    for j, name in enumerate(parameters.families):
        own = np.flatnonzero(parameters.loadings[j])
        intercept[j] += step[at]
        loadings[j, own] += step[at + 1 : at + 1 + len(own)]
        at += 1 + len(own)
        family = family_named(name)
        if family.n_cutpoints:
            moved = cutpoints[j, : family.n_cutpoints] + step[at : at + family.n_cutpoints]
            cutpoints[j, : family.n_cutpoints] = np.maximum.accumulate(np.maximum(moved, SMALLEST))
            at += family.n_cutpoints
        elif family.has_dispersion:
            dispersion[j] = family.from_free(family.to_free(dispersion[j : j + 1]) + step[at])[0]
            at += 1
    return replace(
        parameters,
        intercept=intercept,
        loadings=loadings,
        dispersion=parameters.within_bounds(dispersion),
        cutpoints=cutpoints,
    )


def _moved(p: Array, step: Array) -> Array:
    """Return probabilities moved to first order along log ratios, kept inside their bounds.

    On the scale of probabilities, because log ratios of rare levels have no useful spread.
    """
    moved = p + p * (step - p @ step)
    moved = np.where(p > 0, np.maximum(moved, np.minimum(SMALLEST, p)), 0.0)
    return np.asarray(moved / moved.sum())


def _moved_law(law: LatentLaw, families: list[_Family], step: Array) -> LatentLaw:
    if not isinstance(law, NetworkLaw):
        return SaturatedLaw(law.space, _moved(np.asarray(law.probabilities), step))
    tables = [np.array(table) for table in law.tables]
    for one in families:
        table = tables[one.latent]
        part = step[one.begin : one.begin + table.shape[-1]]
        table[one.row] = _moved(table[one.row], part)
    return NetworkLaw(law.space, law.parents, tuple(tables))
