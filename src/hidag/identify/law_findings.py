"""Findings about the law of the latents: every combination occurs, and the graph shows it all."""

from __future__ import annotations

import numpy as np

from hidag.identify.assumptions import Fitted
from hidag.identify.findings import Finding, listed
from hidag.identify.fitted_conditions import absent_states, empty_entries
from hidag.identify.question import Question
from hidag.latent import NetworkLaw


def positive_law(asked: Question, fitted: Fitted | None = None) -> Finding:
    """Return whether every joint state has a positive probability (Assumption 1(a))."""
    source = "Assumption 1(a)"
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
    states = np.stack(np.unravel_index(absent, asked.levels), axis=1)
    names = ["".join(map(str, state)) for state in states.tolist()]
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
