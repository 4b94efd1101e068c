"""Classification of rows on the latents, with its accuracy and consistency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.data.rows import describe_empty_rows, nonempty_rows
from hidag.diagnostics.assignment import Assignment, assign_rows, most_probable_levels
from hidag.exceptions import PYTHON_STYLE, DataError, Message, Setting, Style
from hidag.formatting import plural
from hidag.inference.fitted_rows import was_weighted
from hidag.inference.result_tables import Table
from hidag.network_em.posterior import has_exact_posterior
from hidag.results import FitResult, as_result

if TYPE_CHECKING:
    from hidag.estimator import DCRL

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Name of the row of ``Classification.quality`` about whole profiles.
ALL_LATENTS = "(profile)"
QUALITY_COLUMNS = ("latent", "accuracy", "consistency", "kappa", "entropy", "n_rows")


@dataclass(frozen=True)
class Classification:
    """Rows classified on the latents.

    Attributes
    ----------
    ids : tuple
    latent_names : tuple of str, length K
    probabilities : tuple of K arrays, shape (N, M_k)
        Posteriors of each latent's levels.
    expected : ndarray, shape (N, K)
        Expected levels (EAP); for binary latents the probability of 1.
    levels : ndarray of int, shape (N, K)
        Marginally most probable levels.
    profiles : ndarray of int, shape (N, K)
        Jointly most probable levels (MAP).
    profile_probability : ndarray, shape (N,)
        Of the profile; NaN where joint states are too many to sum over.
    n_answers : ndarray of int, shape (N,)
        Observed cells. Rows without any have the prior of the latents as posterior, and are left
        out of ``quality`` and ``shares``.
    quality : Table
        For each latent and for the whole profile: accuracy (probability of a correct
        classification), consistency (probability of the same classification from another table of
        the same people), kappa (consistency corrected for chance), entropy (1 for certainty), and
        the number of rows.
    notes : tuple of Message
    """

    ids: tuple[Any, ...]
    latent_names: tuple[str, ...]
    probabilities: tuple[Array, ...]
    expected: Array
    levels: IntArray
    profiles: IntArray
    profile_probability: Array
    n_answers: IntArray
    quality: Table
    notes: tuple[Message, ...]

    def to_table(self) -> Table:
        """Return one row per row: id, profile, its probability, answers, and each latent.

        For a latent: its most probable level, its expected level, and the probability of each
        level but the lowest.
        """
        header = ["id", "profile", "profile_probability", "n_answers"]
        parts: list[list[Any]] = [
            list(self.ids),
            [format_profile(row) for row in self.profiles],
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

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each row."""
        return self.to_table().to_dicts()

    def shares(self) -> Table:
        """Return the number and share of rows with each profile, the most common first."""
        answered = self.profiles[self.n_answers > 0]
        labels, counts = np.unique([format_profile(row) for row in answered], return_counts=True)
        order = np.lexsort((labels, -counts))
        rows = ((str(labels[i]), int(counts[i]), counts[i] / len(answered)) for i in order)
        return Table.of(("profile", "n_rows", "share"), rows)

    def common_profiles(self, max_shown: int) -> tuple[str, Table]:
        """Return the most common profiles with a caption.

        Profiles of a single row are shown only if all profiles are.
        """
        shares = self.shares()
        n_rows = int((self.n_answers > 0).sum())
        shown = shares.rows[:max_shown]
        if len(shares) > max_shown:
            shown = tuple(row for row in shown if row[1] > 1)
        if not n_rows:
            caption = "no row has an answer"
        elif not shown:
            caption = f"all {n_rows:,} rows have different profiles"
        else:
            order = ", ".join(self.latent_names)
            caption = f"most common profiles of {len(shares):,} (levels of {order})"
        return caption, Table(shares.columns, shown)

    def summary(self, max_shown: int = 10, *, style: Style = PYTHON_STYLE) -> str:
        """Return the quality of the classification and the most common profiles as text."""
        caption, common = self.common_profiles(max_shown)
        return "\n".join(
            [
                f"{plural(len(self.ids), 'row')} classified on "
                f"{plural(len(self.latent_names), 'latent')}",
                *self.quality.lines(),
                "",
                caption,
                *(common.lines() if len(common) else ()),
                *(note.render(style) for note in self.notes),
            ]
        )


def format_profile(levels: NDArray[np.integer]) -> str:
    """Return a profile as text: digits, separated by hyphens if a level has two digits."""
    separator = "" if max(levels, default=0) < 10 else "-"
    return separator.join(str(int(level)) for level in levels)


def classify(
    result: FitResult | DCRL, X: Any, *, ids: Sequence[Any] | None = None
) -> Classification:
    """Return the latents of each row, and the accuracy and consistency of the classification.

    Accuracy and consistency are estimated from the posteriors (Johnson and Sinharay 2018) and
    assume that the model is correct. Consistency is conditional on the whole profile, also for a
    single latent, because a replicate table has the same people. With few rows per joint state, or
    different missing cells, it comes from replicate tables drawn from the model; a note says so.

    Parameters
    ----------
    result : FitResult or DCRL
    X : array or frame
    ids : sequence, length N, optional
        Names of the rows; numbers from 1 by default.
    """
    fitted = as_result(result)
    values = fitted.rows(X)
    names = tuple(range(1, len(values) + 1)) if ids is None else tuple(ids)
    if len(names) != len(values):
        raise DataError(
            "wrong-length",
            "{setting} must have one entry for each of the {n_rows} rows, got {n}",
            setting=Setting("ids"),
            n_rows=len(values),
            n=len(names),
        )
    answered = nonempty_rows(values)
    found = assign_rows(fitted, values[answered])
    probabilities, profiles, top = found.probabilities, found.profiles, found.top
    if not answered.all():
        empty = assign_rows(fitted, np.full((1, values.shape[1]), np.nan))
        probabilities = tuple(
            _fill_rows(own, other, answered)
            for own, other in zip(probabilities, empty.probabilities, strict=True)
        )
        profiles = _fill_rows(profiles, empty.profiles, answered)
        top = _fill_rows(top, empty.top, answered)
    expected = np.column_stack([table @ np.arange(table.shape[1]) for table in probabilities])
    return Classification(
        ids=names,
        latent_names=fitted.latent_names,
        probabilities=probabilities,
        expected=expected,
        levels=most_probable_levels(probabilities),
        profiles=profiles,
        profile_probability=top,
        n_answers=(~np.isnan(values)).sum(axis=1),
        quality=Table.of(QUALITY_COLUMNS, _quality_rows(fitted.latent_names, found)),
        notes=tuple(_notes(fitted, found, int((~answered).sum()), len(values))),
    )


def _fill_rows(own: NDArray[Any], other: NDArray[Any], answered: NDArray[np.bool_]) -> NDArray[Any]:
    """Return ``own`` in the rows with an answer and the single row of ``other`` elsewhere."""
    out = np.repeat(other, len(answered), axis=0)
    out[answered] = own
    return out


def _notes(result: FitResult, found: Assignment, n_empty: int, n_rows: int) -> list[Message]:
    notes = []
    if n_empty:
        notes.append(
            Message(
                "unanswered-rows",
                "{unanswered}: their posterior is the fitted latent distribution (n_answers 0)",
                {"unanswered": describe_empty_rows(n_empty, n_rows)},
            )
        )
    if found.n_drawn:
        notes.append(
            Message(
                "consistency-from-replicates",
                "{reason}, so consistency is estimated from {n_drawn:,} rows of replicate tables "
                "drawn from the model instead of pairs of rows",
                {"reason": found.reason, "n_drawn": found.n_drawn},
            )
        )
    if not found.joint:
        summed = has_exact_posterior(result.parameters, result.law)
        notes.append(
            Message(
                "too-many-states",
                "{n_states} joint states are too many to enumerate: {sampled}the quality of whole "
                "profiles is not computed, and consistency is conditional on each latent alone "
                "instead of the whole profile",
                {
                    "n_states": result.law.space.n_states_text(),
                    "sampled": "" if summed else "posteriors are sampled, ",
                },
            )
        )
    if was_weighted(result):
        notes.append(
            Message(
                "weights-not-used",
                "the fit used sample weights; accuracy, consistency and shares of profiles are "
                "unweighted averages over the rows",
            )
        )
    return notes


def _quality_rows(names: Sequence[str], found: Assignment) -> list[tuple[Any, ...]]:
    n_rows = len(found.profiles)
    rows: list[tuple[Any, ...]] = []
    for name, table, agreement in zip(names, found.probabilities, found.agreements, strict=True):
        accuracy, entropy = np.nan, np.nan
        if n_rows:
            accuracy = float(table.max(axis=1).mean())
            uncertainty = -float(xlogy(table, table).sum(axis=1).mean())
            entropy = 1.0 - uncertainty / float(np.log(table.shape[1]))
        rows.append((name, accuracy, *agreement, entropy, n_rows))
    return [*rows, (ALL_LATENTS, *found.whole, n_rows)]
