"""20 Newsgroups: binary topics behind the word counts of documents in 12 newsgroups.

A folder contains responses_sparse.csv.gz (row, col, count; from 0), vocabulary.csv (col, word) and
labels.csv (row, group, super). The labels are read only after the fits, for comparison.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hidag.data.readers import check_file_exists, read_file
from hidag.data.table import read_table
from hidag.exceptions import DataError, FileError
from hidag.model_selection.candidates import Table as DataTable
from hidag.plotting import style
from hidag.plotting.figure import hide_frame
from hidag.reporting.content import Table
from hidag_paper.applications.exploration import (
    LATENTS_FOR_FAMILIES,
    Exploration,
    FamilyFit,
    best_family,
    compare_count_families,
    explore,
    residual_correlations,
)
from hidag_paper.applications.exploration_report import (
    common_cautions,
    common_numbers,
    count_family_table,
    describe_number,
    describe_stability,
    graph_section,
    latent_tables,
    number_section,
    residual_section,
)
from hidag_paper.applications.report import ApplicationReport, ReportFigure, ReportSection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

COUNTS, WORDS, LABELS = "responses_sparse.csv.gz", "vocabulary.csv", "labels.csv"
#: Documents and words in the comparison of count families.
ROWS_FOR_FAMILIES, WORDS_FOR_FAMILIES = 1500, 200
#: Numbers of latents fitted by default.
NUMBERS = (4, 6, 8)
#: With hundreds of items the initial values are accurate and iterations expensive: one start, and a
#: tolerance that is small relative to the log-likelihood of a row with hundreds of items.
SETTINGS = {"n_starts": 1, "tol": 1e-2}
#: Words per latent in the figure.
MAX_WORDS = 8


def input_files(folder: Path) -> list[Path]:
    """Return the files that are read."""
    return [folder / name for name in (COUNTS, WORDS, LABELS)]


def read_counts(folder: Path) -> DataTable:
    """Return the counts of all words that occur, shape (N, J), with the Poisson family."""
    words = [row["word"] for row in _read_rows(folder / WORDS, ("col", "word"))]
    triplets = read_table(read_file(check_file_exists(folder / COUNTS)))
    if tuple(triplets.names) != ("row", "col", "count"):
        raise DataError(
            "column-names",
            "{file} must have the columns row, col and count, but it has {found}",
            file=COUNTS,
            found=", ".join(triplets.names),
        )
    if np.isnan(triplets.values).any() or (triplets.values < 0).any():
        raise DataError(
            "negative-count", "{file} must have integers >= 0 in all cells", file=COUNTS
        )
    row, col = (triplets.values[:, c].astype(np.intp) for c in (0, 1))
    if col.max() >= len(words):
        raise DataError(
            "unknown-word",
            "{file} refers to word {word}, but {vocabulary} has {n} words, numbered from 0",
            file=COUNTS,
            word=col.max(),
            vocabulary=WORDS,
            n=len(words),
        )
    values = np.zeros((int(row.max()) + 1, len(words)))
    values[row, col] = triplets.values[:, 2]
    occurring = np.flatnonzero((values > 0).any(axis=0))
    table = read_table(values[:, occurring], names=[words[j] for j in occurring])
    return DataTable(table, ("poisson",) * table.n_items)


@dataclass(frozen=True)
class Labels:
    """Newsgroups and subjects of the documents, not used in any fit.

    Attributes
    ----------
    group, subject : ndarray of str, shape (N,)
        Newsgroup, and the first part of its name.
    """

    group: NDArray[np.str_]
    subject: NDArray[np.str_]


def read_labels(folder: Path, n_rows: int) -> Labels:
    """Return the labels of the documents."""
    rows = _read_rows(folder / LABELS, ("row", "group", "super"))
    rows.sort(key=lambda row: int(row["row"]))
    if len(rows) != n_rows:
        raise DataError(
            "row-count",
            "{file} must have a row for each of {expected} documents, but it has {n} rows",
            file=LABELS,
            expected=n_rows,
            n=len(rows),
        )
    return Labels(*(np.array([row[name] for row in rows]) for name in ("group", "super")))


def _read_rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of a small CSV file with text columns."""
    try:
        with check_file_exists(path).open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except FileError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            "unreadable-file", "cannot read {path}: {reason}", path=path, reason=str(error)
        ) from error
    if not rows or any(rows[0].get(name) is None for name in columns):
        raise DataError(
            "column-names",
            "{file} must have rows with the columns {expected}",
            file=path.name,
            expected=", ".join(columns),
        )
    return rows


def compare_families(table: DataTable, settings: Mapping[str, Any]) -> list[FamilyFit]:
    """Compare the count families on evenly spaced documents and the most frequent words."""
    values = table.values
    rows = np.unique(np.linspace(0, len(values) - 1, ROWS_FOR_FAMILIES).astype(np.intp))
    words = np.sort(np.argsort(-values[rows].sum(axis=0), kind="stable")[:WORDS_FOR_FAMILIES])
    subset = replace(
        table.observations,
        values=values[np.ix_(rows, words)],
        names=tuple(table.observations.names[j] for j in words),
    )
    return compare_count_families(
        lambda family: DataTable(subset, (family,) * len(words)), settings
    )


def subject_accuracy(found: Exploration, labels: Labels) -> tuple[float, float]:
    """Return the accuracy of subjects predicted from profiles, and of the most frequent subject.

    Documents with even numbers are the training set, the others the test set.
    """
    profiles = [tuple(row) for row in (found.posterior() > 0.5).tolist()]
    subjects = labels.subject.tolist()
    usual = Counter(subjects[::2]).most_common(1)[0][0]
    counts: dict[tuple[bool, ...], Counter[str]] = defaultdict(lambda: Counter([usual]))
    for profile, subject in zip(profiles[::2], subjects[::2], strict=True):
        counts.setdefault(profile, Counter())[subject] += 1
    predicted = [counts[profile].most_common(1)[0][0] for profile in profiles[1::2]]
    true = subjects[1::2]
    accuracy = float(np.mean([a == b for a, b in zip(predicted, true, strict=True)]))
    return accuracy, float(np.mean([subject == usual for subject in true]))


def run_newsgroups(
    folder: Path,
    *,
    seed: int = 0,
    numbers: tuple[int, ...] = NUMBERS,
    n_seeds: int = 1,
    observer: Callable[[str], None] | None = None,
) -> ApplicationReport:
    """Find the binary latents behind the words of documents.

    Parameters
    ----------
    folder : Path
        With responses_sparse.csv.gz, vocabulary.csv and labels.csv.
    seed : int
    numbers : tuple of int
        Numbers of latents to fit.
    n_seeds : int
        Refits from other seeds.
    observer : callable, optional
        Called with the name of each step before it starts.
    """
    notify = observer or (lambda step: None)
    table = read_counts(folder)
    notify("count families")
    fits = compare_families(table, {**SETTINGS, "random_state": seed})
    best = best_family(fits)
    table = replace(table, families=(best,) * len(table.families))
    notify(f"{', '.join(map(str, numbers))} latents, on all rows and on halves")
    found = explore(
        table, numbers, seed=seed, n_seeds=n_seeds, settings=SETTINGS, positive_only=True
    )
    notify("residual correlations")
    residuals = residual_correlations(found.result, table)
    # All fits are finished before the labels are read.
    labels = read_labels(folder, len(table.values))
    accuracy, usual = subject_accuracy(found, labels)
    result = found.result
    n_documents, n_words = table.values.shape
    return ApplicationReport(
        name="newsgroups",
        title="Topics in newsgroup documents",
        findings=(
            f"{found.chosen} binary latents of documents, named by the words that they make more "
            f"frequent: {'; '.join(result.latent_names)}.",
            describe_number(found),
            describe_stability(found),
            "The newsgroups were not used in the fits. The latents predict which of "
            f"{len(set(labels.subject.tolist()))} subjects a document belongs to with an accuracy "
            f"of {accuracy:.0%}; the most frequent subject has {usual:.0%}.",
        ),
        cautions=(
            *common_cautions(found),
            "Long documents have more of every word. The model has no parameter for length, so "
            "that one or more latents may represent it.",
            "The vocabulary was chosen with the newsgroups in view, which favours latents that "
            "correspond to subjects.",
            "Each fit has one start and a loose tolerance; other optima may be as good. Effects "
            "of many standard deviations come from coefficients that diverge.",
        ),
        result=result,
        seed=seed,
        settings={"folder": folder.name, "numbers": list(numbers), "n_seeds": n_seeds, **SETTINGS},
        sections=(
            ReportSection(
                "Data",
                (
                    f"{n_documents:,} documents, {n_words} words, "
                    f"{(table.values > 0).mean():.1%} of the cells above zero.",
                    f"Counts are {best}: of fits with {LATENTS_FOR_FAMILIES} latents to "
                    f"{min(ROWS_FOR_FAMILIES, n_documents):,} documents and the "
                    f"{min(WORDS_FOR_FAMILIES, n_words)} most frequent words that differ only in "
                    "this family, it has the lowest BIC.",
                ),
                tables=(count_family_table(fits, "Count families."),),
            ),
            number_section(found),
            ReportSection("Latents", (), (_word_figure(found),), latent_tables(found)),
            graph_section(
                found,
                "The topics of a document do not cause each other in time. An edge is an "
                "association of two topics that the other topics do not explain.",
            ),
            _group_section(found, labels, accuracy, usual),
            residual_section(found, residuals),
        ),
        numbers={
            **common_numbers(found, residuals),
            "family": best,
            "subject_accuracy": accuracy,
            "most_frequent_subject": usual,
        },
    )


def _group_section(
    found: Exploration, labels: Labels, accuracy: float, usual: float
) -> ReportSection:
    """Return the comparison with the newsgroups."""
    posterior, names = found.posterior(), found.result.latent_names
    groups, sizes = np.unique(labels.group, return_counts=True)
    shares = np.stack([posterior[labels.group == group].mean(axis=0) for group in groups])
    figure = ReportFigure.on_axes(
        "groups",
        "Mean posterior probability of each latent in each newsgroup. The newsgroups were not "
        "used in the fits.",
        partial(_draw_shares, groups=groups.tolist(), names=names, shares=shares),
        (2.6 + 0.95 * shares.shape[1], 1.6 + 0.34 * len(groups)),
    )
    table = Table(
        "groups",
        "Mean posterior probability of each latent in the documents of each newsgroup.",
        ("newsgroup", "documents", *names),
        tuple(
            (group, n, *row)
            for group, n, row in zip(groups.tolist(), sizes.tolist(), shares.tolist(), strict=True)
        ),
        decimals=2,
    )
    sentence = (
        "Each profile of latents predicts the most frequent subject of the even-numbered documents "
        f"with that profile; {accuracy:.0%} of the odd-numbered documents are classified correctly "
        f"({usual:.0%} by the most frequent subject)."
    )
    return ReportSection("Newsgroups, not used in the fits", (sentence,), (figure,), (table,))


def _draw_shares(ax: Axes, *, groups: Sequence[str], names: Sequence[str], shares: Array) -> None:
    ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    labels = [style.display_name(name).replace(", ", ",\n") for name in names]
    ax.set_yticks(range(len(groups)), groups, **style.text_options())
    ax.set_xticks(range(len(names)), labels, **style.text_options())
    for (row, column), value in np.ndenumerate(shares):
        color = style.PAPER if value > 0.55 else style.INK
        options = style.text_options(ha="center", va="center", color=color)
        ax.text(column, row, f"{value:.2f}", **options)
    hide_frame(ax)


def _word_figure(found: Exploration) -> ReportFigure:
    """Return bar charts of the strongest words of each latent."""
    n_latents = found.effects.shape[1]
    n_columns = min(4, n_latents)
    n_rows = -(-n_latents // n_columns)

    def draw(figure: Figure) -> None:
        figure.set_layout_engine("constrained")
        panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for ax in panels[n_latents:]:
            ax.set_axis_off()
        for k, ax in enumerate(panels[:n_latents]):
            order = np.argsort(-found.effects[:, k], kind="stable")[:MAX_WORDS][::-1]
            words = [found.result.item_names[j] for j in order]
            ax.barh(range(len(order)), found.effects[order, k], color=style.BLUE)
            ax.set_yticks(range(len(order)), words, **style.text_options())
            name = style.display_name(found.result.latent_names[k])
            share = found.result.law.marginals()[k, 1]
            ax.set_title(f"{name} ({share:.0%})", loc="left", **style.text_options())
            ax.tick_params(labelsize=style.SMALL_FONT_SIZE, color=style.FAINT)
            ax.spines[["top", "right", "left"]].set_visible(False)
        figure.supxlabel("effect on the count, in standard deviations", **style.text_options())

    return ReportFigure(
        "words",
        "The words that each latent makes most frequent, in standard deviations of their counts; "
        "in brackets the probability of the latent.",
        draw,
        (2.6 * n_columns, 2.1 * n_rows),
    )
