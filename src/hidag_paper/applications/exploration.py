"""Exploring a table of which nothing is known: how many latents, what they are, what comes back.

Real tables have no true number of latents: with enough rows every criterion of fit asks for more,
because no table is exactly what the model says. So the number is not left to fit alone. It is the
largest for which every latent is found again by fits to two halves of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hidag.data.missingness_patterns import canonical_order
from hidag.em.design_data import WorkingData
from hidag.em.statistics import mean_and_spread
from hidag.fitting.information_criteria import information_criteria
from hidag.initialization.factor_count import pair_correlations
from hidag.model_selection.candidates import Table
from hidag.model_selection.selection import Selection, select
from hidag.results import FitResult
from hidag.structure.graphs import CPDAG

# --- Which family counts have, by evidence: fits that differ in nothing else

COUNT_FAMILIES = ("poisson", "zero-inflated-poisson", "negative-binomial")
#: Latents with which families of counts are compared: enough to explain some of the spread.
LATENTS_FOR_FAMILIES = 3

#: Family, log-likelihood, parameters and BIC of a fit.
FamilyFit = tuple[str, float, int, float]


def compared_families(
    table_with: Callable[[str], Table], settings: Mapping[str, Any], n_rows: float | None = None
) -> list[FamilyFit]:
    """Return the fits with each family of counts.

    Counts that differ between rows more than a Poisson law lets them need not be overdispersed:
    latents may be why. So the comparison is one of fits, with the same number of latents.

    Parameters
    ----------
    table_with : callable
        From a family to the table whose counts have it.
    settings : mapping
        Of the fits.
    n_rows : float, optional
        What the likelihood counts on; by default the fit's rows, or the sum of their weights.
    """
    out = []
    for name in COUNT_FAMILIES:
        result = table_with(name).fit(LATENTS_FOR_FAMILIES, None, settings).result_
        found = information_criteria(result, n_rows)
        out.append((name, found.log_likelihood, found.n_parameters, found.bic))
    return out


def best_family(fits: list[FamilyFit]) -> str:
    """Return the family with the best BIC."""
    return min(fits, key=lambda row: row[3])[0]


# --- What a latent does to the items, and a name for it from those it does most to

Array = NDArray[np.float64]

#: Items in a latent's name.
ITEMS_IN_NAME = 2


def direct_effects(result: FitResult, table: Table) -> Array:
    """Return what switching each binary latent does to each item, in standard deviations, (J, K).

    The item's mean with the latent at 1 less that with it at 0, the others as they are, averaged
    over the others' states and divided by the item's standard deviation in the table: one scale
    for counts, grades, yeses and measurements. A pair of states that differ in the latent alone
    weighs as much as both of them occur, because nothing is known of a state that does not; and
    means beyond anything in the table are taken as the nearest value there.
    """
    states = result.law.space.states()
    chance = np.asarray(result.law.probabilities)
    means = within_table(result.item_means(states), table)
    strides = result.law.space.number(np.eye(states.shape[1], dtype=np.int64))
    effects = np.zeros((means.shape[1], states.shape[1]))
    for k, stride in enumerate(strides):
        low = np.flatnonzero(states[:, k] == 0)
        without, having = chance[low], chance[low + stride]
        weight = without * having / np.maximum(without + having, 1e-300)
        step = means[low + stride] - means[low]
        effects[:, k] = weight @ step / max(float(weight.sum()), 1e-300)
    return np.asarray(effects / _spreads(table)[:, None])


def within_table(values: Array, table: Table) -> Array:
    """Return values (n, J) of items cut to the range that the items have in the table."""
    return np.clip(values, np.nanmin(table.values, axis=0), np.nanmax(table.values, axis=0))


def _spreads(table: Table) -> Array:
    """Return the standard deviations of the items in the table, shape (J,)."""
    counts = None if table.weights is None else table.weights
    out = np.empty(table.values.shape[1])
    for j, column in enumerate(table.values.T):
        seen = np.isfinite(column)
        out[j] = mean_and_spread(column[seen], None if counts is None else counts[seen])[1]
    return out


def names_by_items(
    result: FitResult, effects: Array, *, raised_only: bool = False
) -> tuple[str, ...]:
    """Return a name for each latent: its strongest items, a minus before those that it lowers.

    With ``raised_only`` those that it lowers are left out: a word that a subject does not use says
    little about the subject.

    Latents that would share a name take more items in; an idle latent keeps its own name.
    """
    names: list[str] = []
    for k in range(effects.shape[1]):
        order = [
            j
            for j in np.argsort(-np.abs(effects[:, k]), kind="stable")
            if result.q_matrix[j, k] and (effects[j, k] > 0 or not raised_only)
        ]
        words = [
            ("\N{MINUS SIGN}" if effects[j, k] < 0 else "") + result.item_names[j] for j in order
        ]
        name = result.latent_names[k]
        for size in range(ITEMS_IN_NAME, len(words) + 1):
            name = ", ".join(words[:size])
            if name not in names:
                break
        names.append(name if words and name not in names else result.latent_names[k])
    return tuple(names)


def renamed(result: FitResult, names: tuple[str, ...]) -> FitResult:
    """Return the same fit with other names for its latents."""
    graph = CPDAG(np.asarray(result.graph.adjacency), names)
    new = dict(zip(result.latent_names, names, strict=True))
    tests = tuple(
        replace(
            test, pair=(new.get(test.pair[0], test.pair[0]), new.get(test.pair[1], test.pair[1]))
        )
        for test in result.edge_tests
    )
    return replace(result, latent_names=names, graph=graph, edge_tests=tests)


# --- What a fit leaves unexplained: pairs of items that go together more, or less, than it

#: Rows drawn from the fit to see what it says about pairs.
N_DRAWN = 20_000


@dataclass(frozen=True)
class Misfit:
    """Correlations of items, observed and under the fit.

    Attributes
    ----------
    pairs : list of (int, int, float, float)
        Two items, their correlation in the table and under the fit; the worst first.
    root_mean_square : float
        Of the differences over all pairs.
    unexplained : float
        The same if no items went together at all: what there was to explain.
    """

    pairs: list[tuple[int, int, float, float]]
    root_mean_square: float
    unexplained: float


def misfit(result: FitResult, table: Table) -> Misfit:
    """Return the differences between observed correlations and those of draws from the fit."""
    responses = result.responses
    rng = np.random.default_rng(0)
    drawn = within_table(result.sample_items(result.law.sample(N_DRAWN, rng), rng), table)
    # Correlations want a common number of columns; items that never vary have none.
    seen, said = (
        pair_correlations(
            WorkingData.from_values(responses.expand(values), responses.families, weights=weights)
        ).matrix
        for values, weights in ((table.values, table.weights), (drawn, None))
    )
    first = responses.starts
    seen, said = seen[np.ix_(first, first)], said[np.ix_(first, first)]
    i, j = np.triu_indices(len(seen), 1)
    gap = seen[i, j] - said[i, j]
    order = np.argsort(-np.abs(gap), kind="stable")
    pairs = [
        (int(i[p]), int(j[p]), float(seen[i[p], j[p]]), float(said[i[p], j[p]])) for p in order
    ]
    return Misfit(
        pairs,
        float(np.sqrt((gap**2).mean())),
        float(np.sqrt((seen[i, j] ** 2).mean())),
    )


# --- Do latents come back: in the other half of the rows, from another seed?

#: A latent is said to come back if the chances of rows correlate at least so much.
COMES_BACK = 0.8


@dataclass(frozen=True)
class Agreement:
    """How a fit's latents are met by those of another.

    Attributes
    ----------
    partner : ndarray of int, shape (K,)
        The other fit's latent for each latent.
    correlation : ndarray, shape (K,)
        Of the rows' chances, up to its sign.
    """

    partner: NDArray[np.intp]
    correlation: Array

    @property
    def lowest(self) -> float:
        """The correlation of the latent that is met least well."""
        return float(self.correlation.min())


def agreement(one: Array, other: Array, weights: Array | None = None) -> Agreement:
    """Return which latents of two fits go together, from rows' chances (N, K) under both."""
    counts = np.ones(len(one)) if weights is None else weights
    sides = []
    for chances in (one, other):
        centred = chances - np.average(chances, axis=0, weights=counts)
        length = np.sqrt(counts @ centred**2)
        sides.append(centred / np.maximum(length, 1e-12))
    table = np.abs(sides[0].T @ (sides[1] * counts[:, None]))
    rows, columns = linear_sum_assignment(table, maximize=True)
    partner = np.full(one.shape[1], -1, dtype=np.intp)
    partner[rows] = columns
    return Agreement(partner, np.asarray(table[rows, columns]))


def halves_of(table: Table) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two halves of the rows, shape (N,) each; by contents, so that order is nothing."""
    rows, _ = canonical_order(table.values, table.families, table.weights)
    first = np.zeros(len(rows), dtype=bool)
    first[rows[::2]] = True
    return first, ~first


def split_half_agreement(
    table: Table, n_latents: int, settings: Mapping[str, Any]
) -> tuple[Agreement, tuple[FitResult, FitResult]]:
    """Return how fits to two halves of the rows agree about all rows, and the fits."""
    one, two = (table.fit(n_latents, None, settings, half).result_ for half in halves_of(table))
    met = agreement(one.posterior(table.values), two.posterior(table.values), table.weights)
    return met, (one, two)


def edge_support(
    result: FitResult, others: Sequence[FitResult], table: Table
) -> tuple[list[tuple[int, int, float, float]], Array]:
    """Return how often each edge, and each latent, is found again by other fits.

    Returns
    -------
    list of (cause, effect, share with the edge, share with the same direction)
        For each edge of the fit's graph; undirected ones with the smaller number first.
    ndarray, shape (n_others, K)
        Correlations of each latent with its partner.
    """
    own = result.posterior(table.values)
    found = [agreement(own, other.posterior(table.values), table.weights) for other in others]
    adjacency = np.asarray(result.graph.adjacency, dtype=bool)
    edges = []
    for i, j in zip(*np.nonzero(np.triu(adjacency | adjacency.T, 1)), strict=True):
        cause, effect = (j, i) if adjacency[j, i] and not adjacency[i, j] else (i, j)
        joined, same = 0, 0
        for other, met in zip(others, found, strict=True):
            theirs = np.asarray(other.graph.adjacency, dtype=bool)
            a, b = met.partner[cause], met.partner[effect]
            joined += bool(theirs[a, b] or theirs[b, a])
            same += bool(
                theirs[a, b] == adjacency[cause, effect]
                and theirs[b, a] == adjacency[effect, cause]
            )
        n = max(len(others), 1)
        edges.append((int(cause), int(effect), joined / n, same / n))
    return edges, np.array([met.correlation for met in found]).reshape(len(others), own.shape[1])


# ---


@dataclass(frozen=True)
class Exploration:
    """A table explored.

    Attributes
    ----------
    table : Table
    selection : Selection
        Criteria of fit for each number of latents.
    halves : mapping from int to Agreement
        How fits to two halves of the rows agree, by number of latents.
    chosen : int
    result : FitResult
        The fit with the chosen number, latents named by their items.
    effects : ndarray, shape (J, K)
        What switching a latent does to an item, in standard deviations.
    edges : list of (cause, effect, share with the edge, share with the direction)
        Over the refits.
    latents_again : ndarray, shape (n_refits, K)
        Correlations of each latent with its partner in a refit.
    refits : tuple of str
        What the refits were.
    """

    table: Table
    selection: Selection
    halves: Mapping[int, Agreement]
    chosen: int
    result: FitResult
    effects: Array
    edges: list[tuple[int, int, float, float]]
    latents_again: Array
    refits: tuple[str, ...]

    @property
    def all_come_back(self) -> bool:
        """Whether every latent of the chosen number comes back in the other half."""
        return self.halves[self.chosen].lowest >= COMES_BACK

    @property
    def criterion_at_end(self) -> bool:
        """Whether EBIC would have the largest of several numbers that were fitted."""
        fitted = list(self.selection.fitted)
        return len(fitted) > 1 and self.selection.votes["EBIC"] == fitted[-1]

    def posterior(self) -> Array:
        """Return the chance of each latent for each row, shape (N, K)."""
        return self.result.posterior(self.table.values)


def explore(
    table: Table,
    numbers: Sequence[int],
    *,
    seed: int,
    n_seeds: int = 2,
    settings: Mapping[str, Any] | None = None,
    raised_only: bool = False,
) -> Exploration:
    """Fit several numbers of latents, choose the largest that comes back, and look at it closely.

    Parameters
    ----------
    table : Table
    numbers : sequence of int
        Numbers of latents to fit.
    seed : int
    n_seeds : int
        More fits of the chosen number to all rows, from other seeds; the best by EBIC is kept, and
        the others show how stable it is.
    settings : mapping, optional
        Of the estimator.
    raised_only : bool
        Whether latents are named by the items that they raise alone.
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
    chosen = largest_that_comes_back({k: met.lowest for k, met in halves.items()})
    first = selection.result_with(chosen)
    assert first is not None
    whole = {seed: first}
    for other in np.random.SeedSequence(seed).generate_state(n_seeds).tolist():
        whole[int(other)] = table.fit(chosen, None, {**given, "random_state": int(other)}).result_
    # The likelihood has local optima: of fits to all rows the best is the one to look at.
    best = min(whole, key=lambda s: information_criteria(whole[s], table.n_counted).ebic)
    fitted = whole.pop(best)
    refits = [*half_fits[chosen], *whole.values()]
    labels = ["first half of the rows", "second half of the rows"]
    labels += [f"all rows, seed {other}" for other in whole]
    effects = direct_effects(fitted, table)
    result = renamed(fitted, names_by_items(fitted, effects, raised_only=raised_only))
    edges, again = edge_support(result, refits, table)
    return Exploration(
        table, selection, halves, chosen, result, effects, edges, again, tuple(labels)
    )


def largest_that_comes_back(lowest: Mapping[int, float]) -> int:
    """Return the largest number of latents of which all come back, else the one that does best.

    Parameters
    ----------
    lowest : mapping from int to float
        The lowest correlation of a latent with its partner, by number of latents.
    """
    good = [k for k, value in lowest.items() if value >= COMES_BACK]
    return max(good) if good else max(lowest, key=lambda k: (lowest[k], -k))
