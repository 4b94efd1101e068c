"""TIMSS 2019: response times of students explained by the skills that the items require."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.fitting.settings import checked_count
from hidag.formatting import join_names
from hidag.inference.bootstrap import bootstrap
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.inference.intervals import interval_notes
from hidag.latent.laws import NetworkLaw
from hidag.plotting import style
from hidag.plotting.figure import add_legend
from hidag.reporting.content import Table
from hidag.reporting.fit_description import format_edges
from hidag.results import FitResult
from hidag.structure.graphs import CPDAG
from hidag_paper.applications.claims import (
    arrows_into,
    claims_section,
    states_without_probability,
)
from hidag_paper.applications.report import ApplicationReport, ReportFigure, ReportSection
from hidag_paper.applications.timss_data import (
    CONTENT,
    SAME_VALUE,
    SIMULATED,
    SKILLS,
    Notify,
    TimssFits,
    TimssTable,
    find_rivals,
    fit_timss,
    printed_graph,
    read_accuracy_and_times,
    read_times,
    simulate_times,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Shares of refits from which an edge is stable, and below which it is unstable.
STABLE, UNSTABLE = 0.8, 0.5
_PAIRS = tuple(combinations(range(len(SKILLS)), 2))

#: Positions of the skills in the figure, such that no edge crosses a label.
_POSITIONS = {
    "Number": (3.4, 4.3),
    "Algebra": (-1.6, 2.2),
    "Geometry": (3.2, 0.1),
    "DataProb": (1.6, 2.2),
    "Knowing": (5.2, 2.2),
    "Applying": (8.0, 3.1),
    "Reasoning": (9.4, 0.9),
}
_WIDTH, _HEIGHT = 2.1, 0.95
#: Fill and outline of content and cognitive skills, distinct in grayscale as well.
_CONTENT_LOOK: dict[str, Any] = {"facecolor": "#e8f1fb", "edgecolor": style.INK, "linewidth": 1.1}
_COGNITIVE_LOOK: dict[str, Any] = {"facecolor": "#f6c77d", "edgecolor": style.INK, "linewidth": 2.0}
_DASHES = (0, (4, 1.6))
#: Line widths of edges without support and with full support.
_MIN_WIDTH, _MAX_WIDTH = 0.8, 3.6
SIZE = (9.0, 4.6)


def draw_skills(
    ax: Axes, graph: CPDAG, support: NDArray[np.float64] | None, printed: CPDAG
) -> None:
    """Draw the graph with line widths by support; edges that the paper lacks are dashed.

    Parameters
    ----------
    ax : Axes
    graph : CPDAG
        Over the seven skills.
    support : ndarray, shape (7, 7), or None
        Share of refits with each edge, written beside it.
    printed : CPDAG
        The figure of the paper.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Ellipse, FancyArrowPatch, Patch

    ax.set_xlim(-3.0, 10.8)
    ax.set_ylim(-1.3, 5.1)
    ax.set_aspect("equal")
    ax.set_axis_off()
    centred: dict[str, Any] = {"ha": "center", "va": "center"}
    patches = {}
    for name in SKILLS:
        look = _CONTENT_LOOK if name in CONTENT else _COGNITIVE_LOOK
        patches[name] = Ellipse(_POSITIONS[name], _WIDTH, _HEIGHT, zorder=3, **look)
        ax.add_patch(patches[name])
        label = "Data &\nProbability" if name == "DataProb" else name
        options = style.text_options(style.FONT_SIZE - 0.5, linespacing=0.95, zorder=5, **centred)
        ax.text(*_POSITIONS[name], label, **options)
    a = graph.adjacency
    for i, j in np.argwhere(np.triu((a + a.T) > 0)).tolist():
        start, end = (SKILLS[i], SKILLS[j]) if a[i, j] else (SKILLS[j], SKILLS[i])
        directed = not (a[i, j] and a[j, i])
        share = 1.0 if support is None else float(support[i, j])
        known = printed.adjacency[i, j] or printed.adjacency[j, i]
        bend = _bend(start, end)
        ax.add_patch(
            FancyArrowPatch(
                _POSITIONS[start],
                _POSITIONS[end],
                arrowstyle="-|>,head_length=7,head_width=4" if directed else "-",
                connectionstyle=f"arc3,rad={bend}",
                patchA=patches[start],
                patchB=patches[end],
                shrinkA=0,
                shrinkB=0,
                linewidth=_MIN_WIDTH + (_MAX_WIDTH - _MIN_WIDTH) * share,
                linestyle="solid" if known else _DASHES,
                color=style.INK if known else style.VERMILION,
                zorder=2,
            )
        )
        if support is not None:
            x, y = _curve(start, end, bend, np.array([0.5]))[0]
            box = {"boxstyle": "round,pad=0.15", "facecolor": style.PAPER, "edgecolor": "none"}
            ax.text(x, y, f"{share:.0%}", bbox=box, zorder=4, **style.text_options(**centred))
    dashed: dict[str, Any] = {"color": style.VERMILION, "linestyle": _DASHES, "linewidth": 2}
    handles = [
        Patch(label="content skill", **_CONTENT_LOOK),
        Patch(label="cognitive skill", **_COGNITIVE_LOOK),
        Line2D([], [], color=style.INK, linewidth=2, label="also in the figure of the paper"),
        Line2D([], [], label="not in the figure of the paper", **dashed),
    ]
    add_legend(ax, handles=handles, loc="lower center", ncols=4)


def _curve(start: str, end: str, bend: float, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points of matplotlib's ``arc3`` connection, a quadratic Bezier curve."""
    first, last = np.array(_POSITIONS[start]), np.array(_POSITIONS[end])
    dx, dy = last - first
    control = (first + last) / 2 + bend * np.array([dy, -dx])
    t = t[:, None]
    return np.asarray((1 - t) ** 2 * first + 2 * t * (1 - t) * control + t**2 * last)


def _bend(start: str, end: str) -> float:
    """Return the smallest curvature that avoids all other labels, or the one that comes closest."""

    def clearance(bend: float) -> float:
        path = _curve(start, end, bend, np.linspace(0.0, 1.0, 41))
        others = [np.array(_POSITIONS[name]) for name in SKILLS if name not in (start, end)]
        # Distances in units of the half axes of the ellipses.
        scaled = [(path - centre) / np.array([_WIDTH / 2, _HEIGHT / 2]) for centre in others]
        return float(min(np.linalg.norm(one, axis=1).min() for one in scaled))

    bends = (0.0, 0.12, -0.12, 0.22, -0.22, 0.32, -0.32, 0.42, -0.42)
    return next((b for b in bends if clearance(b) > 1.35), max(bends, key=clearance))


def run_timss(
    folder: Path | None,
    *,
    q: str = "printed",
    seed: int = 0,
    n_resamples: int = 100,
    n_seeds: int = 10,
    n_jobs: int | None = None,
    resample_folder: Path | None = None,
    observer: Notify | None = None,
) -> ApplicationReport:
    """Analyse the response times with seven skills.

    Parameters
    ----------
    folder : Path or None
        With the TIMSS tables; None simulates data.
    q : {"printed", "official"}
        The Q-matrix of the main fit; the other one is fitted for comparison.
    seed : int
    n_resamples : int
        Bootstrap refits; 0 for none.
    n_seeds : int
        Number of seeds of the main fit.
    n_jobs : int, optional
        Processes of the bootstrap.
    resample_folder : Path, optional
        Where refits are stored, to resume after an interruption.
    observer : callable, optional
        Called with the name of each step before it starts.
    """
    notify = observer or (lambda step: None)
    checked_count("n_seeds", n_seeds)
    table = simulate_times(seed) if folder is None else read_times(folder, q)
    seeds, by_seed = [seed + i for i in range(n_seeds)], []
    for count, own in enumerate(seeds, start=1):
        notify(f"fit, seed {count} of {n_seeds}")
        model = fit_timss(table, own)
        by_seed.append(model.result_)
        if count == 1:
            main = model
    main.result_ = best = max(by_seed, key=lambda fit: fit.log_likelihood)
    boot = None
    if n_resamples:
        boot = bootstrap(
            main,
            table.values,
            n_resamples=n_resamples,
            random_state=seed,
            n_jobs=n_jobs,
            folder=resample_folder,
            observer=lambda now: notify(f"refits, {now.n_done} of {now.n_resamples}"),
        )
    rivals = find_rivals(best, table, boot, seed, notify)
    fits = TimssFits(table, seeds, by_seed, best, boot, rivals)
    notify("other latent distributions")
    others = {
        "saturated, this Q": best,
        "default, this Q": fit_timss(table, seed, law="auto").result_,
        "network, this Q": fit_timss(table, seed, law="network").result_,
    }
    both = None
    if folder is not None:
        other = "official" if q == "printed" else "printed"
        others[f"saturated, {other} Q"] = fit_timss(read_times(folder, other), seed).result_
        mixed = read_accuracy_and_times(folder, q)
        if mixed is not None:
            notify("accuracy and times together")
            both = fit_timss(mixed, seed).result_
    return timss_report(fits, others, both, q, seed)


def timss_report(
    fits: TimssFits,
    others: Mapping[str, FitResult],
    both: FitResult | None,
    q: str,
    seed: int,
) -> ApplicationReport:
    """Return the report.

    Parameters
    ----------
    fits : TimssFits
    others : mapping from description to FitResult
        Fits with other latent distributions and the other Q.
    both : FitResult or None
        Fit to accuracy and times.
    q : {"printed", "official"}
    seed : int
    """
    best, boot, table = fits.best, fits.boot, fits.table
    which = "the official item sheet" if q == "official" else "the paper"
    sections = [
        ReportSection(
            "Causal graph of the skills",
            (
                f"Times of {best.n_samples} students on {len(best.item_names)} items, from "
                f"{table.source}, with {best.missing_share:.1%} of the cells missing; lognormal "
                f"items, the Q-matrix of {which}, and a saturated distribution of the skills, as "
                f"in the paper. The graph uses a sample size of {best.graph_rows:,.0f}.",
            ),
            (_skill_figure("skills", best, boot),),
            (_edge_table(fits),),
        ),
        ReportSection("Identifiability", _limits(fits), (), (_rival_table(fits),)),
        ReportSection(
            "Other seeds, latent distributions and Q-matrices",
            (
                "With a given Q the likelihood has many local optima. Each fit uses many starts "
                "and restarts parts of the parameters, so that the seed should not matter.",
            ),
            (),
            (_seed_table(fits), _law_table(table, others)),
        ),
    ]
    if boot is not None:
        sections.append(ReportSection("Uncertainty", (), (), _boot_tables(boot)))
    numbers = {
        "log_likelihood_of_log_seconds": table.log_likelihood(best),
        "log_likelihood_by_seed": [table.log_likelihood(fit) for fit in fits.by_seed],
        "printed_edges": format_edges(printed_graph()),
        "edges": format_edges(best.graph),
        "rivals": [
            {"below": r.below, "n_fits": r.n_fits, "edges": format_edges(r.result.graph)}
            for r in fits.rivals
        ],
        "support": None if boot is None else boot.adjacent,
        "directed_support": None if boot is None else boot.directed,
        "same_latents": None if boot is None else float(boot.same_latents.mean()),
    }
    sections.append(claims_section(best, *_reading(best)))
    if both is not None:
        numbers["edges_with_accuracy"] = format_edges(both.graph)
        sections.append(_accuracy_section(best, both))
    return ApplicationReport(
        name="timss",
        title="TIMSS 2019: skills in response times",
        findings=_findings(fits),
        cautions=_cautions(table, boot),
        result=best,
        seed=seed,
        settings={
            "data": table.source,
            "q": "printed" if table.source == SIMULATED else q,
            "bootstrap": 0 if boot is None else boot.n_resamples,
            "seeds": len(fits.seeds),
        },
        sections=tuple(sections),
        numbers=numbers,
    )


def _skill_figure(name: str, fit: FitResult, boot: BootstrapResult | None) -> ReportFigure:
    support = None if boot is None else boot.adjacent
    widths = "" if boot is None else "Numbers and widths: share of refits with the edge. "
    caption = (
        f"Causal graph of the skills: {'; '.join(format_edges(fit.graph)) or 'no edge'}. "
        f"{widths}Dashed edges are not in the figure of the paper."
    )
    draw = partial(draw_skills, graph=fit.graph, support=support, printed=printed_graph())
    return ReportFigure.on_axes(name, caption, draw, SIZE, fill=True)


def _edge(graph: CPDAG, i: int, j: int) -> str:
    """Return the edge between two latents: '->', '<-', '-' or ''."""
    edges = {(0, 0): "", (1, 0): "->", (0, 1): "<-", (1, 1): "-"}
    return edges[int(graph.adjacency[i, j]), int(graph.adjacency[j, i])]


def _adjacent(fit: FitResult) -> NDArray[np.bool_]:
    return np.asarray((fit.graph.adjacency + fit.graph.adjacency.T) > 0)


def _n_shared(one: FitResult, other: FitResult) -> int:
    """Return the number of pairs that are adjacent in both graphs."""
    return int(np.triu(_adjacent(one) & _adjacent(other)).sum())


def _edge_table(fits: TimssFits) -> Table:
    """Return each edge of the paper's figure or of the fit, with its stability."""
    theirs, boot = printed_graph(), fits.boot
    by_seed = np.mean([_adjacent(fit) for fit in fits.by_seed], axis=0)
    rows: list[tuple[object, ...]] = []
    for i, j in _PAIRS:
        printed, own = _edge(theirs, i, j), _edge(fits.best.graph, i, j)
        share = 0.0 if boot is None else float(boot.adjacent[i, j])
        if not printed and not own and share < UNSTABLE:
            continue
        row = (SKILLS[i], SKILLS[j], printed, own, float(by_seed[i, j]))
        if boot is None:
            rows.append(row)
            continue
        forward, backward = float(boot.directed[i, j]), float(boot.directed[j, i])
        as_printed = {"->": forward, "<-": backward, "-": share - forward - backward}.get(printed)
        level = "stable" if share >= STABLE else "moderate" if share >= UNSTABLE else "unstable"
        rows.append((*row, share, as_printed, level))
    rows.sort(key=lambda row: (row[2] == "", row[3] == ""))
    header: tuple[str, ...] = ("skill", "other skill", "paper", "fit", "share of seeds")
    if boot is not None:
        header += ("share of refits", "share as in the paper", "stability")
    caption = (
        "Edges of the figure of the paper first, then others. -> and <- point from left to right "
        "and from right to left, - is an undirected edge."
    )
    return Table("edges", caption, header, tuple(rows), decimals=2)


def _seed_table(fits: TimssFits) -> Table:
    rows = tuple(
        (
            seed,
            fits.table.log_likelihood(fit),
            fit.log_likelihood >= fits.best.log_likelihood - SAME_VALUE,
            *_graph_cells(fit),
        )
        for seed, fit in zip(fits.seeds, fits.by_seed, strict=True)
    )
    header = ("seed", "log-likelihood", "best optimum", "edges", "graph")
    return Table("seeds", "The same fit with several seeds.", header, rows)


def _law_table(table: TimssTable, fits: Mapping[str, FitResult]) -> Table:
    rows = tuple(
        (
            requested,
            "network" if isinstance(fit.law, NetworkLaw) else "saturated",
            table.log_likelihood(fit),
            *_graph_cells(fit),
        )
        for requested, fit in fits.items()
    )
    return Table(
        "laws",
        "Other latent distributions and the other Q-matrix; the numbers of parameters differ, so "
        "that the log-likelihoods are not directly comparable.",
        ("requested", "distribution", "log-likelihood", "edges", "graph"),
        rows,
        decimals=1,
    )


def _graph_cells(fit: FitResult) -> tuple[int, str]:
    edges = format_edges(fit.graph)
    return len(edges), "; ".join(edges)


def _rival_table(fits: TimssFits) -> Table:
    explanations = [("best", fits.best, 0.0)]
    explanations += [(f"rival {n}", r.result, r.below) for n, r in enumerate(fits.rivals, start=1)]
    return Table(
        "rivals",
        "Optima with nearly the same log-likelihood, and the probability of the slower state of "
        "each skill.",
        ("optimum", "log-likelihood", "below the best", *SKILLS),
        tuple(
            (name, fits.table.log_likelihood(fit), below, *fit.law.marginals()[:, 1].tolist())
            for name, fit, below in explanations
        ),
        decimals=2,
    )


def _boot_tables(boot: BootstrapResult) -> tuple[Table, Table]:
    def cells(rows: list[dict[str, object]]) -> tuple[tuple[object, ...], ...]:
        return tuple(tuple(row.values()) for row in rows)

    return (
        Table(
            "agreement",
            "Agreement of the skills with those of refits: cosine of the effects of a skill on the "
            "items, and the share of refits with a cosine of at least 0.9.",
            ("skill", "median cosine", "share in agreement"),
            cells(boot.agreement_table()),
            decimals=2,
        ),
        Table(
            "intervals",
            "90 % percentile intervals of the effects of the upper state of a skill on log "
            "seconds, and of the intercepts.",
            ("item", "term", "fit", "low", "high"),
            cells(boot.coefficient_table(0.9)),
            decimals=2,
        ),
    )


def _accuracy_section(times: FitResult, both: FitResult) -> ReportSection:
    return ReportSection(
        "Accuracy and times together",
        (
            f"For {both.n_samples} students with complete responses, each item was also scored as "
            f"correct or incorrect: {len(both.item_names)} columns, half binary and half log "
            "seconds, with the same skills.",
            f"The graph then has {len(format_edges(both.graph))} edges, {_n_shared(times, both)} "
            "of which are also in the graph of the times alone. The upper state of a skill is the "
            "one with larger values overall; the loadings show for which items longer times and "
            "correct responses do not coincide.",
        ),
        (_skill_figure("skills_with_accuracy", both, None),),
    )


def _findings(fits: TimssFits) -> tuple[str, ...]:
    theirs, best, boot = printed_graph(), fits.best, fits.boot
    printed = {(i, j): _edge(theirs, i, j) for i, j in _PAIRS if _edge(theirs, i, j)}
    own = {(i, j): _edge(best.graph, i, j) for i, j in _PAIRS if _edge(best.graph, i, j)}
    common = printed.keys() & own.keys()
    n_same = sum(printed[pair] == own[pair] for pair in common)
    findings = [
        f"The estimated graph contains {len(common)} of the {len(printed)} edges in the figure of "
        f"the paper, {n_same} of them with the same orientation, and {len(own) - len(common)} "
        "further edges.",
        f"{fits.n_optimal} of {len(fits.seeds)} seeds reach the highest log-likelihood, "
        f"{fits.table.log_likelihood(best):,.2f} as a density of log seconds.",
    ]
    if boot is not None:
        stable = [(SKILLS[i], SKILLS[j]) for i, j in _PAIRS if boot.adjacent[i, j] >= STABLE]
        named = ", ".join(f"{a} - {b}" for a, b in stable)
        findings.append(
            f"In at least {STABLE:.0%} of {boot.n_refits} bootstrap refits, {len(stable)} pairs of "
            f"skills are adjacent{': ' if stable else ''}{named}; all skills agree with those of "
            f"the fit in {boot.same_latents.mean():.0%} of the refits."
        )
    if fits.rivals:
        near = fits.rivals[0]
        findings.append(
            f"Another optimum has a log-likelihood {near.below:.2f} below the best one and "
            f"{len(format_edges(near.result.graph))} edges, {_n_shared(best, near.result)} of "
            "which are shared."
        )
    return tuple(findings)


def _reading(best: FitResult) -> tuple[str, ...]:
    """Return the paper's reading of its figure beside the figure and the fit."""
    number, algebra, _, data, *cognitive = SKILLS
    into = arrows_into(best, number, (algebra, data))
    with_data = join_names(
        [
            f"{skill} {best.edge_probabilities[i, 3] + best.edge_probabilities[3, i]:.2f}"
            for i, skill in enumerate(SKILLS)
            if skill in cognitive
        ]
    )
    paragraphs = [
        f"The paper's text calls {number} foundational. Its figure has arrows into {number}, from "
        f"{algebra} and from {data}, which say the opposite: {number} depends on both. "
        f"Probabilities here: {into}.",
        f"The text says that {data} is linked directly to all three cognitive skills, the figure "
        f"joins it to {cognitive[0]} alone, and the path of the cognitive skills, directed in the "
        f"text, is undirected in the figure. Probability that {data} is adjacent: {with_data}.",
    ]
    return tuple(filter(None, [states_without_probability(best), *paragraphs]))


def _limits(fits: TimssFits) -> tuple[str, ...]:
    """Return paragraphs on what is weakly identified."""
    best, boot = fits.best, fits.boot
    n_common = int((best.law.probabilities * best.n_samples >= 0.5).sum())
    paragraphs = [
        f"{best.n_samples} students are few for {len(SKILLS)} skills: of "
        f"{best.law.space.n_states} joint states only {n_common} have an expected count of at "
        "least 0.5. Each item requires one content skill and one cognitive skill, so that effects "
        "can be shifted from one to the other at little loss of likelihood.",
        "The upper state of a skill means longer times, not necessarily more skill: a student who "
        "hurries is in the lower state of all skills.",
        "The direction of undirected edges is not identified by data of this kind, whatever the "
        "sample size. Arrows follow from conditional independences and are the first to change "
        "when an edge does.",
    ]
    if boot is not None:
        edges = [(i, j) for i, j in _PAIRS if _edge(best.graph, i, j)]
        n_weak = sum(boot.adjacent[i, j] < STABLE for i, j in edges)
        paragraphs.append(
            f"{n_weak} of the {len(edges)} edges are missing in more than {1 - STABLE:.0%} of the "
            "refits and should be regarded as tentative. Refits with other skills are included in "
            "these shares."
        )
    if fits.rivals and fits.rivals[0].below < 3.0:
        paragraphs.append(
            f"A difference of {fits.rivals[0].below:.2f} in log-likelihood is no evidence between "
            "two optima. The table shows in which skills they differ; the choice requires other "
            "data or prior knowledge."
        )
    return tuple(paragraphs)


def _cautions(table: TimssTable, boot: BootstrapResult | None) -> tuple[str, ...]:
    cautions = []
    if table.source == SIMULATED:
        cautions.append("These are simulated times, not those of TIMSS.")
    if boot is None:
        cautions.append("Without bootstrap refits the stability of the edges is unknown.")
    else:
        if boot.failures:
            cautions.append(f"{len(boot.failures)} of {boot.n_resamples} bootstrap refits failed.")
        cautions += [f"{text}." for text in interval_notes(boot.n_refits, boot.q_given)]
    return tuple(cautions)
