"""Topics behind word counts: hidden yes/no states of documents in 12 newsgroups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from hidag.applications import exploration_parts as parts
from hidag.applications.count_families import LATENTS_FOR_FAMILIES, best_family
from hidag.applications.exploration import Exploration, explore
from hidag.applications.exploration_sections import (
    common_numbers,
    count_family_table,
    misfit_section,
    number_section,
)
from hidag.applications.misfit import misfit
from hidag.applications.newsgroups_data import (
    ROWS_FOR_FAMILIES,
    WORDS_FOR_FAMILIES,
    count_families,
    read_counts,
    read_labels,
)
from hidag.applications.newsgroups_labels import groups_picture, groups_table, topic_told
from hidag.applications.outcome import Outcome, Picture
from hidag.plots import style
from hidag.report.parts import Section

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
            parts.number_words(found),
            parts.stability_words(found),
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
                    parts.stability_words(found),
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
            parts.graph_picture(found),
            parts.number_picture(found),
            parts.agreement_picture(found),
            words_picture(found),
            groups_picture(found, labels),
        ),
        tables=(
            count_family_table(counts, "Families of the counts."),
            parts.number_table(found),
            parts.latent_table(found),
            parts.effect_table(found),
            parts.edge_table(found),
            groups_table(found, labels),
            parts.misfit_table(found, gaps),
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
                f"{style.shown_name(found.result.latent_names[k])} ({share:.0%})",
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
