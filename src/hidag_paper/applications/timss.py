"""TIMSS 2019: how long students take, explained by the skills that items need."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.fitting.settings import checked_count
from hidag.inference.bootstrap import BootstrapProgress, bootstrap
from hidag.inference.bootstrap_result import BootstrapResult
from hidag.inference.intervals import interval_cautions
from hidag.plotting import style
from hidag.reporting.fit_description import edges_in_words
from hidag.reporting.sections import Section, Table
from hidag.results import FitResult
from hidag.structure.graphs import CPDAG
from hidag_paper.applications import timss_fits
from hidag_paper.applications.outcome import Outcome, Picture
from hidag_paper.applications.timss_fits import (
    CONTENT,
    SKILLS,
    TimssTable,
    fitted,
    over_seeds,
    printed_graph,
    read_accuracy_and_times,
    read_times,
    rivals_of,
    stand_in,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --- TIMSS: the graph among the skills, laid out and coloured as in the paper's figure

#: Places of the skills; cognitive ones are staggered, so that no line runs through a label.
_PLACES = {
    "Number": (3.4, 4.3),
    "Algebra": (-1.6, 2.2),
    "Geometry": (3.2, 0.1),
    "DataProb": (1.6, 2.2),
    "Knowing": (5.2, 2.2),
    "Applying": (8.0, 3.1),
    "Reasoning": (9.4, 0.9),
}
_WORDS = {"DataProb": "Data &\nProbability"}
_WIDTH, _HEIGHT = 2.1, 0.95
#: Pale blue and a stronger orange: they differ in gray as well, and so do the outlines.
_CONTENT_FILL, _COGNITIVE_FILL = "#e8f1fb", "#f6c77d"
#: Widths of lines for edges that no refit has and that all have.
_THINNEST, _WIDEST = 0.8, 3.6
SIZE = (9.0, 4.6)


def draw_skills(
    ax: Axes, graph: CPDAG, support: NDArray[np.float64] | None, printed: CPDAG
) -> None:
    """Draw the graph; lines are as wide as their support, edges the paper lacks are dashed.

    Parameters
    ----------
    ax : Axes
    graph : CPDAG
        Over the seven skills.
    support : ndarray, shape (7, 7), or None
        Share of refits in which two skills are joined; written beside each edge.
    printed : CPDAG
        The paper's figure.
    """
    from matplotlib.patches import Ellipse, FancyArrowPatch

    ax.set_xlim(-3.0, 10.8)
    ax.set_ylim(-1.3, 5.1)
    ax.set_aspect("equal")
    ax.set_axis_off()
    patches = {}
    for name in SKILLS:
        content = name in CONTENT
        patches[name] = Ellipse(
            _PLACES[name],
            _WIDTH,
            _HEIGHT,
            facecolor=_CONTENT_FILL if content else _COGNITIVE_FILL,
            edgecolor=style.INK,
            linewidth=1.1 if content else 2.0,
            zorder=3,
        )
        ax.add_patch(patches[name])
        ax.text(
            *_PLACES[name],
            _WORDS.get(name, name),
            ha="center",
            va="center",
            fontsize=style.FONT_SIZE - 0.5,
            color=style.INK,
            linespacing=0.95,
            zorder=5,
        )
    a = graph.adjacency
    for i, j in np.argwhere(np.triu((a + a.T) > 0)).tolist():
        start, end = (i, j) if a[i, j] else (j, i)
        directed = not (a[i, j] and a[j, i])
        share = 1.0 if support is None else float(support[i, j])
        known = printed.adjacency[i, j] or printed.adjacency[j, i]
        bend = _bend(SKILLS[start], SKILLS[end])
        line = FancyArrowPatch(
            _PLACES[SKILLS[start]],
            _PLACES[SKILLS[end]],
            arrowstyle="-|>,head_length=7,head_width=4" if directed else "-",
            connectionstyle=f"arc3,rad={bend}",
            patchA=patches[SKILLS[start]],
            patchB=patches[SKILLS[end]],
            shrinkA=0,
            shrinkB=0,
            linewidth=_THINNEST + (_WIDEST - _THINNEST) * share,
            linestyle="solid" if known else (0, (4, 1.6)),
            color=style.INK if known else style.VERMILION,
            zorder=2,
        )
        ax.add_patch(line)
        if support is not None:
            x, y = _middle(_PLACES[SKILLS[start]], _PLACES[SKILLS[end]], bend)
            ax.text(
                x,
                y,
                f"{share:.0%}",
                ha="center",
                va="center",
                fontsize=style.SMALL_FONT_SIZE,
                color=style.INK,
                bbox={"boxstyle": "round,pad=0.15", "facecolor": style.PAPER, "edgecolor": "none"},
                zorder=4,
            )
    _legend(ax)


def _middle(
    start: tuple[float, float], end: tuple[float, float], bend: float
) -> tuple[float, float]:
    """Return the middle of the arc that ``arc3`` draws between two points."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    # The control point of the quadratic curve is off the middle by the bend; half of it shows.
    return (
        (start[0] + end[0]) / 2 + 0.5 * bend * dy,
        (start[1] + end[1]) / 2 - 0.5 * bend * dx,
    )


def _bend(start: str, end: str) -> float:
    """Return the curvature that keeps a line clear of other labels, 0 where a straight one is."""
    first, last = np.array(_PLACES[start]), np.array(_PLACES[end])

    def clearance(bend: float) -> float:
        dx, dy = last - first
        control = (first + last) / 2 + bend * np.array([dy, -dx])
        t = np.linspace(0.0, 1.0, 41)[:, None]
        path = (1 - t) ** 2 * first + 2 * t * (1 - t) * control + t**2 * last
        others = [np.array(_PLACES[name]) for name in SKILLS if name not in (start, end)]
        # Labels are wider than high: distances are measured in their own shape.
        scaled = [(path - centre) / np.array([_WIDTH / 2, _HEIGHT / 2]) for centre in others]
        return float(min(np.linalg.norm(one, axis=1).min() for one in scaled))

    # The straightest line that is clear; if none is, the clearest.
    bends = (0.0, 0.12, -0.12, 0.22, -0.22, 0.32, -0.32, 0.42, -0.42)
    clear = [b for b in bends if clearance(b) > 1.35]
    return clear[0] if clear else max(bends, key=clearance)


def _legend(ax: Axes) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    ax.legend(
        handles=[
            Patch(facecolor=_CONTENT_FILL, edgecolor=style.INK, label="content skill"),
            Patch(
                facecolor=_COGNITIVE_FILL, edgecolor=style.INK, linewidth=2, label="cognitive skill"
            ),
            Line2D([], [], color=style.INK, linewidth=2, label="also in the paper's figure"),
            Line2D(
                [],
                [],
                color=style.VERMILION,
                linewidth=2,
                linestyle=(0, (4, 1.6)),
                label="not in the paper's figure",
            ),
        ],
        loc="lower center",
        ncols=4,
        frameon=False,
        fontsize=style.SMALL_FONT_SIZE,
        labelcolor=style.INK,
    )


# ---

Tell = Callable[[str], None]


def explain_times(
    folder: Path | None,
    *,
    q: str = "printed",
    seed: int = 0,
    n_resamples: int = 100,
    n_seeds: int = 10,
    n_jobs: int | None = None,
    keep: Path | None = None,
    tell: Tell | None = None,
) -> Outcome:
    """Return what response times say of the seven skills.

    Parameters
    ----------
    folder : Path or None
        With the TIMSS tables; None takes a simulated stand-in.
    q : {"printed", "official"}
        Which Q-matrix the page is about; the other one is fitted for comparison.
    seed : int
    n_resamples : int
        Refits of the bootstrap; 0 leaves it out.
    n_seeds : int
        Seeds that the same fit is begun from.
    n_jobs : int, optional
        Processes of the bootstrap.
    keep : Path, optional
        Folder where resamples are kept, to go on after a stop.
    tell : callable, optional
        Told in words what is being done.
    """
    say = tell or (lambda text: None)
    checked_count("n_seeds", n_seeds)
    table = stand_in(seed) if folder is None else read_times(folder, q)
    say("the fit")
    model = fitted(table, seed)
    seeds = [seed + i for i in range(n_seeds)]
    fits = over_seeds(table, model.result_, seeds, say)
    best: FitResult = max(fits, key=lambda fit: fit.log_likelihood)
    model.result_ = best
    boot = None
    if n_resamples:

        def progress(now: BootstrapProgress) -> None:
            say(f"refits, {now.n_done} of {now.n_resamples}")

        boot = bootstrap(
            model,
            table.values,
            n_resamples=n_resamples,
            random_state=seed,
            n_jobs=n_jobs,
            folder=keep,
            observer=progress,
        )
    rivals = rivals_of(best, table, boot, seed, say)
    say("other laws")
    others = {
        "saturated, this Q": best,
        "the default, this Q": fitted(table, seed, law="auto").result_,
        "over a graph, this Q": fitted(table, seed, law="network").result_,
    }
    if folder is not None:
        other = "official" if q == "printed" else "printed"
        others[f"saturated, {other} Q"] = fitted(read_times(folder, other), seed).result_
    mixed = None if folder is None else read_accuracy_and_times(folder, q)
    sections, tables, pictures = [], [], [_figure(best, boot)]
    sections.append(
        Section(
            "The graph among the skills",
            (_how_it_was_fitted(table, best, q),),
            ("skills",),
            ("edges",),
        )
    )
    tables.append(timss_fits.edge_table(best, fits, boot))
    sections.append(
        Section(
            "What the data can and cannot tell",
            timss_fits.what_can_be_told(table, best, boot, rivals),
            (),
            ("rivals",),
        )
    )
    tables.append(timss_fits.rival_table(table, best, rivals))
    sections.append(
        Section(
            "From other seeds, with other laws, with the other Q",
            (
                "The likelihood of a given Q has many local optima. A fit begins at many places "
                "and begins parts of what it found again, so that the seed should not matter.",
            ),
            (),
            ("seeds", "laws"),
        )
    )
    tables += [timss_fits.seed_table(table, seeds, fits), timss_fits.law_table(table, others)]
    if boot is not None:
        sections.append(Section("How sure the numbers are", (), (), ("agreement", "intervals")))
        tables += _boot_tables(boot)
    numbers = {
        "log_likelihood_of_log_seconds": best.log_likelihood + table.log_scale,
        "log_likelihood_by_seed": [fit.log_likelihood + table.log_scale for fit in fits],
        "printed_edges": edges_in_words(printed_graph()),
        "edges": edges_in_words(best.graph),
        "rivals": [
            {"below": r.below, "n_fits": r.n_fits, "edges": edges_in_words(r.result.graph)}
            for r in rivals
        ],
        "support": None if boot is None else boot.adjacent,
        "directed_support": None if boot is None else boot.directed,
        "same_latents": None if boot is None else float(boot.same_latents.mean()),
    }
    if mixed is not None:
        say("accuracy and times together")
        both = fitted(mixed, seed).result_
        numbers["edges_with_accuracy"] = edges_in_words(both.graph)
        sections.append(_with_accuracy(best, both))
        pictures.append(_figure(both, None, name="skills_with_accuracy"))
    return Outcome(
        name="timss",
        title="TIMSS 2019: the skills behind response times",
        findings=timss_fits.findings(table, best, fits, boot, rivals),
        cautions=_cautions(table, boot),
        result=best,
        seed=seed,
        settings={
            "data": table.source,
            "q": "printed" if folder is None else q,
            "bootstrap": n_resamples,
            "seeds": n_seeds,
        },
        sections=tuple(sections),
        pictures=tuple(pictures),
        tables=tuple(tables),
        numbers=numbers,
    )


def _figure(fit: FitResult, boot: BootstrapResult | None, name: str = "skills") -> Picture:
    support = None if boot is None else boot.adjacent
    about = "Fitted to accuracy and times. " if boot is None and name != "skills" else ""
    wide = (
        "Numbers and widths: share of refits in which the two skills are joined. "
        if boot is not None
        else ""
    )
    draw = partial(draw_skills, graph=fit.graph, support=support, printed=printed_graph())
    caption = (
        f"{about}The graph among the skills: {'; '.join(edges_in_words(fit.graph)) or 'no edge'}. "
        f"{wide}Dashed edges are not in the paper's figure."
    )
    return Picture.on_axes(name, caption, draw, SIZE, fill=True)


def _how_it_was_fitted(table: TimssTable, best: FitResult, q: str) -> str:
    which = "the Q-matrix of the official item sheet" if q == "official" else "the paper's Q-matrix"
    return (
        f"Times of {best.n_samples} students on {len(best.item_names)} items, from {table.source}, "
        f"with {best.missing_share:.1%} of the cells missing; lognormal items, {which}, and a "
        "law with one probability for each joint state of the skills, as in the paper. The graph "
        f"counts on {best.graph_rows:,.0f} rows."
    )


def _with_accuracy(times: FitResult, both: FitResult) -> Section:
    n_edges = len(edges_in_words(both.graph))
    return Section(
        "Accuracy and times together",
        (
            f"The {both.n_samples} students with all answers also have each item marked right or "
            f"wrong: {len(both.item_names)} columns, half binary and half log seconds, with the "
            "same skills behind both.",
            f"The graph then has {n_edges} edges, {timss_fits.shared_edges(times, both)} of which "
            "join skills that are joined in the graph of the times alone. The upper state of a "
            "skill is the one in which the columns are larger on the whole: longer times and right "
            "answers need not go together, and the loadings say where they do not.",
        ),
        ("skills_with_accuracy",),
    )


def _boot_tables(boot: BootstrapResult) -> list[Table]:
    def rows_of(rows: list[dict[str, object]]) -> tuple[tuple[object, ...], ...]:
        return tuple(tuple(row.values()) for row in rows)

    return [
        Table(
            "agreement",
            "Whether refits measure the same skills: cosine of a skill's effects on the items with "
            "those of the fit, and the share of refits where it is at least .9.",
            ("skill", "median cosine", "share the same"),
            rows_of(boot.agreement_table()),
            decimals=2,
        ),
        Table(
            "intervals",
            "Intervals of 90 % (percentiles over refits) for what a skill's upper state adds to "
            "log seconds, and for intercepts.",
            ("item", "term", "fit", "low", "high"),
            rows_of(boot.coefficient_table(0.9)),
            decimals=2,
        ),
    ]


def _cautions(table: TimssTable, boot: BootstrapResult | None) -> tuple[str, ...]:
    out = []
    if table.source == "a simulated stand-in":
        out.append("These are simulated times, not those of TIMSS; give the folder of the data.")
    if boot is None:
        out.append("No refits were asked for, so nothing is said of how stable the edges are.")
    elif boot.failures:
        out.append(f"{len(boot.failures)} of {boot.n_resamples} resamples could not be fitted.")
    if boot is not None:
        out += [f"{caution}." for caution in interval_cautions(boot.n_refits, boot.q_given)]
    return tuple(out)
