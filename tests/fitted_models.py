"""Fits that were not fitted: results at chosen parameters, and the same moved a little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hidag.information.free_parameters import FreeParameters
from hidag.information.moment_tests import ScoredColumns
from hidag.latent import NetworkLaw, SaturatedLaw, StateSpace
from hidag.measurement import MeasurementParameters, Responses, family_named
from hidag.results import FitResult
from hidag.structure import CPDAG


def result_at(
    parameters: MeasurementParameters,
    law,
    *,
    n_samples: int,
    item_families: tuple[str, ...] = (),
    effects="main",
    q_given=None,
    **more,
) -> FitResult:
    """Return a result that says these parameters were fitted."""
    families = item_families or parameters.families
    n_latents = law.space.n_latents
    names = tuple(f"Z{k + 1}" for k in range(n_latents))
    fields = {
        "log_likelihood": np.nan,
        "objective": np.nan,
        "missing_share": 0.0,
        "n_iter": 1,
        "converged": True,
        "method": "em",
        "trace": np.zeros((1, 2)),
        "starts": (),
        "n_reached": 1,
        "graph_rows": float(n_samples),
        "information_ratio": 1.0,
        "edge_tests": (),
        "family_reasons": ("set by the user",) * len(families),
        "settings": {"effects": effects, "seed": 0},
    } | more
    return FitResult(
        item_names=tuple(f"X{j + 1}" for j in range(len(families))),
        latent_names=names,
        parameters=parameters,
        law=law,
        graph=CPDAG(np.zeros((n_latents, n_latents), dtype=np.int8), names),
        q_given=q_given,
        n_samples=n_samples,
        item_families=item_families,
        **fields,
    )


def drawn(result: FitResult, n_rows: int, seed: int, missing: float = 0.0):
    """Return rows from the model and the latents behind them."""
    rng = np.random.default_rng(seed)
    states = result.law.sample(n_rows, rng)
    X = result.sample_items(states, rng)
    X[rng.random(X.shape) < missing] = np.nan
    return X, states


def columns_of(result: FitResult, X):
    """Return the free parameters of a fit on a table, and the table's columns under it."""
    free = FreeParameters.of(result, X)
    return free, ScoredColumns.of(free, X)


def moved(result: FitResult, free: FreeParameters, parameter: int, by: float) -> FitResult:
    """Return the fit with one free parameter moved, on the scale that derivatives are taken on."""
    channel = int(free.channel[parameter])
    place = int(np.flatnonzero(free.of_channel(channel) == parameter)[0])
    if channel == len(free.channels):
        return replace(result, law=_moved_law(result, free, place, by))
    one = free.channels[channel]
    r, params = one.response, result.parameters
    if one.kind == "predictor":
        change = by * free.data.scale[r] * free.coefficient_maps[r][:, place]
        intercept, loadings = params.intercept.copy(), params.loadings.copy()
        intercept[r] += change[0]
        loadings[r] += change[1:]
        return replace(result, parameters=replace(params, intercept=intercept, loadings=loadings))
    if one.kind == "cutpoint":
        cutpoints = params.cutpoints.copy()
        cutpoints[r, one.place] += by
        return replace(result, parameters=replace(params, cutpoints=cutpoints))
    family = family_named(params.families[r])
    dispersion = params.dispersion.copy()
    dispersion[r] = family.from_unbounded(family.to_unbounded(dispersion[r]) + by)
    return replace(result, parameters=replace(params, dispersion=dispersion))


def _moved_law(result: FitResult, free: FreeParameters, place: int, by: float):
    number = 0
    while place >= len(free.blocks[number].free):
        place -= len(free.blocks[number].free)
        number += 1
    block = free.blocks[number]
    p = block.probabilities.copy()
    p[block.free[place]] *= np.exp(by)
    p /= p.sum()
    if isinstance(result.law, SaturatedLaw):
        return SaturatedLaw(result.law.space, p)
    tables = [table.copy() for table in result.law.tables]
    rows = [row for table in tables for row in table.reshape(-1, table.shape[-1])]
    rows[number][:] = p
    return NetworkLaw(result.law.space, result.law.parents, tuple(tables))


def two_latents(families, *, law="network", seed=0, n_samples=300, effects="main") -> FitResult:
    """Return a result with two linked binary latents and items of these families."""
    rng = np.random.default_rng(seed)
    space = StateSpace((2, 2))
    network = NetworkLaw(
        space, ((), (0,)), (np.array([0.45, 0.55]), np.array([[0.7, 0.3], [0.25, 0.75]]))
    )
    responses = Responses.of(families)
    rows = np.arange(len(responses.families))
    q = np.array([[1, 0], [0, 1], [1, 1]])[responses.item % 3]
    from hidag.measurement.terms import Effects

    wanted = Effects.of(effects)
    terms = wanted.terms(q, (2, 2))
    loadings = np.where(
        wanted.support(terms, q), rng.uniform(0.5, 1.4, (len(rows), terms.n_terms)), 0
    )
    intercept = rng.uniform(-0.6, 0.2, len(rows))
    dispersion = np.full(len(rows), 1.0)
    cutpoints = np.full((len(rows), 2), np.nan)
    for r, name in enumerate(responses.families):
        family = family_named(name)
        if name == "zero-inflated-poisson":
            dispersion[r] = 0.3
        elif family.has_dispersion:
            dispersion[r] = 0.4
        if family.lowest_predictor > -1:
            intercept[r] = 1.0
        cutpoints[r, : family.n_cutpoints] = 0.8 * np.arange(1, 1 + family.n_cutpoints)
    parameters = MeasurementParameters(
        responses.families, intercept, loadings, dispersion, terms, cutpoints
    )
    if wanted.reversed:
        parameters = parameters.flipped(np.ones(2, dtype=bool))
    chosen = network if law == "network" else SaturatedLaw(space, network.probabilities)
    return result_at(
        parameters,
        chosen,
        n_samples=n_samples,
        item_families=() if responses.plain else tuple(families),
        effects=effects,
        q_given=np.array([[1, 0], [0, 1], [1, 1]], dtype=np.int8)[np.arange(len(families)) % 3],
    )


FOUR_ITEMS_EACH = np.repeat(np.eye(3, dtype=np.int8), 4, axis=0)


def chain_of_three(loading: float, q: np.ndarray):
    """Return a true model of yes/no items, each driven by so much in all."""
    law = NetworkLaw(
        StateSpace.binary(3),
        ((), (0,), (1,)),
        (
            np.array([0.45, 0.55]),
            np.array([[0.75, 0.25], [0.3, 0.7]]),
            np.array([[0.7, 0.3], [0.2, 0.8]]),
        ),
    )
    n_items = len(q)
    loadings = q * (loading / q.sum(axis=1))[:, None]
    items = MeasurementParameters(
        ("bernoulli",) * n_items, np.full(n_items, -loading / 2), loadings, np.ones(n_items)
    )
    return result_at(items, law, n_samples=300, q_given=q)
