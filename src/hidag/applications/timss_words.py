"""TIMSS: the tables and the sentences of the page, all from numbers of this run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from hidag.applications.timss_data import SKILLS, TimssTable, printed_graph
from hidag.applications.timss_fits import (
    SAME_VALUE,
    Rival,
    joined_share,
    log_seconds_likelihood,
    mark,
)
from hidag.explain import BootstrapResult
from hidag.latent import NetworkLaw
from hidag.report import edges_in_words
from hidag.report.parts import Table
from hidag.result import FitResult

#: Shares of refits from which an edge is called stable, and below which it is not settled.
STABLE, UNSETTLED = 0.8, 0.5


def edge_table(best: FitResult, seeds: Sequence[FitResult], boot: BootstrapResult | None) -> Table:
    """Return each edge of the paper's figure or of ours, with how stable it is."""
    theirs, share = printed_graph(), joined_share(seeds)
    rows: list[tuple[object, ...]] = []
    for i, j in combinations(range(len(SKILLS)), 2):
        printed, ours = mark(theirs, i, j), mark(best.graph, i, j)
        if not printed and not ours and (boot is None or boot.adjacent[i, j] < UNSETTLED):
            continue
        row: tuple[object, ...] = (SKILLS[i], SKILLS[j], printed, ours, float(share[i, j]))
        if boot is not None:
            as_printed = _same_mark(boot, i, j, printed) if printed else None
            joined = float(boot.adjacent[i, j])
            row += (joined, as_printed, in_words(joined))
        rows.append(row)
    rows.sort(key=lambda row: (row[2] == "", row[3] == ""))
    header: tuple[str, ...] = ("one", "other", "in the paper", "in our fit", "joined, over seeds")
    if boot is not None:
        header += ("joined, over refits", "marked as in the paper", "in words")
    caption = (
        "Edges of the paper's figure first, then others. -> and <- are arrows from left to right "
        "and from right to left, - an edge without direction."
    )
    return Table("edges", caption, header, tuple(rows), decimals=2)


def _same_mark(boot: BootstrapResult, i: int, j: int, printed: str) -> float:
    forward, backward = boot.directed[i, j], boot.directed[j, i]
    shares = {"->": forward, "<-": backward, "-": boot.adjacent[i, j] - forward - backward}
    return float(shares[printed])


def in_words(share: float) -> str:
    """Return how stable an edge is that so large a share of refits has."""
    if share >= STABLE:
        return "stable"
    return "leaning" if share >= UNSETTLED else "not settled"


def seed_table(table: TimssTable, seeds: Sequence[int], fits: Sequence[FitResult]) -> Table:
    """Return where the fit ended from each seed."""
    best = max(fit.log_likelihood for fit in fits)
    rows = tuple(
        (
            seed,
            log_seconds_likelihood(fit, table),
            fit.log_likelihood >= best - SAME_VALUE,
            len(edges_in_words(fit.graph)),
            "; ".join(edges_in_words(fit.graph)),
        )
        for seed, fit in zip(seeds, fits, strict=True)
    )
    header = ("seed", "log-likelihood", "the best", "edges", "graph")
    return Table("seeds", "The same fit from several seeds.", header, rows)


def law_table(table: TimssTable, fits: dict[str, FitResult]) -> Table:
    """Return what each kind of law gives."""
    rows = tuple(
        (
            words,
            "over a graph" if isinstance(fit.law, NetworkLaw) else "saturated",
            log_seconds_likelihood(fit, table),
            len(edges_in_words(fit.graph)),
            "; ".join(edges_in_words(fit.graph)),
        )
        for words, fit in fits.items()
    )
    return Table(
        "laws",
        "Other laws of the skills, and the other Q-matrix; log-likelihoods of different Q-matrices "
        "and laws have different numbers of parameters behind them.",
        ("asked for", "law kept", "log-likelihood", "edges", "graph"),
        rows,
        decimals=1,
    )


def rival_table(table: TimssTable, best: FitResult, rivals: Sequence[Rival]) -> Table:
    """Return the best explanation and its rivals, with who is slow in each."""
    rows = []
    for words, fit, below in [
        ("best", best, 0.0),
        *((f"rival {n}", rival.result, rival.below) for n, rival in enumerate(rivals, start=1)),
    ]:
        slow = fit.law.marginals()[:, 1]
        rows.append((words, log_seconds_likelihood(fit, table), below, *map(float, slow)))
    return Table(
        "rivals",
        "Explanations within a few units of log-likelihood, and the share of students in the "
        "slower state of each skill.",
        ("explanation", "log-likelihood", "below the best", *SKILLS),
        tuple(rows),
        decimals=2,
    )


def shared_edges(one: FitResult, other: FitResult) -> int:
    """Return how many pairs of skills are joined in both graphs."""
    joined = [(fit.graph.adjacency + fit.graph.adjacency.T) > 0 for fit in (one, other)]
    return int(np.triu(joined[0] & joined[1]).sum())


def findings(
    table: TimssTable,
    best: FitResult,
    seeds: Sequence[FitResult],
    boot: BootstrapResult | None,
    rivals: Sequence[Rival],
) -> tuple[str, ...]:
    """Return what was found, most important first."""
    theirs, out = printed_graph(), []
    pairs = list(combinations(range(len(SKILLS)), 2))
    printed = [(i, j) for i, j in pairs if mark(theirs, i, j)]
    ours = [(i, j) for i, j in pairs if mark(best.graph, i, j)]
    common = [pair for pair in printed if pair in ours]
    alike = [pair for pair in common if mark(theirs, *pair) == mark(best.graph, *pair)]
    extra = len(ours) - len(common)
    out.append(
        f"Of the {len(printed)} edges of the paper's figure {len(common)} are in our graph, "
        f"{len(alike)} of them with the same direction or lack of one; our graph has "
        f"{extra or 'no'} other edge{'' if extra == 1 else 's'}."
    )
    top = max(fit.log_likelihood for fit in seeds)
    reached = sum(fit.log_likelihood >= top - SAME_VALUE for fit in seeds)
    out.append(
        f"{reached} of {len(seeds)} seeds reach the highest log-likelihood that was seen, "
        f"{top + table.log_scale:,.2f} as a density of log seconds."
    )
    if boot is not None:
        stable = [(i, j) for i, j in pairs if boot.adjacent[i, j] >= STABLE]
        named = ", ".join(f"{SKILLS[i]} and {SKILLS[j]}" for i, j in stable)
        out.append(
            f"When the students are drawn again, {boot.n_refits} times, {len(stable)} pairs of "
            f"skills are joined in at least {STABLE:.0%} of the refits{': ' if stable else ''}"
            f"{named}; all skills are measured in the same way as in the fit in "
            f"{boot.same_latents.mean():.0%} of the refits."
        )
    if rivals:
        near = rivals[0]
        out.append(
            f"Another explanation of the times is {near.below:.2f} units of log-likelihood below "
            f"the best one, has {len(edges_in_words(near.result.graph))} edges and shares "
            f"{shared_edges(best, near.result)} of them with it."
        )
    return tuple(out)


def what_can_be_told(
    table: TimssTable, best: FitResult, boot: BootstrapResult | None, rivals: Sequence[Rival]
) -> tuple[str, ...]:
    """Return paragraphs on what these data can tell and what they cannot."""
    states = int((best.law.probabilities * best.n_samples >= 0.5).sum())
    n_states = best.law.space.n_states
    out = [
        f"{best.n_samples} students are few for {len(SKILLS)} skills: they have {n_states} joint "
        f"states, and only {states} of them have an expected count of half a student or more. Each "
        "item needs one content skill and one cognitive skill, so that what the two do can be "
        "shifted from the one to the other at little cost.",
        "A skill's upper state means longer times. It need not mean more skill: a student who "
        "hurries through the screens is in the lower state of everything.",
        "Lines without an arrow have no direction that data of this kind could show, however many "
        "students there were. Arrows follow from the pattern of independences, and are the first "
        "to change when an edge does.",
    ]
    if boot is not None:
        weak = sum(
            1
            for i, j in combinations(range(len(SKILLS)), 2)
            if mark(best.graph, i, j) and boot.adjacent[i, j] < STABLE
        )
        out.append(
            f"{weak} of the {len(edges_in_words(best.graph))} edges of the fit are missing in more "
            f"than {1 - STABLE:.0%} of the refits: those are suggestions, not findings. Refits "
            "that measure a skill otherwise are counted like all others."
        )
    if rivals and rivals[0].below < 3.0:
        out.append(
            f"A difference of {rivals[0].below:.2f} units of log-likelihood is no evidence between "
            "two explanations. The table of rivals says in which skills they differ; the choice "
            "between them needs other data, or knowledge from outside."
        )
    return tuple(out)
