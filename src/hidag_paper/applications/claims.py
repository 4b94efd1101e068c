"""What the theorems and the data say about the main fit of an application."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from hidag.formatting import join_names, sentence_case
from hidag.identifiability.certificate import Certificate, certify_q_matrix, verdict_sentences
from hidag.reporting.content import Table
from hidag.results import FitResult
from hidag_paper.applications.report import ReportSection

#: Pairs of latents that are neither joined nor as probably adjacent are left out.
LEAST_PROBABILITY = 0.1


def claims_section(fit: FitResult, *more: str) -> ReportSection:
    """Return the certificates of Q and of the fit, the probabilities of edges, and paragraphs."""
    whole = certify_q_matrix(fit), fit.identifiability
    paragraphs = [
        f"{name}, {head.strip(': ')}: {text}"
        for name, found in zip(("Q alone", "The fit"), whole, strict=True)
        for head, text in verdict_sentences(found)
        if head
    ]
    paragraphs += [
        f"{sentence_case(found.sentence)} ({found.source})."
        for found in fit.identifiability.reasons()
    ]
    table = Table(
        "certificates",
        "Conditions of the theorems for the Q-matrix with any coefficients, and for the fit.",
        ("condition", "source", "Q alone", "the fit"),
        _conditions(*whole),
    )
    return ReportSection(
        "Identifiability, and support of the edges",
        (*paragraphs, *more),
        tables=(table, support_table(fit)),
    )


def _conditions(q: Certificate, fit: Certificate) -> tuple[tuple[str, ...], ...]:
    known = {found.name: found.status for found in q.findings}
    return tuple(
        (found.name, found.source, known.get(found.name, ""), found.status)
        for found in fit.findings
    )


def support_table(fit: FitResult) -> Table:
    """Return the probability of each edge and of its directions given model and data."""
    p, graph = np.asarray(fit.edge_probabilities), fit.graph.adjacency
    rows = []
    for i, j in combinations(range(len(p)), 2):
        joined = bool(graph[i, j] or graph[j, i])
        adjacent = float(p[i, j] + p[j, i])
        if joined or adjacent >= LEAST_PROBABILITY:
            edge = {(1, 0): "->", (0, 1): "<-", (1, 1): "-"}.get((graph[i, j], graph[j, i]), "")
            names = fit.latent_names[i], fit.latent_names[j]
            rows.append((*names, edge, adjacent, float(p[i, j]), float(p[j, i])))
    rows.sort(key=lambda row: -row[3] if row[3] == row[3] else 0.0)
    return Table(
        "support",
        "Probability of each edge and of its two directions, given the model and the number of "
        "latents; nan if it was not computed.",
        ("latent", "other latent", "fit", "edge", "->", "<-"),
        tuple(rows),
        decimals=2,
    )


def states_without_probability(fit: FitResult) -> str:
    """Return a sentence about joint states that the fit gives no probability, or nothing."""
    witness = fit.identifiability.finding("positive-law").witness
    n_states = len(witness.get("states", ()))
    if not n_states:
        return ""
    return (
        f"{n_states} of {fit.law.space.n_states} joint states have no probability in the fit, and "
        "the theorems exclude such distributions. So Q is not to blame but the number of rows: a "
        "distribution over a graph, or fewer latents, would have none."
    )


def arrows_into(fit: FitResult, latent: str, others: tuple[str, ...]) -> str:
    """Return the probabilities of arrows into a latent from some others as a phrase."""
    p, names = np.asarray(fit.edge_probabilities), fit.latent_names
    k = names.index(latent)
    parts = [
        f"{other} -> {latent} {p[names.index(other), k]:.2f}, back {p[k, names.index(other)]:.2f}"
        for other in others
    ]
    return join_names(parts)
