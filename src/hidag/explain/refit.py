"""A refit in the first fit's names: which of its latents is which, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.discover import Knowledge
from hidag.errors import DataError
from hidag.evaluate import Matching, Parts, match_latents, relabel_law
from hidag.explain.kept_law import (
    kept_joint,
    kept_network,
    no_cells,
    no_edges,
    stacked_networks,
)
from hidag.measurement import Terms
from hidag.result import FitResult

Array = NDArray[np.float64]

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
        Its terms, as `hidag.measurement.Terms.asked` has them; None in files that were saved
        without them, whose loadings are on the first fit's terms.
    edges, cells : ndarray
        The law as `hidag.explain.kept_law.kept_network` has it, where its joint table is not kept;
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
        return None if self.asked is None else Terms.asking(levels, self.asked)

    def on(self, terms: Terms) -> Refit:
        """Return the same refit with loadings on other terms, among them all that it has."""
        own = self.terms(terms.levels)
        if own is None or own == terms:
            return self
        return replace(self, loadings=own.rewritten(self.loadings, terms), asked=terms.asked)


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
        asked=items.terms.asked,
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
    skills = {k for pair in known.among(fit.latent_names).hierarchy for k in pair}
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
    rules = known.rules(names).astype(np.int64)
    before = np.zeros_like(rules)
    for i, j in known.among(names).hierarchy:
        before[int(i), int(j)] = 1
    out = np.eye(len(names), dtype=bool)
    for i, j in combinations(range(len(names)), 2):
        swap = np.arange(len(names))
        swap[[i, j]] = j, i
        both = np.ix_(swap, swap)
        same = (rules[both] == rules).all() and (before[both] == before).all()
        out[i, j] = out[j, i] = bool(same)
    return out
