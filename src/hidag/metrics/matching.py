"""Matching estimated latents to true ones: names and the meaning of 0 and 1 are arbitrary."""

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
from hidag.metrics.model_parts import Parts, relabel_law, with_common_questions
from hidag.results import FitResult
from hidag.structure.knowledge import Knowledge

#: Two matchings whose loadings fit equally well up to this much are a tie for the law to break.
TIE = 1e-9

#: Shares of one entry of Q that break ties between columns: equal levels first, then loadings.
#: Together they stay below 1 over all latents, so that agreement in Q always comes first.
SAME_LEVELS, SAME_LOADINGS = 0.6, 0.3

#: Laws with more joint states than this are not compared again and again.
MOST_STATES_FOR_TIES = 1 << 14


@dataclass(frozen=True)
class Matching:
    """Which estimated latent stands for which true one.

    Attributes
    ----------
    permutation : tuple of int, length K true
        Estimated latent of each true one; -1 where there is none.
    flips : tuple of bool, length K true
        Whether that latent's levels have to be reversed.
    extra : tuple of int
        Estimated latents that stand for no true one.
    """

    permutation: tuple[int, ...]
    flips: tuple[bool, ...]
    extra: tuple[int, ...] = ()


def total_variation(law: LatentLaw | None, other: LatentLaw | None) -> float:
    """Return the total variation distance of two laws; NaN when they cannot be compared.

    They cannot when one is absent, when their spaces differ or when the states are too many to
    list.
    """
    if law is None or other is None or law.space != other.space or not law.space.listable:
        return float("nan")
    return 0.5 * float(np.abs(law.probabilities - other.probabilities).sum())


def match_latents(
    estimate: object, truth: object, *, allowed: NDArray[np.bool_] | None = None
) -> Matching:
    """Return the matching of estimated to true latents with the most agreement.

    Agreement in Q decides (an assignment problem), so that no other matching has fewer wrong
    entries of Q; among columns that agree equally the loadings decide, then the law. A latent is
    flipped when its loadings point the other way; without loadings, when the law says so. Loadings
    of nominal items count where both models ask about the categories in the same order.

    Parameters
    ----------
    estimate, truth : object
        Fitted estimators, results, truths or :class:`Parts`; the numbers of latents may differ.
    allowed : ndarray of bool, shape (K true, K estimated), optional
        Which latents may be matched at all, where something else than the items tells them apart;
        others are only if there is no way round it.
    """
    ours, true = with_common_questions(Parts.of(estimate), Parts.of(truth))
    if len(ours.q_matrix) != len(true.q_matrix):
        raise DataError(
            f"estimate and truth must have the same items, got {len(ours.q_matrix)} and "
            f"{len(true.q_matrix)}"
        )
    agreement = _agreement(ours, true)
    if allowed is not None:
        # One pair that may not be costs more than all of Q can gain.
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
        permutation, flips = _settle_ties(ours, true, agreement, direction, permutation, flips)
    taken = set(permutation.tolist())
    return Matching(
        permutation=tuple(int(k) for k in permutation),
        flips=tuple(bool(flip) for flip in flips),
        extra=tuple(k for k in range(ours.n_latents) if k not in taken),
    )


def _agreement(ours: Parts, true: Parts) -> NDArray[np.float64]:
    """Return how well each true latent (row) is met by each of ours (column), padded square.

    A latent without a partner agrees with nothing.
    """
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
    # Entries set in both suffice: the sums of Q are fixed, so a matching with the most common
    # ones is the one with the fewest differing entries.
    common = true.q_matrix.T.astype(np.int64) @ ours.q_matrix
    out[: true.n_latents, : ours.n_latents] = common + share / (size + 1)
    return out


def _direction(ours: Parts, true: Parts) -> NDArray[np.float64]:
    """Return the sign that relates true (row) and our (column) loadings; 0 when there is none."""
    a, b = true.strengths, ours.strengths
    if a is None or b is None:
        return np.zeros((true.n_latents, ours.n_latents))
    return np.asarray(np.sign(a.T @ b), dtype=np.float64)


def _settle_ties(
    ours: Parts,
    true: Parts,
    agreement: NDArray[np.float64],
    direction: NDArray[np.float64],
    permutation: NDArray[np.int64],
    flips: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the matching after exchanges and flips that cost nothing and bring the laws nearer.

    Every single latent and every pair is tried until nothing helps, so that latents with the
    same items are told apart by what they depend on. With more joint states than
    ``MOST_STATES_FOR_TIES`` each trial would take as long as a fit: nothing is tried.
    """
    if true.law is not None and true.law.space.n_states > MOST_STATES_FOR_TIES:
        return permutation, flips

    def distance(order: NDArray[np.int64], turned: NDArray[np.bool_]) -> float:
        return total_variation(_relabelled_law(ours, order, turned), true.law)

    best = distance(permutation, flips)
    improved = not np.isnan(best)
    while improved:
        improved = False
        for i, j in combinations_with_replacement(range(true.n_latents), 2):
            for order, turned in _moves(i, j, agreement, direction, permutation, flips):
                value = distance(order, turned)
                if value < best - TIE:
                    best, permutation, flips, improved = value, order, turned, True
    return permutation, flips


def _relabelled_law(
    ours: Parts, order: NDArray[np.int64], turned: NDArray[np.bool_]
) -> LatentLaw | None:
    return Parts(ours.q_matrix, law=ours.law).relabelled(order, turned).law


def _moves(
    i: int,
    j: int,
    agreement: NDArray[np.float64],
    direction: NDArray[np.float64],
    permutation: NDArray[np.int64],
    flips: NDArray[np.bool_],
) -> list[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Return the matchings that differ at latents i and j only and agree as well in Q, loadings."""
    out = []
    places = [i, j] if i != j else [i]
    for exchange in (False, True) if i != j else (False,):
        order = permutation.copy()
        if exchange:
            order[[i, j]] = permutation[[j, i]]
            before = agreement[i, permutation[i]] + agreement[j, permutation[j]]
            if agreement[i, order[i]] + agreement[j, order[j]] < before - TIE:
                continue
        # Loadings that point one way leave no choice of flip; those that point none leave both.
        choices = [
            (direction[k, order[k]] < 0,) if direction[k, order[k]] != 0 else (False, True)
            for k in places
        ]
        for flip in product(*choices):
            turned = flips.copy()
            turned[places] = flip
            if exchange or (turned != flips).any():
                out.append((order, turned))
    return out


# --- A fit under the names of a truth: for reading, never for estimating


def relabel_result(result: FitResult, matching: Matching, names: Sequence[str]) -> FitResult:
    """Return the same fit with its latents in a truth's order, way round and names.

    Which latent comes first and which of its levels is called 1 are conventions. Pictures that
    stand beside a truth follow the truth's; the model, its likelihood and its graph are the same.

    Parameters
    ----------
    result : FitResult
    matching : Matching
        Of all its latents, as `match_latents` finds it.
    names : sequence of str, length K

    Raises
    ------
    DataError
        If some latent has no true one, or a latent of a hierarchy would be turned round.
    """
    order = np.array(matching.permutation, dtype=np.int64)
    flips = np.array(matching.flips, dtype=bool)
    if sorted(order.tolist()) != list(range(len(result.latent_names))):
        raise DataError(
            f"every latent of the fit needs its true one, but {len(result.latent_names)} latents "
            f"are matched as {matching.permutation}"
        )
    called = {result.latent_names[old]: name for old, name in zip(order, names, strict=True)}
    return replace(
        result,
        latent_names=tuple(names),
        parameters=result.parameters.reordered(latents=order).flipped(flips),
        law=relabel_law(result.law, order, flips),
        graph=result.graph.permute(matching.permutation).rename(tuple(names)),
        q_given=None if result.q_given is None else result.q_given[:, order],
        edge_tests=tuple(
            replace(test, pair=(called[test.pair[0]], called[test.pair[1]]))
            for test in result.edge_tests
        ),
        settings=_relabelled_settings(result, order, flips, tuple(names)),
    )


def _relabelled_settings(
    result: FitResult, order: NDArray[np.int64], flips: NDArray[np.bool_], names: tuple[str, ...]
) -> dict[str, Any]:
    """Return the settings of a fit with what they say about single latents under their new names.

    States are ruled out by what is known, so it must speak of the same latents as before.
    """
    out = dict(result.settings)
    if out.get("latent_names") is not None:
        out["latent_names"] = list(names)
    if isinstance(out.get("levels"), list | tuple):
        out["levels"] = [out["levels"][k] for k in order]
    told = out.get("knowledge")
    if isinstance(told, Mapping):
        known = Knowledge.from_dict(told).reindex(result.latent_names, order.tolist())
        for k in sorted({int(k) for pair in known.hierarchy for k in pair}):
            # Reversed, "nobody has the skill without the prerequisite" is no hierarchy any more.
            if flips[k]:
                raise DataError(
                    "the levels of latents in a hierarchy cannot be reversed, because having a "
                    "skill and lacking it would change places, but "
                    f"{result.latent_names[order[k]]!r} is to be; keep it the way round it has"
                )
        out["knowledge"] = {
            part: [[names[int(k)] for k in entry] for entry in entries]
            for part, entries in known.to_dict().items()
        }
    return out
