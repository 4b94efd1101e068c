"""Most probable latents of rows, with the accuracy and consistency of this assignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hidag.diagnostics.goodness_of_fit import max_state_entropy
from hidag.em.posterior import state_posteriors
from hidag.inference.fitted_rows import canonical_rows, draw_responses
from hidag.inference.information.posterior_tables import MAX_STATES
from hidag.network_em.junction_tree import TreePosterior
from hidag.network_em.posterior import draw_listed_states, level_probabilities
from hidag.results import FitResult

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
#: Consistency and its kappa.
Agreement = tuple[float, float]

#: Profiles with a smaller share of pairs have one row at most, and say nothing of consistency.
MIN_PAIR_SHARE = 1e-6
#: Rows of replicate tables: the standard error of a consistency of .95 is then .002, of .6 .005.
MIN_REPLICATE_ROWS = 10_000
#: With a larger share of rows that may be alone in their profile, consistency from pairs of rows
#: would be biased downwards by up to about this share.
MAX_SINGLETON_SHARE = 0.05
#: Replicate tables have a fixed seed, so that the same rows have the same consistency.
SEED = 0
FEW_ROWS = "there are few rows for so many joint states"
_UNKNOWN = float("nan")


@dataclass
class PosteriorSums:
    """Sums of posteriors (S,) over the rows assigned to each category, for consistency."""

    by_category: dict[int, Array] = field(default_factory=dict)

    def add(self, categories: NDArray[np.integer], posterior: Array) -> None:
        """Add rows by their assigned categories (n,) and joint posteriors (n, S)."""
        for category in np.unique(categories).tolist():
            more = posterior[categories == category].sum(axis=0)
            known = self.by_category.get(category)
            self.by_category[category] = more if known is None else known + more

    def singleton_share(self) -> float:
        """Return the share of rows that may be alone in their profile.

        At most one row per profile. Consistency of the profile of a single row would come from
        rows with little posterior mass there.
        """
        if not self.by_category:
            return 0.0
        mass = np.sum(list(self.by_category.values()), axis=0)
        return float(np.minimum(mass, 1.0).sum() / mass.sum())

    def consistency(self, squares: Array) -> Agreement:
        """Return the probability that two tables lead to the same assignment, and Cohen's kappa.

        Within each profile it is the share of pairs of different rows with the same assignment;
        pairs of a row with itself would inflate it. NaN where no profile has two rows. ``squares``
        (S,) are squared posteriors summed over all rows.
        """
        mass, same = np.zeros_like(squares), -squares
        for own in self.by_category.values():
            mass += own
            same += own**2
        pairs = mass**2 - squares
        known = pairs > MIN_PAIR_SHARE * mass**2
        if not known.any():
            return _UNKNOWN, _UNKNOWN
        share = float(same[known] / pairs[known] @ mass[known] / mass[known].sum())
        return with_kappa(share, np.array([float(own.sum()) for own in self.by_category.values()]))


def with_kappa(agreement: float, counts: Array) -> Agreement:
    """Return a share of equal assignments with Cohen's kappa, given the counts of categories."""
    by_chance = float(((counts / counts.sum()) ** 2).sum())
    return agreement, (agreement - by_chance) / (1.0 - by_chance) if by_chance < 1.0 else _UNKNOWN


@dataclass(frozen=True)
class Assignment:
    """Classes of N rows and the quality of this classification.

    Attributes
    ----------
    probabilities : tuple of K arrays, shape (N, M_k)
        Posteriors of levels.
    profiles : ndarray of int, shape (N, K)
        Jointly most probable levels.
    top : ndarray, shape (N,)
        Posterior probabilities of the profiles; NaN where joint states cannot be summed over.
    agreements : list of (float, float)
        Consistency of each latent with its kappa.
    whole : tuple of float
        Accuracy, consistency, kappa and entropy of whole profiles.
    n_drawn : int
        Rows of replicate tables behind the consistency; 0 where it comes from pairs of rows.
    reason : str
        Reason for replicate tables.
    joint : bool
        Whether consistency is conditional on all latents; else on each latent alone.
    """

    probabilities: tuple[Array, ...]
    profiles: IntArray
    top: Array
    agreements: list[Agreement]
    whole: tuple[float, ...]
    n_drawn: int = 0
    reason: str = ""
    joint: bool = True


def assign_rows(result: FitResult, values: Array) -> Assignment:
    """Return the classes of rows (N, J)."""
    if result.law.space.n_states <= MAX_STATES:
        return _assign_by_enumeration(result, values)
    tree = TreePosterior.of(result.parameters, result.law)
    if tree is not None:
        return _assign_by_junction_tree(result, values, tree)
    probabilities = tuple(result.posterior_levels(values))
    agreements = []
    for table in probabilities:
        sums = PosteriorSums()
        sums.add(table.argmax(axis=1), table)
        agreements.append(sums.consistency((table**2).sum(axis=0)))
    top = np.full(len(values), np.nan)
    profiles = result.classify(values)
    return Assignment(probabilities, profiles, top, agreements, (np.nan,) * 4, joint=False)


def _assign_by_enumeration(result: FitResult, values: Array) -> Assignment:
    space = result.law.space
    states, indicators = space.states(), _level_indicators(result)
    tables = [np.empty((len(values), m)) for m in space.levels]
    index = np.empty(len(values), dtype=np.int64)
    top = np.empty(len(values))
    level_sums = [PosteriorSums() for _ in space.levels]
    profile_sums = PosteriorSums()
    squares, uncertainty = np.zeros(space.n_states), 0.0
    expanded = result.responses.expand(values)
    for rows, posterior in state_posteriors(result.parameters, result.law, expanded):
        for table, indicator, sums in zip(tables, indicators, level_sums, strict=True):
            table[rows] = posterior @ indicator
            sums.add(table[rows].argmax(axis=1), posterior)
        modes = posterior.argmax(axis=1)
        index[rows] = modes
        top[rows] = posterior[np.arange(len(modes)), modes]
        uncertainty -= float(xlogy(posterior, posterior).sum())
        squares += np.einsum("ns,ns->s", posterior, posterior)
        profile_sums.add(modes, posterior)
    agreements = [sums.consistency(squares) for sums in level_sums]
    agreement, n_drawn = profile_sums.consistency(squares), 0
    missing = np.isnan(values)
    reason = ""
    if profile_sums.singleton_share() > MAX_SINGLETON_SHARE:
        reason = FEW_ROWS
    elif (missing != missing[:1]).any():
        # A replicate of a row has the same missing cells; pairs of rows with others agree less.
        reason = "rows have different missing cells"
    if reason:
        levels = most_probable_levels(tables)
        agreements, agreement, n_drawn = replicate_agreements(result, values, levels, states[index])
    whole: tuple[float, ...] = (np.nan,) * 4
    if len(values):
        entropy = 1.0 - uncertainty / (len(values) * max_state_entropy(result))
        whole = (float(top.mean()), *agreement, entropy)
    return Assignment(tuple(tables), states[index], top, agreements, whole, n_drawn, reason)


def _assign_by_junction_tree(result: FitResult, values: Array, tree: TreePosterior) -> Assignment:
    expanded = result.responses.expand(values)
    probabilities = tuple(level_probabilities(tree.marginals(expanded), result.terms))
    profiles, densities = tree.modes_with_densities(expanded)
    top = np.exp(np.minimum(densities - tree.log_densities(expanded), 0.0))
    levels = most_probable_levels(probabilities)
    agreements, agreement, n_drawn = replicate_agreements(result, values, levels, profiles, tree)
    whole: tuple[float, ...] = (np.nan,) * 4
    if len(values):
        entropy = 1.0 - float(tree.entropies(expanded).mean()) / max_state_entropy(result)
        whole = (float(top.mean()), *agreement, entropy)
    reason = FEW_ROWS
    return Assignment(probabilities, profiles, top, agreements, whole, n_drawn, reason)


def _level_indicators(result: FitResult) -> list[Array]:
    """Return for each latent the indicators of its levels in the joint states, (S, M_k)."""
    states = result.law.space.states()
    return [
        (states[:, [k]] == np.arange(m)).astype(np.float64)
        for k, m in enumerate(result.law.space.levels)
    ]


def most_probable_levels(probabilities: Sequence[Array]) -> IntArray:
    """Return the most probable level of each latent, (N, K), from K posteriors (N, M_k)."""
    return np.column_stack([table.argmax(axis=1) for table in probabilities])


def replicate_agreements(
    result: FitResult,
    values: Array,
    levels: IntArray,
    profiles: IntArray,
    tree: TreePosterior | None = None,
) -> tuple[list[Agreement], Agreement, int]:
    """Return consistency and kappa of latents and profiles from replicate tables, and their rows.

    A replicate draws the latents of each row from their posterior and new answers given these,
    with the same missing cells.

    Parameters
    ----------
    result : FitResult
    values : ndarray, shape (N, J)
    levels : ndarray of int, shape (N, K)
        Most probable level of each latent.
    profiles : ndarray of int, shape (N, K)
        Jointly most probable levels.
    tree : TreePosterior, optional
        Replaces the enumeration of joint states.
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
    new_levels, new_profiles = _classify_replicate(
        result, np.asarray(result.responses.expand(replicate)), tree
    )
    same = (levels[rows] == new_levels).mean(axis=0)
    agreements = [with_kappa(float(same[k]), _counts(levels[:, [k]])) for k in range(n_latents)]
    whole = float((profiles[rows] == new_profiles).all(axis=1).mean())
    return agreements, with_kappa(whole, _counts(profiles)), len(rows)


def _classify_replicate(
    result: FitResult, expanded: Array, tree: TreePosterior | None
) -> tuple[IntArray, IntArray]:
    """Return most probable levels and profiles of rows of responses (n, R), both (n, K)."""
    space = result.law.space
    if tree is not None:
        tables = level_probabilities(tree.marginals(expanded), result.terms)
        return most_probable_levels(tables), tree.modes(expanded)
    states, indicators = space.states(), _level_indicators(result)
    levels, profiles = np.empty((2, len(expanded), space.n_latents), dtype=np.int64)
    for rows, posterior in state_posteriors(result.parameters, result.law, expanded):
        for k, indicator in enumerate(indicators):
            levels[rows, k] = (posterior @ indicator).argmax(axis=1)
        profiles[rows] = states[posterior.argmax(axis=1)]
    return levels, profiles


def _counts(levels: IntArray) -> Array:
    return np.unique(levels, axis=0, return_counts=True)[1].astype(np.float64)
