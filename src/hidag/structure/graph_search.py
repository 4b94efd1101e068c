"""Score-based structure search over discrete variables (Stage III): data in, CPDAG out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.config import CONFIG
from hidag.exceptions import (
    Advice,
    Choices,
    DataError,
    GraphError,
    Setting,
    SettingError,
    invalid_setting,
)
from hidag.latent.counts import LatentCounts
from hidag.structure.graphs import CPDAG, DAG
from hidag.structure.greedy_search import ALL_OPERATORS, ClassSearch, ges, xges
from hidag.structure.knowledge import FORBIDDEN, Knowledge, check_knowledge, orient_by_knowledge
from hidag.structure.other_searches import OTHER_SEARCHES
from hidag.structure.scores import LeanScore, LocalScore, ScoreCache, graph_score, make_score

#: A custom search: it gets the score, the names and the knowledge, and returns a graph or an
#: adjacency matrix, shape (K, K).
GraphSearch = Callable[
    [LocalScore, tuple[str, ...], Knowledge | None], "CPDAG | DAG | NDArray[np.integer[Any]]"
]


@dataclass(frozen=True)
class SearchResult:
    """Result of a structure search.

    Attributes
    ----------
    graph : CPDAG
        Of a Markov equivalence class, or with knowledge of the members that agree with it.
    score : float
        Score of ``dag``, and of every member if equivalent graphs have equal scores.
    n_scores, n_steps : int
        Local scores computed (0 for a custom search); operators applied, also in rejected trials.
    dag : DAG
        The member that was scored: the best one after an exact search with lean tables.
    """

    graph: CPDAG
    score: float
    n_scores: int
    n_steps: int
    dag: DAG


def as_counts(
    data: LatentCounts | ArrayLike,
    *,
    weights: ArrayLike | None = None,
    levels: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
) -> LatentCounts:
    """Return checked counts of rows of levels, shape (n, K); counts are returned as they are."""
    chosen = None if names is None else tuple(str(name) for name in names)
    if isinstance(data, LatentCounts):
        if weights is not None or levels is not None:
            text = "{weights} and {levels} are for rows of levels; LatentCounts contain both "
            text += "already"
            params = {"weights": Setting("weights"), "levels": Setting("levels")}
            raise SettingError("counts-have-weights", text, params)
        counts = data if chosen is None else replace(data, names=chosen)
    else:
        given = np.asarray(data)
        if chosen is None and hasattr(data, "columns"):
            chosen = tuple(str(name) for name in cast(Any, data).columns)
        if given.ndim != 2 or given.shape[1] == 0:
            text = "rows of levels must have shape (n, K) with K >= 1, got {shape}"
            raise DataError("not-a-table", text, shape=given.shape)
        if given.dtype.kind not in "biu":
            if given.dtype.kind != "f" or not (given == np.rint(given)).all():
                text = "levels must be integers 0, 1, ..."
                raise DataError("levels-not-integer", text, advice="discretise real values first")
            given = given.astype(np.int64)
        sizes = None if levels is None else tuple(int(m) for m in levels)
        counts = LatentCounts.from_rows(given, levels=sizes, names=chosen)
        if weights is not None:
            # Equal rows are not merged: their weights would be added in the order of the rows.
            rows, each = given.astype(np.uint8), np.asarray(weights, dtype=np.float64)
            counts = LatentCounts(rows, each, counts.levels, counts.names)
    if len(set(counts.names)) != len(counts.names):
        name = next(name for name in counts.names if counts.names.count(name) > 1)
        text = "names must be unique, but {name!r} occurs repeatedly"
        raise DataError("duplicate-name", text, name=name)
    return counts


def discover(
    data: LatentCounts | ArrayLike,
    *,
    score: str | LocalScore = "bdeu",
    equivalent_sample_size: float | str = 1.0,
    search: str | GraphSearch = "xges",
    knowledge: Knowledge | None = None,
    weights: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    max_parents: int | None = None,
) -> CPDAG:
    """Return the CPDAG of discrete variables that a score-based search finds.

    Parameters
    ----------
    data : LatentCounts or array_like of int, shape (n, K)
        Weighted configurations, or rows of levels 0, 1, ... A variable has as many levels as its
        largest value implies; ``LatentCounts.from_rows(rows, levels=...)`` sets another number.
    score : "bdeu", "bic", "lean" or LocalScore
        ``"lean"`` is BIC for variables with ordered levels, in which a table may have fewer
        parameters than cells (see :mod:`hidag.latent.laws`).
    equivalent_sample_size : float or "auto"
        Weight of the BDeu prior, in rows. "auto" is 1 for binary variables; for more levels, whose
        tables have many more cells, the value with the largest marginal likelihood.
    search : "xges", "ges", "exact", "pc", "boss" or callable
        ``"xges"`` continues after the first optimum and is more accurate; ``"ges"`` is the search
        of the paper; ``"exact"`` finds the best graph of at most 12 variables, and so does
        ``"xges"`` with the score ``"lean"`` of at most 6; ``"pc"`` tests independences, ``"boss"``
        searches permutations (see :mod:`hidag.structure.other_searches`). A callable gets
        ``(score, names, knowledge)`` and returns a graph or an adjacency matrix.
    knowledge : Knowledge, optional
        Required and forbidden edges, tiers, hierarchy.
    weights : array_like, shape (n,), optional
        Weights of the rows, not necessarily integers.
    names : sequence of str, length K, optional
        Default those of the counts or of a data frame, else ``Z1 .. ZK``.
    max_parents : int, optional
        Bound on the parents that a step of the search gives to a variable.

    Notes
    -----
    The result does not depend on the order of the rows, and a permutation of the columns permutes
    it: scores are exact to the last bit in any order, and exact ties are broken by content. Only
    variables with the same scores without parents and with each other variable, for instance two
    columns that are equal up to the names of their levels, are ordered by column.

    Returns
    -------
    CPDAG
        Over K variables.

    Examples
    --------
    >>> import hidag
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.integers(0, 2, 500)
    >>> effect = np.where(rng.random(500) < 0.8, cause, 1 - cause)
    >>> hidag.discover(np.column_stack([cause, effect]))
    CPDAG(2 variables, 0 directed edges, 1 undirected edges)
    """
    return search_graph(
        as_counts(data, weights=weights, names=names),
        score=score,
        equivalent_sample_size=equivalent_sample_size,
        search=search,
        knowledge=knowledge,
        max_parents=max_parents,
    ).graph


#: Adjacency of the CPDAG, number of steps, and the best DAG if the search is over DAGs.
Found = tuple[NDArray[np.int8], int, DAG | None]


def _search_exactly(cache: ScoreCache, n: int, constraints: Any, *rules: Any) -> Found:
    best = DAG(best_dag(cache, n, constraints, *rules))
    return orient_by_knowledge(best.to_cpdag().adjacency, constraints), 0, best


def _climb(
    climb: Any, cache: ScoreCache, n: int, constraints: Any, required: Any, max_parents: int | None
) -> Found:
    climber = ClassSearch(cache, n, constraints, max_parents)
    return climber.adjacency(climb(climber, required)), climber.n_steps, None


#: The searches by name, called with scores, number of variables, rules, required edges and limit.
SEARCHES: dict[str, Callable[..., Found]] = {
    "xges": partial(_climb, xges), "ges": partial(_climb, ges), "exact": _search_exactly,
    **OTHER_SEARCHES,
}  # fmt: skip


def search_graph(
    data: LatentCounts | ArrayLike,
    *,
    score: str | LocalScore = "bdeu",
    equivalent_sample_size: float | str = 1.0,
    search: str | GraphSearch = "xges",
    knowledge: Knowledge | None = None,
    names: Sequence[str] | None = None,
    max_parents: int | None = None,
    cache: ScoreCache | None = None,
) -> SearchResult:
    """Return the graph that :func:`discover` finds, with its score.

    Parameters
    ----------
    data, score, equivalent_sample_size, search, knowledge, names, max_parents
        As in :func:`discover`.
    cache : ScoreCache, optional
        Scores of earlier searches of the same data, which are not computed again.
    """
    counts = as_counts(data, names=names)
    knowledge = check_knowledge(knowledge)
    if max_parents is not None and (max_parents != int(max_parents) or max_parents < 0):
        raise invalid_setting("max_parents", "an integer >= 0 or None", max_parents)
    size = choose_sample_size(counts, equivalent_sample_size, score, knowledge, max_parents)
    local_score = make_score(score, counts, size, knowledge)
    n = counts.n_variables
    constraints = None if knowledge is None else knowledge.constraints(counts.names)
    required = None if knowledge is None else knowledge.required_adjacency(counts.names)
    cache = ScoreCache(local_score, n) if cache is None else cache
    n_steps, n_known = 0, cache.n_scores
    best: DAG | None = None
    is_lean = isinstance(local_score, LeanScore)
    if is_lean and search == "xges" and n <= CONFIG.graph_search.max_exact_lean_variables:
        # Greedy steps score one member of each class, and another may score higher.
        search = "exact"
    if callable(search):
        found = search(local_score, counts.names, knowledge)
        adjacency = found.adjacency if isinstance(found, (CPDAG, DAG)) else np.asarray(found)
        if adjacency.shape != (n, n):
            text = "the search returned a graph of shape {shape} for {n} variables"
            raise GraphError("wrong-graph-size", text, {"shape": adjacency.shape, "n": n})
        cpdag = CPDAG(adjacency, counts.names).to_dag().to_cpdag().adjacency
        adjacency = orient_by_knowledge(cpdag, constraints)
    elif search in SEARCHES:
        run = SEARCHES[search]
        adjacency, n_steps, best = run(cache, n, constraints, required, max_parents)
    else:
        raise invalid_setting("search", Choices(tuple(SEARCHES), python_only="a callable"), search)
    graph = CPDAG(adjacency, counts.names)
    dag = best if best is not None and is_lean else graph.to_dag()
    value = graph_score(local_score, dag.parents)
    return SearchResult(graph, value, cache.n_scores - n_known, n_steps, dag)


def climb_from(start: NDArray[np.int8], cache: ScoreCache) -> GraphSearch:
    """Return a search that only climbs, by single operators, from a DAG near the best graph."""

    def climb(
        _: LocalScore, names: tuple[str, ...], knowledge: Knowledge | None
    ) -> NDArray[np.int8]:
        rules = None if knowledge is None else knowledge.constraints(names)
        search = ClassSearch(cache, len(names), rules)
        state = search.start(start)
        search.climb(state, ALL_OPERATORS)
        return search.adjacency(state)

    return climb


def choose_sample_size(
    counts: LatentCounts,
    given: float | str = "auto",
    score: str | LocalScore = "bdeu",
    knowledge: Knowledge | None = None,
    max_parents: int | None = None,
) -> float:
    """Return BDeu's equivalent sample size, as given; "auto" maximises the marginal likelihood.

    One row spread over the many cells of several levels would rule out nearly all edges.
    """
    if not isinstance(given, str):
        return given
    if given != "auto":
        choices = Choices(("auto",), other="a positive number")
        raise invalid_setting("equivalent_sample_size", choices, given)
    if score != "bdeu" or max(counts.levels) == 2 or counts.n_variables == 1:
        return 1.0

    rules: dict[str, Any] = {"search": "ges", "knowledge": knowledge, "max_parents": max_parents}

    def marginal_likelihood(size: float) -> float:
        return search_graph(counts, equivalent_sample_size=size, **rules).score

    return max(CONFIG.graph_search.equivalent_sample_sizes, key=marginal_likelihood)


# Exact search.


def check_exact_size(n_variables: int) -> None:
    """Raise if there are more variables than the exact search can handle."""
    limit = CONFIG.graph_search.max_exact_variables
    if n_variables > limit:
        exact = Setting("search", "exact")
        text = "{exact} takes at most {limit} variables, because it lists all their subsets, got "
        text += "{found}"
        params = {"exact": exact, "limit": limit, "found": n_variables}
        advice = Advice("set-option", "use {greedy}", {"greedy": Setting("search", "xges")})
        raise GraphError("too-many-for-exact-search", text, params, advice=advice)


def best_dag(
    cache: ScoreCache,
    n_variables: int,
    constraints: NDArray[np.uint8] | None,
    required: NDArray[np.int8] | None,
    max_parents: int | None,
) -> NDArray[np.int8]:
    """Return a best DAG (K, K): its sink and the best rest (Silander and Myllymaki 2006)."""
    check_exact_size(n_variables)
    sets = np.arange(1 << n_variables, dtype=np.int64)
    sizes = np.array([int(s).bit_count() for s in sets])
    best = np.full((n_variables, len(sets)), -np.inf)
    parents = np.tile(sets, (n_variables, 1))
    for v in range(n_variables):
        allowed = sets >> v & 1 == 0
        if max_parents is not None:
            allowed &= sizes <= max_parents
        if constraints is not None:
            allowed &= sets & _mask((constraints[:, v] & FORBIDDEN) > 0) == 0
        if required is not None:
            always = _mask(required[:, v] == 1)
            allowed &= sets & always == always
        scored = sets[allowed]
        if not len(scored):
            text = "variable {variable} has more required parents than {limit} allows"
            params = {"variable": v, "limit": Setting("max_parents", max_parents)}
            raise GraphError("too-many-required-parents", text, params)
        words = np.zeros((len(scored), cache.n_words), dtype=np.uint64)
        words[:, 0] = scored.astype(np.uint64)
        best[v, allowed] = cache.many(np.full(len(scored), v, dtype=np.int64), words)
        # From "exactly these parents" to "the best among these candidates", one bit at a time.
        for k in range(n_variables):
            larger = sets[sets >> k & 1 == 1]
            smaller = larger ^ (1 << k)
            better = best[v, smaller] >= best[v, larger]
            best[v, larger[better]] = best[v, smaller[better]]
            parents[v, larger[better]] = parents[v, smaller[better]]
    total = np.full(len(sets), -np.inf)
    total[0] = 0.0
    sink = np.full(len(sets), -1, dtype=np.int64)
    for size in range(1, n_variables + 1):
        of_size = sets[sizes == size]
        for v in range(n_variables):
            has_v = of_size[of_size >> v & 1 == 1]
            rest = has_v ^ (1 << v)
            value = total[rest] + best[v, rest]
            better = value > total[has_v]
            total[has_v[better]] = value[better]
            sink[has_v[better]] = v
    out = np.zeros((n_variables, n_variables), dtype=np.int8)
    left = len(sets) - 1
    while left:
        v = int(sink[left])
        left ^= 1 << v
        out[:, v] = int(parents[v, left]) >> np.arange(n_variables) & 1
    return out


def _mask(members: NDArray[np.bool_]) -> int:
    return sum(1 << int(k) for k in np.flatnonzero(members))
