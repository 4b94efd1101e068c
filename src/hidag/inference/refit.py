"""Refits of a bootstrap: one resample fitted again and aligned with the latents of the fit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hidag.estimator import DCRL
from hidag.exceptions import DataError, HidagError, HidagWarning
from hidag.files.schema import Numbers
from hidag.fitting.settings import NOT_STORED, levels_setting
from hidag.initialization.start_points import spread_law
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms
from hidag.metrics.matching import Matching, Parts, match_latents, relabel_law
from hidag.results import FitResult
from hidag.strategy.measurement import Measurement
from hidag.structure.knowledge import Knowledge
from hidag.structure.mixed_graphs import parents_to_adjacency

Array = NDArray[np.float64]

#: Larger laws are stored as networks. A saturated law has only its joint table, so the limit is
#: the size at which hundreds of refits still fit in memory.
MAX_JOINT_STATES = 1 << 13
SAME_LATENT = 0.9  # A refit's latent with a smaller cosine of loadings is a different latent


def refit_settings(result: FitResult) -> tuple[dict[str, Any], list[str]]:
    """Return the estimator settings stored in a result, and the names of those not stored."""
    known = DCRL(1).get_params()
    settings = {name: value for name, value in result.settings.items() if name in known}
    settings.setdefault("n_latents", len(result.latent_names))
    settings["levels"] = given_levels(settings.get("levels", 2), result)
    if isinstance(settings.get("knowledge"), Mapping):
        settings["knowledge"] = Knowledge.from_dict(settings["knowledge"])
    # Functions and objects are not stored.
    absent = [n for n, v in settings.items() if isinstance(v, Mapping) and NOT_STORED in v]
    return {name: value for name, value in settings.items() if name not in absent}, absent


def given_levels(setting: Any, result: FitResult) -> Any:
    """Return the levels of a refit: selected ones are those of the first fit."""
    selected = isinstance(setting, str) and setting == "auto"
    return levels_setting(result.terms) if selected else setting


def is_storable(law: LatentLaw) -> bool:
    """Return whether refits store laws of this kind and size."""
    return isinstance(law, NetworkLaw) or law.space.n_states <= MAX_JOINT_STATES


def network_arrays(law: LatentLaw) -> tuple[NDArray[np.int8], Array]:
    """Return parents (rows) of latents (K, K) and tables, parents increasing; empty for a joint."""
    if not isinstance(law, NetworkLaw) or law.space.n_states <= MAX_JOINT_STATES:
        return np.zeros((0, 0), dtype=np.int8), np.zeros(0)
    cells = [
        table.transpose([*np.argsort(parents), len(parents)]).ravel()
        for parents, table in zip(law.parents, law.tables, strict=True)
    ]
    return parents_to_adjacency(law.parents), np.concatenate(cells)


def network_from_arrays(
    levels: tuple[int, ...], edges: NDArray[np.int8], cells: Array
) -> NetworkLaw:
    """Return the law from :func:`network_arrays`; surplus cells are ignored."""
    parents = tuple(tuple(np.flatnonzero(column).tolist()) for column in edges.T)
    tables, start = [], 0
    for k, own in enumerate(parents):
        shape = (*(levels[a] for a in own), levels[k])
        size = int(np.prod(shape))
        tables.append(cells[start : start + size].reshape(shape))
        start += size
    return NetworkLaw(StateSpace(levels), parents, tuple(tables))


#: What the fields of a refit hold: J items, R responses, K latents, T terms, S states.
REFIT_ARRAYS = {
    "adjacency": Numbers("i", "KK", 0, 1), "q_matrix": Numbers("i", "JK", 0, 1),
    "intercept": Numbers("f", "R"), "dispersion": Numbers("f", "R", 0, missing=True),
    "loadings": Numbers("f", "RT"), "cutpoints": Numbers("f", "RC", missing=True),
    "margins": Numbers("f", "KM", 0, 1 + 1e-9), "joint": Numbers("f", "S", 0, 1 + 1e-9),
    "agreement": Numbers("f", "K", missing=True), "moved": Numbers("b", ""),
    "log_likelihood": Numbers("f", "", missing=True), "converged": Numbers("b", ""),
    "asked": Numbers("u", "TK"), "edges": Numbers("i", "EE", 0, 1),
    "cells": Numbers("f", "N", 0, 1 + 1e-9, missing=True),
    "arrows": Numbers("f", "KK", 0, 1 + 1e-9, missing=True),
}  # fmt: skip


@dataclass(frozen=True)
class Refit:
    """The estimates of one resample, with the latents of the first fit."""

    adjacency: NDArray[np.int8]  # (K, K), of the CPDAG
    q_matrix: NDArray[np.int8]  # (J, K)
    intercept: Array  # (R,), one row per item, several for nominal items
    dispersion: Array  # (R,)
    loadings: Array  # (R, T), on the terms of the refit, perhaps with other interactions
    cutpoints: Array  # (R, C)
    margins: Array  # (K, max levels)
    joint: Array  # (S,), probabilities of joint states; empty if there are too many
    agreement: Array  # (K,), cosine of each latent's strengths with those of the first fit
    moved: bool  # whether latents were permuted or reversed for the match
    log_likelihood: float
    converged: bool
    asked: NDArray[np.uint8]  # (T, K), Terms.thresholds
    # The law as in network_arrays; empty if joint is not.
    edges: NDArray[np.int8]
    cells: Array
    arrows: Array  # (K, K), probabilities of direct causes and effects

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all fields by name, as arrays."""
        return {name: np.asarray(value) for name, value in vars(self).items()}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Refit:
        """Return the refit from its :meth:`arrays`."""
        kinds: dict[str, Any] = {"moved": bool, "log_likelihood": float, "converged": bool}
        return cls(**{name: kinds.get(name, np.asarray)(one) for name, one in arrays.items()})

    def on(self, terms: Terms) -> Refit:
        """Return the refit with its loadings on other terms, which include its own."""
        own = terms.with_thresholds(self.asked)
        if own == terms:
            return self
        return replace(self, loadings=own.rewritten(self.loadings, terms), asked=terms.thresholds)


def stack_refits(refits: Sequence[Refit], terms: Terms) -> dict[str, NDArray[Any]]:
    """Return the fields of refits on ``terms``, first axis over refits; networks are NaN-padded."""
    found = [one.on(terms).arrays() for one in refits]
    same_shape = [name for name in found[0] if name not in ("asked", "edges", "cells")]
    out = {name: np.stack([one[name] for one in found]) for name in same_shape}
    networks = all(len(one.edges) for one in refits)
    width = max(len(one.cells) for one in refits) if networks else 0
    out["cells"] = np.full((len(refits), width), np.nan)
    out["edges"] = np.zeros((len(refits), 0, 0), dtype=np.int8)
    if networks:
        out["edges"] = np.stack([one.edges for one in refits])
        for row, one in zip(out["cells"], refits, strict=True):
            row[: len(one.cells)] = one.cells
    for array in out.values():
        array.setflags(write=False)
    return out


def align_refit(refit: FitResult, fit: FitResult, matching: Matching | None = None) -> Refit:
    """Return a refit with the order and polarity of the latents of the first fit."""
    if matching is None:
        matching = match_refit(Parts.of(refit), fit)
    order, flips = np.array(matching.permutation), np.array(matching.flips)
    items = refit.parameters.reordered(latents=order).flipped(flips)
    law = relabel_law(refit.law, order, flips)
    edges, cells = network_arrays(law)
    own, first = replace(fit, parameters=items).response_strengths, fit.response_strengths
    lengths = np.linalg.norm(own, axis=0) * np.linalg.norm(first, axis=0)
    small = law.space.n_states <= MAX_JOINT_STATES
    return Refit(
        adjacency=np.asarray(refit.graph.adjacency[np.ix_(order, order)], dtype=np.int8),
        q_matrix=refit.q_matrix[:, order],
        intercept=items.intercept,
        dispersion=refit.parameters.dispersion,
        loadings=items.loadings,
        cutpoints=refit.parameters.cutpoints,
        margins=law.marginals(),
        joint=np.asarray(law.probabilities) if small else np.zeros(0),
        agreement=(own * first).sum(axis=0) / np.maximum(lengths, 1e-300),
        moved=bool(flips.any() or (order != np.arange(len(order))).any()),
        log_likelihood=refit.log_likelihood,
        converged=refit.converged,
        asked=items.terms.thresholds,
        edges=edges,
        cells=cells,
        arrows=_arrow_probabilities(refit)[np.ix_(order, order)],
    )


def _arrow_probabilities(refit: FitResult) -> Array:
    """Return the probabilities of a refit; where it has none, its class is certain."""
    a = refit.graph.adjacency.astype(np.float64)
    found = refit.edge_probabilities
    return np.asarray(np.where(np.isnan(found), a / (1.0 + a * a.T), found))


def match_refit(refit: Parts, fit: FitResult) -> Matching:
    """Return the matching of latents of a refit to those of the fit; raise if levels differ."""
    given = fit.settings.get("knowledge")
    knowledge = Knowledge.from_dict(given) if isinstance(given, Mapping) and given else None
    allowed = None
    if knowledge is not None and fit.q_given is not None:
        allowed = _exchangeable(knowledge, fit.latent_names)
    matching = match_latents(refit, fit, allowed=allowed)
    if tuple(refit.levels[k] for k in matching.permutation) != fit.terms.levels:
        reason = "latents with different numbers of levels measure the same items"
        raise DataError("different-levels", reason)
    if knowledge is None:
        return matching
    # Prerequisites determine the polarity of their latents.
    skills = {k for pair in knowledge.reindex(fit.latent_names).hierarchy for k in pair}
    flips = tuple(flip and k not in skills for k, flip in enumerate(matching.flips))
    return replace(matching, flips=flips)


def _exchangeable(knowledge: Knowledge, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which pairs of latents have the same role in the knowledge, shape (K, K)."""
    constraints = knowledge.constraints(names).astype(np.int64)
    before = np.zeros_like(constraints)
    for i, j in knowledge.reindex(names).hierarchy:
        before[int(i), int(j)] = 1
    out = np.eye(len(names), dtype=bool)
    for i, j in combinations(range(len(names)), 2):
        swap = np.arange(len(names))
        swap[[i, j]] = j, i
        both = np.ix_(swap, swap)
        same = (constraints[both] == constraints).all() and (before[both] == before).all()
        out[i, j] = out[j, i] = bool(same)
    return out


def make_warm_started(fit: FitResult, settings: Mapping[str, Any]) -> DCRL:
    """Return an estimator with these settings that starts at the estimates of another fit."""
    return DCRL(**settings)._start_from(_initial_values(fit))


def _initial_values(fit: FitResult) -> tuple[MeasurementParameters, Array]:
    # EM cannot leave a probability of zero, so every state gets some.
    return fit.parameters, spread_law(np.asarray(fit.law.probabilities))


class MatchedKnowledge:
    """Knowledge about a fit's latents, applied to a refit after matching them in Stage I."""

    def __init__(self, fit: FitResult, knowledge: Knowledge) -> None:
        self.fit = fit
        self.knowledge = knowledge
        self.matching: Matching | None = None

    def __call__(self, measured: Measurement) -> Knowledge:
        """Return the knowledge in terms of the latents that Stage I found."""
        fit, items = self.fit, measured.parameters
        q = np.asarray(fit.responses.any_response(items.support), dtype=np.int8)
        questions = fit.responses.questions
        own = (q, items.intercept, items.loadings, measured.law, None, items.terms)
        self.matching = match_refit(Parts(*own, questions), fit)
        position = np.argsort(self.matching.permutation)
        return self.knowledge.reindex(fit.latent_names, position.tolist())


@dataclass(frozen=True)
class BootstrapTask:
    """The input that all resamples of a bootstrap share."""

    values: Array  # (N, J)
    weights: Array | None  # (N,)
    fit: FitResult
    settings: Mapping[str, Any]  # of the estimator, without random_state
    kind: str
    start: str
    seed: int


class Failure(NamedTuple):
    """Why a resample could not be fitted: the code of the error and its text."""

    code: str
    reason: str


def run_resample(task: BootstrapTask, index: int) -> tuple[int, Refit | Failure]:
    """Return an index and its refit, or why it failed; depends on seed and index only."""
    rng = np.random.default_rng(np.random.SeedSequence(task.seed, spawn_key=(index,)))
    values, weights, n_rows = task.values, task.weights, len(task.values)
    if task.kind == "nonparametric":
        rows = rng.integers(n_rows, size=n_rows)
        values, weights = values[rows], None if weights is None else weights[rows]
    else:
        drawn = task.fit.sample_items(task.fit.law.sample(n_rows, rng), rng)
        # The same cells are missing, because missing data are part of the uncertainty.
        values = np.where(np.isnan(values), np.nan, drawn)
    start = None if task.start == "full" else _initial_values(task.fit)
    model = DCRL(**task.settings)._start_from(start)
    model.set_params(random_state=int(rng.integers(1 << 62)))
    given = None if task.fit.q_given is not None else task.settings.get("knowledge")
    knowledge = None if given is None else MatchedKnowledge(task.fit, given)
    model._map_knowledge = knowledge
    with warnings.catch_warnings():
        # Refits would repeat the warnings of the first fit; those not converged are counted.
        warnings.simplefilter("ignore", HidagWarning)
        try:
            model.fit(values, sample_weight=weights)
            matching = None if knowledge is None else knowledge.matching
            return index, align_refit(model.result_, task.fit, matching)
        except HidagError as error:
            return index, Failure(error.code, str(error))
