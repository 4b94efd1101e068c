"""Classification of rows on the latents, with its accuracy and consistency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.data.rows import describe_empty_rows, nonempty_rows
from hidag.diagnostics.goodness_of_fit import max_state_entropy
from hidag.em.posterior import state_posteriors
from hidag.exceptions import PYTHON_STYLE, DataError, Message, Setting, Style
from hidag.formatting import plural
from hidag.inference.fitted_rows import draw_responses
from hidag.inference.result_tables import Table
from hidag.information.posterior_tables import can_list_states
from hidag.network_em.junction_tree import TreePosterior
from hidag.network_em.posterior import draw_listed_states, has_exact_posterior, level_probabilities
from hidag.results import AnyFit, FitResult, as_result, canonical_rows
from hidag.results.findings import rejection_note
from hidag.views import View

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
Tree = TreePosterior | None
Agreement = tuple[float, float]  # Consistency and its kappa
#: Profiles with a smaller share of pairs have one row at most, and say nothing of consistency.
MIN_PAIR_SHARE = 1e-6
#: Rows of replicate tables: the standard error of a consistency of .95 is then .002, of .6 .005.
MIN_REPLICATE_ROWS = 10_000
#: With a larger share of rows that may be alone in their profile, consistency from pairs of rows
#: would be biased downwards by up to about this share.
MAX_SINGLETON_SHARE = 0.05
SEED = 0  # Replicate tables have a fixed seed, so that the same rows have the same consistency
FEW_ROWS = "there are few rows for so many joint states"
_UNKNOWN = float("nan")
ALL_LATENTS = "(profile)"  # Name of the row of ``Classification.quality`` about whole profiles
QUALITY_COLUMNS = ("latent", "accuracy", "consistency", "kappa", "entropy", "n_rows")


class PosteriorSums:
    """Sums of posteriors over the rows assigned to each category of several classifications."""

    def __init__(self, n_classifications: int) -> None:
        self._sums: list[dict[int, Any]] = [{} for _ in range(n_classifications)]
        self._squares: Any = 0.0
        self.uncertainty = 0.0

    def add(self, assigned: Sequence[NDArray[np.integer]], posterior: Array) -> None:
        """Add rows by their categories (n,) in each classification and posteriors (n, S)."""
        for sums, categories in zip(self._sums, assigned, strict=True):
            for category in np.unique(categories).tolist():
                more = posterior[categories == category].sum(axis=0)
                sums[category] = sums.get(category, 0.0) + more
        self._squares = self._squares + np.einsum("ns,ns->s", posterior, posterior)
        self.uncertainty -= float(xlogy(posterior, posterior).sum())

    def singleton_share(self) -> float:
        """Return the share of rows that may be alone in their profile, at most one per profile."""
        if not self._sums[-1]:
            return 0.0
        mass = np.sum(list(self._sums[-1].values()), axis=0)
        return float(np.minimum(mass, 1.0).sum() / mass.sum())

    def consistency(self, place: int) -> Agreement:
        """Return the share of pairs of rows of a profile with equal assignments, and its kappa."""
        sums = list(self._sums[place].values())
        mass, same = np.zeros_like(self._squares), -self._squares
        for own in sums:
            mass, same = mass + own, same + own**2
        pairs = mass**2 - self._squares
        known = pairs > MIN_PAIR_SHARE * mass**2
        if not known.any():
            return _UNKNOWN, _UNKNOWN
        share = float(same[known] / pairs[known] @ mass[known] / mass[known].sum())
        return with_kappa(share, np.array([float(own.sum()) for own in sums]))


def with_kappa(agreement: float, counts: Array) -> Agreement:
    """Return a share of equal assignments with Cohen's kappa, given the counts of categories."""
    by_chance = float(((counts / counts.sum()) ** 2).sum())
    return agreement, (agreement - by_chance) / (1.0 - by_chance) if by_chance < 1.0 else _UNKNOWN


@dataclass(frozen=True)
class Assignment:
    """Classes of N rows and the quality of this classification."""

    probabilities: tuple[Array, ...]  # (N, M_k), posteriors of levels
    profiles: IntArray  # (N, K), jointly most probable levels
    top: Array  # (N,), posterior probabilities of the profiles; NaN if not computed
    agreements: list[Agreement]  # consistency of each latent with its kappa
    whole: tuple[float, ...]  # accuracy, consistency, kappa and entropy of whole profiles
    n_drawn: int = 0  # rows of replicate tables; 0 if consistency comes from pairs of rows
    reason: str = ""  # for replicate tables
    joint: bool = True  # whether consistency is conditional on all latents, else on each alone


def assign_rows(result: FitResult, values: Array) -> Assignment:
    """Return the classes of rows (N, J)."""
    expanded = result.responses.expand(values)
    n_latents = result.law.space.n_latents
    reason, tree = FEW_ROWS, None
    if can_list_states(result):
        sums = PosteriorSums(n_latents + 1)
        tables, profiles, top = _listed_posteriors(result, expanded, sums)
        entropy = 1.0 - sums.uncertainty / (max(len(values), 1) * max_state_entropy(result))
        *agreements, agreement = (sums.consistency(k) for k in range(n_latents + 1))
        missing = np.isnan(values)
        if sums.singleton_share() <= MAX_SINGLETON_SHARE:
            # A replicate of a row has the same missing cells; pairs of rows with others agree less.
            reason = "rows have different missing cells" if (missing != missing[:1]).any() else ""
    else:
        tree = TreePosterior.of(result.parameters, result.law)
        if tree is None:
            return _assign_latents_alone(result, values)
        tables = level_probabilities(tree.marginals(expanded), result.terms)
        profiles, densities = tree.modes_with_densities(expanded)
        top = np.exp(np.minimum(densities - tree.log_densities(expanded), 0.0))
        mean = float(tree.entropies(expanded).mean()) if len(values) else 0.0
        entropy = 1.0 - mean / max_state_entropy(result)
    n_drawn = 0
    if reason:
        agreements, agreement, n_drawn = replicate_agreements(
            result, values, most_probable_levels(tables), profiles, tree
        )
    whole = (float(top.mean()), *agreement, entropy) if len(values) else (np.nan,) * 4
    return Assignment(tuple(tables), profiles, top, agreements, whole, n_drawn, reason)


def _assign_latents_alone(result: FitResult, values: Array) -> Assignment:
    """Return the classes of rows where joint states can neither be listed nor summed over."""
    probabilities, agreements = tuple(result.posterior_levels(values)), []
    for table in probabilities:
        sums = PosteriorSums(1)
        sums.add([table.argmax(axis=1)], table)
        agreements.append(sums.consistency(0))
    top, profiles = np.full(len(values), np.nan), result.most_probable_states(values)
    return Assignment(probabilities, profiles, top, agreements, (np.nan,) * 4, joint=False)


def _listed_posteriors(
    result: FitResult, expanded: Array, sums: PosteriorSums | None = None
) -> tuple[list[Array], IntArray, Array]:
    """Return posteriors of levels, profiles and their probabilities for responses (n, R)."""
    space = result.law.space
    states, tables = space.states(), [np.empty((len(expanded), m)) for m in space.levels]
    indicators = [(states[:, [k]] == np.arange(m)) * 1.0 for k, m in enumerate(space.levels)]
    profiles = np.empty((len(expanded), space.n_latents), dtype=np.int64)
    top = np.empty(len(expanded))
    for rows, posterior in state_posteriors(result.parameters, result.law, expanded):
        for table, indicator in zip(tables, indicators, strict=True):
            table[rows] = posterior @ indicator
        modes = posterior.argmax(axis=1)
        profiles[rows], top[rows] = states[modes], posterior[np.arange(len(modes)), modes]
        if sums is not None:
            sums.add([*(table[rows].argmax(axis=1) for table in tables), modes], posterior)
    return tables, profiles, top


def most_probable_levels(probabilities: Sequence[Array]) -> IntArray:
    """Return the most probable level of each latent, (N, K), from K posteriors (N, M_k)."""
    return np.column_stack([table.argmax(axis=1) for table in probabilities])


def replicate_agreements(
    result: FitResult, values: Array, levels: IntArray, profiles: IntArray, tree: Tree = None
) -> tuple[list[Agreement], Agreement, int]:
    """Return consistency and kappa of latents and profiles from replicate tables, and their rows.

    A replicate of a row draws its latents from their posterior and new answers given these, with
    the same missing cells. ``levels`` and ``profiles`` are (N, K); ``tree`` replaces enumeration.
    """
    n_latents = result.law.space.n_latents
    if not len(values):
        unknown = (_UNKNOWN, _UNKNOWN)
        return [unknown] * n_latents, unknown, 0
    rows, places = canonical_rows(result, values)
    rows = np.tile(rows, -(-MIN_REPLICATE_ROWS // len(values)))
    rng = np.random.default_rng(SEED)
    expanded = result.responses.expand(values[rows])
    if tree is None:
        states = draw_listed_states(result.parameters, result.law, expanded, rng)
    else:
        states = tree.draw_states(expanded, rng)
    replicate = draw_responses(result, states, places, (SEED,))
    replicate[np.isnan(values[rows])] = np.nan
    again = np.asarray(result.responses.expand(replicate))
    if tree is None:
        tables, new_profiles, _ = _listed_posteriors(result, again)
    else:
        tables = level_probabilities(tree.marginals(again), result.terms)
        new_profiles = tree.modes(again)
    same = (levels[rows] == most_probable_levels(tables)).mean(axis=0)
    agreements = [with_kappa(float(same[k]), _counts(levels[:, [k]])) for k in range(n_latents)]
    whole = float((profiles[rows] == new_profiles).all(axis=1).mean())
    return agreements, with_kappa(whole, _counts(profiles)), len(rows)


def _counts(levels: IntArray) -> Array:
    return np.unique(levels, axis=0, return_counts=True)[1].astype(np.float64)


@dataclass(frozen=True, repr=False)
class Classification(
    View,
    title="{0.expected.shape[0]} rows, {0.expected.shape[1]} latents",
    frames={"rows": "to_table", "quality": "quality", "profiles": "shares"},
):
    """Rows classified on the latents.

    Attributes
    ----------
    ids : tuple, length N
    latent_names : tuple of str, length K
    probabilities : tuple of K arrays (N, M_k), posteriors of each latent's levels
    expected : array (N, K), expected levels (EAP); for binary latents the probability of 1
    levels, profiles : int arrays (N, K), marginally and jointly (MAP) most probable levels
    profile_probability : array (N,), NaN where joint states are too many to sum over
    n_answers : int array (N,), observed cells
        Rows without any have the prior as posterior, and are left out of ``quality`` and
        ``shares``.
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
        """Return one row per row: id, profile, probability, answers, and levels of latents."""
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

    def shares(self) -> Table:
        """Return the number and share of rows with each profile, the most common first."""
        answered = self.profiles[self.n_answers > 0]
        labels, counts = np.unique([format_profile(row) for row in answered], return_counts=True)
        order = np.lexsort((labels, -counts))
        rows = ((str(labels[i]), int(counts[i]), counts[i] / len(answered)) for i in order)
        return Table.of(("profile", "n_rows", "share"), rows)

    def common_profiles(self, max_shown: int) -> tuple[str, Table]:
        """Return up to ``max_shown`` profiles and a caption; single rows only if all are shown."""
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
        """Return the quality of the classification and the common profiles as text.

        There are at most ``max_shown`` profiles; notes name settings in the given ``style``.
        """
        caption, common = self.common_profiles(max_shown)
        n_rows, n_latents = plural(len(self.ids), "row"), plural(len(self.latent_names), "latent")
        lines = [f"{n_rows} classified on {n_latents}", *self.quality.lines(), "", caption]
        lines += common.lines() if len(common) else []
        return "\n".join([*lines, *(note.render(style) for note in self.notes)])


def format_profile(levels: NDArray[np.integer]) -> str:
    """Return a profile as text: digits, separated by hyphens if a level has two digits."""
    separator = "" if max(levels, default=0) < 10 else "-"
    return separator.join(str(int(level)) for level in levels)


def classify(result: AnyFit, X: Any, *, ids: Sequence[Any] | None = None) -> Classification:
    """Return the latents of each row, and the accuracy and consistency of the classification.

    Accuracy and consistency are estimated from the posteriors (Johnson and Sinharay 2018) and
    assume that the model is correct. Consistency is conditional on the whole profile, also for a
    single latent, because a replicate table has the same people. With few rows per joint state, or
    different missing cells, it comes from replicate tables drawn from the model; a note says so.

    Parameters
    ----------
    result : FitResult or DCRL
    X : array or frame
    ids : sequence of length N, optional, names of the rows; numbers from 1 by default

    Returns
    -------
    Classification
        Posteriors and most probable levels of the N rows, accuracy and consistency by latent.

    Examples
    --------
    >>> import hidag
    >>> skills = hidag.datasets.load_skills()
    >>> model = hidag.DCRL(3, q_matrix=skills.q_matrix, random_state=0).fit(skills.X)
    >>> found = hidag.classify(model, skills.X)
    >>> found
    Classification(800 rows, 3 latents)
    >>> found.quality.columns
    ('latent', 'accuracy', 'consistency', 'kappa', 'entropy', 'n_rows')
    """
    fitted = as_result(result)
    fitted.refuse_nuisance("accuracy of classification")
    values = fitted.rows(X)
    names = tuple(range(1, len(values) + 1)) if ids is None else tuple(ids)
    if len(names) != len(values):
        reason = "{setting} must have one entry for each of the {n_rows} rows, got {n}"
        params = {"setting": Setting("ids"), "n_rows": len(values), "n": len(names)}
        raise DataError("wrong-length", reason, params)
    answered = nonempty_rows(values)
    found = assign_rows(fitted, values[answered])
    parts: list[Any] = [*found.probabilities, found.profiles, found.top]
    if not answered.all():
        empty = assign_rows(fitted, np.full((1, values.shape[1]), np.nan))
        others = (*empty.probabilities, empty.profiles, empty.top)
        parts = [_fill_rows(*both, answered) for both in zip(parts, others, strict=True)]
    *probabilities, profiles, top = parts

    return Classification(
        ids=names,
        latent_names=fitted.latent_names,
        probabilities=tuple(probabilities),
        expected=np.column_stack([table @ np.arange(table.shape[1]) for table in probabilities]),
        levels=most_probable_levels(probabilities),
        profiles=profiles,
        profile_probability=top,
        n_answers=(~np.isnan(values)).sum(axis=1),
        quality=Table.of(QUALITY_COLUMNS, _quality_rows(fitted.latent_names, found)),
        notes=tuple(_notes(fitted, found, int((~answered).sum()), len(values))),
    ).like(X)


def _fill_rows(own: NDArray[Any], other: NDArray[Any], answered: NDArray[np.bool_]) -> NDArray[Any]:
    """Return ``own`` in the rows with an answer and the single row of ``other`` elsewhere."""
    out = np.repeat(other, len(answered), axis=0)
    out[answered] = own
    return out


def _notes(result: FitResult, found: Assignment, n_empty: int, n_rows: int) -> list[Message]:
    note = rejection_note(result.misfits)
    notes = [] if note is None else [note]
    if n_empty:
        text = "{unanswered}: their posterior is the fitted latent distribution (n_answers 0)"
        params = {"unanswered": describe_empty_rows(n_empty, n_rows)}
        notes.append(Message("unanswered-rows", text, params))
    if found.n_drawn:
        text = (
            "{reason}, so consistency is estimated from {n_drawn:,} rows of replicate tables drawn "
            "from the model instead of pairs of rows"
        )
        drawn = {"reason": found.reason, "n_drawn": found.n_drawn}
        notes.append(Message("consistency-from-replicates", text, drawn))
    if not found.joint:
        text = (
            "{n_states} joint states are too many to enumerate: {sampled}the quality of whole "
            "profiles is not computed, and consistency is conditional on each latent alone "
            "instead of the whole profile"
        )
        summed = has_exact_posterior(result.parameters, result.law)
        sampled = "" if summed else "posteriors are sampled, "
        states = {"n_states": result.law.space.n_states_text(), "sampled": sampled}
        notes.append(Message("too-many-states", text, states))
    if result.weighted:
        text = (
            "the fit used sample weights; accuracy, consistency and shares of profiles are "
            "unweighted averages over the rows"
        )
        notes.append(Message("weights-not-used", text))
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
