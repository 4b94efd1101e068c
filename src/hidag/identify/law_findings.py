"""Findings about the law of the latents: every combination occurs, and the graph shows it all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hidag.identify.assumptions import Fitted
from hidag.identify.findings import Finding, listed
from hidag.identify.fitted_conditions import absent_states, empty_entries
from hidag.identify.question import Question
from hidag.latent import NetworkLaw


def positive_law(asked: Question, fitted: Fitted | None = None) -> Finding:
    """Return whether every joint state has a positive probability (Assumption 1(a))."""
    source = "Assumption 1(a)"
    if asked.ruled_out is not None:
        return _with_prerequisites(asked, asked.ruled_out, fitted)
    if fitted is None:
        sentence = "every combination of levels must occur; Q does not say whether it does"
        return Finding("positive-law", source, "undecided", sentence)
    if isinstance(fitted.law, NetworkLaw):
        return _positive_tables(asked, fitted.law)
    absent = absent_states(fitted.law.probabilities)
    if not len(absent):
        least = float(fitted.law.probabilities.min())
        sentence = f"every combination of levels occurs (the rarest with probability {least:.2g})"
        return Finding("positive-law", source, "holds", sentence)
    names = _state_names(asked, absent)
    return Finding(
        "positive-law",
        source,
        "fails",
        f"{'states' if len(names) > 1 else 'state'} {listed(names)} (levels in the order of the "
        f"latents) {'have' if len(names) > 1 else 'has'} no probability in the fit",
        {"states": names},
        "fit fewer latents or levels, or more rows; a law over a graph has no empty states unless "
        "its tables hold zeros",
    )


def _with_prerequisites(
    asked: Question, ruled_out: NDArray[np.bool_], fitted: Fitted | None
) -> Finding:
    """Return that states were said not to occur, and which others do not in a fit."""
    told = _state_names(asked, np.flatnonzero(ruled_out))
    sentence = (
        f"prerequisites rule {'states' if len(told) > 1 else 'state'} {listed(told)} out (levels "
        "in the order of the latents), and the theorems are about laws in which every state occurs"
    )
    witness = {"states": told, "ruled_out": told}
    if fitted is not None:
        absent = absent_states(np.where(ruled_out, 1.0, fitted.law.probabilities))
        others = _state_names(asked, absent)
        if others:
            sentence += (
                f"; besides, {'states' if len(others) > 1 else 'state'} {listed(others)} "
                f"{'have' if len(others) > 1 else 'has'} no probability in the fit"
            )
            witness = {"states": [*told, *others], "ruled_out": told}
    return Finding("positive-law", "Assumption 1(a)", "fails", sentence, witness)


def _state_names(asked: Question, numbers: NDArray[np.intp]) -> list[str]:
    """Return states by the digits of their levels."""
    states = np.stack(np.unravel_index(numbers, asked.levels), axis=1)
    return ["".join(map(str, state)) for state in states.tolist()]


def _positive_tables(asked: Question, law: NetworkLaw) -> Finding:
    source = "Assumption 1(a)"
    empty = empty_entries(law)
    if not empty:
        least = min(float(table.min()) for table in law.tables)
        sentence = (
            "every combination of levels occurs: no latent has a level with a probability below "
            f"{least:.2g}, whatever its parents are"
        )
        return Finding("positive-law", source, "holds", sentence)
    words = []
    for k, where in empty:
        given = [
            f"{asked.latent_names[a]} = {value}"
            for a, value in zip(law.parents[k], where[:-1], strict=True)
        ]
        words.append(
            f"{asked.latent_names[k]} = {where[-1]}{' with ' * bool(given)}{listed(given)}"
        )
    return Finding(
        "positive-law",
        source,
        "fails",
        f"{listed(words, limit=4)} {'have' if len(words) > 1 else 'has'} no probability in the fit",
        {"entries": words},
        "fit fewer latents or levels, or more rows",
    )


def faithful_graph(asked: Question) -> Finding:
    """Return that the graph is assumed to show every independence of the law (Assumption 1(a))."""
    return Finding(
        "faithful-graph",
        "Assumption 1(a)",
        "undecided",
        "the graph among the latents must show all independences of their law and no others; no "
        "data can decide that, it is assumed",
    )
