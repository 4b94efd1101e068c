"""Who is where: every row's latents, and how far such placements can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.errors import DataError
from hidag.estimate.posterior import state_posteriors
from hidag.estimate.tree_posterior import TreePosterior
from hidag.explain.placement_agreement import add_placements, consistency
from hidag.explain.rows import was_weighted
from hidag.explain.state_tables import MOST_STATES
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
    latent, because a second table is about the same people.

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
    placed = _placed(result, values[answered])
    probabilities, profiles, top = placed.probabilities, placed.profiles, placed.top
    if not answered.all():
        # Nobody is told from anybody else there: one row stands for all of them.
        empty = _placed(result, np.full((1, values.shape[1]), np.nan))
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
    space = result.law.space
    if space.n_states > MOST_STATES:
        lacking = "the consistency of whole profiles is not computed, and that of a latent"
        if TreePosterior.of(result.parameters, result.law) is None:
            lacking = "the quality of whole profiles is not computed, and consistency"
        summed = are_summed(result.parameters, result.law)
        sampled = "" if summed else "posteriors are sampled, "
        notes.append(
            f"{space.count_in_words()} joint states are too many to list: {sampled}{lacking} is "
            "given each latent alone, which is not what it would be given the whole profile"
        )
    if was_weighted(result):
        notes.append(
            "the fit counted rows by weights; accuracy, consistency and shares of profiles here "
            "are averages over the rows of the table, each counted once"
        )
    expected = np.column_stack([table @ np.arange(table.shape[1]) for table in probabilities])
    levels = np.column_stack([table.argmax(axis=1) for table in probabilities])
    header = ("of", "accuracy", "consistency", "kappa", "entropy", "n_rows")
    return Classification(
        ids=names,
        latent_names=result.latent_names,
        probabilities=probabilities,
        expected=expected,
        levels=levels,
        profiles=profiles,
        profile_probability=top,
        n_answers=(~np.isnan(values)).sum(axis=1),
        quality=Table.of(header, _quality(result.latent_names, placed)),
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class _Placed:
    """Where rows are: posteriors of levels, profiles, their probabilities, and their quality.

    Quality is each latent's consistency with its kappa, and the numbers of whole profiles.
    """

    probabilities: tuple[Array, ...]
    profiles: Levels
    top: Array
    agreements: list[tuple[float, float]]
    whole: tuple[float, ...]


def _placed(result: FitResult, values: Array) -> _Placed:
    """Return where rows are, shape (N, J)."""
    if result.law.space.n_states <= MOST_STATES:
        return _listed(result, values)
    probabilities = tuple(result.posterior_levels(values))
    agreements = [_given_latent(table) for table in probabilities]
    tree = TreePosterior.of(result.parameters, result.law)
    if tree is None:
        unknown = np.full(len(values), np.nan)
        return _Placed(probabilities, result.classify(values), unknown, agreements, (np.nan,) * 4)
    expanded = result.responses.expand(values)
    profiles, densities = tree.modes_with_densities(expanded)
    top = np.exp(np.minimum(densities - tree.log_densities(expanded), 0.0))
    whole: tuple[float, ...] = (np.nan,) * 4
    if len(values):
        most = float(np.log(result.law.space.levels).sum())
        entropy = 1.0 - float(tree.doubts(expanded).mean()) / most
        whole = (float(top.mean()), np.nan, np.nan, entropy)
    return _Placed(probabilities, profiles, top, agreements, whole)


def _spread(mine: NDArray[Any], other: NDArray[Any], answered: NDArray[np.bool_]) -> NDArray[Any]:
    """Return rows (N, ...) that are their own where there is an answer, and one other's else."""
    out = np.repeat(other, len(answered), axis=0)
    out[answered] = mine
    return out


def _quality(names: Sequence[str], placed: _Placed) -> list[tuple[Any, ...]]:
    """Return the table of how far placements can be trusted, row by row."""
    n_rows = len(placed.profiles)
    rows: list[tuple[Any, ...]] = []
    for name, table, agreement in zip(names, placed.probabilities, placed.agreements, strict=True):
        accuracy, entropy = (np.nan, np.nan) if not n_rows else (_accuracy(table), _entropy(table))
        rows.append((name, accuracy, *agreement, entropy, n_rows))
    return [*rows, (ALL_LATENTS, *placed.whole, n_rows)]


def _listed(result: FitResult, values: Array) -> _Placed:
    """Return where rows are, by a sum over all joint states."""
    space = result.law.space
    states = space.states()
    indicators = [
        (states[:, [k]] == np.arange(m)).astype(np.float64) for k, m in enumerate(space.levels)
    ]
    tables = [np.empty((len(values), m)) for m in space.levels]
    place = np.empty(len(values), dtype=np.int64)
    top = np.empty(len(values))
    by_level: list[dict[int, Array]] = [{} for _ in space.levels]
    by_profile: dict[int, Array] = {}
    squares, doubt = np.zeros(space.n_states), 0.0
    expanded = result.responses.expand(values)
    for rows, posterior in state_posteriors(result.parameters, result.law, expanded):
        for table, indicator, sums in zip(tables, indicators, by_level, strict=True):
            table[rows] = posterior @ indicator
            add_placements(sums, table[rows].argmax(axis=1), posterior)
        here = posterior.argmax(axis=1)
        place[rows] = here
        top[rows] = posterior[np.arange(len(here)), here]
        doubt -= float(xlogy(posterior, posterior).sum())
        squares += np.einsum("ns,ns->s", posterior, posterior)
        add_placements(by_profile, here, posterior)
    agreements = [consistency(sums, squares) for sums in by_level]
    whole: tuple[float, ...] = (np.nan,) * 4
    if len(values):
        entropy = 1.0 - doubt / (len(values) * float(np.log(space.n_states)))
        whole = (float(top.mean()), *consistency(by_profile, squares), entropy)
    return _Placed(tuple(tables), states[place], top, agreements, whole)


def _given_latent(probabilities: Array) -> tuple[float, float]:
    """Return consistency and kappa of one latent given its own level alone, posteriors (N, M)."""
    sums: dict[int, Array] = {}
    add_placements(sums, probabilities.argmax(axis=1), probabilities)
    return consistency(sums, (probabilities**2).sum(axis=0))


def _accuracy(probabilities: Array) -> float:
    return float(probabilities.max(axis=1).mean())


def _entropy(probabilities: Array) -> float:
    """Return one less the mean uncertainty of a latent's level, as a share of the largest."""
    doubt = -float(xlogy(probabilities, probabilities).sum(axis=1).mean())
    return 1.0 - doubt / float(np.log(probabilities.shape[1]))
