"""A refit in the first fit's names: which of its latents is which, and what is kept of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.estimator import DCRL
from hidag.exceptions import DataError, HidagError, HidagWarning
from hidag.fitting.settings import NAMED_SCORES, NAMED_SEARCHES
from hidag.initialization.start_points import spread_law
from hidag.latent.laws import LatentLaw, NetworkLaw
from hidag.latent.state_space import StateSpace
from hidag.measurement.parameters import MeasurementParameters
from hidag.measurement.terms import Terms
from hidag.metrics.matching import Matching, match_latents
from hidag.metrics.model_parts import Parts, relabel_law
from hidag.results import FitResult
from hidag.strategy.measurement import Measurement
from hidag.structure.knowledge import Knowledge

# --- What a result remembers of the settings it came from, for another fit with the same

#: Settings that a saved result holds in words only, where they are functions or objects.
_IN_WORDS = ("search", "score", "resample")


def remembered_settings(result: FitResult) -> tuple[dict[str, Any], list[str]]:
    """Return the estimator's settings that a result remembers, and the names of those it does not.

    It does not remember functions and objects of one's own.
    """
    known = DCRL(1).get_params()
    settings = {name: value for name, value in result.settings.items() if name in known}
    settings.setdefault("n_latents", len(result.latent_names))
    if isinstance(settings.get("knowledge"), Mapping):
        settings["knowledge"] = Knowledge.from_dict(settings["knowledge"])
    forgotten = [
        name for name in _IN_WORDS if name in settings and not _is_plain(name, settings[name])
    ]
    for name in forgotten:
        del settings[name]
    return settings, forgotten


def _is_plain(name: str, value: Any) -> bool:
    known = {"search": NAMED_SEARCHES, "score": NAMED_SCORES}
    return value in known[name] if name in known else not str(value).startswith("<")


# --- The law of a refit as plain arrays: a joint table while it is small, else parents and

Array = NDArray[np.float64]

#: Laws with more joint states than this are kept as a network, if they are one. A saturated law is
#: nothing but its joint table, so tables are kept as far as hundreds of refits have room.
MOST_JOINT_STATES = 1 << 13


def can_be_kept(law: LatentLaw) -> bool:
    """Return whether refits keep laws of this kind."""
    return isinstance(law, NetworkLaw) or law.space.n_states <= MOST_JOINT_STATES


def kept_joint(law: LatentLaw) -> Array:
    """Return the probabilities of joint states, none where they are too many."""
    if law.space.n_states > MOST_JOINT_STATES:
        return np.zeros(0)
    return np.asarray(law.probabilities)


def no_edges() -> NDArray[np.int8]:
    """Return what stands for the parents of a law that is not kept as a network."""
    return np.zeros((0, 0), dtype=np.int8)


def no_cells() -> Array:
    """Return what stands for the tables of a law that is not kept as a network."""
    return np.zeros(0)


def kept_network(law: LatentLaw) -> tuple[NDArray[np.int8], Array]:
    """Return parents and tables of a large network; nothing where the joint table is kept.

    Returns
    -------
    edges : ndarray of int8, shape (K, K)
        1 where the row's latent is a parent of the column's.
    cells : ndarray
        All tables one after the other, each over its parents from the lowest index up.
    """
    if not isinstance(law, NetworkLaw) or law.space.n_states <= MOST_JOINT_STATES:
        return no_edges(), no_cells()
    edges = np.zeros((law.space.n_latents,) * 2, dtype=np.int8)
    cells = []
    for k, (parents, table) in enumerate(zip(law.parents, law.tables, strict=True)):
        edges[list(parents), k] = 1
        cells.append(table.transpose([*np.argsort(parents), len(parents)]).ravel())
    return edges, np.concatenate(cells)


def network_of(levels: tuple[int, ...], edges: NDArray[np.int8], cells: Array) -> NetworkLaw:
    """Return the law that :func:`kept_network` took apart; cells beyond its tables are ignored."""
    parents = tuple(tuple(np.flatnonzero(column).tolist()) for column in edges.T)
    tables, start = [], 0
    for k, own in enumerate(parents):
        shape = (*(levels[a] for a in own), levels[k])
        size = int(np.prod(shape))
        tables.append(cells[start : start + size].reshape(shape))
        start += size
    return NetworkLaw(StateSpace(levels), parents, tuple(tables))


def stacked_networks(
    edges: Sequence[NDArray[np.int8]], cells: Sequence[Array]
) -> tuple[NDArray[np.int8], Array]:
    """Return the networks of refits with a first axis over them; none if some refit has none.

    Refits have tables of other sizes: NaN stands after the cells of the smaller ones.
    """
    if not all(len(one) for one in edges):
        return np.zeros((len(edges), 0, 0), dtype=np.int8), np.zeros((len(cells), 0))
    out = np.full((len(cells), max(len(one) for one in cells)), np.nan)
    for row, one in zip(out, cells, strict=True):
        row[: len(one)] = one
    return np.stack(edges), out


# ---

#: A latent whose loadings have less than this cosine with the first fit's is another latent.
SAME_LATENT = 0.9


@dataclass(frozen=True)
class Refit:
    """A fit in the first fit's names: what a bootstrap keeps of each resample.

    Attributes
    ----------
    adjacency : ndarray of int8, shape (K, K)
        Of the CPDAG.
    q_matrix : ndarray of int8, shape (J, K)
    intercept, dispersion : ndarray, shape (R,)
        A row for each response: one per item, several for nominal items.
    loadings : ndarray, shape (R, T)
        On its own terms: a refit may have chosen other interactions than the first fit.
    cutpoints : ndarray, shape (R, C)
    margins : ndarray, shape (K, max levels)
    joint : ndarray, shape (S,)
        Probabilities of joint states; empty where they are too many.
    agreement : ndarray, shape (K,)
        Cosine of each latent's strengths on the items with the first fit's.
    moved : bool
        Whether any latent had to be renamed or reversed to be matched.
    log_likelihood : float
    converged : bool
    asked : ndarray of uint8, shape (T, K), or None
        Its terms, as `hidag.measurement.Terms.thresholds` has them; None in files that were saved
        without them, whose loadings are on the first fit's terms.
    edges, cells : ndarray
        The law as `hidag.inference.refit.kept_network` has it, where its joint table is not kept;
        empty otherwise, and in files that were saved without them.
    """

    adjacency: NDArray[np.int8]
    q_matrix: NDArray[np.int8]
    intercept: Array
    dispersion: Array
    loadings: Array
    cutpoints: Array
    margins: Array
    joint: Array
    agreement: Array
    moved: bool
    log_likelihood: float
    converged: bool
    asked: NDArray[np.uint8] | None = None
    edges: NDArray[np.int8] = field(default_factory=no_edges)
    cells: Array = field(default_factory=no_cells)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything by name, as arrays."""
        return {name: np.asarray(value) for name, value in vars(self).items() if value is not None}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Refit:
        """Return the refit that ``arrays`` gave."""
        plain: dict[str, Any] = {"moved": bool, "log_likelihood": float, "converged": bool}
        values: dict[str, Any] = {
            name: plain.get(name, np.asarray)(value) for name, value in arrays.items()
        }
        return cls(**values)

    def terms(self, levels: tuple[int, ...]) -> Terms | None:
        """Return what the loadings multiply, the latents having so many levels; None if unknown."""
        return None if self.asked is None else Terms.from_thresholds(levels, self.asked)

    def on(self, terms: Terms) -> Refit:
        """Return the same refit with loadings on other terms, among them all that it has."""
        own = self.terms(terms.levels)
        if own is None or own == terms:
            return self
        return replace(self, loadings=own.rewritten(self.loadings, terms), asked=terms.thresholds)


def stacked(refits: Sequence[Refit], terms: Terms) -> dict[str, NDArray[Any]]:
    """Return the refits' numbers by name, read-only, with a first axis over the refits.

    Loadings are on ``terms``, among them all that any refit has.
    """
    found = [one.on(terms).arrays() for one in refits]
    even = [name for name in found[0] if name not in ("asked", "edges", "cells")]
    out = {name: np.stack([one[name] for one in found]) for name in even}
    out["edges"], out["cells"] = stacked_networks(
        [one["edges"] for one in found], [one["cells"] for one in found]
    )
    for array in out.values():
        array.setflags(write=False)
    return out


def aligned(refit: FitResult, fit: FitResult, matching: Matching | None = None) -> Refit:
    """Return a refit with its latents named and directed as in the first fit.

    Latents are matched by their items and loadings, unless ``matching`` has done so already; how
    well they agree is kept with the refit.
    """
    if matching is None:
        matching = matched(Parts.of(refit), fit)
    order = np.array(matching.permutation)
    flips = np.array(matching.flips)
    items = refit.parameters.reordered(latents=order).flipped(flips)
    law = relabel_law(refit.law, order, flips)
    edges, cells = kept_network(law)
    mine, first = replace(fit, parameters=items).response_strengths, fit.response_strengths
    lengths = np.linalg.norm(mine, axis=0) * np.linalg.norm(first, axis=0)
    return Refit(
        adjacency=np.asarray(refit.graph.adjacency[np.ix_(order, order)], dtype=np.int8),
        q_matrix=refit.q_matrix[:, order],
        intercept=items.intercept,
        dispersion=refit.parameters.dispersion,
        loadings=items.loadings,
        cutpoints=refit.parameters.cutpoints,
        margins=law.marginals(),
        joint=kept_joint(law),
        agreement=(mine * first).sum(axis=0) / np.maximum(lengths, 1e-300),
        moved=bool(flips.any() or (order != np.arange(len(order))).any()),
        log_likelihood=refit.log_likelihood,
        converged=refit.converged,
        asked=items.terms.thresholds,
        edges=edges,
        cells=cells,
    )


def matched(refit: Parts, fit: FitResult) -> Matching:
    """Return which latent of a refit stands for which of the fit, and which way round.

    Raises
    ------
    DataError
        If latents that measure the same items have other numbers of levels.
    """
    known = told_about(fit)
    held = None if known is None or fit.q_given is None else _exchangeable(known, fit.latent_names)
    matching = match_latents(refit, fit, allowed=held)
    if tuple(refit.levels[k] for k in matching.permutation) != fit.terms.levels:
        raise DataError("latents with different numbers of levels measure the same items")
    if known is None:
        return matching
    # "Nobody has the skill without the prerequisite" says which way round its latents are.
    skills = {k for pair in known.reindex(fit.latent_names).hierarchy for k in pair}
    flips = tuple(flip and k not in skills for k, flip in enumerate(matching.flips))
    return replace(matching, flips=flips)


def told_about(fit: FitResult) -> Knowledge | None:
    """Return what a fit was told about its latents."""
    told = fit.settings.get("knowledge")
    return Knowledge.from_dict(told) if isinstance(told, Mapping) and told else None


def _exchangeable(known: Knowledge, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which latents are told apart by nothing that is known about them, shape (K, K).

    With a given Q the law obeys what is known about its columns while it is estimated. A refit's
    latent that was taken for another one afterwards would break what it obeyed before.
    """
    rules = known.constraints(names).astype(np.int64)
    before = np.zeros_like(rules)
    for i, j in known.reindex(names).hierarchy:
        before[int(i), int(j)] = 1
    out = np.eye(len(names), dtype=bool)
    for i, j in combinations(range(len(names)), 2):
        swap = np.arange(len(names))
        swap[[i, j]] = j, i
        both = np.ix_(swap, swap)
        same = (rules[both] == rules).all() and (before[both] == before).all()
        out[i, j] = out[j, i] = bool(same)
    return out


# --- One resample: rows drawn and the model fitted again, told what is known in its own names


def begun_at(place: FitResult, settings: Mapping[str, Any]) -> DCRL:
    """Return an estimator with these settings that begins where another fit ended."""
    return DCRL(**settings)._begun_at(_place_of(place))


def _place_of(fit: FitResult) -> tuple[MeasurementParameters, Array]:
    # A state without mass would stay without: every state gets some.
    return fit.parameters, spread_law(np.asarray(fit.law.probabilities))


class KnownInFit:
    """What is known about the latents of a fit, for a refit that finds them in another order.

    Without a Q latents have no names before the end of Stage I, and those of a refit come in an
    order of their own, the strongest first. So its latents are matched to the fit's at that point,
    and what is known follows them. The matching is kept for the end: the law may be another one by
    then, and what was obeyed has to stay obeyed.

    Attributes
    ----------
    fit : FitResult
    known : Knowledge
    matching : Matching or None
        Of the refit's latents; None before Stage I has ended.
    """

    def __init__(self, fit: FitResult, known: Knowledge) -> None:
        self.fit = fit
        self.known = known
        self.matching: Matching | None = None

    def __call__(self, measured: Measurement) -> Knowledge:
        """Return what is known by the numbers of the latents that Stage I found."""
        fit, items = self.fit, measured.parameters
        self.matching = matched(
            Parts(
                np.asarray(fit.responses.any_response(items.support), dtype=np.int8),
                items.intercept,
                items.loadings,
                measured.law,
                terms=items.terms,
                questions=fit.responses.questions,
            ),
            fit,
        )
        standing_for = np.argsort(self.matching.permutation)
        return self.known.reindex(fit.latent_names, standing_for.tolist())


@dataclass(frozen=True)
class Task:
    """What all resamples of a bootstrap share.

    Attributes
    ----------
    values : ndarray, shape (N, J)
    weights : ndarray, shape (N,), or None
        They go with their rows.
    fit : FitResult
    settings : mapping
        Of the estimator, without ``random_state``.
    kind : {"nonparametric", "parametric"}
    start : {"full", "fitted"}
    seed : int
    """

    values: Array
    weights: Array | None
    fit: FitResult
    settings: Mapping[str, Any]
    kind: str
    start: str
    seed: int


def run_resample(task: Task, index: int) -> tuple[int, Refit | str]:
    """Return the resample's number and its refit, or the reason why there is none.

    It depends on the seed and the number alone, whoever runs it.
    """
    rng = np.random.default_rng(np.random.SeedSequence(task.seed, spawn_key=(index,)))
    values, weights = _drawn(task, rng)
    model = DCRL(**task.settings)._begun_at(None if task.start == "full" else _place_of(task.fit))
    model.set_params(random_state=int(rng.integers(1 << 62)))
    known = task.settings.get("knowledge")
    told = None if known is None or task.fit.q_given is not None else KnownInFit(task.fit, known)
    model._known_of = told
    with warnings.catch_warnings():
        # Each refit would repeat what the first fit said; what has not settled is counted.
        warnings.simplefilter("ignore", HidagWarning)
        try:
            model.fit(values, sample_weight=weights)
            return index, aligned(model.result_, task.fit, None if told is None else told.matching)
        except HidagError as error:
            return index, str(error)


def _drawn(task: Task, rng: np.random.Generator) -> tuple[Array, Array | None]:
    n_rows = len(task.values)
    if task.kind == "nonparametric":
        rows = rng.integers(n_rows, size=n_rows)
        return task.values[rows], None if task.weights is None else task.weights[rows]
    states = task.fit.law.sample(n_rows, rng)
    drawn = task.fit.sample_items(states, rng)
    # Cells that were missing are missing again: how much was seen is part of how sure one can be.
    return np.where(np.isnan(task.values), np.nan, drawn), task.weights
