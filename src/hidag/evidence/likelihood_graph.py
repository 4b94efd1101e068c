"""Stage III where items hardly show latents: the graph that the observed data speak for."""

from __future__ import annotations

from hidag.discover import CPDAG, DAG, Knowledge, SearchResult
from hidag.discover.rules import directed_further
from hidag.discover.scores import LocalScore
from hidag.evidence.edge_tests import Confirmed, EdgeTest
from hidag.evidence.likelihood_search import FittedGraph, LikelihoodSearch
from hidag.evidence.observed import ObservedFit
from hidag.evidence.single_changes import SingleChanges, edges_of


def better_by_likelihood(
    found: SearchResult, observed: ObservedFit, score: LocalScore, knowledge: Knowledge | None
) -> Confirmed:
    """Return the graph that a search by likelihood leads to from one that counts have shown.

    Every edge of it comes with its test: what the likelihood loses without it, and what the law's
    fewer numbers save.

    Parameters
    ----------
    found : SearchResult
    observed : ObservedFit
    score : LocalScore
        Of the counts.
    knowledge : Knowledge or None
    """
    names = found.graph.names
    rules = None if knowledge is None else knowledge.rules(names)
    search = LikelihoodSearch(observed, SingleChanges(rules))
    best = search.best_from(found.dag.parents)
    completed = DAG.from_parents(best.parents, names).to_cpdag().adjacency
    graph = CPDAG(directed_further(completed, rules), names)
    return Confirmed(graph, _tests(search, best, score, names), best.law, by_likelihood=True)


def _tests(
    search: LikelihoodSearch, best: FittedGraph, score: LocalScore, names: tuple[str, ...]
) -> tuple[EdgeTest, ...]:
    """Return the tests of the edges that may be taken out, the weakest first."""
    tests = []
    for a, k in edges_of(best.parents):
        parents = search.changes.parted(best.parents, a, k)
        if parents is None:
            continue
        other = search.fitted(parents, best.law)
        lost = best.log_likelihood - other.log_likelihood
        saved = lost - (best.criterion - other.criterion)
        loss = score.local(k, best.parents[k]) - score.local(k, parents[k])
        tests.append(EdgeTest((names[a], names[k]), float(loss), lost, saved, bool(lost > saved)))
    return tuple(sorted(tests, key=lambda test: test.likelihood_loss - test.saved))
