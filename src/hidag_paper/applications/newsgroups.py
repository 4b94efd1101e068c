"""Topics behind word counts: hidden yes/no states of documents in 12 newsgroups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hidag.plotting import style
from hidag.reporting.sections import Section, Table
from hidag_paper.applications import exploration_report
from hidag_paper.applications.exploration import (
    LATENTS_FOR_FAMILIES,
    Exploration,
    best_family,
    explore,
    misfit,
)
from hidag_paper.applications.exploration_report import (
    common_numbers,
    count_family_table,
    misfit_section,
    number_section,
)
from hidag_paper.applications.newsgroups_data import (
    ROWS_FOR_FAMILIES,
    WORDS_FOR_FAMILIES,
    Labels,
    count_families,
    read_counts,
    read_labels,
)
from hidag_paper.applications.outcome import Outcome, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --- The newsgroups of documents, held against states that were found without them

Array = NDArray[np.float64]


def topic_told(found: Exploration, labels: Labels) -> tuple[float, float]:
    """Return how often profiles of states tell a document's subject, and the most frequent one.

    Learned from the documents with even numbers, counted on the others.
    """
    profiles = [tuple(row) for row in (found.posterior() > 0.5).tolist()]
    topics = labels.topic.tolist()
    usual = Counter(topics[::2]).most_common(1)[0][0]
    seen: dict[tuple[bool, ...], Counter[str]] = defaultdict(Counter)
    for profile, topic in zip(profiles[::2], topics[::2], strict=True):
        seen[profile][topic] += 1
    told = [seen[p].most_common(1)[0][0] if p in seen else usual for p in profiles[1::2]]
    truth = topics[1::2]
    right = float(np.mean([a == b for a, b in zip(told, truth, strict=True)]))
    return right, float(np.mean([t == usual for t in truth]))


def group_shares(found: Exploration, labels: Labels) -> tuple[list[str], Array]:
    """Return the groups, and the average chance of each state in each of them, (G, K)."""
    chances = found.posterior()
    groups = sorted(set(labels.group.tolist()))
    return groups, np.stack([chances[labels.group == g].mean(axis=0) for g in groups])


def groups_table(found: Exploration, labels: Labels) -> Table:
    """Return how often each state is on in each group."""
    groups, shares = group_shares(found, labels)
    sizes = [int((labels.group == g).sum()) for g in groups]
    return Table(
        "groups",
        "Average chance of each state in the documents of each newsgroup.",
        ("newsgroup", "documents", *found.result.latent_names),
        tuple(
            (g, n, *(float(v) for v in row))
            for g, n, row in zip(groups, sizes, shares, strict=True)
        ),
        decimals=2,
    )


def groups_picture(found: Exploration, labels: Labels) -> Picture:
    """Return the table of groups as a picture."""
    groups, shares = group_shares(found, labels)
    return Picture.on_axes(
        "groups",
        "How often each state is on in each newsgroup: the darker, the more documents. Newsgroups "
        "were looked at after the fit.",
        partial(_draw_shares, groups=groups, names=found.result.latent_names, shares=shares),
        (2.6 + 0.95 * shares.shape[1], 1.6 + 0.34 * len(groups)),
    )


def _draw_shares(ax: Axes, *, groups: list[str], names: tuple[str, ...], shares: Array) -> None:
    ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    ax.set_yticks(range(len(groups)), groups, fontsize=style.SMALL_FONT_SIZE)
    ax.set_xticks(
        range(len(names)),
        [style.display_name(name).replace(", ", ",\n") for name in names],
        fontsize=style.SMALL_FONT_SIZE,
    )
    for (row, column), value in np.ndenumerate(shares):
        ink = style.PAPER if value > 0.55 else style.INK
        ax.text(
            column,
            row,
            f"{value:.2f}",
            ha="center",
            va="center",
            color=ink,
            fontsize=style.SMALL_FONT_SIZE,
        )
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


# ---

NUMBERS = (4, 6, 8)
#: Hundreds of items leave little doubt where to begin, and a step is dear: one start, and an end
#: at a gain that is large for a row of few items but small for one of hundreds.
SETTINGS = {"n_starts": 1, "tol": 1e-2}
#: Words on the picture of effects, for each latent.
WORDS_SHOWN = 8


def explain_words(
    folder: Path,
    *,
    seed: int = 0,
    numbers: tuple[int, ...] = NUMBERS,
    n_seeds: int = 1,
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Return which hidden states stand behind the words of documents.

    Parameters
    ----------
    folder : Path
        With responses_sparse.csv.gz, vocabulary.csv and labels.csv.
    seed : int
    numbers : tuple of int
        Numbers of latents to fit.
    n_seeds : int
        Refits from other seeds.
    tell : callable, optional
        Called with a sentence before each part of the work.
    """
    say = tell or (lambda sentence: None)
    table = read_counts(folder)
    say("the family of the counts")
    settings = {**SETTINGS, "random_state": seed}
    counts = count_families(table, settings)
    best = best_family(counts)
    table = replace(table, families=(best,) * len(table.families))
    say(f"{', '.join(map(str, numbers))} latents, on all rows and on halves")
    found = explore(table, numbers, seed=seed, n_seeds=n_seeds, settings=SETTINGS, raised_only=True)
    say("what is left unexplained")
    gaps = misfit(found.result, table)
    # The labels are opened only here: everything above is done.
    labels = read_labels(folder, len(table.values))
    right, common = topic_told(found, labels)
    result = found.result
    return Outcome(
        name="newsgroups",
        title="Topics behind the words of newsgroups",
        findings=(
            f"{found.chosen} hidden yes/no states of documents, each named by the words that it "
            f"makes more frequent: {'; '.join(result.latent_names)}.",
            exploration_report.number_words(found),
            exploration_report.stability_words(found),
            "Held against the newsgroups, which no fit saw: the states tell which of the "
            f"{len(set(labels.topic.tolist()))} subjects a document belongs to in {right:.0%} of "
            f"documents; always naming the most frequent one would be right in {common:.0%}.",
        ),
        cautions=_cautions(found),
        result=result,
        seed=seed,
        settings={"folder": folder.name, "numbers": list(numbers), "n_seeds": n_seeds, **SETTINGS},
        sections=(
            Section(
                "The data",
                (
                    f"{len(table.values):,} documents, {len(table.families)} words, "
                    f"{(table.values > 0).mean():.1%} of the cells above zero.",
                    f"Counts are {best}: of fits with {LATENTS_FOR_FAMILIES} latents to "
                    f"{min(ROWS_FOR_FAMILIES, len(table.values)):,} documents and the "
                    f"{min(WORDS_FOR_FAMILIES, len(table.families))} most frequent words that "
                    "differ in nothing else, these have the best BIC.",
                ),
                tables=("count_families",),
            ),
            number_section(found),
            Section("The states", pictures=("words",), tables=("latents", "effects")),
            Section(
                "The graph among them",
                (
                    exploration_report.stability_words(found),
                    "States of a document do not cause each other in time. An edge says that two "
                    "subjects go together, or keep apart, in a way that the others do not explain.",
                ),
                pictures=("graph",),
                tables=("edges",),
            ),
            Section(
                "The newsgroups, which no fit saw",
                (
                    f"Profiles of states were given the subject that most even-numbered documents "
                    f"with that profile have; {right:.0%} of the odd-numbered ones are then told "
                    f"right ({common:.0%} by naming the most frequent subject).",
                ),
                pictures=("groups",),
                tables=("groups",),
            ),
            misfit_section(found, gaps),
        ),
        pictures=(
            exploration_report.graph_picture(found),
            exploration_report.number_picture(found),
            exploration_report.agreement_picture(found),
            words_picture(found),
            groups_picture(found, labels),
        ),
        tables=(
            count_family_table(counts, "Families of the counts."),
            exploration_report.number_table(found),
            exploration_report.latent_table(found),
            exploration_report.effect_table(found),
            exploration_report.edge_table(found),
            groups_table(found, labels),
            exploration_report.misfit_table(found, gaps),
        ),
        numbers={
            **common_numbers(found, gaps),
            "family": best,
            "subject_told": right,
            "most_frequent_subject": common,
        },
    )


def words_picture(found: Exploration) -> Picture:
    """Return the strongest words of each latent as bars."""
    n_latents = found.effects.shape[1]
    columns = min(4, n_latents)
    rows = -(-n_latents // columns)

    def draw(figure: object) -> None:
        panels = figure.subplots(rows, columns, squeeze=False).ravel()  # type: ignore[attr-defined]
        figure.set_layout_engine("constrained")  # type: ignore[attr-defined]
        for k, ax in enumerate(panels):
            if k >= n_latents:
                ax.set_axis_off()
                continue
            order = np.argsort(-found.effects[:, k], kind="stable")[:WORDS_SHOWN][::-1]
            ax.barh(range(len(order)), found.effects[order, k], color=style.BLUE)
            ax.set_yticks(
                range(len(order)),
                [found.result.item_names[j] for j in order],
                fontsize=style.SMALL_FONT_SIZE,
            )
            share = found.result.law.marginals()[k, 1]
            ax.set_title(
                f"{style.display_name(found.result.latent_names[k])} ({share:.0%})",
                fontsize=style.SMALL_FONT_SIZE,
                loc="left",
            )
            ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT)
            ax.spines[["top", "right", "left"]].set_visible(False)

    return Picture(
        "words",
        "The words that each state makes more frequent, by standard deviations of their counts; "
        "in brackets the share of documents that have the state.",
        draw,
        (2.6 * columns, 2.1 * rows),
    )


def _cautions(found: Exploration) -> tuple[str, ...]:
    out = [
        "Long documents have more of every word. Nothing in the model stands for length, so that "
        "one state, or several, may be about it.",
        "The vocabulary was chosen by others, with newsgroups in view: that subjects show is "
        "partly its doing.",
        "One start of each fit, and a coarse end: other optima may be as good. A word with an "
        "effect of many standard deviations has coefficients that ran away: do not read it.",
    ]
    if found.criterion_at_end:
        out.insert(
            0,
            f"No criterion of fit stops at {found.chosen} states: EBIC is best for the most that "
            "were fitted.",
        )
    if not found.all_come_back:
        out.insert(
            0,
            "Not every state comes back in the other half of the documents: see the agreement of "
            "halves before reading a state as a subject.",
        )
    return tuple(out)
