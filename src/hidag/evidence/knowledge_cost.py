"""Do the observed data speak against what was told about the graph beforehand?

The law over the graph that obeys is held against the law over the graph that the same search finds
when it is told nothing. Both are fitted to the observed data with the items held, so the difference
is the least that knowledge costs: items were fitted along with it, and free items could only gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hidag.discover import CPDAG, Knowledge, SearchResult
from hidag.discover.rules import pairs_kept_apart
from hidag.evidence.likelihood_search import LikelihoodSearch
from hidag.evidence.observed import ObservedFit

#: Log-likelihood beyond its price from which evidence is called very strong (twice it: 10).
VERY_STRONG = 5.0


@dataclass(frozen=True)
class KnowledgeCost:
    """What the data have against knowledge about the graph.

    Attributes
    ----------
    log_likelihood : float
        What the observed data's log-likelihood loses by it.
    saved : float
        What the fewer numbers of the law that obeys are worth in the same units: half log N each.
    pairs : tuple of (name, name, float)
        Pairs that were kept apart and alone cost more than they save, and how much log-likelihood;
        the dearest first. Empty also where pairs are too many to be asked one by one.
    """

    log_likelihood: float
    saved: float
    pairs: tuple[tuple[str, str, float], ...] = ()

    @property
    def strong(self) -> bool:
        """Whether the data speak strongly against it."""
        # What obeys may need more numbers than what need not: that is no word against it.
        return bool(self.log_likelihood - max(self.saved, 0.0) > VERY_STRONG)


def cost_of_knowledge(
    graph: CPDAG,
    search: Callable[[Knowledge], SearchResult],
    knowledge: Knowledge,
    observed: ObservedFit,
    *,
    max_pairs: int,
) -> KnowledgeCost | None:
    """Return what knowledge costs where the data speak strongly against it, or None.

    Prerequisites are taken for granted here: states that they rule out have no mass in any law.

    Parameters
    ----------
    graph : CPDAG
        It obeys.
    search : callable
        Repeats the search under other knowledge.
    knowledge : Knowledge
    observed : ObservedFit
    max_pairs : int
        Pairs that are asked one by one, at the most.
    """
    fits = LikelihoodSearch(observed)
    obeying = fits.fitted(graph.to_dag().parents, observed.law)

    def cost(freer: Knowledge) -> KnowledgeCost:
        other = fits.fitted(search(freer).dag.parents, observed.law)
        loss = other.log_likelihood - obeying.log_likelihood
        return KnowledgeCost(loss, loss - (other.criterion - obeying.criterion))

    whole = cost(Knowledge(hierarchy=knowledge.hierarchy))
    if not whole.strong:
        return None
    names = graph.names
    told = knowledge.among(names)
    apart = pairs_kept_apart(told, names)
    alone = []
    for a, b in apart if len(apart) <= max_pairs else ():
        others = tuple(edge for edge in told.forbidden if set(edge) != {a, b})
        found = cost(replace(told, forbidden=others))
        if found.strong:
            alone.append((names[a], names[b], found.log_likelihood))
    return replace(whole, pairs=tuple(sorted(alone, key=lambda one: -one[2])))
