"""TIMSS 2019: how long students take, explained by the skills that items need."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from hidag.applications import timss_words as words
from hidag.applications.outcome import Outcome, Picture
from hidag.applications.timss_data import (
    TimssTable,
    printed_graph,
    read_accuracy_and_times,
    read_times,
    stand_in,
)
from hidag.applications.timss_figure import SIZE, draw_skills
from hidag.applications.timss_fits import fitted, over_seeds, rivals_of
from hidag.explain import BootstrapProgress, BootstrapResult, bootstrap
from hidag.explain.intervals import interval_cautions
from hidag.report import edges_in_words
from hidag.report.parts import Section, Table
from hidag.result import FitResult
from hidag.settings import checked_count

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
    tables.append(words.edge_table(best, fits, boot))
    sections.append(
        Section(
            "What the data can and cannot tell",
            words.what_can_be_told(table, best, boot, rivals),
            (),
            ("rivals",),
        )
    )
    tables.append(words.rival_table(table, best, rivals))
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
    tables += [words.seed_table(table, seeds, fits), words.law_table(table, others)]
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
        findings=words.findings(table, best, fits, boot, rivals),
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
            f"The graph then has {n_edges} edges, {words.shared_edges(times, both)} of which join "
            "skills that are joined in the graph of the times alone. The upper state of a skill "
            "is the one in which the columns are larger on the whole: longer times and right "
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
