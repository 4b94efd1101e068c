"""Who is where: every row's latents, and how far such placements can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.data.sample_weights import describe_empty_rows, nonempty_rows
from hidag.diagnostics.fit_statistics import largest_doubt
from hidag.em.posterior import state_posteriors
from hidag.exceptions import DataError
from hidag.formatting import plural
from hidag.inference.fitted_rows import canonical_rows, draw_responses, was_weighted
from hidag.inference.information.posterior_tables import MAX_STATES
from hidag.inference.result_tables import Table
from hidag.network_em.junction_tree import TreePosterior
from hidag.network_em.posterior import draw_listed_states, has_exact_posterior, level_probabilities
from hidag.results import FitResult, as_result

if TYPE_CHECKING:
    from hidag.estimator import DCRL


# --- How often two tables of the same kind would place a row alike

Array = NDArray[np.float64]
#: Consistency and its kappa.
Agreement = tuple[float, float]

#: A profile of which a single row has all but this share tells of no second placement.
LEAST_SHARE = 1e-6


def add_placements(
    sums: MutableMapping[int, Array], places: NDArray[np.integer], posterior: Array
) -> None:
    """Add rows to the sums of posteriors by place, places that occur only.

    Parameters
    ----------
    sums : mapping from int to ndarray, shape (S,)
    places : ndarray of int, shape (n,)
        Where each row is placed.
    posterior : ndarray, shape (n, S)
        Of all profiles.
    """
    for place in np.unique(places).tolist():
        more = posterior[places == place].sum(axis=0)
        sums[place] = sums[place] + more if place in sums else more


def lone_share(sums: Mapping[int, Array]) -> float:
    """Return the share of rows that may be alone in their profile; posteriors in sum by place.

    One row for each profile, or less where a profile has less. Pairs of rows miss about so much of
    what rows of a profile have in common: the posteriors of a lone row's profile come from rows
    that hardly belong there.
    """
    if not sums:
        return 0.0
    mass = np.sum(list(sums.values()), axis=0)
    return float(np.minimum(mass, 1.0).sum() / mass.sum())


def consistency(sums: Mapping[int, Array], squares: Array) -> Agreement:
    """Return the chance that two tables lead to the same placement, and Cohen's kappa of it.

    In each profile it is the share of pairs of rows that are placed alike. Pairs are of two
    different rows: with few rows to a profile, rows that agree with themselves would pass for
    consistency. NaN where no profile has two rows.

    Parameters
    ----------
    sums : mapping from int to ndarray, shape (S,)
        Posteriors in sum over the rows placed there.
    squares : ndarray, shape (S,)
        Squared posteriors in sum over all rows.
    """
    mass, alike = np.zeros_like(squares), -squares
    for there in sums.values():
        mass += there
        alike += there**2
    pairs = mass**2 - squares
    known = pairs > LEAST_SHARE * mass**2
    if not known.any():
        return float("nan"), float("nan")
    same = float(alike[known] / pairs[known] @ mass[known] / mass[known].sum())
    return beyond_chance(same, np.array([float(there.sum()) for there in sums.values()]))


def beyond_chance(same: float, placed: Array) -> Agreement:
    """Return a share of like placements with Cohen's kappa, given how many are at each place."""
    by_chance = float(((placed / placed.sum()) ** 2).sum())
    return same, (same - by_chance) / (1.0 - by_chance) if by_chance < 1.0 else float("nan")


# --- Second tables about the same people, drawn from the model, and how alike they place rows

IntArray = NDArray[np.int64]

#: Rows that are drawn at least: a share of .95 is known within .002 then, one of .6 within .005.
FEWEST_DRAWN = 10_000
#: What is told of placements is no chance: the same rows have the same second tables.
SEED = 0


def second_agreements(
    result: FitResult,
    values: Array,
    levels: IntArray,
    profiles: IntArray,
    tree: TreePosterior | None = None,
) -> tuple[list[Agreement], Agreement, int]:
    """Return consistency and kappa of each latent and of whole profiles, and how many rows tell it.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
        The rows; second ones lack the same cells.
    levels : ndarray of int, shape (N, K)
        Where rows are placed on each latent by itself.
    profiles : ndarray of int, shape (N, K)
        Where rows are placed on all latents together.
    tree : TreePosterior, optional
        For sums over small tables; without it all joint states are listed.
    """
    n_latents = result.law.space.n_latents
    if not len(values):
        unknown = (float("nan"), float("nan"))
        return [unknown] * n_latents, unknown, 0
    rows, places = canonical_rows(result, values)
    rows = np.tile(rows, -(-FEWEST_DRAWN // len(values)))
    second = _second_table(result, values[rows], places, tree)
    again, profiles_again = _placed(result, second, tree)
    same = (levels[rows] == again).mean(axis=0)
    alike = [beyond_chance(float(same[k]), _counts(levels[:, [k]])) for k in range(n_latents)]
    whole = float((profiles[rows] == profiles_again).all(axis=1).mean())
    return alike, beyond_chance(whole, _counts(profiles)), len(rows)


def _second_table(
    result: FitResult, values: Array, places: NDArray[np.intp], tree: TreePosterior | None
) -> Array:
    """Return other answers of the people behind rows, with the rows' missing cells, (n, R)."""
    rng = np.random.default_rng(SEED)
    expanded = result.responses.expand(values)
    if tree is None:
        states = draw_listed_states(result.parameters, result.law, expanded, rng)
    else:
        states = tree.draw_states(expanded, rng)
    second = draw_responses(result, states, places, (SEED,))
    second[np.isnan(values)] = np.nan
    return np.asarray(result.responses.expand(second))


def _placed(
    result: FitResult, expanded: Array, tree: TreePosterior | None
) -> tuple[IntArray, IntArray]:
    """Return where rows (n, R) are placed on each latent and on all together, (n, K) both."""
    space = result.law.space
    if tree is not None:
        tables = level_probabilities(tree.marginals(expanded), result.terms)
        return np.column_stack([one.argmax(axis=1) for one in tables]), tree.modes(expanded)
    states = space.states()
    indicators = [states[:, [k]] == np.arange(m) for k, m in enumerate(space.levels)]
    levels, profiles = np.empty((2, len(expanded), space.n_latents), dtype=np.int64)
    for rows, posterior in state_posteriors(result.parameters, result.law, expanded):
        for k, indicator in enumerate(indicators):
            levels[rows, k] = (posterior @ indicator).argmax(axis=1)
        profiles[rows] = states[posterior.argmax(axis=1)]
    return levels, profiles


def _counts(levels: IntArray) -> Array:
    """Return how many rows (N, k) are at each place that occurs."""
    return np.unique(levels, axis=0, return_counts=True)[1].astype(np.float64)


# --- Where rows are placed, with how far that can be trusted: all joint states listed, or not

#: With a larger share of rows that may be alone in their profile, pairs of rows tell too little of
#: how a profile is placed: consistency would come out too low by up to about this much.
MOST_ALONE = 0.05
FEW_ROWS = "rows are too few for so many joint states"
UNEQUAL_ROWS = "rows lack different cells"


@dataclass(frozen=True)
class Placements:
    """Where N rows are, and the quality of such placements.

    Attributes
    ----------
    probabilities : tuple of K arrays, shape (N, M_k)
        Posteriors of levels.
    profiles : ndarray of int, shape (N, K)
        Jointly most probable levels.
    top : ndarray, shape (N,)
        Probabilities of the profiles; NaN where joint states cannot be summed over.
    agreements : list of (float, float)
        Each latent's consistency with its kappa.
    whole : tuple of float
        Accuracy, consistency, kappa and entropy of whole profiles.
    n_drawn : int
        Rows that were drawn for consistency; 0 where pairs of rows tell it.
    untold : str
        Why pairs of rows do not tell it.
    joint : bool
        Whether consistency is given all latents; else given each latent alone.
    """

    probabilities: tuple[Array, ...]
    profiles: IntArray
    top: Array
    agreements: list[Agreement]
    whole: tuple[float, ...]
    n_drawn: int = 0
    untold: str = ""
    joint: bool = True


def placements(result: FitResult, values: Array) -> Placements:
    """Return where rows are, shape (N, J)."""
    if result.law.space.n_states <= MAX_STATES:
        return _listed(result, values)
    tree = TreePosterior.of(result.parameters, result.law)
    if tree is not None:
        return _summed(result, values, tree)
    probabilities = tuple(result.posterior_levels(values))
    agreements = [_given_latent(table) for table in probabilities]
    unknown = np.full(len(values), np.nan)
    profiles = result.classify(values)
    return Placements(probabilities, profiles, unknown, agreements, (np.nan,) * 4, joint=False)


def levels_of(probabilities: Sequence[Array]) -> IntArray:
    """Return the most probable level of each latent by itself, (N, K), of K posteriors (N, M_k)."""
    return np.column_stack([table.argmax(axis=1) for table in probabilities])


def _listed(result: FitResult, values: Array) -> Placements:
    """Return where rows are, by a sum over all joint states."""
    space = result.law.space
    states = space.states()
    indicators = [
        (states[:, [k]] == np.arange(m)).astype(np.float64) for k, m in enumerate(space.levels)
    ]
    tables = [np.empty((len(values), m)) for m in space.levels]
    place = np.empty(len(values), dtype=np.int64)
    top = np.empty(len(values))
    level_probabilities: list[dict[int, Array]] = [{} for _ in space.levels]
    by_profile: dict[int, Array] = {}
    squares, doubt = np.zeros(space.n_states), 0.0
    expanded = result.responses.expand(values)
    for rows, posterior in state_posteriors(result.parameters, result.law, expanded):
        for table, indicator, sums in zip(tables, indicators, level_probabilities, strict=True):
            table[rows] = posterior @ indicator
            add_placements(sums, table[rows].argmax(axis=1), posterior)
        here = posterior.argmax(axis=1)
        place[rows] = here
        top[rows] = posterior[np.arange(len(here)), here]
        doubt -= float(xlogy(posterior, posterior).sum())
        squares += np.einsum("ns,ns->s", posterior, posterior)
        add_placements(by_profile, here, posterior)
    agreements = [consistency(sums, squares) for sums in level_probabilities]
    agreement, n_drawn = consistency(by_profile, squares), 0
    untold = FEW_ROWS if lone_share(by_profile) > MOST_ALONE else _unequal(values)
    if untold:
        levels = levels_of(tables)
        agreements, agreement, n_drawn = second_agreements(result, values, levels, states[place])
    whole: tuple[float, ...] = (np.nan,) * 4
    if len(values):
        entropy = 1.0 - doubt / (len(values) * largest_doubt(result))
        whole = (float(top.mean()), *agreement, entropy)
    return Placements(tuple(tables), states[place], top, agreements, whole, n_drawn, untold)


def _unequal(values: Array) -> str:
    """Return that rows (N, J) lack different cells, if they do.

    A second table about a row lacks the same ones, and rows of which others were seen are placed
    otherwise: pairs of them would tell of too little consistency.
    """
    missing = np.isnan(values)
    return UNEQUAL_ROWS if (missing != missing[:1]).any() else ""


def _summed(result: FitResult, values: Array, tree: TreePosterior) -> Placements:
    """Return where rows are, by sums over small tables."""
    expanded = result.responses.expand(values)
    probabilities = tuple(level_probabilities(tree.marginals(expanded), result.terms))
    profiles, densities = tree.modes_with_densities(expanded)
    top = np.exp(np.minimum(densities - tree.log_densities(expanded), 0.0))
    levels = levels_of(probabilities)
    agreements, agreement, n_drawn = second_agreements(result, values, levels, profiles, tree)
    whole: tuple[float, ...] = (np.nan,) * 4
    if len(values):
        entropy = 1.0 - float(tree.entropies(expanded).mean()) / largest_doubt(result)
        whole = (float(top.mean()), *agreement, entropy)
    return Placements(probabilities, profiles, top, agreements, whole, n_drawn, FEW_ROWS)


def _given_latent(probabilities: Array) -> Agreement:
    """Return consistency and kappa of one latent given its own level alone, posteriors (N, M)."""
    sums: dict[int, Array] = {}
    add_placements(sums, probabilities.argmax(axis=1), probabilities)
    return consistency(sums, (probabilities**2).sum(axis=0))


# ---

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
    levels: IntArray
    profiles: IntArray
    profile_probability: Array
    n_answers: IntArray
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
                f"{plural(len(self.ids), 'row')} placed on "
                f"{plural(len(self.latent_names), 'latent')}",
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


def classify(
    result: FitResult | DCRL, X: Any, *, ids: Sequence[Any] | None = None
) -> Classification:
    """Return where each row is, and how far such placements can be trusted.

    Accuracy and consistency are made of the rows' posteriors, as by Johnson and Sinharay (2018):
    they take the model for granted. Consistency is given the whole profile, also that of a single
    latent, because a second table is about the same people. Where rows are few beside joint states
    or lack different cells it comes from second tables that are drawn; a note says so.

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
            f"ids must have one entry for each row, but there are {len(names)} for {len(values)} "
            "rows"
        )
    answered = nonempty_rows(values)
    notes: list[str] = []
    placed = placements(fitted, values[answered])
    probabilities, profiles, top = placed.probabilities, placed.profiles, placed.top
    if not answered.all():
        # Nobody is told from anybody else there: one row stands for all of them.
        empty = placements(fitted, np.full((1, values.shape[1]), np.nan))
        probabilities = tuple(
            _spread(mine, other, answered)
            for mine, other in zip(probabilities, empty.probabilities, strict=True)
        )
        profiles = _spread(profiles, empty.profiles, answered)
        top = _spread(top, empty.top, answered)
        n_empty = int((~answered).sum())
        notes.append(
            f"{describe_empty_rows(n_empty, len(values))}: such a row is placed by the law alone, "
            "as anybody would be of whom nothing is known (n_answers 0)"
        )
    if placed.n_drawn:
        notes.append(
            f"{placed.untold}, so that pairs of rows do not tell how alike those of a profile are "
            f"placed: consistency is that of {plural(placed.n_drawn, 'row')} with second tables "
            "drawn from where the model sees them"
        )
    if not placed.joint:
        summed = has_exact_posterior(fitted.parameters, fitted.law)
        sampled = "" if summed else "posteriors are sampled, "
        notes.append(
            f"{fitted.law.space.n_states_text()} joint states are too many to list: {sampled}the "
            "quality of whole profiles is not computed, and consistency is given each latent "
            "alone, which is not what it would be given the whole profile"
        )
    if was_weighted(fitted):
        notes.append(
            "the fit counted rows by weights; accuracy, consistency and shares of profiles here "
            "are averages over the rows of the table, each counted once"
        )
    expected = np.column_stack([table @ np.arange(table.shape[1]) for table in probabilities])
    header = ("of", "accuracy", "consistency", "kappa", "entropy", "n_rows")
    return Classification(
        ids=names,
        latent_names=fitted.latent_names,
        probabilities=probabilities,
        expected=expected,
        levels=levels_of(probabilities),
        profiles=profiles,
        profile_probability=top,
        n_answers=(~np.isnan(values)).sum(axis=1),
        quality=Table.of(header, _quality(fitted.latent_names, placed)),
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
