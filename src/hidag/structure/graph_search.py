"""From weighted configurations of discrete variables to the graph that explains them (Stage III).

The one door of this room: it reads the data, makes the score, runs the search that was asked
for, and checks that what comes back is what was promised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hidag.exceptions import DataError, GraphError, SettingError
from hidag.latent.counts import LatentCounts
from hidag.latent.state_space import StateSpace
from hidag.structure.exact_search import best_dag
from hidag.structure.graphs import CPDAG, DAG
from hidag.structure.greedy_search import Engine, ges, xges
from hidag.structure.knowledge import Knowledge, check_knowledge, orient_by_knowledge
from hidag.structure.scores import (
    KNOWN_SCORES,
    CountScore,
    LeanScore,
    LocalScore,
    PossibleScore,
    ScoreCache,
    graph_score,
)

# --- What a search is given, read as weighted configurations: counts, or rows of levels


def as_counts(
    data: LatentCounts | ArrayLike,
    *,
    weights: ArrayLike | None = None,
    levels: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
) -> LatentCounts:
    """Return the counts of what :func:`discover` takes, after checking it."""
    if isinstance(data, LatentCounts):
        if weights is not None or levels is not None:
            raise SettingError("weights and levels come with the counts; give them for rows only")
        counts = data if names is None else replace(data, names=_names(names))
    else:
        given = np.asarray(data)
        if names is None and hasattr(data, "columns"):
            names = [str(name) for name in cast(Any, data).columns]
        if given.ndim != 2 or given.shape[1] == 0:
            raise DataError(
                f"rows of states must be an array of shape (n, K) with K >= 1, got {given.shape}"
            )
        if given.dtype.kind not in "biu":
            if given.dtype.kind != "f" or not (given == np.rint(given)).all():
                raise DataError(
                    "states must be whole numbers 0, 1, ...; make categories of real values first"
                )
            given = given.astype(np.int64)
        counts = LatentCounts.from_rows(
            given,
            levels=None if levels is None else tuple(int(m) for m in levels),
            names=None if names is None else _names(names),
        )
        if weights is not None:
            # Equal rows are not merged: their weights would be added in the order of the rows.
            counts = LatentCounts(
                given.astype(np.uint8),
                np.asarray(weights, dtype=np.float64),
                counts.levels,
                counts.names,
            )
    if len(set(counts.names)) != len(counts.names):
        raise DataError("the names of the variables must differ")
    return counts


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(name) for name in names)


# --- Which score a search maximises: by its name, and over the joint states that may occur

#: With more joint states than this lean tables would take too long to fit.
MAX_LEAN_STATES = 1 << 13


def choose_score(levels: tuple[int, ...]) -> str:
    """Return the score that suits variables with so many ordered levels, by name.

    BDeu for binary ones. Free tables of more levels have so many cells that weak edges cannot pay
    for them, whatever the score: there tables may be lean, unless variables are too many for it.
    """
    if max(levels) == 2:
        return "bdeu"
    return "lean" if math.prod(levels) <= MAX_LEAN_STATES else "bic"


def make_score(
    score: str | LocalScore,
    counts: LatentCounts,
    equivalent_sample_size: float = 1.0,
    knowledge: Knowledge | None = None,
) -> LocalScore:
    """Return the named score of these counts, or ``score`` itself if it is one already.

    Parameters
    ----------
    score : str or LocalScore
    counts : LatentCounts
    equivalent_sample_size : float
        Weight of BDeu's prior, in rows.
    knowledge : Knowledge, optional
        Of which a hierarchy rules joint states out, see :func:`possible_of`.
    """
    if not isinstance(score, str):
        if not isinstance(score, LocalScore):
            raise SettingError(f"score must be {KNOWN_SCORES}, got {score!r}")
        return score
    possible = possible_of(counts, knowledge)
    if score == "lean":
        return LeanScore(counts, possible)
    if possible is None:
        return CountScore(counts, score, equivalent_sample_size)
    return PossibleScore(counts, score, equivalent_sample_size, possible)


def possible_of(counts: LatentCounts, knowledge: Knowledge | None) -> NDArray[np.bool_] | None:
    """Return the joint states that a hierarchy allows, one axis per variable.

    None where there is no hierarchy, where some row contradicts it, and where states are too many
    to be listed: then no state counts as ruled out.
    """
    if knowledge is None or not knowledge.hierarchy or not StateSpace(counts.levels).listable:
        return None
    possible = knowledge.possible_states(counts.names, counts.levels)
    seen = counts.states[counts.weights > 0]
    return possible if bool(possible[tuple(seen.T)].all()) else None


# ---

#: A search of one's own: it gets the score, the names and the knowledge, and returns a graph or
#: an adjacency, shape (K, K).
GraphSearch = Callable[
    [LocalScore, tuple[str, ...], Knowledge | None], "CPDAG | DAG | NDArray[np.integer[Any]]"
]

#: So many variables are searched one and all where equivalent graphs need not score alike.
MAX_EXACT_LEAN_VARIABLES = 6
#: Weights of BDeu's prior, in rows, that are tried when the data are to choose one.
EQUIVALENT_SAMPLE_SIZES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    graph : CPDAG
        Without knowledge the completed graph of an equivalence class (``graph.is_valid()``);
        with knowledge the graph of those members of the class that agree with it, closed under
        Meek's rules (``graph.is_closed()``).
    score : float
        Score of every member.
    n_scores : int
        Local scores computed; 0 if a search of one's own asked for them.
    n_steps : int
        Operators applied, those of abandoned trials included.
    dag : DAG
        The member that was scored: the best one where that was looked for.
    """

    graph: CPDAG
    score: float
    n_scores: int
    n_steps: int
    dag: DAG


def discover(
    data: LatentCounts | ArrayLike,
    *,
    score: str | LocalScore = "bdeu",
    equivalent_sample_size: float | str = 1.0,
    search: str | GraphSearch = "xges",
    knowledge: Knowledge | None = None,
    weights: ArrayLike | None = None,
    levels: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    max_parents: int | None = None,
) -> CPDAG:
    """Return the graph of discrete variables that a score-based search finds.

    Parameters
    ----------
    data : LatentCounts or array_like of int, shape (n, K)
        Weighted configurations, or rows of levels 0, 1, ...
    score : "bdeu", "bic", "lean" or LocalScore
        ``"lean"`` is BIC for variables whose levels have an order: a table may be described by
        fewer numbers than it has cells (see :mod:`hidag.latent.conditional_tables`).
    equivalent_sample_size : float or "auto"
        Weight of BDeu's prior, in rows. "auto" is 1 for binary variables; for more levels, whose
        tables have many more cells, the weight under which the data are most probable.
    search : "xges", "ges", "exact" or callable
        ``"xges"`` goes on after the first optimum and is the more accurate; ``"ges"`` is the
        search of the paper; ``"exact"`` finds the best graph of at most 12 variables, and so does
        ``"xges"`` with the score ``"lean"`` of at most 6. A callable
        gets ``(score, names, knowledge)`` and returns a graph or an adjacency.
    knowledge : Knowledge, optional
        Edges that must or must not be there.
    weights : array_like, shape (n,), optional
        Weights of the rows, not necessarily whole.
    levels : sequence of int, length K, optional
        Number of levels of each variable; default the largest level that occurs, plus 1.
    names : sequence of str, length K, optional
        Default those of the counts, or ``Z1 .. ZK``.
    max_parents : int, optional
        Bound on the parents that a step of the search gives to a variable.

    Returns
    -------
    CPDAG
        See :class:`SearchResult`.

    Notes
    -----
    The answer does not depend on the order of the rows. A new order of the columns reorders the
    answer and nothing else: scores are exact to the last bit in any order, and exact ties are
    settled by content. What remains are variables with the same scores alone and with each
    other variable, for instance two columns that are equal up to the names of their levels;
    among those the first column goes first.
    """
    return search_graph(
        data,
        score=score,
        equivalent_sample_size=equivalent_sample_size,
        search=search,
        knowledge=knowledge,
        weights=weights,
        levels=levels,
        names=names,
        max_parents=max_parents,
    ).graph


def search_graph(
    data: LatentCounts | ArrayLike,
    *,
    score: str | LocalScore = "bdeu",
    equivalent_sample_size: float | str = 1.0,
    search: str | GraphSearch = "xges",
    knowledge: Knowledge | None = None,
    weights: ArrayLike | None = None,
    levels: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    max_parents: int | None = None,
    cache: ScoreCache | None = None,
) -> SearchResult:
    """Return the graph with its score and the work done; parameters as in :func:`discover`.

    ``cache`` holds local scores of the same score and counts, for searches that ask for the same.
    """
    counts = as_counts(data, weights=weights, levels=levels, names=names)
    knowledge = check_knowledge(knowledge)
    if max_parents is not None and (max_parents != int(max_parents) or max_parents < 0):
        raise SettingError(f"max_parents must be a whole number >= 0 or None, got {max_parents!r}")
    weight = choose_sample_size(counts, equivalent_sample_size, score, knowledge, max_parents)
    made = make_score(score, counts, weight, knowledge)
    n = counts.n_variables
    rules = None if knowledge is None else knowledge.constraints(counts.names)
    required = None if knowledge is None else knowledge.required_adjacency(counts.names)
    cache = ScoreCache(made, n) if cache is None else cache
    n_steps, n_known = 0, cache.n_scores
    member: DAG | None = None
    if isinstance(made, LeanScore) and search == "xges" and n <= MAX_EXACT_LEAN_VARIABLES:
        # Steps between classes look at one member of each, and another may score better.
        search = "exact"
    if callable(search):
        adjacency = _own_search(search(made, counts.names, knowledge), counts.names, rules)
    elif search == "exact":
        dag = best_dag(cache, n, rules=rules, required=required, max_parents=max_parents)
        member = DAG(dag)
        adjacency = orient_by_knowledge(member.to_cpdag().adjacency, rules)
    elif search in ("ges", "xges"):
        engine = Engine(made, n, rules, max_parents, cache)
        state = (ges if search == "ges" else xges)(engine, required)
        adjacency = engine.adjacency(state)
        n_steps = engine.n_steps
    else:
        raise SettingError(f"search must be 'xges', 'ges', 'exact' or a callable, got {search!r}")
    graph = CPDAG(adjacency, counts.names)
    if member is None or not isinstance(made, LeanScore):
        member = graph.to_dag()
    return SearchResult(
        graph, graph_score(made, member.parents), cache.n_scores - n_known, n_steps, member
    )


def choose_sample_size(
    counts: LatentCounts,
    given: float | str = "auto",
    score: str | LocalScore = "bdeu",
    knowledge: Knowledge | None = None,
    max_parents: int | None = None,
) -> float:
    """Return the weight of BDeu's prior in rows: as given, or for "auto" as the data ask for.

    One row spread over a table of many cells makes edges between latents with several levels all
    but impossible. Of a few weights the one is taken under which the best graph's marginal
    likelihood is highest (empirical Bayes). Binary variables keep the customary weight of one row.
    """
    if not isinstance(given, str):
        return given
    if given != "auto":
        raise SettingError(
            f"equivalent_sample_size must be a positive number or 'auto', got {given!r}"
        )
    if score != "bdeu" or max(counts.levels) == 2 or counts.n_variables == 1:
        return 1.0
    found = [
        search_graph(
            counts,
            equivalent_sample_size=weight,
            search="ges",
            knowledge=knowledge,
            max_parents=max_parents,
        ).score
        for weight in EQUIVALENT_SAMPLE_SIZES
    ]
    return EQUIVALENT_SAMPLE_SIZES[int(np.argmax(found))]


def _own_search(
    found: CPDAG | DAG | NDArray[np.integer[Any]],
    names: tuple[str, ...],
    rules: NDArray[np.uint8] | None,
) -> NDArray[np.int8]:
    """Return the completed adjacency of what a search of one's own returned."""
    adjacency = found.adjacency if isinstance(found, (CPDAG, DAG)) else np.asarray(found)
    if adjacency.shape != (len(names), len(names)):
        raise GraphError(
            f"the search returned a graph of shape {adjacency.shape} for {len(names)} variables"
        )
    return orient_by_knowledge(CPDAG(adjacency, names).to_dag().to_cpdag().adjacency, rules)


__all__ = ["GraphSearch", "SearchResult", "discover", "search_graph"]
