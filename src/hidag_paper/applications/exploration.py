"""Exploratory analysis of a table: number of latents, their names, and their replicability.

Real tables have no true number of latents: with enough rows every information criterion prefers
more, because no table follows the model exactly. The number chosen here is the largest for which
every latent is replicated by fits to two halves of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hidag.data.rows import canonical_order
from hidag.em.design_data import WorkingData, weighted_mean_and_sd
from hidag.estimator import DCRL, select
from hidag.fitting.information_criteria import information_criteria
from hidag.initialization.item_columns import pair_correlations
from hidag.model_selection.candidates import Table
from hidag.model_selection.selection import Selection
from hidag.results import FitResult
from hidag.structure.graphs import CPDAG

Array = NDArray[np.float64]
#: Family, log-likelihood, number of parameters and BIC of a fit.
FamilyFit = tuple[str, float, int, float]

COUNT_FAMILIES = ("poisson", "zero-inflated-poisson", "negative-binomial")
#: Latents in the comparison of count families, enough to explain part of the variance.
LATENTS_FOR_FAMILIES = 3
#: Items in the name of a latent.
ITEMS_IN_NAME = 2
#: Rows simulated from a fit to obtain the correlations that it implies.
N_SIMULATED = 20_000
#: A latent is replicated if its posterior probabilities in two fits correlate at least this much.
REPLICATED = 0.8


def compare_count_families(
    table_with: Callable[[str], Table], settings: Mapping[str, Any], n_rows: float | None = None
) -> list[FamilyFit]:
    """Fit each family of counts with the same number of latents.

    Fits are compared, not marginal distributions, because latents also cause overdispersion.

    Parameters
    ----------
    table_with : callable
        Returns the table with a given family for the counts.
    settings : mapping
        Of the fits.
    n_rows : float, optional
        Sample size in BIC. Default: the number of rows, or the sum of their weights.
    """
    fits = []
    for name in COUNT_FAMILIES:
        result = table_with(name).fit(DCRL(1, **settings), LATENTS_FOR_FAMILIES)
        found = information_criteria(result, n_rows)
        fits.append((name, found.log_likelihood, found.n_parameters, found.bic))
    return fits


def best_family(fits: Sequence[FamilyFit]) -> str:
    """Return the family with the lowest BIC."""
    return min(fits, key=lambda fit: fit[3])[0]


def standardized_effects(result: FitResult, table: Table) -> Array:
    """Return the effect of each binary latent on each item in standard deviations, shape (J, K).

    The difference of the item's mean between levels 1 and 0 of the latent is averaged over the
    states of the other latents and divided by the standard deviation of the item in the table. The
    weight of a pair of states is the harmonic mean of their probabilities, because a state that
    does not occur is not informative. Means are clipped to the range of the item in the table.
    """
    states = result.law.space.states()
    p = np.asarray(result.law.probabilities)
    means = _clip_to_range(result.item_means(states), table)
    strides = result.law.space.number(np.eye(states.shape[1], dtype=np.int64))
    effects = np.zeros((means.shape[1], states.shape[1]))
    for k, stride in enumerate(strides):
        low = np.flatnonzero(states[:, k] == 0)
        weight = p[low] * p[low + stride] / np.maximum(p[low] + p[low + stride], 1e-300)
        difference = means[low + stride] - means[low]
        effects[:, k] = weight @ difference / max(float(weight.sum()), 1e-300)
    deviations = np.empty(len(effects))
    for j, column in enumerate(table.values.T):
        seen = np.isfinite(column)
        weights = None if table.weights is None else table.weights[seen]
        deviations[j] = weighted_mean_and_sd(column[seen], weights)[1]
    return np.asarray(effects / deviations[:, None])


def _clip_to_range(values: Array, table: Table) -> Array:
    """Clip item values, shape (n, J), to the range of each item in the table."""
    return np.clip(values, np.nanmin(table.values, axis=0), np.nanmax(table.values, axis=0))


def name_latents(
    result: FitResult, effects: Array, *, positive_only: bool = False
) -> tuple[str, ...]:
    """Return unique names of the latents: their strongest items, a minus sign for negative effects.

    Latents with the same strongest items get longer names; a latent without items keeps its name.
    ``positive_only`` omits items with negative effects, such as words that a topic avoids.
    """
    names: list[str] = []
    for k in range(effects.shape[1]):
        words = [
            ("\N{MINUS SIGN}" if effects[j, k] < 0 else "") + result.item_names[j]
            for j in np.argsort(-np.abs(effects[:, k]), kind="stable")
            if result.q_matrix[j, k] and (effects[j, k] > 0 or not positive_only)
        ]
        name = result.latent_names[k]
        for size in range(ITEMS_IN_NAME, len(words) + 1):
            name = ", ".join(words[:size])
            if name not in names:
                break
        names.append(name if words and name not in names else result.latent_names[k])
    return tuple(names)


def rename_latents(result: FitResult, names: tuple[str, ...]) -> FitResult:
    """Return the same fit with other names of the latents."""
    new = dict(zip(result.latent_names, names, strict=True))
    tests = tuple(
        replace(
            test, pair=(new.get(test.pair[0], test.pair[0]), new.get(test.pair[1], test.pair[1]))
        )
        for test in result.edge_tests
    )
    graph = CPDAG(np.asarray(result.graph.adjacency), names)
    return replace(result, latent_names=names, graph=graph, edge_tests=tests)


@dataclass(frozen=True)
class ResidualCorrelations:
    """Item correlations in the table and under the fit.

    Attributes
    ----------
    pairs : list of (int, int, float, float)
        Two items, their observed and model-implied correlation; the largest difference first.
    root_mean_square : float
        Of the differences over all pairs.
    observed_root_mean_square : float
        Of the observed correlations, the value of a model without latents.
    """

    pairs: list[tuple[int, int, float, float]]
    root_mean_square: float
    observed_root_mean_square: float


def residual_correlations(result: FitResult, table: Table) -> ResidualCorrelations:
    """Compare the observed correlations with those of rows simulated from the fit."""
    responses = result.responses
    rng = np.random.default_rng(0)
    states = result.law.sample(N_SIMULATED, rng)
    simulated = _clip_to_range(result.sample_items(states, rng), table)
    first = responses.starts
    observed, implied = (
        pair_correlations(
            WorkingData.from_values(responses.expand(values), responses.families, weights=weights)
        ).matrix[np.ix_(first, first)]
        for values, weights in ((table.values, table.weights), (simulated, None))
    )
    i, j = np.triu_indices(len(observed), 1)
    difference = observed[i, j] - implied[i, j]
    pairs = [
        (int(a), int(b), float(observed[a, b]), float(implied[a, b]))
        for a, b in ((i[p], j[p]) for p in np.argsort(-np.abs(difference), kind="stable"))
    ]
    return ResidualCorrelations(
        pairs,
        float(np.sqrt((difference**2).mean())),
        float(np.sqrt((observed[i, j] ** 2).mean())),
    )


@dataclass(frozen=True)
class Agreement:
    """Match between the latents of two fits.

    Attributes
    ----------
    partner : ndarray of int, shape (K,)
        Latent of the other fit that matches each latent.
    correlation : ndarray, shape (K,)
        Absolute correlation of the posterior probabilities.
    """

    partner: NDArray[np.intp]
    correlation: Array

    @property
    def lowest(self) -> float:
        """The smallest correlation."""
        return float(self.correlation.min())


def match_posteriors(one: Array, other: Array, weights: Array | None = None) -> Agreement:
    """Match the latents of two fits by their posterior probabilities, shape (N, K) each."""
    counts = np.ones(len(one)) if weights is None else weights
    sides = []
    for posterior in (one, other):
        centred = posterior - np.average(posterior, axis=0, weights=counts)
        sides.append(centred / np.maximum(np.sqrt(counts @ centred**2), 1e-12))
    correlation = np.abs(sides[0].T @ (sides[1] * counts[:, None]))
    rows, columns = linear_sum_assignment(correlation, maximize=True)
    partner = np.full(one.shape[1], -1, dtype=np.intp)
    partner[rows] = columns
    return Agreement(partner, np.asarray(correlation[rows, columns]))


def split_rows(table: Table) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two halves of the rows, shape (N,) each, that do not depend on the row order."""
    rows, _ = canonical_order(table.values, table.families, table.weights)
    first = np.zeros(len(rows), dtype=bool)
    first[rows[::2]] = True
    return first, ~first


def split_half_agreement(
    table: Table, n_latents: int, settings: Mapping[str, Any]
) -> tuple[Agreement, tuple[FitResult, FitResult]]:
    """Fit two halves of the rows; return the match of the latents over all rows, and the fits."""
    model = DCRL(1, **settings)
    one, two = (table.fit(model, n_latents, rows=half) for half in split_rows(table))
    values = table.values
    return match_posteriors(one.posterior(values), two.posterior(values), table.weights), (one, two)


def edge_support(
    result: FitResult, others: Sequence[FitResult], table: Table
) -> tuple[list[tuple[int, int, float, float]], Array]:
    """Return the shares of other fits that contain each edge, and the match of each latent.

    Returns
    -------
    list of (cause, effect, share with the edge, share with the same direction)
        For each edge of the graph; undirected ones with the smaller index first.
    ndarray, shape (n_others, K)
        Correlation of each latent with its partner.
    """
    own = result.posterior(table.values)
    matches = [match_posteriors(own, one.posterior(table.values), table.weights) for one in others]
    adjacency = np.asarray(result.graph.adjacency, dtype=bool)
    edges = []
    for i, j in np.argwhere(np.triu(adjacency | adjacency.T, 1)).tolist():
        cause, effect = (j, i) if adjacency[j, i] and not adjacency[i, j] else (i, j)
        pair = (adjacency[cause, effect], adjacency[effect, cause])
        adjacent, same = 0, 0
        for other, match in zip(others, matches, strict=True):
            theirs = np.asarray(other.graph.adjacency, dtype=bool)
            a, b = match.partner[cause], match.partner[effect]
            adjacent += bool(theirs[a, b] or theirs[b, a])
            same += (theirs[a, b], theirs[b, a]) == pair
        n = max(len(others), 1)
        edges.append((cause, effect, adjacent / n, same / n))
    correlations = np.array([match.correlation for match in matches])
    return edges, correlations.reshape(len(others), own.shape[1])


@dataclass(frozen=True)
class Exploration:
    """Exploratory analysis of a table.

    Attributes
    ----------
    table : Table
    selection : Selection
        Information criteria for each number of latents.
    halves : mapping from int to Agreement
        Agreement of the fits to two halves of the rows, by number of latents.
    chosen : int
    result : FitResult
        The fit with the chosen number, its latents named by their items.
    effects : ndarray, shape (J, K)
        Effects of the latents on the items in standard deviations.
    edges : list of (cause, effect, share with the edge, share with the direction)
        Over the refits.
    replication : ndarray, shape (n_refits, K)
        Correlation of each latent with its partner in each refit.
    refits : tuple of str
        Descriptions of the refits.
    """

    table: Table
    selection: Selection
    halves: Mapping[int, Agreement]
    chosen: int
    result: FitResult
    effects: Array
    edges: list[tuple[int, int, float, float]]
    replication: Array
    refits: tuple[str, ...]

    @property
    def all_replicated(self) -> bool:
        """Whether every latent of the chosen number is replicated in the other half."""
        return self.halves[self.chosen].lowest >= REPLICATED

    @property
    def criterion_at_end(self) -> bool:
        """Whether EBIC selects the largest of several fitted numbers."""
        fitted = list(self.selection.fitted)
        return len(fitted) > 1 and self.selection.votes["EBIC"] == fitted[-1]

    def posterior(self) -> Array:
        """Return the posterior probability of each latent for each row, shape (N, K)."""
        return self.result.posterior(self.table.values)


def explore(
    table: Table,
    numbers: Sequence[int],
    *,
    seed: int,
    n_seeds: int = 2,
    settings: Mapping[str, Any] | None = None,
    positive_only: bool = False,
) -> Exploration:
    """Fit several numbers of latents, choose the largest that is replicated, and refit it.

    Parameters
    ----------
    table : Table
    numbers : sequence of int
        Numbers of latents to fit.
    seed : int
    n_seeds : int
        Further fits of the chosen number to all rows from other seeds. The result is the fit with
        the lowest EBIC; the others measure its stability.
    settings : mapping, optional
        Of the estimator.
    positive_only : bool
        Whether latents are named only by items with positive effects.
    """
    given = dict(settings or {})
    selection = select(
        table.observations,
        numbers,
        family=list(table.families),
        fits="all",
        folds=0,
        sample_weight=table.weights,
        random_state=seed,
        **given,
    )
    halves, half_fits = {}, {}
    for k in selection.fitted:
        halves[k], half_fits[k] = split_half_agreement(table, k, {**given, "random_state": seed})
    chosen = select_replicated({k: match.lowest for k, match in halves.items()})
    first = selection.result_with(chosen)
    assert first is not None
    whole = {seed: first}
    for other in np.random.SeedSequence(seed).generate_state(n_seeds).tolist():
        whole[other] = table.fit(DCRL(1, **{**given, "random_state": other}), chosen)
    best = min(whole, key=lambda s: information_criteria(whole[s], table.n_counted).ebic)
    fitted = whole.pop(best)
    refits = [*half_fits[chosen], *whole.values()]
    labels = ["first half of the rows", "second half of the rows"]
    labels += [f"all rows, seed {other}" for other in whole]
    effects = standardized_effects(fitted, table)
    names = name_latents(fitted, effects, positive_only=positive_only)
    result = rename_latents(fitted, names)
    edges, replication = edge_support(result, refits, table)
    return Exploration(
        table, selection, halves, chosen, result, effects, edges, replication, tuple(labels)
    )


def select_replicated(lowest: Mapping[int, float]) -> int:
    """Return the largest number whose latents are all replicated, else the best replicated one.

    Parameters
    ----------
    lowest : mapping from int to float
        Smallest correlation of a latent with its partner, by number of latents.
    """
    good = [k for k, value in lowest.items() if value >= REPLICATED]
    return max(good) if good else max(lowest, key=lambda k: (lowest[k], -k))
