"""TIMSS: the fits that the page rests on, over seeds, laws and rival explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hidag.applications.timss_data import SKILLS, TimssTable
from hidag.discover import CPDAG
from hidag.estimator import DCRL
from hidag.explain import BootstrapResult
from hidag.explain.resample import begun_at
from hidag.result import FitResult
from hidag.start.crossing import SAME_PLACE, starts_agree

#: Starts of the fits that look for rivals: few, so that they end in different places.
_FEW_STARTS = 24
#: Fits that look for rivals, and how far below the best one still is a rival.
N_RIVAL_FITS, RIVAL_WITHIN = 10, 5.0
#: Log-likelihoods that differ by less are the same optimum.
SAME_VALUE = 0.05


def fitted(
    table: TimssTable, seed: int, *, law: str = "saturated", n_starts: int | str = "auto"
) -> DCRL:
    """Return the model with the table's Q fitted to it."""
    model = DCRL(**_settings(table, seed), law=law, n_starts=n_starts).fit(table.values)
    model.result_ = replace(model.result_, item_names=table.item_names)
    return model


def _settings(table: TimssTable, seed: int) -> dict[str, Any]:
    return {
        "n_latents": len(SKILLS),
        "family": list(table.families),
        "q_matrix": table.q_matrix,
        "latent_names": SKILLS,
        "random_state": seed,
    }


def log_seconds_likelihood(result: FitResult, table: TimssTable) -> float:
    """Return the log-likelihood as a density of log seconds, where values are easier to read."""
    return result.log_likelihood + table.log_scale


@dataclass(frozen=True)
class Rival:
    """An explanation that fits nearly as well as the best one.

    Attributes
    ----------
    result : FitResult
    below : float
        Units of log-likelihood below the best.
    n_fits : int
        How many of the fits that were looked at ended there.
    """

    result: FitResult
    below: float
    n_fits: int


def over_seeds(
    table: TimssTable, first: FitResult, seeds: Sequence[int], tell: Callable[[str], None]
) -> list[FitResult]:
    """Return the fits from several seeds, the first of which has been fitted already."""
    out = [first]
    for count, seed in enumerate(seeds[1:], start=2):
        tell(f"seed {count} of {len(seeds)}")
        out.append(fitted(table, seed).result_)
    return out


def rivals_of(
    best: FitResult,
    table: TimssTable,
    boot: BootstrapResult | None,
    seed: int,
    tell: Callable[[str], None],
) -> list[Rival]:
    """Return explanations that differ from the best and fit nearly as well, best first.

    Refits to resampled students that measure some skill otherwise are held against all students:
    the model is fitted to the whole table from where they ended. Without refits, fits with few
    starts are looked at, which end in many places.
    """
    groups: list[list[FitResult]] = []
    for found in _elsewhere(best, table, boot, seed, tell):
        if best.log_likelihood - found.log_likelihood > RIVAL_WITHIN or _same(found, best):
            continue
        home = next((group for group in groups if _same(group[0], found)), None)
        if home is None:
            groups.append([found])
        else:
            home.append(found)
    out = []
    for group in groups:
        top = max(group, key=lambda one: one.log_likelihood)
        out.append(Rival(top, best.log_likelihood - top.log_likelihood, len(group)))
    return sorted(out, key=lambda rival: rival.below)


def _elsewhere(
    best: FitResult,
    table: TimssTable,
    boot: BootstrapResult | None,
    seed: int,
    tell: Callable[[str], None],
) -> Iterator[FitResult]:
    """Yield fits to the whole table that may have ended in other places."""
    if boot is None:
        for index in range(N_RIVAL_FITS):
            tell(f"rival explanations, {index + 1} of {N_RIVAL_FITS}")
            own = int(np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1)[0])
            yield fitted(table, own, n_starts=_FEW_STARTS).result_
        return
    refits = [
        one for one, same in zip(boot.replicates(best), boot.same_latents, strict=True) if not same
    ]
    for index, refit in enumerate(refits):
        tell(f"rival explanations, {index + 1} of {len(refits)}")
        model = begun_at(refit, {**_settings(table, seed), "law": "saturated"}).fit(table.values)
        yield replace(model.result_, item_names=table.item_names)


def _same(one: FitResult, other: FitResult) -> bool:
    return starts_agree(one.parameters, other.parameters) >= SAME_PLACE


def mark(graph: CPDAG, one: int, other: int) -> str:
    """Return how two latents are joined: '->', '<-', '-' or ''."""
    a = graph.adjacency
    marks = {(0, 0): "", (1, 0): "->", (0, 1): "<-", (1, 1): "-"}
    return marks[int(a[one, other]), int(a[other, one])]


def joined_share(results: Sequence[FitResult]) -> NDArray[np.float64]:
    """Return the share of fits in which two latents are joined, shape (K, K)."""
    found = [(r.graph.adjacency + r.graph.adjacency.T) > 0 for r in results]
    return np.asarray(np.mean(found, axis=0))
