"""Matching of estimated to true latents, whose order and polarity are arbitrary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hidag.exceptions import DataError
from hidag.latent.laws import LatentLaw
from hidag.metrics.model_parts import Parts, relabel_law, select_common_questions
from hidag.results import FitResult
from hidag.structure.knowledge import Knowledge

#: Matchings whose agreement differs by less are ties, which the latent distribution breaks.
TIE = 1e-9

#: Weights, relative to one entry of Q, that break ties between columns: equal numbers of levels
#: first, then loadings. Their total over all latents is below 1, so that Q always decides first.
SAME_LEVELS, SAME_LOADINGS = 0.6, 0.3

#: With more joint states, ties are not broken: each trial would take as long as a fit.
MAX_STATES_FOR_TIES = 1 << 14

Order = NDArray[np.int64]
Flips = NDArray[np.bool_]


@dataclass(frozen=True)
class Matching:
    """A matching of estimated to true latents.

    Attributes
    ----------
    permutation : tuple of int, length K true
        Index of the estimated latent of each true one; -1 if there is none.
    flips : tuple of bool, length K true
        Whether the levels of that latent have to be reversed.
    extra : tuple of int
        Unmatched estimated latents.
    """

    permutation: tuple[int, ...]
    flips: tuple[bool, ...]
    extra: tuple[int, ...] = ()


def total_variation(law: LatentLaw | None, other: LatentLaw | None) -> float:
    """Return the total variation distance of two latent distributions.

    NaN if one is absent, the state spaces differ, or there are too many states to list.
    """
    if law is None or other is None or law.space != other.space or not law.space.listable:
        return float("nan")
    return 0.5 * float(np.abs(law.probabilities - other.probabilities).sum())


def match_latents(
    estimate: object, truth: object, *, allowed: NDArray[np.bool_] | None = None
) -> Matching:
    """Return the matching of estimated to true latents with the largest agreement.

    The matching minimises the number of wrong entries of Q (an assignment problem). Ties are broken
    by the loadings, then by the latent distribution. A latent is flipped if its loadings have the
    opposite sign, or, without loadings, if that brings the distributions closer. Loadings of
    nominal items are used if both models have the categories in the same order.

    Parameters
    ----------
    estimate, truth : object
        Fitted estimators, results, truths or :class:`Parts`; the numbers of latents may differ.
    allowed : ndarray of bool, shape (K true, K estimated), optional
        Pairs that may be matched; others are matched only if no complete matching avoids them.
    """
    ours, true = select_common_questions(Parts.of(estimate), Parts.of(truth))
    if len(ours.q_matrix) != len(true.q_matrix):
        raise DataError(
            "different-items",
            "estimate and truth must have the same items, got {n_estimated} and {n_true}",
            n_estimated=len(ours.q_matrix),
            n_true=len(true.q_matrix),
        )
    agreement = _agreement(ours, true)
    if allowed is not None:
        # One pair that is not allowed costs more than agreement in all of Q gains.
        worst = agreement.size * len(true.q_matrix)
        agreement[: true.n_latents, : ours.n_latents][~allowed] = -worst
    rows, columns = linear_sum_assignment(agreement, maximize=True)
    permutation = np.full(true.n_latents, -1, dtype=np.int64)
    inside = (rows < true.n_latents) & (columns < ours.n_latents)
    permutation[rows[inside]] = columns[inside]
    direction = _direction(ours, true)
    matched = permutation >= 0
    flips = np.zeros(true.n_latents, dtype=bool)
    flips[matched] = direction[np.flatnonzero(matched), permutation[matched]] < 0
    if ours.n_latents == true.n_latents:
        permutation, flips = _break_ties(ours, true, agreement, direction, permutation, flips)
    taken = set(permutation.tolist())
    return Matching(
        permutation=tuple(int(k) for k in permutation),
        flips=tuple(bool(flip) for flip in flips),
        extra=tuple(k for k in range(ours.n_latents) if k not in taken),
    )


def _agreement(ours: Parts, true: Parts) -> NDArray[np.float64]:
    """Return the agreement of true (rows) and estimated latents (columns), zero-padded square."""
    size = max(ours.n_latents, true.n_latents)
    out = np.zeros((size, size))
    same_levels = np.array(true.levels)[:, None] == np.array(ours.levels)[None, :]
    share = SAME_LEVELS * same_levels
    a, b = true.strengths, ours.strengths
    if a is not None and b is not None:
        norm_a, norm_b = (a**2).sum(axis=0)[:, None], (b**2).sum(axis=0)[None, :]
        # Squared distance to the column or to its mirror image, whichever is nearer.
        distance = np.maximum(norm_a + norm_b - 2 * np.abs(a.T @ b), 0.0)
        share = share + SAME_LOADINGS / (1.0 + np.sqrt(distance))
    # The number of ones in Q is fixed, so the most common ones mean the fewest differing entries.
    common = true.q_matrix.T.astype(np.int64) @ ours.q_matrix
    out[: true.n_latents, : ours.n_latents] = common + share / (size + 1)
    return out


def _direction(ours: Parts, true: Parts) -> NDArray[np.float64]:
    """Return the signs that relate true (rows) and estimated loadings (columns); 0 if undefined."""
    a, b = true.strengths, ours.strengths
    if a is None or b is None:
        return np.zeros((true.n_latents, ours.n_latents))
    return np.asarray(np.sign(a.T @ b), dtype=np.float64)


def _break_ties(
    ours: Parts,
    true: Parts,
    agreement: NDArray[np.float64],
    direction: NDArray[np.float64],
    permutation: Order,
    flips: Flips,
) -> tuple[Order, Flips]:
    """Return the matching after all exchanges and flips that reduce the distance of the laws.

    Single latents and pairs are tried, agreement in Q and loadings unchanged, until nothing
    improves. So latents with the same items are distinguished by their dependences.
    """
    if ours.law is None or true.law is None or true.law.space.n_states > MAX_STATES_FOR_TIES:
        return permutation, flips
    law, target = ours.law, true.law
    best = total_variation(relabel_law(law, permutation, flips), target)
    improved = not np.isnan(best)
    while improved:
        improved = False
        for i, j in combinations_with_replacement(range(true.n_latents), 2):
            for order, flipped in _moves(i, j, agreement, direction, permutation, flips):
                value = total_variation(relabel_law(law, order, flipped), target)
                if value < best - TIE:
                    best, permutation, flips, improved = value, order, flipped, True
    return permutation, flips


def _moves(
    i: int,
    j: int,
    agreement: NDArray[np.float64],
    direction: NDArray[np.float64],
    permutation: Order,
    flips: Flips,
) -> list[tuple[Order, Flips]]:
    """Return the matchings that differ at latents i and j only, with the same agreement."""
    out = []
    places = [i, j] if i != j else [i]
    for exchange in (False, True) if i != j else (False,):
        order = permutation.copy()
        if exchange:
            order[[i, j]] = permutation[[j, i]]
            before = agreement[i, permutation[i]] + agreement[j, permutation[j]]
            if agreement[i, order[i]] + agreement[j, order[j]] < before - TIE:
                continue
        # Loadings determine the flip unless their direction is undefined.
        choices = [
            (direction[k, order[k]] < 0,) if direction[k, order[k]] != 0 else (False, True)
            for k in places
        ]
        for flip in product(*choices):
            flipped = flips.copy()
            flipped[places] = flip
            if exchange or (flipped != flips).any():
                out.append((order, flipped))
    return out


def relabel_result(result: FitResult, matching: Matching, names: Sequence[str]) -> FitResult:
    """Return the same fit with the order, polarity and names of the latents of a truth.

    The model, its likelihood and its graph do not change.

    Parameters
    ----------
    result : FitResult
    matching : Matching
        Of all latents, from :func:`match_latents`.
    names : sequence of str, length K

    Raises
    ------
    DataError
        If a latent is unmatched, or a latent of a hierarchy would be reversed.
    """
    order, flips = np.array(matching.permutation, np.int64), np.array(matching.flips, bool)
    if sorted(order.tolist()) != list(range(len(result.latent_names))):
        raise DataError(
            "unmatched-latents",
            "every latent of the fit must be matched to a true one, but the {n_latents} latents "
            "are matched as {permutation}",
            n_latents=len(result.latent_names),
            permutation=matching.permutation,
        )
    new_names = {result.latent_names[old]: name for old, name in zip(order, names, strict=True)}
    return replace(
        result,
        latent_names=tuple(names),
        parameters=result.parameters.reordered(latents=order).flipped(flips),
        law=relabel_law(result.law, order, flips),
        graph=result.graph.permute(matching.permutation).rename(tuple(names)),
        q_given=None if result.q_given is None else result.q_given[:, order],
        edge_tests=tuple(
            replace(test, pair=(new_names[test.pair[0]], new_names[test.pair[1]]))
            for test in result.edge_tests
        ),
        settings=_relabel_settings(result, order, flips, tuple(names)),
    )


def _relabel_settings(
    result: FitResult, order: Order, flips: Flips, names: tuple[str, ...]
) -> dict[str, Any]:
    """Return the settings with names, levels and knowledge of the latents relabelled.

    The knowledge determines which states are ruled out.
    """
    out = dict(result.settings)
    if out.get("latent_names") is not None:
        out["latent_names"] = list(names)
    if isinstance(out.get("levels"), list | tuple):
        out["levels"] = [out["levels"][k] for k in order]
    given = out.get("knowledge")
    if isinstance(given, Mapping):
        knowledge = Knowledge.from_dict(given).reindex(result.latent_names, order.tolist())
        for k in sorted({int(k) for pair in knowledge.hierarchy for k in pair}):
            if flips[k]:
                raise DataError(
                    "reversed-prerequisite",
                    "latent {latent!r} has a prerequisite or is one, so that its levels cannot be "
                    "reversed: having the skill and lacking it would be exchanged",
                    advice="keep its polarity",
                    latent=result.latent_names[order[k]],
                )
        out["knowledge"] = {
            part: [[names[int(k)] for k in entry] for entry in entries]
            for part, entries in knowledge.to_dict().items()
        }
    return out
