"""Who is where: every row's latents, and how far such placements can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.errors import DataError
from hidag.explain.placements import Placements, levels_of, placements
from hidag.explain.rows import was_weighted
from hidag.explain.tables import Table
from hidag.result import FitResult
from hidag.row_posteriors import are_summed
from hidag.row_weights import rows_with_answers, unanswered_in_words
from hidag.shown_text import counted

Array = NDArray[np.float64]
Levels = NDArray[np.int64]

ALL_LATENTS = "(profile)"


@dataclass(frozen=True)
class Classification:
    """Rows placed on latents.

    Attributes
    ----------
    ids : tuple
    latent_names : tuple of str, length K
    probabilities : tuple of K arrays, shape (N, M_k)
        Of each latent's levels.
    expected : ndarray, shape (N, K)
        Expected levels (EAP); for binary latents the probability of 1.
    levels : ndarray of int, shape (N, K)
        Most probable level of each latent by itself.
    profiles : ndarray of int, shape (N, K)
        Most probable levels of all latents together (MAP).
    profile_probability : ndarray, shape (N,)
        Of that profile; NaN where joint states are too many to sum over.
    n_answers : ndarray of int, shape (N,)
        Observed cells. A row without any is placed by the law alone, as everybody would be of whom
        nothing is known, and counts for nothing in ``quality`` and ``shares``.
    quality : Table
        For each latent and for the whole profile: accuracy (the chance that a placement is right),
        consistency (that another such table of the same people would lead to the same), kappa
        (consistency beyond chance), entropy (1: no doubt), and the number of rows.
    notes : tuple of str
    """

    ids: tuple[Any, ...]
    latent_names: tuple[str, ...]
    probabilities: tuple[Array, ...]
    expected: Array
    levels: Levels
    profiles: Levels
    profile_probability: Array
    n_answers: Levels
    quality: Table
    notes: tuple[str, ...]

    def people(self) -> Table:
        """Return a row for each row: id, profile, its probability, answers, and each latent.

        A latent has its most probable level, its expected level, and the probability of each level
        but the lowest.
        """
        header = ["id", "profile", "profile_probability", "n_answers"]
        parts: list[list[Any]] = [
            list(self.ids),
            [profile_word(row) for row in self.profiles],
            self.profile_probability.tolist(),
            self.n_answers.tolist(),
        ]
        for k, name in enumerate(self.latent_names):
            header += [f"{name}: level", f"{name}: expected"]
            parts += [self.levels[:, k].tolist(), self.expected[:, k].tolist()]
            for level in range(1, self.probabilities[k].shape[1]):
                header.append(f"P({name}={level})")
                parts.append(self.probabilities[k][:, level].tolist())
        return Table.of(header, zip(*parts, strict=True))

    def shares(self) -> Table:
        """Return how many rows with an answer are in each profile, the most common first."""
        placed = self.profiles[self.n_answers > 0]
        words, counts = np.unique([profile_word(row) for row in placed], return_counts=True)
        order = np.lexsort((words, -counts))
        rows = ((str(words[i]), int(counts[i]), counts[i] / len(placed)) for i in order)
        return Table.of(("profile", "n_rows", "share"), rows)

    def common_profiles(self, n_shown: int) -> tuple[str, Table]:
        """Return the most common profiles below a caption; an empty table where none is common.

        Of more profiles than are shown, those of a single row each are no more common than others.
        """
        shares = self.shares()
        n_rows = int((self.n_answers > 0).sum())
        shown = shares.rows[:n_shown]
        if len(shares) > n_shown:
            shown = tuple(row for row in shown if row[1] > 1)
        if not n_rows:
            caption = "no row has an answer to be placed by"
        elif not shown:
            caption = f"all {n_rows:,} rows have profiles of their own: none is common"
        else:
            order = ", ".join(self.latent_names)
            caption = f"most common profiles of {len(shares):,} (levels of {order})"
        return caption, Table(shares.columns, shown)

    def summary(self, n_shown: int = 10) -> str:
        """Return how far placements can be trusted, and the most common profiles."""
        caption, common = self.common_profiles(n_shown)
        return "\n".join(
            [
                f"{counted(len(self.ids), 'row')} placed on "
                f"{counted(len(self.latent_names), 'latent')}",
                *self.quality.lines(),
                "",
                caption,
                *(common.lines() if len(common) else ()),
                *self.notes,
            ]
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each row."""
        return self.people().to_dicts()


def profile_word(levels: NDArray[np.integer]) -> str:
    """Return a profile as text: digits, with hyphens between where a level has two digits."""
    glue = "" if max(levels, default=0) < 10 else "-"
    return glue.join(str(int(level)) for level in levels)


def classify(result: FitResult, X: Any, *, ids: Sequence[Any] | None = None) -> Classification:
    """Return where each row is, and how far such placements can be trusted.

    Accuracy and consistency are made of the rows' posteriors, as by Johnson and Sinharay (2018):
    they take the model for granted. Consistency is given the whole profile, also that of a single
    latent, because a second table is about the same people. Where rows are few beside joint states
    or lack different cells it comes from second tables that are drawn; a note says so.

    Parameters
    ----------
    result : FitResult
    X : array or frame
    ids : sequence, length N, optional
        Names of the rows; numbers from 1 by default.
    """
    values = result.rows(X)
    names = tuple(range(1, len(values) + 1)) if ids is None else tuple(ids)
    if len(names) != len(values):
        raise DataError(
            f"ids must have one entry for each row, but there are {len(names)} for {len(values)} "
            "rows"
        )
    answered = rows_with_answers(values)
    notes: list[str] = []
    placed = placements(result, values[answered])
    probabilities, profiles, top = placed.probabilities, placed.profiles, placed.top
    if not answered.all():
        # Nobody is told from anybody else there: one row stands for all of them.
        empty = placements(result, np.full((1, values.shape[1]), np.nan))
        probabilities = tuple(
            _spread(mine, other, answered)
            for mine, other in zip(probabilities, empty.probabilities, strict=True)
        )
        profiles = _spread(profiles, empty.profiles, answered)
        top = _spread(top, empty.top, answered)
        n_empty = int((~answered).sum())
        notes.append(
            f"{unanswered_in_words(n_empty, len(values))}: such a row is placed by the law alone, "
            "as anybody would be of whom nothing is known (n_answers 0)"
        )
    if placed.n_drawn:
        notes.append(
            f"{placed.untold}, so that pairs of rows do not tell how alike those of a profile are "
            f"placed: consistency is that of {counted(placed.n_drawn, 'row')} with second tables "
            "drawn from where the model sees them"
        )
    if not placed.joint:
        summed = are_summed(result.parameters, result.law)
        sampled = "" if summed else "posteriors are sampled, "
        notes.append(
            f"{result.law.space.count_in_words()} joint states are too many to list: {sampled}the "
            "quality of whole profiles is not computed, and consistency is given each latent "
            "alone, which is not what it would be given the whole profile"
        )
    if was_weighted(result):
        notes.append(
            "the fit counted rows by weights; accuracy, consistency and shares of profiles here "
            "are averages over the rows of the table, each counted once"
        )
    expected = np.column_stack([table @ np.arange(table.shape[1]) for table in probabilities])
    header = ("of", "accuracy", "consistency", "kappa", "entropy", "n_rows")
    return Classification(
        ids=names,
        latent_names=result.latent_names,
        probabilities=probabilities,
        expected=expected,
        levels=levels_of(probabilities),
        profiles=profiles,
        profile_probability=top,
        n_answers=(~np.isnan(values)).sum(axis=1),
        quality=Table.of(header, _quality(result.latent_names, placed)),
        notes=tuple(notes),
    )


def _spread(mine: NDArray[Any], other: NDArray[Any], answered: NDArray[np.bool_]) -> NDArray[Any]:
    """Return rows (N, ...) that are their own where there is an answer, and one other's else."""
    out = np.repeat(other, len(answered), axis=0)
    out[answered] = mine
    return out


def _quality(names: Sequence[str], placed: Placements) -> list[tuple[Any, ...]]:
    """Return the table of how far placements can be trusted, row by row."""
    n_rows = len(placed.profiles)
    rows: list[tuple[Any, ...]] = []
    for name, table, agreement in zip(names, placed.probabilities, placed.agreements, strict=True):
        accuracy, entropy = (np.nan, np.nan) if not n_rows else (_accuracy(table), _entropy(table))
        rows.append((name, accuracy, *agreement, entropy, n_rows))
    return [*rows, (ALL_LATENTS, *placed.whole, n_rows)]


def _accuracy(probabilities: Array) -> float:
    return float(probabilities.max(axis=1).mean())


def _entropy(probabilities: Array) -> float:
    """Return one less the mean uncertainty of a latent's level, as a share of the largest."""
    doubt = -float(xlogy(probabilities, probabilities).sum(axis=1).mean())
    return 1.0 - doubt / float(np.log(probabilities.shape[1]))
